"""The scores of additive attention by Triton's interpreter, against torch in 64 bits."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses import FakeTensorMode

from interpreting import interpreted
from seqloom.kernels import additive
from seqloom.kernels.additive import takes

COMMON = """
import torch
from seqloom.kernels.additive import run_additive
from seqloom.nn import scores

torch.use_deterministic_algorithms(True)  # which fills what is empty with NaN
assert torch.empty(3).isnan().all() and torch.zeros(3).bfloat16().new_empty(2).isnan().all()

def laid(shape, draw, turned):  # contiguous, or every second number of what is turned
    if not turned:
        return torch.randn(*shape, generator=draw)
    *rows, length, width = shape
    return torch.randn(*rows, 2 * width, length, generator=draw).mT[..., ::2]

def inputs(B, T, S, A, dtype, turned, wide_weight=False):
    draw = torch.Generator().manual_seed(B * T + S)
    own, prepared = laid((B, T, A), draw, turned), laid((B, S, A), draw, turned)
    weight, worth = torch.randn(1, A, generator=draw), laid((B, T, S), draw, turned)
    own, prepared, worth = (each.to(dtype) for each in (own, prepared, worth))
    return own, prepared, weight if wide_weight else weight.to(dtype), worth

def run(method, own, prepared, weight, worth):
    leaves = [each.detach().requires_grad_() for each in (own, prepared, weight)]
    found = method(*leaves)
    return [found.detach(), *torch.autograd.grad(found, leaves, worth)]

def compare(given, method=run_additive, most={most}):
    one, two = run(method, *given), run(method, *given)
    exact = run(scores.added_scores, *(each.double() for each in given))
    for number, (a, b, c) in enumerate(zip(one, two, exact, strict=True)):
        assert a.shape == c.shape and torch.equal(a, b), number
        limit = most[a.dtype]
        error = float((a.double() - c).norm() / (c.norm() + 1e-9))
        assert error < limit, (tuple(c.shape), number, error, limit)
    assert [each.dtype for each in one[1:]] == [each.dtype for each in given[:3]]
    print("ok")
"""
# Of a tanh near 0 the difference of two rounded numbers is left; the interpreter cuts bfloat16 off.
MOST = "{torch.float32: 4e-6, torch.bfloat16: 4e-3, torch.float16: 5e-4}"
SHAPES = [
    (1, 1, 1, 1), (3, 1, 1, 5), (3, 1, 7, 75), (2, 1, 33, 600), (3, 7, 1, 130), (2, 2, 3, 5),
    (3, 4, 18, 75), (1, 8, 5, 130), (3, 9, 16, 16), (1, 33, 18, 75), (1, 3, 2, 1030),
]  # fmt: skip


def check(code: str, times: int) -> None:
    done = interpreted(COMMON.replace("{most}", MOST) + code)
    assert done.stdout.split() == ["ok"] * times, done.stderr[-2000:]


@pytest.mark.parametrize("turned", [False, True], ids=["contiguous", "turned"])
def test_scores_and_gradients_are_those_of_torch_by_the_interpreter(turned):
    code = f"for shape in {SHAPES}: compare(inputs(*shape, torch.float32, {turned}))"
    check(code, len(SHAPES))


def test_narrow_numbers_are_added_in_32_bits():
    """The weights may be wider, as under autocast; their gradients are as they are."""
    code = """
for dtype in (torch.bfloat16, torch.float16):
    for wide_weight in (False, True):
        for shape in ((3, 1, 7, 75), (2, 10, 18, 40)):
            compare(inputs(*shape, dtype, False, wide_weight))
own, prepared, weight, worth = inputs(2, 3, 4, 5, torch.float32, False)
assert run_additive(own.bfloat16(), prepared.bfloat16(), weight).dtype == torch.bfloat16
compare((own.bfloat16(), prepared, weight, worth))
"""
    check(code, 9)


def test_axes_before_the_last_two_are_broadcast():
    code = """
draw = torch.Generator().manual_seed(1)
for one, other in (((2, 3), (2, 3)), ((2, 1), (3,)), ((), (2,)), ((), ())):
    own, prepared = torch.randn(*one, 4, 5), torch.randn(*other, 6, 5)
    rows = torch.broadcast_shapes(one, other)
    compare((own, prepared, torch.randn(1, 5), torch.randn(*rows, 4, 6)))
"""
    check(code, 4)


def test_layers_score_by_the_kernels_as_by_torch():
    code = """
for kind in (scores.Additive, scores.Concat):
    torch.manual_seed(2)
    layer = kind(3, 4, 6)
    query, keys = torch.randn(2, 5, 3), torch.randn(2, 7, 4)
    found = []
    for takes in (False, True):
        scores.takes = lambda *_, takes=takes: takes
        score = layer(query, layer.prepare(keys))
        found.append([score, *torch.autograd.grad(score.square().sum(), layer.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    print("ok")
"""
    check(code, 2)


def test_only_what_is_asked_for_is_computed_and_only_once():
    code = """
own, prepared, weight, worth = inputs(2, 5, 6, 7, torch.float32, False)
every = run(run_additive, own, prepared, weight, worth)
for number in range(3):
    given = [own, prepared, weight]
    given[number] = given[number].clone().requires_grad_()
    (found,) = torch.autograd.grad(run_additive(*given), given[number], worth)
    assert torch.equal(found, every[1 + number])
(d_own,) = torch.autograd.grad(
    run_additive(leaf := own.clone().requires_grad_(), prepared, weight).square().sum(), leaf,
    create_graph=True,
)
try:
    d_own.sum().backward()
except RuntimeError as error:
    assert "once_differentiable" in str(error)
    print("ok")
"""
    check(code, 1)


def test_kernels_are_for_many_scores_on_a_card_in_32_or_16_bits(monkeypatch):
    monkeypatch.setattr(additive, "has_triton", lambda: True)
    monkeypatch.setattr(additive, "MANY", 2 * 3 * 5 * 4)
    plain = torch.zeros(2, 3, 4), torch.zeros(2, 5, 4), torch.zeros(1, 4)
    assert not takes(*plain)
    with FakeTensorMode():
        there = [torch.empty(each.shape, device="cuda") for each in plain]
        assert takes(*there)
        assert takes(*(each.bfloat16() for each in there))
        assert not takes(*(each.double() for each in there))
        assert not takes(torch.empty(2, 0, 4, device="cuda"), *there[1:])
        assert not takes(torch.empty(2, 2, 4, device="cuda"), *there[1:])
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
        assert not takes(*there)
        monkeypatch.undo()
        monkeypatch.setattr(additive, "has_triton", lambda: False)
        assert not takes(*there)
