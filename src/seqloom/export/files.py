"""Writing models for other places: an ONNX graph with a description beside it, or int8 weights."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from seqloom import __version__
from seqloom.errors import BackendError, ConfigError, DataError, one_of
from seqloom.files import written_beside
from seqloom.tasks.loading import load
from seqloom.tasks.packing import pack_model

if TYPE_CHECKING:
    from onnx import ModelProto

    from seqloom.export.program import Input, Output, Program

Products = Literal["full", "int8"]
FORMAT = 1  # of the description
NEEDED = ("onnx", "onnxscript", "onnxruntime")


class Exported(NamedTuple):
    """What `export_onnx` wrote.

    Args:
        graph: The file of the graph.
        description: The JSON file beside it.
    """

    graph: Path
    description: Path


def export_onnx(model: Any, out: str | PathLike[str], *, products: Products = "full") -> Exported:
    """Write a model as an ONNX graph, and a description of it as JSON beside it.

    Batches and sequences may be of any length; padding never changes a result. A language model has
    its state as inputs and outputs, so that a text can be read in pieces.

    Args:
        model: A fitted estimator, a model directory, or the name of a shipped model.
        out: The file of the graph; its description has the same name and ends in ".json".
        products: "full", or "int8" for products of 8-bit numbers: weights with a scale a column,
            inputs rounded as they come. That is faster and less exact; see the page on export.

    Raises:
        ConfigError: If the model cannot be exported.
        DataError: If the files cannot be written.
    """
    if products not in get_args(Products):
        raise ConfigError(one_of("products", products, get_args(Products)))
    path = Path(out)
    if path.suffix != ".onnx":
        raise ConfigError(f"out must end in .onnx, got {str(out)!r}")
    with _needing_onnx():
        from seqloom.export.graphs import build_graph
        from seqloom.export.programs import program_of

        estimator = load(model) if isinstance(model, str | PathLike) else model
        estimator.require_fitted()
        program = program_of(estimator)
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        graph, became = build_graph(program)
        _label(graph, estimator, program)
        if products == "int8":
            from seqloom.export.quantized import quantized

            graph = quantized(graph)
    content = graph.SerializeToString()
    beside = path.with_suffix(".json")
    description = {
        "format": FORMAT,
        "seqloom": __version__,
        "task": estimator.task,
        "architecture": estimator.arch_,
        "graph": {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()},
        "opset": _opset(graph),
        "products": products,
        "recurrences": dict(Counter(became)),
        "inputs": [_described(each, _kind(each.sample)) for each in program.inputs],
        "outputs": [_described(each, "") for each in program.outputs],
        **program.facts,
    }
    with _writing(path):
        for place, data in ((path, content), (beside, _json(description))):
            with written_beside(place) as temporary:
                temporary.write_bytes(data)
    return Exported(path, beside)


def export_int8(model: str | PathLike[str], out: str | PathLike[str], data: Any = None) -> Path:
    """Write a model directory whose large matrices are 8-bit numbers with a scale a row.

    `seqloom.load` opens it as any other; its numbers are 32 bits wide again then.

    Args:
        model: A model directory, or the name of a shipped model.
        out: A new directory.
        data: What to measure the new model on, so that its card says what it reaches.
    """
    return pack_model(model, out, "int8", data)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be written ({error.strerror or error})", path) from None


@contextmanager
def _needing_onnx() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name in NEEDED:
            raise BackendError(
                f"export needs {error.name}, which is not installed; pip install 'seqloom[export]'"
            ) from None
        raise


def _label(graph: ModelProto, estimator: Any, program: Program) -> None:
    """Say in the graph itself what it is of."""
    graph.producer_name, graph.producer_version = "seqloom", __version__
    facts = {"task": estimator.task, "architecture": estimator.arch_}
    for name in ("vocabulary_hash", "text"):
        if name in program.facts:
            value = program.facts[name]
            facts[name] = value if isinstance(value, str) else json.dumps(value)
    for name, value in facts.items():
        entry = graph.metadata_props.add()
        entry.key, entry.value = f"seqloom.{name}", value


def _opset(graph: ModelProto) -> int:
    return next(int(each.version) for each in graph.opset_import if not each.domain)


def _described(each: Input | Output, kind: str) -> dict[str, Any]:
    found = {"name": each.name, "axes": list(each.axes), "meaning": each.meaning}
    return {**found, "type": kind} if kind else found


def _kind(sample: Any) -> str:
    return str(sample.dtype).removeprefix("torch.")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()
