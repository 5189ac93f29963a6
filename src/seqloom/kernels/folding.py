"""Operations on numbers alone, and what operations are equal to that is simpler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from seqloom.kernels.cell_errors import CellError, at_line

if TYPE_CHECKING:
    from seqloom.kernels.expressions import Expression, Graph

NUMBERS: dict[str, Callable[..., float]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "sigmoid": lambda x: 0.5 * (1 + math.tanh(0.5 * x)),
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
    "relu": lambda x: max(x, 0.0),
    "abs": abs,
    "maximum": max,
    "minimum": min,
    "step": lambda x: float(x > 0),
    "half_step": lambda x: 0.5 * (float(x > 0) + float(x >= 0)),
    "sign": lambda x: float((x > 0) - (x < 0)),
}


def of_numbers(name: str, numbers: Sequence[float]) -> float:
    """An operation on numbers alone, as many as it takes.

    Raises:
        CellError: If there is no such number, as of 1 / 0.
    """
    try:
        found = NUMBERS[name](*numbers)
    except (ArithmeticError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        given = ", ".join(f"{number:g}" for number in numbers)
        raise CellError(at_line(f"{name} of {given} is not a finite number"))
    return found


def is_number(node: Expression, value: float) -> bool:
    """Whether a node is this number."""
    return node.operation == "number" and node.value == value


def simplified(  # noqa: PLR0912 (a table of cases)
    graph: Graph, operation: str, arguments: tuple[Expression, ...]
) -> Expression | None:
    """What an operation is equal to, if that is simpler; None if there is nothing."""
    if all(argument.operation == "number" for argument in arguments):
        return graph.number(of_numbers(operation, [argument.value for argument in arguments]))
    if operation == "neg":
        (x,) = arguments
        return x.arguments[0] if x.operation == "neg" else None
    if len(arguments) == 1:
        return None
    x, y = arguments
    if operation == "add":
        if is_number(x, 0) or is_number(y, 0):
            return y if is_number(x, 0) else x
        if y.operation == "neg":
            return graph.node("sub", x, y.arguments[0])
        if x.operation == "neg":
            return graph.node("sub", y, x.arguments[0])
    elif operation == "sub":
        if is_number(y, 0):
            return x
        if is_number(x, 0):
            return graph.node("neg", y)
        if x is y:
            return graph.number(0)
        if y.operation == "neg":
            return graph.node("add", x, y.arguments[0])
    elif operation == "mul":
        if is_number(x, 0) or is_number(y, 0):
            return graph.number(0)
        if is_number(x, 1) or is_number(y, 1):
            return y if is_number(x, 1) else x
        if is_number(x, -1) or is_number(y, -1):
            return graph.node("neg", y if is_number(x, -1) else x)
    elif operation == "div":
        if is_number(y, 0):
            raise CellError(at_line("a step must not divide by 0"))
        if is_number(y, 1):
            return x
        if is_number(x, 0):
            return x
    return None
