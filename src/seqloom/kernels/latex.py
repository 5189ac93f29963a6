"""An expression as LaTeX, with no more brackets than it needs."""

from __future__ import annotations

from collections.abc import Mapping

from seqloom.kernels.expressions import OPERATIONS, Expression


def latex(node: Expression, names: Mapping[str, str], binds: int = 0) -> str:
    """A node as LaTeX, inputs by the names given, in brackets where it binds too loosely."""
    text, own = _latex(node, names)
    return f"({text})" if own < binds else text


def _latex(node: Expression, names: Mapping[str, str]) -> tuple[str, int]:
    """A node as LaTeX, and how tightly it binds."""
    if node.operation == "number":
        return _decimal(node.value), 2 if node.value >= 0 else 1
    if node.operation == "input":
        return names.get(node.value, str(node.value)), 2
    operation = OPERATIONS[node.operation]
    if operation.name == "mul":
        return _latex_product(node, names), 1
    inner = {"sub": (0, 1), "neg": (1,)}.get(operation.name, (0,) * operation.arity)
    parts = [latex(each, names, b) for each, b in zip(node.arguments, inner, strict=True)]
    text = operation.latex.format(*parts)
    if operation.binds < 2:
        text = text.replace("+ -", "- ").replace("- -", "+ ").removeprefix("--")
    return text, operation.binds


def _latex_product(node: Expression, names: Mapping[str, str]) -> str:
    """A product; a number stands before what it multiplies, with no sign between."""
    x, y = sorted(node.arguments, key=lambda each: each.operation != "number")
    left, right = latex(x, names, 1), latex(y, names, 1)
    if right[0] in "-0123456789":
        right = f"({right})"
    return f"{left} {right}" if x.operation == "number" else rf"{left} \odot {right}"


def _decimal(value: float) -> str:
    short = f"{value:g}"
    digits, _, power = (short if float(short) == value else repr(value)).partition("e")
    if not power:
        return digits
    ten = f"10^{{{int(power)}}}"
    return {"1": ten, "-1": f"-{ten}"}.get(digits, rf"{digits} \cdot {ten}")
