"""Gradients against finite differences, every result by every number that goes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

EPS, ATOL, RTOL = 1e-6, 1e-5, 1e-3  # as torch.autograd.gradcheck has them
Run = Callable[..., Sequence[Tensor]]


def assert_gradients_match(run: Run, given: Sequence[Tensor], *, together: bool = False) -> None:
    r"""Compare all derivatives with $(f(x + \epsilon) - f(x - \epsilon)) / 2 \epsilon$.

    As `torch.autograd.gradcheck` does, in half the time: numbers are changed in place, and what is
    run for the differences is run without gradients. Gradients must be the same each time, and
    none must come of results whose own gradients are undefined.

    Args:
        run: Called with what is given, gives results.
        given: In double precision, wanting gradients.
        together: Whether `torch.vmap` can take all differences by a tensor at once: of plain
            operations of torch, on no tensors but those it is called with.
    """
    assert all(each.dtype == torch.float64 and each.requires_grad for each in given)
    expected = (_differences_together if together else _differences)(run, given)
    found, again = _gradients(run, given), _gradients(run, given)
    torch.testing.assert_close(found, expected, atol=ATOL, rtol=RTOL)
    assert torch.equal(found, again)
    _assert_undefined_gives_none(run, given)


def with_weights(module: nn.Module, weights: Sequence[Tensor], *given: object) -> object:
    """What a module gives with these weights in place of its own."""
    names = [name for name, _ in module.named_parameters()]
    return torch.func.functional_call(module, dict(zip(names, weights, strict=True)), given)


def _gradients(run: Run, given: Sequence[Tensor]) -> Tensor:
    """By autograd, a row for each number that goes in, a column for each that comes out."""
    columns = []
    for results in run(*given):
        for result in results.flatten():
            parts = torch.autograd.grad(result, given, retain_graph=True, allow_unused=True)
            filled = [
                torch.zeros_like(each) if part is None else part
                for part, each in zip(parts, given, strict=True)
            ]
            columns.append(torch.cat([part.flatten() for part in filled]))
    return torch.stack(columns, dim=1)


def _assert_undefined_gives_none(run: Run, given: Sequence[Tensor]) -> None:
    undefined = torch._C._functions.UndefinedGrad()  # as gradcheck makes them
    results = [undefined(each) for each in run(*given)]
    weights = [torch.ones_like(each) for each in results]
    parts = torch.autograd.grad(results, given, weights, allow_unused=True)
    assert all(part is None or not part.any() for part in parts)


def _joined(results: Sequence[Tensor]) -> Tensor:
    return torch.cat([result.flatten() for result in results])


@torch.no_grad()
def _differences(run: Run, given: Sequence[Tensor]) -> Tensor:
    """The same by differences."""
    rows = []
    for each in given:
        numbers = each.detach().view(-1)
        for place, kept in enumerate(numbers.tolist()):
            ends = []
            for end in (kept + EPS, kept - EPS):
                numbers[place] = end
                ends.append(_joined(run(*given)))
            numbers[place] = kept
            rows.append((ends[0] - ends[1]) / (2 * EPS))
    return torch.stack(rows)


@torch.no_grad()
def _differences_together(run: Run, given: Sequence[Tensor]) -> Tensor:
    """The same, all that belong to one tensor in one call."""
    rows, plain = [], [each.detach() for each in given]
    for place, each in enumerate(plain):
        steps = EPS * torch.eye(each.numel(), dtype=each.dtype).view(-1, *each.shape)

        def changed(value: Tensor, place: int = place) -> Tensor:
            return _joined(run(*plain[:place], value, *plain[place + 1 :]))

        ends = torch.vmap(changed, randomness="same")(torch.cat([each + steps, each - steps]))
        more, less = ends.chunk(2)
        rows.append((more - less) / (2 * EPS))
    return torch.cat(rows)
