r"""Elementwise expressions: what a cell's step is traced to, and its derivatives.

An expression is a node of a graph in which equal nodes are one node, so that what occurs twice is
computed once. Operations that a step may use are those of `OPERATIONS`, as Python's operators, as
the functions below, or as torch's functions of the same name.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.errors import ConfigError

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


class CellError(ConfigError):
    """A cell's definition cannot be understood; the message names the operation and the line."""


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
        if power == 2:
            return apply("mul", self, self)
        raise CellError(_at_line(f"a power other than 2 (** {power!r}) is not elementwise here"))

    # What a step cannot do, said where it is done.

    def __bool__(self) -> bool:
        raise CellError(
            _at_line("a step cannot branch on a value ('if', 'and', 'or'); use maximum or minimum")
        )

    def __float__(self) -> float:
        raise CellError(_at_line("a value is not a number yet; use the functions of seqloom.nn"))

    def __matmul__(self, other: Any) -> Expression:
        raise CellError(_at_line("'@' is not elementwise; a second product is cell.late = (gate,)"))

    __rmatmul__ = __matmul__

    def __getitem__(self, key: Any) -> Expression:
        raise CellError(_at_line(f"indexing [{key!r}] is not elementwise"))

    def __iter__(self) -> Any:
        raise CellError(_at_line("a value cannot be taken apart"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in OPERATIONS:
            return lambda *others: apply(name, self, *others)
        raise CellError(_at_line(f"'.{name}' is not an operation a step may use; {_known()}"))

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Expression:
        """`torch.tanh(x)` and its like mean our own operation of that name."""
        name = TORCH_NAMES.get(function.__name__, function.__name__)
        if name in OPERATIONS and not kwargs and len(args) == OPERATIONS[name].arity:
            return apply(name, *args)
        raise CellError(
            _at_line(f"torch's '{function.__name__}' is not one a step may use; {_known()}")
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Expression:
        name = NUMPY_NAMES.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and name in OPERATIONS and not kwargs:
            return apply(name, *args)
        raise CellError(
            _at_line(f"numpy's '{ufunc.__name__}' is not one a step may use; {_known()}")
        )

    def __repr__(self) -> str:
        if self.operation == "number":
            return repr(self.value)
        if self.operation == "input":
            return str(self.value)
        return f"{self.operation}({', '.join(map(repr, self.arguments))})"


TORCH_NAMES = {"multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub"}
TORCH_NAMES |= {"negative": "neg", "absolute": "abs", "logistic": "sigmoid", "expit": "sigmoid"}
NUMPY_NAMES = TORCH_NAMES | {"absolute": "abs"}


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
        simpler = _simplified(self, operation, arguments)
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
    graph = next(a.graph for a in arguments if isinstance(a, Expression))
    return graph.node(name, *(_lifted(graph, argument) for argument in arguments))


def _lifted(graph: Graph, value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CellError(
            _at_line(f"a step works on its gates, states, vectors and numbers, got {value!r}")
        )
    return graph.number(value)


def _is(node: Expression, value: float) -> bool:
    return node.operation == "number" and node.value == value


def _simplified(  # noqa: PLR0912 (a table of cases)
    graph: Graph, operation: str, arguments: tuple[Expression, ...]
) -> Expression | None:
    """What an operation is equal to, if that is simpler; None if there is nothing."""
    if all(argument.operation == "number" for argument in arguments):
        return graph.number(NUMBERS[operation](*(argument.value for argument in arguments)))
    if operation == "neg":
        (x,) = arguments
        return x.arguments[0] if x.operation == "neg" else None
    if len(arguments) == 1:
        return None
    x, y = arguments
    if operation == "add":
        if _is(x, 0) or _is(y, 0):
            return y if _is(x, 0) else x
        if y.operation == "neg":
            return graph.node("sub", x, y.arguments[0])
        if x.operation == "neg":
            return graph.node("sub", y, x.arguments[0])
    elif operation == "sub":
        if _is(y, 0):
            return x
        if _is(x, 0):
            return graph.node("neg", y)
        if x is y:
            return graph.number(0)
        if y.operation == "neg":
            return graph.node("add", x, y.arguments[0])
    elif operation == "mul":
        if _is(x, 0) or _is(y, 0):
            return graph.number(0)
        if _is(x, 1) or _is(y, 1):
            return y if _is(x, 1) else x
        if _is(x, -1) or _is(y, -1):
            return graph.node("neg", y if _is(x, -1) else x)
    elif operation == "div":
        if _is(y, 1):
            return x
        if _is(x, 0):
            return x
    return None


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
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "relu": lambda x: max(x, 0.0),
    "abs": abs,
    "maximum": max,
    "minimum": min,
    "step": lambda x: float(x > 0),
    "half_step": lambda x: 0.5 * (float(x > 0) + float(x >= 0)),
    "sign": lambda x: float((x > 0) - (x < 0)),
}


def _known() -> str:
    inner = ("step", "half_step", "sign")
    return f"there are + - * / and {', '.join(n for n in OPERATIONS if n not in inner)}"


def _at_line(message: str) -> str:
    """The message with the line of the step that did it: the last one outside this package."""
    for frame in reversed(traceback.extract_stack()[:-1]):
        if "seqloom/kernels" not in frame.filename and frame.name != "<lambda>":
            where = f"{frame.filename}:{frame.lineno}"
            return f"{message} (in {frame.name}, {where}: {(frame.line or '').strip()})"
    return message


# -- order, derivatives ----------------------------------------------------------------------------


def in_order(outputs: Iterable[Expression]) -> list[Expression]:
    """Every node the outputs need, each after its arguments."""
    done: dict[Expression, None] = {}
    for output in outputs:
        waiting = [(output, iter(output.arguments))]
        while waiting:
            node, arguments = waiting[-1]
            following = next((a for a in arguments if a not in done), None)
            if following is not None:
                waiting.append((following, iter(following.arguments)))
            else:
                done.setdefault(node)
                waiting.pop()
    return list(done)


def adjoints(
    outputs: Sequence[Expression], seeds: Sequence[Expression], inputs: Sequence[Expression]
) -> list[Expression]:
    r"""The derivative of $\sum_k \mathrm{seed}_k \, \mathrm{output}_k$ by each input.

    Reverse mode on the graph: nodes are visited from the outputs back, and what each receives is
    passed on to its arguments times the operation's derivative.
    """
    graph = outputs[0].graph
    zero = graph.number(0)
    received: dict[Expression, Expression] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        received[output] = received.get(output, zero) + seed
    for node in reversed(in_order(outputs)):
        adjoint = received.get(node, zero)
        if node.operation in ("input", "number") or _is(adjoint, 0):
            continue
        derivative = OPERATIONS[node.operation].derivative
        if derivative is None:
            continue  # flat but for a point
        for argument, factor in zip(node.arguments, derivative(node), strict=True):
            received[argument] = received.get(argument, zero) + adjoint * factor
    return [received.get(each, zero) for each in inputs]


def replaced(
    outputs: Sequence[Expression], others: Mapping[Expression, Expression]
) -> list[Expression]:
    """The same outputs with some nodes replaced by others."""
    made: dict[Expression, Expression] = dict(others)
    for node in in_order(outputs):
        if node in made:
            continue
        arguments = tuple(made[argument] for argument in node.arguments)
        made[node] = node.graph.node(node.operation, *arguments) if arguments else node
    return [made[output] for output in outputs]
