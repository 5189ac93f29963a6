r"""Recurrent cells, each by its equations.

A cell names its gates, its states and its per-unit vectors, and gives one elementwise step. The
matrix products are not its business: for every gate i there is $W_i x_t + b_i$, `x.i`, and
$U_i h_{t-1} + b'_i$, `u.i`, and their sum `a.i`. The same definition is run as a plain loop,
printed as fast code with its derivatives, and shown as LaTeX.

Examples:
    >>> class Leaky(Cell):
    ...     gates = ("n",)
    ...     vectors = ("rate",)
    ...
    ...     def step(a, s, v):
    ...         return State(h=s.h + sigmoid(v.rate) * (tanh(a.n) - s.h))
    >>> for line in Leaky.equations():
    ...     print(line)
    n_t = \tanh(W_n x_t + b_n + U_n h_{t-1} + b'_n)
    h_t = h_{t-1} + \sigma(w_{\mathrm{rate}}) \odot (n_t - h_{t-1})
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, overload

from seqloom.errors import ConfigError, one_of
from seqloom.kernels.functions import relu, sigmoid, tanh
from seqloom.kernels.tracing import TracedCell, trace

State = dict


class Cell:
    r"""What a cell is: names, and a step.

    The parameters of `step` are any of `a`, `x`, `u` (by gate: both products, that of the input,
    that of the state), `s` (by state: its value before), `v` (by vector) and `late`. It returns
    `State(...)` with every state.

    `late` names gates whose recurrent matrix is multiplied with something the step computes, not
    with the state: `late("n", r * s.h)` is $U_n (r \odot h_{t-1}) + b'_n$.
    """

    gates: ClassVar[tuple[str, ...]]
    states: ClassVar[tuple[str, ...]] = ("h",)
    vectors: ClassVar[tuple[str, ...]] = ()
    late: ClassVar[tuple[str, ...]] = ()
    step: ClassVar[Callable[..., Any]]

    @classmethod
    def traced(cls) -> TracedCell:
        """The step as an expression graph."""
        return _traced(cls)  # type: ignore[arg-type]

    @classmethod
    def equations(cls) -> list[str]:
        """The step as LaTeX: a line for each gate, what is used more than once, and each state."""
        return cls.traced().equations()


@cache
def _traced(cell: type[Cell]) -> TracedCell:
    step, gates = cell_step(cell), getattr(cell, "gates", None)
    if gates is None:
        raise ConfigError(f"cell {cell.__name__} must name its gates, got none; gates = ('n',)")
    return trace(step, gates, cell.states, cell.vectors, cell.late)


def cell_step(cell: type[Cell]) -> Callable[..., Any]:
    """The step as a plain function: it takes the parts of a step, not an instance."""
    step = cell.__dict__.get("step") or getattr(cell, "step", None)
    if step is None:
        raise ConfigError(f"cell {cell.__name__} must have a step, got none")
    found = step.__func__ if isinstance(step, staticmethod) else step
    if not inspect.isfunction(found):
        raise ConfigError(
            f"the step of cell {cell.__name__} must be a plain function of the parts it uses, got "
            f"{step!r}"
        )
    return found


class Elman(Cell):
    r"""The simple recurrent network.

    $$h_t = \tanh(W x_t + b + U h_{t-1} + b')$$

    Paper: Elman (1990), "Finding Structure in Time", Cognitive Science 14(2).
    Differs from the paper: two bias vectors, as torch.nn.RNN has.
    """

    gates = ("n",)

    @staticmethod
    def step(a, s):  # type: ignore[no-untyped-def]
        return State(h=tanh(a.n))


class ElmanRelu(Cell):
    r"""The simple recurrent network with rectified units.

    $$h_t = \max(0, W x_t + b + U h_{t-1} + b')$$

    Paper: Le et al. (2015), "A Simple Way to Initialize Recurrent Networks of Rectified Linear
    Units".
    """

    gates = ("n",)

    @staticmethod
    def step(a, s):  # type: ignore[no-untyped-def]
        return State(h=relu(a.n))


class ElmanSigmoid(Cell):
    r"""The simple recurrent network with logistic units, as Elman's paper has them.

    $$h_t = \sigma(W x_t + b + U h_{t-1} + b')$$
    """

    gates = ("n",)

    @staticmethod
    def step(a, s):  # type: ignore[no-untyped-def]
        return State(h=sigmoid(a.n))


class Residual(Cell):
    r"""The first step towards the LSTM: the state is added to, not replaced.

    $$h_t = h_{t-1} + \tanh(W x_t + b + U h_{t-1} + b')$$
    """

    gates = ("g",)

    @staticmethod
    def step(a, s):  # type: ignore[no-untyped-def]
        return State(h=s.h + tanh(a.g))


class Coupled(Cell):
    r"""The second: one gate decides how much is kept, the rest is written.

    $$h_t = f \odot h_{t-1} + (1 - f) \odot u, \quad f = \sigma(\cdot), \; u = \tanh(\cdot)$$
    """

    gates = ("f", "g")

    @staticmethod
    def step(a, s):  # type: ignore[no-untyped-def]
        f = sigmoid(a.f)
        return State(h=f * s.h + (1 - f) * tanh(a.g))


class TwoGate(Cell):
    r"""The third: what is kept and what is written have a gate each.

    $$h_t = f \odot h_{t-1} + i \odot u$$
    """

    gates = ("i", "f", "g")

    @staticmethod
    def step(a, s):  # type: ignore[no-untyped-def]
        return State(h=sigmoid(a.f) * s.h + sigmoid(a.i) * tanh(a.g))


class LSTM(Cell):
    r"""Long short-term memory.

    $$c_t = f \odot c_{t-1} + i \odot g, \quad h_t = o \odot \tanh(c_t)$$

    Paper: Hochreiter and Schmidhuber (1997), "Long Short-Term Memory"; the forget gate is Gers et
    al. (2000), "Learning to Forget". Gates in torch's order: i f g o.
    """

    gates = ("i", "f", "g", "o")
    states = ("h", "c")

    @staticmethod
    def step(a, s):  # type: ignore[no-untyped-def]
        c = sigmoid(a.f) * s.c + sigmoid(a.i) * tanh(a.g)
        return State(h=sigmoid(a.o) * tanh(c), c=c)


class PeepholeLSTM(Cell):
    r"""LSTM whose gates see the cell state, the output gate the new one.

    $$i = \sigma(\cdot + w_i \odot c_{t-1}), \; f = \sigma(\cdot + w_f \odot c_{t-1}), \;
    o = \sigma(\cdot + w_o \odot c_t)$$

    Paper: Gers et al. (2002), "Learning Precise Timing with LSTM Recurrent Networks".
    """

    gates = ("i", "f", "g", "o")
    states = ("h", "c")
    vectors = ("i", "f", "o")

    @staticmethod
    def step(a, s, v):  # type: ignore[no-untyped-def]
        i, f = sigmoid(a.i + v.i * s.c), sigmoid(a.f + v.f * s.c)
        c = f * s.c + i * tanh(a.g)
        return State(h=sigmoid(a.o + v.o * c) * tanh(c), c=c)


class PeepholeLSTMOld(Cell):
    r"""LSTM whose gates see the cell state, the output gate the old one as well.

    $$i, f, o = \sigma(\cdot + w \odot c_{t-1})$$
    """

    gates = ("i", "f", "g", "o")
    states = ("h", "c")
    vectors = ("i", "f", "o")

    @staticmethod
    def step(a, s, v):  # type: ignore[no-untyped-def]
        i, f = sigmoid(a.i + v.i * s.c), sigmoid(a.f + v.f * s.c)
        c = f * s.c + i * tanh(a.g)
        return State(h=sigmoid(a.o + v.o * s.c) * tanh(c), c=c)


class GRU(Cell):
    r"""Gated recurrent unit with the reset gate after the product, as torch and cuDNN have it.

    $$n = \tanh(W x + b + r \odot (U h_{t-1} + b')), \quad
    h_t = (1 - z) \odot n + z \odot h_{t-1}$$

    Paper: Cho et al. (2014), "Learning Phrase Representations using RNN Encoder-Decoder".
    Differs from the paper: the place of the reset gate. Gates in torch's order: r z n.
    """

    gates = ("r", "z", "n")

    @staticmethod
    def step(a, x, u, s):  # type: ignore[no-untyped-def]
        r, z = sigmoid(a.r), sigmoid(a.z)
        n = tanh(x.n + r * u.n)
        return State(h=n + z * (s.h - n))


class GRUBefore(Cell):
    r"""Gated recurrent unit with the reset gate before the product, as the paper has it.

    $$n = \tanh(W x + b + U (r \odot h_{t-1}) + b'), \quad
    h_t = (1 - z) \odot n + z \odot h_{t-1}$$

    Paper: Cho et al. (2014), equations 5 to 8.
    """

    gates = ("r", "z", "n")
    late = ("n",)

    @staticmethod
    def step(a, x, s, late):  # type: ignore[no-untyped-def]
        r, z = sigmoid(a.r), sigmoid(a.z)
        n = tanh(x.n + late("n", r * s.h))
        return State(h=n + z * (s.h - n))


CELLS: dict[str, type[Cell]] = {
    "rnn": Elman,
    "rnn-relu": ElmanRelu,
    "rnn-sigmoid": ElmanSigmoid,
    "residual": Residual,
    "coupled": Coupled,
    "two-gate": TwoGate,
    "lstm": LSTM,
    "peephole-lstm": PeepholeLSTM,
    "peephole-lstm-old": PeepholeLSTMOld,
    "gru": GRU,
    "gru-before": GRUBefore,
}


def find_cell(cell: str | type[Cell]) -> type[Cell]:
    """A cell by its name, or the class itself."""
    if isinstance(cell, str):
        if cell not in CELLS:
            raise ConfigError(
                f"{one_of('cell', cell, CELLS)}; a cell of your own must be registered first: "
                f"register_cell({cell!r}, YourCell)"
            )
        return CELLS[cell]
    return _checked(cell)


def _checked(cell: Any) -> type[Cell]:
    if not isinstance(cell, type) or not issubclass(cell, Cell):
        raise ConfigError(f"a cell, if not a name, must be a subclass of Cell, got {cell!r}")
    return cell


@overload
def register_cell(name: str, cell: type[Cell]) -> type[Cell]: ...
@overload
def register_cell(name: str) -> Callable[[type[Cell]], type[Cell]]: ...
def register_cell(
    name: str, cell: type[Cell] | None = None
) -> type[Cell] | Callable[[type[Cell]], type[Cell]]:
    """Give a cell of one's own a name that models can be built and saved with.

    A model directory holds the name and the weights, never code: whoever loads it registers the
    same cell first.

    Args:
        name: The name, which must be free.
        cell: The cell; without it, what is returned is a decorator.

    Returns:
        The cell, or the decorator.

    Raises:
        ConfigError: If the name is taken, the class is no cell, or its step is not one.

    Examples:
        >>> @register_cell("sum")
        ... class Sum(Cell):
        ...     gates = ("n",)
        ...
        ...     def step(a, s):
        ...         return State(h=s.h + a.n)
        >>> find_cell("sum").__name__
        'Sum'
        >>> del CELLS["sum"]
    """
    if cell is None:
        return lambda given: register_cell(name, given)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"a cell's name must be text, got {name!r}")
    if name in CELLS:
        raise ConfigError(
            f"a cell's name must be free, got {name!r}, which is {CELLS[name].__name__}; choose "
            f"another name, or free this one by del CELLS[{name!r}]"
        )
    _checked(cell).traced()  # refuses a step that is not elementwise
    CELLS[name] = cell
    return cell
