"""What the studio shows of cells: gates and states over a sentence, gradients by distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqloom.errors import ConfigError, InputError, one_of

if TYPE_CHECKING:
    from torch import Tensor

MAX_WORDS, MAX_UNITS, MAX_DISTANCE = 60, 32, 200
FLOW_ROWS, DIGITS = 8, 5


def describe_cells() -> dict[str, Any]:
    """Every cell by name, with what it is in a line and its equations."""
    from seqloom.nn.cells import CELLS

    rows = []
    for name, cell in CELLS.items():
        summary = (cell.__doc__ or name).strip().splitlines()[0]
        rows.append(
            {
                "name": name,
                "summary": summary,
                "gates": list(cell.gates),
                "states": list(cell.states),
                "equations": cell.equations(),
            }
        )
    return {"cells": rows}


def steps_of_model(model: Any, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Gates and states of a fitted recurrent language model over a text, the end of a sentence
    before it.

    Args:
        model: A `LanguageModel`.
        payload: "text", "layer" (from 0) and "units", how many of them.

    Raises:
        ConfigError: If the model is not of recurrent layers, or there is no such layer.
    """  # noqa: D205
    import torch

    from seqloom.models.recurrent_lm import RecurrentLM

    network = model.model_
    if not isinstance(network, RecurrentLM):
        raise ConfigError(
            f"gates are shown of recurrent language models (rnn, lstm, gru, peephole, recurrent), "
            f"got arch={model.arch_!r}; choose another model, or a cell without training"
        )
    reader = model.reader
    words = reader.words(_text(payload))[:MAX_WORDS]
    words = [model.vocabulary_.specials.eos, *words]
    ids = torch.as_tensor(model.vocabulary_.encode(words))
    stacks = [network.rnn] if network.last is None else [network.rnn, network.last]
    layer, layers = int(payload.get("layer", 0)), sum(stack.num_layers for stack in stacks)
    if not 0 <= layer < layers:
        raise ConfigError(f"layer must lie between 0 and {layers - 1}, got {layer}")
    with torch.no_grad():
        inputs = network.embedding(ids)
        stack = stacks[0]
        if layer >= stack.num_layers:
            inputs = stack(inputs[None]).outputs[0]
            layer, stack = layer - stack.num_layers, stacks[1]
    found = _steps(stack, inputs, layer, words, payload)
    return {**found, "trained": True, "layers": layers}


def steps_of_cell(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Gates and states of a cell with weights as they begin, over a text.

    Each word has a vector drawn by chance, the same wherever it occurs.

    Args:
        payload: "text", "cell", "hidden_size" and "seed".
    """
    import torch

    from seqloom.nn.cells import find_cell
    from seqloom.nn.recurrent import Recurrent
    from seqloom.text import TextConfig, TextPipeline

    cell = str(payload.get("cell", "lstm"))
    find_cell(cell)
    words = TextPipeline(TextConfig()).words(_text(payload))[:MAX_WORDS]
    size, seed = int(payload.get("hidden_size", 16)), int(payload.get("seed", 0))
    if not 1 <= size <= MAX_UNITS:
        raise ConfigError(f"hidden_size must lie between 1 and {MAX_UNITS}, got {size}")
    kinds = {word: i for i, word in enumerate(dict.fromkeys(words))}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = Recurrent(cell, size, size, backend="reference")
        vectors = torch.randn(len(kinds), size)
    inputs = vectors[[kinds[word] for word in words]]
    return {**_steps(layer, inputs, 0, words, payload), "trained": False, "layers": 1}


def gradient_distances(payload: Mapping[str, Any]) -> dict[str, Any]:
    """How far the gradient of a loss reaches back in cells with weights as they begin.

    Args:
        payload: "cells" (names), "distance", "hidden_size", "seed" and "remember": whether gates
            that keep the state begin open, as is usual.
    """
    import torch

    from seqloom.explain.gradients import gradient_flow
    from seqloom.explain.memory import open_gates
    from seqloom.nn.cells import CELLS
    from seqloom.nn.recurrent import Recurrent

    names: Sequence[str] = payload.get("cells") or list(CELLS)
    distance, size = int(payload.get("distance", 50)), int(payload.get("hidden_size", 16))
    for name in names:
        if name not in CELLS:
            raise ConfigError(one_of("cell", name, CELLS))
    if not 1 <= distance <= MAX_DISTANCE or not 1 <= size <= MAX_UNITS:
        raise ConfigError(
            f"distance must lie between 1 and {MAX_DISTANCE} and hidden_size between 1 and "
            f"{MAX_UNITS}, got {distance} and {size}"
        )
    layers = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(payload.get("seed", 0)))
        inputs = torch.randn(FLOW_ROWS, distance, size)
        for name in names:
            layer = Recurrent(name, size, size, backend="reference")
            if payload.get("remember"):
                open_gates(layer, None)
            layers[name] = (layer, _sum)
    flow = gradient_flow(layers, inputs, distance=distance)
    return {
        "by": flow.by,
        "distances": list(flow.distances),
        "norms": {name: list(norms) for name, norms in flow.norms.items()},
        "change": {name: flow.change(name) for name in flow.norms},
    }


def _sum(output: Tensor) -> Tensor:
    return output.sum(1)


def _text(payload: Mapping[str, Any]) -> str:
    text = str(payload.get("text", ""))
    if not text.strip():
        raise InputError("text must hold a word, got none; write a sentence")
    return text


def _steps(
    layer: Any, inputs: Tensor, number: int, words: Sequence[str], payload: Mapping[str, Any]
) -> dict[str, Any]:
    from seqloom.explain.steps import cell_steps

    steps = cell_steps(layer, inputs, number=number)
    units = min(int(payload.get("units", MAX_UNITS)), MAX_UNITS, layer.hidden_size)
    return {
        "cell": next(name for name, kind in _cells().items() if kind is layer.cell),
        "equations": list(steps.equations),
        "words": list(words),
        "units": layer.hidden_size,
        "values": {
            name: [[round(one, DIGITS) for one in row] for row in value[:, :units].tolist()]
            for name, value in steps.values.items()
        },
    }


def _cells() -> dict[str, Any]:
    from seqloom.nn.cells import CELLS

    return CELLS
