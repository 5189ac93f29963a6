"""A network as an ONNX graph that takes batches and sequences of any length."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from onnx import GraphProto, ModelProto, checker
from torch import Tensor, nn

from seqloom.errors import BackendError
from seqloom.export.matching import MATCH, match_symbol, traced_match, write_match
from seqloom.export.program import Axes, Program
from seqloom.export.recurrence import SYMBOL, symbol, write_recurrence
from seqloom.export.symbols import DOMAIN, Writer, write_symbols
from seqloom.nn.matching import RecurrentMatch
from seqloom.nn.recurrent import Recurrent

OPSET = 20
SYMBOLS: dict[Any, Any] = {
    torch.ops.seqloom.recurrent.default: symbol,
    torch.ops.seqloom.recurrent_match.default: match_symbol,
}
WRITERS: Mapping[str, Writer] = {SYMBOL: write_recurrence, MATCH: write_match}


def build_graph(program: Program) -> tuple[ModelProto, list[str]]:
    """Return the graph of a network, and what each of its recurrences became.

    torch traces the network with lengths that are symbols; what would fix one of them, or look at a
    value, is refused. A recurrence is one node of the trace and is written by
    `seqloom.export.recurrence`.

    Raises:
        BackendError: If the network does something that has no place in a graph.
    """
    network = program.network.eval()
    samples = tuple(each.sample.clone() for each in program.inputs)  # one tensor is one input
    shapes = tuple(_dynamic(each.axes) for each in program.inputs)
    with _quiet(), torch.no_grad():
        try:
            with _running_by(network, "reference"):
                network(*samples)  # what is built at first use is there when it is traced
            with _running_by(network, "cpu"), _loops_as_nodes(network):
                traced = torch.export.export(
                    _Listed(network), (samples,), dynamic_shapes=(shapes,), strict=False
                )
            written = torch.onnx.export(
                traced,
                dynamo=True,
                opset_version=OPSET,
                custom_translation_table=SYMBOLS,
                input_names=[each.name for each in program.inputs],
                output_names=[each.name for each in program.outputs if not each.added],
                verbose=False,
            )
        except (RuntimeError, ValueError, torch.onnx.OnnxExporterError) as error:
            first = str(error).strip().splitlines()[0]
            raise BackendError(
                f"{type(network).__name__} cannot be exported to ONNX ({first}); use the model "
                "directory with seqloom.load"
            ) from error
    assert written is not None
    model: ModelProto = written.model_proto
    became = write_symbols(model.graph, WRITERS)
    if program.finish is not None:
        program.finish(model.graph)
    for place in reversed(range(len(model.opset_import))):
        if model.opset_import[place].domain == DOMAIN:
            del model.opset_import[place]
    _name_axes(model.graph, program)
    checker.check_model(model)
    return model, became


class _Listed(nn.Module):
    """A network that takes its inputs as one list, whatever their number."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Sequence[Tensor]) -> Any:
        """Call the network."""
        return self.network(*inputs)


def _dynamic(axes: Axes) -> dict[int, Any]:
    return {i: torch.export.Dim.DYNAMIC for i, axis in enumerate(axes) if isinstance(axis, str)}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch's own remarks on its exporter to itself."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


@contextmanager
def _running_by(network: nn.Module, backend: str) -> Iterator[None]:
    """Let recurrent layers run by a backend, and nothing be learned."""
    layers = [module for module in network.modules() if isinstance(module, Recurrent)]
    backends = [layer.backend for layer in layers]
    learned = [weight for weight in network.parameters() if weight.requires_grad]
    try:
        for layer in layers:
            layer.backend = backend
        for weight in learned:
            weight.requires_grad_(False)
        yield
    finally:
        for layer, own in zip(layers, backends, strict=True):
            layer.backend = own
        for weight in learned:
            weight.requires_grad_(True)


@contextmanager
def _loops_as_nodes(network: nn.Module) -> Iterator[None]:
    """Let loops over words be one node of a trace, as recurrences by the backend "cpu" are."""
    loops = [module for module in network.modules() if isinstance(module, RecurrentMatch)]
    try:
        for loop in loops:
            loop.forward = partial(traced_match, loop)  # type: ignore[method-assign]
        yield
    finally:
        for loop in loops:
            del loop.forward


def _name_axes(graph: GraphProto, program: Program) -> None:
    """Give the axes of inputs and outputs the names they are described by."""
    del graph.value_info[:]  # it speaks of axes by the names they had
    described: dict[str, Axes] = {each.name: each.axes for each in program.inputs}
    described |= {each.name: each.axes for each in program.outputs}
    for value in (*graph.input, *graph.output):
        shape = value.type.tensor_type.shape
        for place, axis in zip(shape.dim, described[value.name], strict=True):
            place.Clear()
            if isinstance(axis, str):
                place.dim_param = axis
            else:
                place.dim_value = axis
