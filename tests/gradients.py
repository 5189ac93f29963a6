"""Gradients against finite differences, every result by every number that goes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

EPS, ATOL, RTOL = 1e-6, 1e-5, 1e-3  # as torch.autograd.gradcheck has them


def assert_gradients_match(run: Callable[[], Sequence[Tensor]], given: Sequence[Tensor]) -> None:
    r"""Compare all derivatives with $(f(x + \epsilon) - f(x - \epsilon)) / 2 \epsilon$.

    As `torch.autograd.gradcheck` does, in half the time: numbers are changed in place, and what is
    run for the differences is run without gradients. Gradients must be the same each time.

    Args:
        run: Gives results; it uses the tensors given.
        given: In double precision, wanting gradients.
    """
    assert all(each.dtype == torch.float64 and each.requires_grad for each in given)
    expected = _differences(run, given)
    found, again = _gradients(run, given), _gradients(run, given)
    torch.testing.assert_close(found, expected, atol=ATOL, rtol=RTOL)
    assert torch.equal(found, again)


def _gradients(run: Callable[[], Sequence[Tensor]], given: Sequence[Tensor]) -> Tensor:
    """By autograd, a row for each number that goes in, a column for each that comes out."""
    columns = []
    for results in run():
        for result in results.flatten():
            parts = torch.autograd.grad(result, given, retain_graph=True, allow_unused=True)
            filled = [
                torch.zeros_like(each) if part is None else part
                for part, each in zip(parts, given, strict=True)
            ]
            columns.append(torch.cat([part.flatten() for part in filled]))
    return torch.stack(columns, dim=1)


@torch.no_grad()
def _differences(run: Callable[[], Sequence[Tensor]], given: Sequence[Tensor]) -> Tensor:
    """The same by differences."""
    rows = []
    for each in given:
        numbers = each.detach().view(-1)
        for place, kept in enumerate(numbers.tolist()):
            ends = []
            for end in (kept + EPS, kept - EPS):
                numbers[place] = end
                ends.append(torch.cat([result.flatten() for result in run()]))
            numbers[place] = kept
            rows.append((ends[0] - ends[1]) / (2 * EPS))
    return torch.stack(rows)
