"""Checkpoints: one safetensors file that holds everything a run needs to go on.

A file is written beside its place, flushed to disk and renamed over it, so a kill at any moment
leaves either the old file or the new one. Tensors lie under a prefix a part ("model.",
"optimizer.", "average.", "carry.", "rng."); plain values are JSON in the file's header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from seqloom.errors import DataError
from seqloom.files import written_beside

FORMAT = 1
HEADER = "seqloom"


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds: tensors by part and name, and plain values."""

    tensors: Mapping[str, Mapping[str, Tensor]]
    values: Mapping[str, Any]


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint so that a kill never leaves half a file."""
    flat = {}
    for part, tensors in checkpoint.tensors.items():
        for name, tensor in tensors.items():
            # A copy where memory is shared (tied weights): safetensors stores each tensor apart.
            flat[f"{part}.{name}"] = tensor.detach().cpu().contiguous().clone()
    values = {"format": FORMAT, **checkpoint.values}
    try:
        with written_beside(path) as beside:
            save_file(flat, beside, metadata={HEADER: json.dumps(values)})
    except (OSError, SafetensorError) as error:
        raise DataError(f"cannot be written ({error}); the one before it is kept", path) from None


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        DataError: If it is missing, cut, altered in its structure, or of another format.
    """
    tensors: dict[str, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as file:
            values = json.loads((file.metadata() or {}).get(HEADER, "null"))
            if not isinstance(values, dict) or values.get("format") != FORMAT:
                found = values.get("format") if isinstance(values, dict) else None
                raise DataError(f"must be a checkpoint of format {FORMAT}, got {found!r}", path)
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                part, _, rest = name.partition(".")
                tensors.setdefault(part, {})[rest] = file.get_tensor(name)
    except FileNotFoundError:
        raise DataError("no such checkpoint; start without resuming", path) from None
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(f"is damaged or no checkpoint ({error})", path) from None
    return Checkpoint(tensors, values)


def pack_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split an optimizer's state into tensors and plain values."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    if isinstance(optimizer, torch.optim.LBFGS):
        return tensors, values  # the loop clears it: every step is a run of its own
    for index, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"{index}.{name}"] = value
            elif value is not None:
                values[f"{index}.{name}"] = value
    return tensors, values


def unpack_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], values: Mapping[str, Any]
) -> None:
    """Put a state that `pack_optimizer` took apart back into an optimizer of the same kind.

    Raises:
        RuntimeError: If it is the state of other weights.
    """
    state: dict[int, dict[str, Any]] = {}
    for key, value in (*values.items(), *tensors.items()):
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    _check_fits(optimizer, state)
    whole = optimizer.state_dict()
    whole["state"] = state
    optimizer.load_state_dict(whole)


def _check_fits(optimizer: torch.optim.Optimizer, state: Mapping[int, Mapping[str, Any]]) -> None:
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for index, values in state.items():
        if not 0 <= index < len(weights):
            raise RuntimeError(f"the optimizer has {len(weights)} weights, got state of {index}")
        for name, value in values.items():
            shape = tuple(weights[index].shape)
            if isinstance(value, Tensor) and value.ndim and tuple(value.shape) != shape:
                raise RuntimeError(
                    f"{name} of weight {index} must be of shape {shape}, got {tuple(value.shape)}"
                )


def random_state() -> dict[str, Tensor]:
    """The state of torch's generators on every device."""
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        for i, each in enumerate(torch.cuda.get_rng_state_all()):
            state[f"cuda{i}"] = each
    return state


def restore_random_state(state: Mapping[str, Tensor]) -> None:
    """Set torch's generators as they were; devices that are not here are passed over."""
    torch.set_rng_state(state["cpu"])
    for name, each in state.items():
        index = name.removeprefix("cuda")
        if index.isdigit() and int(index) < torch.cuda.device_count():
            torch.cuda.set_rng_state(each, int(index))
