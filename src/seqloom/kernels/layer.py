"""What a layer hands to a backend: a cell, its weights, how it runs and where it begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from seqloom.kernels.tracing import TracedCell


@dataclass(frozen=True)
class CellShape:
    """What a recurrence needs to know of a cell.

    Args:
        step: Its step.
        gates: Its gates, in the order their weights lie.
        states: Its states.
        vectors: Its per-unit vectors.
        late: The gates whose product is of something the step computes.
    """

    step: Callable[..., Any]
    gates: tuple[str, ...]
    states: tuple[str, ...]
    vectors: tuple[str, ...]
    late: tuple[str, ...]


@dataclass(frozen=True)
class Weights:
    """What a direction of a layer multiplies with, as `kernels.reference` has them."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    vectors: Sequence[Tensor]
    projection: Tensor | None

    def to(self, dtype: torch.dtype) -> Weights:
        """The same as other numbers, as under autocast."""
        if self.weight_hh.dtype == dtype:
            return self
        some = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self.projection)
        first, second, one, two, last = (w if w is None else w.to(dtype) for w in some)
        assert first is not None and second is not None
        return Weights(first, second, one, two, [v.to(dtype) for v in self.vectors], last)


@dataclass(frozen=True)
class Settings:
    """How it runs.

    Args:
        clip: The largest absolute value a state may have, or None.
        mask: What the first state is multiplied with before its product, or None.
        keep: By state, the share that stays at each step, or nothing.
        reverse: Whether it runs from each row's end to its beginning.
        bf16: Whether products are of numbers rounded to bfloat16.
    """

    clip: float | None = None
    mask: Tensor | None = None
    keep: Sequence[Tensor] = ()
    reverse: bool = False
    bf16: bool = False


@dataclass(frozen=True)
class Direction:
    """One direction of a layer, about to run: its weights, how it runs, and where it begins.

    Weights may be wider numbers than the input, as under autocast; states are as the input is.
    """

    weights: Weights
    settings: Settings
    states: Sequence[Tensor]


class Ran(NamedTuple):
    """What a layer gives.

    Args:
        outputs: The first state after each step, by direction.
        states: Every state after the last step, by direction.
    """

    outputs: Float[Tensor, "B T N R"]
    states: list[Float[Tensor, "N B _"]]

    @classmethod
    def joined(
        cls, outputs: Sequence[Float[Tensor, "B T R"]], states: Sequence[Sequence[Tensor]]
    ) -> Ran:
        """Of what each direction gave."""
        if len(outputs) == 1:
            return cls(outputs[0][:, :, None], [state[None] for state in states[0]])
        ends = [torch.stack(each) for each in zip(*states, strict=True)]
        return cls(torch.stack(list(outputs), dim=2), ends)


@dataclass(frozen=True)
class Kind:
    """A cell as the backends see it.

    Args:
        name: What it is called.
        shape: Its step, for the loop.
        traced: Its equations.
        key: What stands for them.
        torch_name: What torch calls it, or "" if torch does not have it.
    """

    name: str
    shape: CellShape
    traced: TracedCell
    key: str
    torch_name: str
