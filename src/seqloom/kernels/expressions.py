r"""Elementwise expressions: what a cell's step is traced to, and its derivatives.

An expression is a node of a graph in which equal nodes are one node, so that what occurs twice is
computed once. Operations that a step may use are those of `OPERATIONS`, as Python's operators, as
the functions below, or as torch's functions of the same name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.kernels.cell_errors import CellError, at_line
from seqloom.kernels.folding import simplified

# -- operations ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """An elementwise operation.

    Args:
        name: What it is called here, and in torch where torch has it.
        arity: How many arguments it takes.
        derivative: From the node, what each argument's adjoint is multiplied by; None where it has
            no derivative that counts.
        latex: How it is written, with {0} and {1} for its arguments.
        binds: How tightly: 0 sum, 1 product, 2 power or function.
    """

    name: str
    arity: int
    derivative: Callable[[Expression], Sequence[Expression]] | None
    latex: str
    binds: int = 2


class Expression:
    """A node: an operation on other nodes, a number, or an input.

    Args:
        graph: The graph it belongs to.
        operation: What is done, or "number" or "input".
        arguments: To what.
        value: The number, or the input's name.
    """

    __slots__ = ("arguments", "graph", "operation", "value")
    __array_priority__ = 1000.0  # numpy hands `array + expression` over

    def __init__(
        self, graph: Graph, operation: str, arguments: tuple[Expression, ...], value: Any = None
    ) -> None:
        self.graph, self.operation, self.arguments, self.value = graph, operation, arguments, value

    # Arithmetic.

    def __add__(self, other: Any) -> Expression:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Expression:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Expression:
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> Expression:
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return apply("mul", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return apply("div", other, self)

    def __neg__(self) -> Expression:
        return apply("neg", self)

    def __pow__(self, power: Any) -> Expression:
        if not isinstance(power, int | float):
            raise CellError(at_line(f"a power is a number, got ** {power!r}; use exp and log"))
        if abs(power) == 0.5:
            root = apply("sqrt", self)
            return root if power > 0 else 1 / root
        if power != int(power) or not 0 < abs(power) <= LARGEST_POWER:
            raise CellError(
                at_line(
                    f"a power is 0.5 or a whole number from 1 to {LARGEST_POWER}, or one of these "
                    f"negated, got ** {power!r}; use exp and log"
                )
            )
        found = self
        for _ in range(abs(int(power)) - 1):
            found = found * self
        return found if power > 0 else 1 / found

    def __rpow__(self, base: Any) -> Expression:
        if not isinstance(base, int | float) or not base > 0:
            raise CellError(at_line(f"what has a value for its power is above 0, got {base!r}"))
        return apply("exp", self * math.log(base))

    def __abs__(self) -> Expression:
        return apply("abs", self)

    def __pos__(self) -> Expression:
        return self

    __hash__ = object.__hash__  # which a class that compares must name

    # What a step cannot do, said where it is done.

    def __bool__(self) -> bool:
        raise CellError(
            at_line("a step cannot branch on a value ('if', 'and', 'or'); use maximum or minimum")
        )

    def _compare(self, _: Any) -> Any:
        raise CellError(at_line("a step cannot compare values; use maximum, minimum or relu"))

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _compare

    def _as_number(self, *_: Any) -> Any:
        raise CellError(at_line("a value is not a number yet; use the functions of seqloom.nn"))

    __float__ = __int__ = __index__ = __round__ = __len__ = _as_number

    def _other(self, *_: Any) -> Expression:
        raise CellError(at_line(f"this operator is not one a step may use; {_known()}"))

    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rdivmod__ = _other
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _other

    def _change(self, _: Any) -> Expression:
        raise CellError(
            at_line("a step must not change a value in place (+= and its like); give it a name")
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = _change

    def __matmul__(self, other: Any) -> Expression:
        raise CellError(at_line("'@' is not elementwise; a second product is cell.late = (gate,)"))

    __rmatmul__ = __matmul__

    def __getitem__(self, key: Any) -> Expression:
        raise CellError(at_line(f"indexing [{key!r}] is not elementwise"))

    def __iter__(self) -> Any:
        raise CellError(at_line("a value cannot be taken apart"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = TORCH_NAMES.get(name, name)
        if known in NO_METHODS:
            raise CellError(at_line(f"tensors have no '.{name}'; use the function {name}"))
        if known in COMPOSED or (known in OPERATIONS and known not in INNER):
            return lambda *others, **options: _by_method(known, (self, *others), options)
        raise CellError(at_line(f"'.{name}' is not an operation a step may use; {_known()}"))

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Expression:
        """`torch.tanh(x)` and its like mean our own operation of that name."""
        name = TORCH_NAMES.get(function.__name__, function.__name__)
        named = {key: value for key, value in (kwargs or {}).items() if key != "inplace" or value}
        if name in COMPOSED or (name in OPERATIONS and name not in INNER):
            return _call(name, args, named)
        raise CellError(
            at_line(f"torch's '{function.__name__}' is not one a step may use; {_known()}")
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Expression:
        name = TORCH_NAMES.get(ufunc.__name__, ufunc.__name__)
        is_number = all(isinstance(each, Expression | int | float) for each in args)
        if method == "__call__" and name in ARITHMETIC and is_number and not kwargs:
            return apply(name, *args)  # of a number of numpy's
        raise CellError(
            at_line(
                f"numpy's '{ufunc.__name__}' knows no tensors; use the function of torch or of "
                f"seqloom.nn; {_known()}"
            )
        )

    def __repr__(self) -> str:
        if self.operation == "number":
            return repr(self.value)
        if self.operation == "input":
            return str(self.value)
        return f"{self.operation}({', '.join(map(repr, self.arguments))})"


TORCH_NAMES = {"multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub"}
TORCH_NAMES |= {"negative": "neg", "absolute": "abs"}
ARITHMETIC = frozenset({"add", "sub", "mul", "div"})
LARGEST_POWER = 8


class Graph:
    """Nodes that are made once each, and simplified as they are made."""

    def __init__(self) -> None:
        self._nodes: dict[Any, Expression] = {}
        self._order: dict[Expression, int] = {}

    def input(self, name: str) -> Expression:
        """A named input."""
        return self._node("input", (), name)

    def number(self, value: float) -> Expression:
        """A constant."""
        return self._node("number", (), float(value))

    def node(self, operation: str, *arguments: Expression) -> Expression:
        """An operation, or something simpler that is equal to it."""
        simpler = simplified(self, operation, arguments)
        return self._node(operation, arguments) if simpler is None else simpler

    def _node(
        self, operation: str, arguments: tuple[Expression, ...], value: Any = None
    ) -> Expression:
        if operation in COMMUTATIVE:
            arguments = tuple(sorted(arguments, key=self._order.__getitem__))
        key = (operation, tuple(map(id, arguments)), value)
        if key not in self._nodes:
            found = self._nodes[key] = Expression(self, operation, arguments, value)
            self._order[found] = len(self._order)
        return self._nodes[key]


COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum"})


def apply(name: str, *arguments: Any) -> Expression:
    """An operation on expressions and numbers."""
    check_count(name, arguments)
    graph = next(a.graph for a in arguments if isinstance(a, Expression))
    return graph.node(name, *(_lifted(graph, argument) for argument in arguments))


def check_count(name: str, arguments: Sequence[Any]) -> None:
    """Refuse more or fewer values than an operation takes."""
    wanted = OPERATIONS[name].arity
    if len(arguments) != wanted:
        raise CellError(
            at_line(f"{name} takes {wanted} value{'s' * (wanted > 1)}, got {len(arguments)}")
        )


def _lifted(graph: Graph, value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CellError(
            at_line(f"a step works on its gates, states, vectors and numbers, got {value!r}")
        )
    if not math.isfinite(value):
        raise CellError(at_line(f"a number in a step must be finite, got {value}"))
    return graph.number(value)


def _of(node: Expression) -> Expression:
    return node.arguments[0]


def _max_derivative(node: Expression) -> Sequence[Expression]:
    x, y = node.arguments
    share = apply("half_step", x - y)
    return share, 1 - share


def _min_derivative(node: Expression) -> Sequence[Expression]:
    x, y = node.arguments
    share = apply("half_step", x - y)
    return 1 - share, share


OPERATIONS: dict[str, Operation] = {
    op.name: op
    for op in (
        Operation("add", 2, lambda n: (n.graph.number(1), n.graph.number(1)), "{0} + {1}", 0),
        Operation("sub", 2, lambda n: (n.graph.number(1), n.graph.number(-1)), "{0} - {1}", 0),
        Operation("mul", 2, lambda n: (n.arguments[1], n.arguments[0]), r"{0} \odot {1}", 1),
        Operation(
            "div", 2, lambda n: (1 / n.arguments[1], -n / n.arguments[1]), r"\frac{{{0}}}{{{1}}}"
        ),
        Operation("neg", 1, lambda n: (n.graph.number(-1),), "-{0}", 1),
        Operation("exp", 1, lambda n: (n,), r"\exp({0})"),
        Operation("log", 1, lambda n: (1 / _of(n),), r"\log({0})"),
        Operation("sqrt", 1, lambda n: (0.5 / n,), r"\sqrt{{{0}}}"),
        Operation("tanh", 1, lambda n: (1 - n * n,), r"\tanh({0})"),
        Operation("sigmoid", 1, lambda n: (n * (1 - n),), r"\sigma({0})"),
        Operation(
            "softplus", 1, lambda n: (apply("sigmoid", _of(n)),), r"\mathrm{{softplus}}({0})"
        ),
        Operation("relu", 1, lambda n: (apply("step", _of(n)),), r"\mathrm{{relu}}({0})"),
        Operation("abs", 1, lambda n: (apply("sign", _of(n)),), r"|{0}|"),
        Operation("maximum", 2, _max_derivative, r"\max({0}, {1})"),
        Operation("minimum", 2, _min_derivative, r"\min({0}, {1})"),
        # What derivatives need: 1 above zero; 1 above and a half at zero; the sign.
        Operation("step", 1, None, r"[{0} > 0]"),
        Operation("half_step", 1, None, r"[{0} \ge 0]"),
        Operation("sign", 1, None, r"\mathrm{{sign}}({0})"),
    )
}


def _clamp(x: Expression, min: Any = None, max: Any = None) -> Expression:
    bounds = [bound for bound in (min, max) if bound is not None]
    if len({isinstance(bound, Expression) for bound in bounds}) != 1:  # as torch has it
        raise CellError(
            at_line(
                "clamp takes a bound, or two that are both numbers or both values of the step, got "
                f"min={min!r} and max={max!r}; use maximum and minimum of seqloom.nn"
            )
        )
    found = x if min is None else apply("maximum", x, min)
    return found if max is None else apply("minimum", found, max)


COMPOSED: dict[str, Callable[..., Expression]] = {
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / apply("sqrt", x),
    "silu": lambda x: x * apply("sigmoid", x),
    "clamp": _clamp,
}
"""Functions of torch that are some of these operations."""

INNER = frozenset({"step", "half_step"})
"""Operations of derivatives alone, which torch does not have."""

NO_METHODS = frozenset({"softplus", "silu"})
"""Functions that are no methods of a tensor."""


def _call(name: str, values: Sequence[Any], options: Mapping[str, Any]) -> Expression:
    """An operation, or one of the functions composed of them, by its name."""
    if name in OPERATIONS and not options:
        return apply(name, *values)
    try:
        return COMPOSED[name](*values, **options)
    except (KeyError, TypeError):
        given = [*map(repr, values), *(f"{key}={value!r}" for key, value in options.items())]
        raise CellError(
            at_line(f"{name} in a step has no further options, got {name}({', '.join(given)})")
        ) from None


def _by_method(name: str, values: Sequence[Any], options: Mapping[str, Any]) -> Expression:
    """The same as a method, which of a tensor does not take what the function does."""
    if name in ("maximum", "minimum") and not all(isinstance(v, Expression) for v in values):
        raise CellError(
            at_line(
                f"'.{name}' takes a value of the step, got {values[-1]!r}; use {name} of seqloom.nn"
            )
        )
    return _call(name, values, options)


def _known() -> str:
    names = [*(name for name in OPERATIONS if name not in {*INNER, "sign"}), *COMPOSED]
    return f"there are + - * / ** and {', '.join(names)}"
