"""A cell's step as an expression graph."""

from __future__ import annotations

import inspect
import math
import traceback
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.errors import nearest
from seqloom.kernels.cell_errors import CellError, last_of_user
from seqloom.kernels.equations import write_equations
from seqloom.kernels.expressions import Expression, Graph
from seqloom.kernels.walking import in_order

PARTS = ("a", "x", "u", "s", "v", "late")  # what a step may ask for, by the names of its parameters


@dataclass(frozen=True, eq=False)
class TracedCell:
    """What a step computes, in two parts where it has products of its own.

    Inputs are named "x.i" (gate i of the input product), "u.i" (of the recurrent product), "s.c"
    (state c before the step), "v.p" (vector p) and "late.n" (the product of what the step hands to
    `late("n", ...)`).

    Args:
        graph: The nodes.
        gates: The gates, in the order their weights lie.
        states: The states; the first is what the recurrence multiplies.
        vectors: The per-unit vectors.
        late: By gate, what its recurrent matrix is multiplied with, computed without late inputs.
        outputs: By state, its value after the step.
    """

    graph: Graph
    gates: tuple[str, ...]
    states: tuple[str, ...]
    vectors: tuple[str, ...]
    late: Mapping[str, Expression]
    outputs: Mapping[str, Expression]

    def equations(self) -> list[str]:
        """The step as LaTeX: a line for each gate, what is used more than once, and each state."""
        return write_equations(self)


class Named:
    """Values by name; an unknown name is refused with the nearest."""

    def __init__(self, what: str, values: Mapping[str, Any]) -> None:
        self._what, self._values = what, values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._values:
            has = ", ".join(self._values) or "none"
            raise CellError(
                f"the cell has no {self._what} {name!r}, it has {has}{nearest(name, self._values)}"
            )
        return self._values[name]

    def __getitem__(self, name: Any) -> Any:
        raise CellError(f"a {self._what} is asked for by its name, as a.i, got [{name!r}]")


class LateProducts:
    """`late` of a step that is traced: each call hands one gate's matrix what it multiplies.

    Args:
        graph: Where the step's nodes are.
        gates: The late gates.
    """

    def __init__(self, graph: Graph, gates: Sequence[str]) -> None:
        self._graph, self._gates = graph, gates
        self._handed: dict[str, Expression] = {}

    def __call__(self, *given: Any) -> Expression:
        """The product of a late gate's matrix with a value of the step."""
        if len(given) != 2:
            raise CellError(f"late takes a gate and a value of the step, got {given!r}")
        gate, value = given
        if gate not in self._gates:
            raise CellError(f"late takes one of {', '.join(self._gates) or 'none'}, got {gate!r}")
        if gate in self._handed:
            raise CellError(f"late({gate!r}, ...) is called twice; a gate has one product")
        if not isinstance(value, Expression):
            raise CellError(f"late({gate!r}, ...) takes a value of the step, got {value!r}")
        self._handed[gate] = value
        return self._graph.input(f"late.{gate}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise CellError(f"late is called with a gate's name, late({name!r}, ...), got late.{name}")

    def handed(self) -> dict[str, Expression]:
        """What each late gate's matrix multiplies."""
        for gate in self._gates:
            if gate not in self._handed:
                raise CellError(
                    f"gate {gate!r} is late, but the step never calls late({gate!r}, ...)"
                )
        _check_late(self._handed)
        return self._handed


def call_step(
    step: Callable[..., Any],
    *,
    x: Mapping[str, Any],
    u: Mapping[str, Any],
    s: Mapping[str, Any],
    v: Mapping[str, Any],
    late: Callable[[str, Any], Any],
) -> Mapping[str, Any]:
    """Call a step with the parts its parameters name; values may be expressions or tensors.

    `a` has the sum of the input and the recurrent product of every gate that has both.
    """
    parts: dict[str, Any] = {
        "a": Named("gate with a product of h", {g: x[g] + u[g] for g in u}),
        "x": Named("gate", x),
        "u": Named("gate with a product of h", u),
        "s": Named("state", s),
        "v": Named("vector", v),
        "late": late,
    }
    wanted = list(inspect.signature(step).parameters)
    for name in wanted:
        if name not in PARTS:
            raise CellError(
                f"a step's parameters are some of {', '.join(PARTS)}, got {name!r} in "
                f"{step.__qualname__}"
            )
    found = step(**{name: parts[name] for name in wanted})
    if not isinstance(found, Mapping) or set(found) != set(s):
        got = ", ".join(found) if isinstance(found, Mapping) else repr(found)
        raise CellError(
            f"{step.__qualname__} must return State({', '.join(f'{n}=...' for n in s)}), got {got}"
        )
    return found


def trace(
    step: Callable[..., Any],
    gates: Sequence[str],
    states: Sequence[str],
    vectors: Sequence[str] = (),
    late: Sequence[str] = (),
) -> TracedCell:
    """Run a step on symbols and keep what it computes.

    Raises:
        CellError: If the step does something that is not elementwise, with its line; if names are
            given twice, or a late gate is not a gate; or if it does not return every state.
    """
    for what, names in (("gates", gates), ("states", states), ("vectors", vectors), ("late", late)):
        _check_names(what, names)
    if not gates or not states:
        raise CellError(f"a cell must have a gate and a state, got {gates!r} and {states!r}")
    for gate in late:
        if gate not in gates:
            raise CellError(f"late gates must be among the gates {', '.join(gates)}, got {gate!r}")
    graph = Graph()
    products = LateProducts(graph, late)
    try:
        outputs = call_step(
            step,
            x={g: graph.input(f"x.{g}") for g in gates},
            u={g: graph.input(f"u.{g}") for g in gates if g not in late},
            s={s: graph.input(f"s.{s}") for s in states},
            v={v: graph.input(f"v.{v}") for v in vectors},
            late=products,
        )
    except CellError:
        raise
    except Exception as error:  # whatever a user's own code does
        place = last_of_user(traceback.extract_tb(error.__traceback__))
        raise CellError(
            f"a step is run once on symbols, and this one raised {type(error).__name__}: {error} "
            f"({place.filename}:{place.lineno}: {(place.line or '').strip()})"
        ) from error
    ordered = {state: _state_after(graph, state, outputs[state]) for state in states}
    late_values = products.handed()
    return TracedCell(graph, tuple(gates), tuple(states), tuple(vectors), late_values, ordered)


def _state_after(graph: Graph, state: str, value: Any) -> Expression:
    """A state after the step, which may be a number."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CellError(f"a state is a value of the step or a number, got {state}={value!r}")
    return graph.number(value)


def _check_names(what: str, names: Any) -> None:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise CellError(f"{what} must be a tuple of names, as ('n',), got {names!r}")
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise CellError(f"{what} must be names that begin with a letter, got {name!r}")
        read = unicodedata.normalize("NFKC", name)  # as Python does with every name in code
        if read != name:
            raise CellError(
                f"{what} must be names as Python reads them, got {name!a}, which code means "
                f"as {read!a}; name it so"
            )
    if len(set(names)) < len(names):
        raise CellError(f"{what} are different names, got {list(names)}")


def _check_late(handed: Mapping[str, Expression]) -> None:
    for gate, value in handed.items():
        for node in in_order([value]):
            if node.operation == "input" and str(node.value).startswith("late."):
                raise CellError(
                    f"late({gate!r}, ...) needs {node.value} first; "
                    "a step has one round of products"
                )
