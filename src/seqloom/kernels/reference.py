"""The recurrence as a visible loop in plain PyTorch: what every faster backend must equal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from seqloom.kernels.layer import CellShape
from seqloom.kernels.tracing import call_step


def scan_reference(
    cell: CellShape,
    drive: Float[Tensor, "B T GH"],
    states: Sequence[Float[Tensor, "B _"]],
    weight_hh: Float[Tensor, "GH R"],
    bias_hh: Float[Tensor, " GH"] | None,
    vectors: Sequence[Float[Tensor, " H"]],
    lengths: Int[Tensor, " B"],
    *,
    projection: Float[Tensor, "R H"] | None = None,
    clip: float | None = None,
    state_mask: Float[Tensor, "B R"] | None = None,
    keep: Sequence[Float[Tensor, "B T _"]] | None = None,
) -> tuple[Float[Tensor, "B T R"], list[Tensor]]:
    """Run a cell over time. On padding the output is 0 and every state stays put.

    Args:
        cell: The cell.
        drive: W x + b for every gate, gate after gate.
        states: The states before the first step. Where there is a projection the first is R wide,
            and the step must not use it.
        weight_hh: U, gate after gate.
        bias_hh: b', gate after gate.
        vectors: The per-unit vectors.
        lengths: How many steps each row has.
        projection: What the first state is multiplied with after each step.
        clip: The largest absolute value a state may have.
        state_mask: What the first state is multiplied with before its product: the same at every
            step, for variational dropout.
        keep: By state, the share of its old value that stays at each step, for zoneout.

    Returns:
        The first state after each step, and every state after each row's last.
    """
    _, T, width = drive.shape
    size = width // len(cell.gates)
    rows = {g: slice(i * size, (i + 1) * size) for i, g in enumerate(cell.gates)}
    now = list(states)
    outputs = []

    def product(gate: str, value: Tensor) -> Tensor:
        bias = None if bias_hh is None else bias_hh[rows[gate]]
        return functional.linear(value, weight_hh[rows[gate]], bias)

    for t in range(T):
        alive = (t < lengths)[:, None]  # (B, 1)
        seen = now[0] if state_mask is None else now[0] * state_mask
        found = call_step(
            cell.step,
            x={g: drive[:, t, rows[g]] for g in cell.gates},
            u={g: product(g, seen) for g in cell.gates if g not in cell.late},
            s=dict(zip(cell.states, now, strict=True)),
            v=dict(zip(cell.vectors, vectors, strict=True)),
            late=product,
        )
        new = [torch.as_tensor(found[name]).to(drive) for name in cell.states]
        if projection is not None:
            new[0] = functional.linear(new[0], projection)
        for k, (value, old) in enumerate(zip(new, now, strict=True)):
            kept = value if keep is None else torch.lerp(value, old, keep[k][:, t])
            bounded = kept if clip is None else kept.clamp(-clip, clip)
            now[k] = torch.where(alive, bounded, old)
        outputs.append(torch.where(alive, now[0], 0.0))
    return torch.stack(outputs, dim=1), now
