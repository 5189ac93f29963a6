"""The recurrence that asks at every step, by Triton's interpreter, against the visible loop."""

from __future__ import annotations

import pytest

from interpreting import interpreted

CHECK = """
import torch
from seqloom.nn.matching import RecurrentMatch

def inputs(B, T, S, D, dtype):
    draw = torch.Generator().manual_seed(B * T + S)
    items = torch.randn(B, T, D, generator=draw, dtype=torch.float64)
    keys = torch.randn(B, S, D, generator=draw, dtype=torch.float64)
    lengths = torch.randint(1, T + 1, (B,), generator=draw)
    asked = torch.randint(1, S + 1, (B,), generator=draw)
    lengths[0], asked[0], lengths[-1] = T, S, 1
    real = torch.arange(T)[None] < lengths[:, None]
    known = torch.arange(S)[None] < asked[:, None]
    leaves = [each.to(dtype).requires_grad_() for each in (items, keys)]
    return leaves, known, real

def run(method, layer, B, T, S, D, dtype):
    (items, keys), known, real = inputs(B, T, S, D, dtype)
    found = getattr(layer, method)(items, keys, known, real)
    states = found.outputs
    assert not states[~real].any()
    worth = torch.linspace(-1, 1, states.numel(), dtype=dtype).view_as(states)
    (states * worth).sum().backward()
    shares = found.weights.detach() * real[..., None]
    grads = [items.grad, keys.grad, *(w.grad for w in layer.parameters())]
    return [states.detach(), shares, *grads]

for gated in {gated}:
    for B, T, S, D, H in {shapes}:
        torch.manual_seed(B)
        layer = RecurrentMatch(D, H, gated=gated)
        exact = RecurrentMatch(D, H, gated=gated).double()
        exact.load_state_dict(layer.state_dict())
        one = run("at_once", layer, B, T, S, D, torch.float32)
        again = RecurrentMatch(D, H, gated=gated)
        again.load_state_dict(layer.state_dict())
        two = run("at_once", again, B, T, S, D, torch.float32)
        assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
        other = run("forward", exact, B, T, S, D, torch.float64)
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            error = float((a - b).norm() / (b.norm() + 1e-9))
            assert error < 1e-5, (gated, B, T, S, D, H, number, error)
        print("ok")
"""
SHAPES = [(1, 1, 1, 2, 3), (3, 5, 4, 6, 5), (2, 4, 17, 33, 16), (2, 3, 3, 40, 20)]


@pytest.mark.parametrize("gated", [True, False])
def test_all_steps_at_once_are_the_loop_by_the_interpreter(gated):
    done = interpreted(CHECK.format(gated=[gated], shapes=SHAPES))
    assert done.stdout.split() == ["ok"] * len(SHAPES), done.stderr[-2000:]


def test_what_a_program_cannot_hold_is_left_to_the_loop():
    from seqloom.kernels.asking import fits

    assert fits(75, 60) and fits(128, 128)
    assert not fits(129, 4) and not fits(4, 129)
