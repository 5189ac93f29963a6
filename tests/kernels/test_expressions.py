"""A traced step computes what it says, and its derivatives are autograd's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from made_up import Awkward, MadeUp
from seqloom.errors import ConfigError
from seqloom.kernels.cell_errors import CellError
from seqloom.kernels.expressions import OPERATIONS, Graph
from seqloom.kernels.functions import (
    absolute,
    exp,
    log,
    maximum,
    minimum,
    relu,
    sigmoid,
    softplus,
    sqrt,
    tanh,
)
from seqloom.kernels.walking import adjoints, in_order
from seqloom.nn.cells import CELLS, Cell, State

CASES = {**CELLS, "made-up": MadeUp, "awkward": Awkward}
TORCH = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "neg": torch.neg,
    "softplus": functional.softplus, "step": lambda x: (x > 0).to(x),
    "half_step": lambda x: torch.heaviside(x, x.new_tensor(0.5)), "sign": torch.sign,
}  # fmt: skip


def evaluate(outputs, values):
    found = {}
    for node in in_order(outputs):
        if node.operation == "number":
            found[node] = torch.tensor(node.value, dtype=torch.float64)
        elif node.operation == "input":
            found[node] = values[node.value]
        else:
            function = TORCH.get(node.operation) or getattr(torch, node.operation)
            found[node] = function(*(found[a] for a in node.arguments))
    return [found[output] for output in outputs]


def random_inputs(outputs, positive=False):
    names = sorted({n.value for n in in_order(outputs) if n.operation == "input"})
    torch.manual_seed(0)
    values = {name: torch.randn(9, dtype=torch.float64) for name in names}
    return {n: (v.abs() + 0.1 if positive else v).requires_grad_() for n, v in values.items()}


def compare_derivatives(outputs, positive=False):
    graph = outputs[0].graph
    values = random_inputs(outputs, positive)
    names = {f"d{i}": torch.randn(9, dtype=torch.float64) for i in range(len(outputs))}
    inputs = [graph.input(name) for name in values]
    found = evaluate(adjoints(outputs, [graph.input(d) for d in names], inputs), values | names)
    total = sum(
        (y * d).sum() for y, d in zip(evaluate(outputs, values), names.values(), strict=True)
    )
    wanted = torch.autograd.grad(total, list(values.values()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.expand(9), other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_every_cell_are_autograds(name):
    traced = CASES[name].traced()
    compare_derivatives([*traced.outputs.values(), *traced.late.values()])


@pytest.mark.parametrize("name", [n for n, op in OPERATIONS.items() if op.derivative])
def test_derivatives_of_every_operation_are_autograds(name):
    graph = Graph()
    arguments = [graph.input(n) for n in "xy"[: OPERATIONS[name].arity]]
    compare_derivatives([graph.node(name, *arguments)], positive=name in ("log", "sqrt", "div"))


def test_equal_numbers_share_a_maximum_as_torch_has_it():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    derivatives = adjoints([maximum(x, y)], [graph.number(1)], [x, y])
    ones = {"x": torch.ones(3, dtype=torch.float64), "y": torch.ones(3, dtype=torch.float64)}
    assert [v.tolist() for v in evaluate(derivatives, ones)] == [[0.5] * 3, [0.5] * 3]


def test_what_is_equal_is_one_node_and_what_is_trivial_goes():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    assert x * y is y * x
    assert (x + 0) is (1 * x) is (x / 1) is (x - 0) is x
    assert (-x).neg() is x
    assert (x - x).value == (0 * x).value == 0
    assert (x + -y) is (x - y)
    assert (2 * graph.number(3)).value == 6
    assert len(in_order([tanh(x + y) * tanh(y + x)])) == 5


def test_numpy_and_torch_functions_mean_our_own():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    assert torch.tanh(x) is x.tanh() is tanh(x)
    assert torch.maximum(x, y) is maximum(x, y)
    assert np.float64(2) * x is 2 * x
    assert functional.softplus(x).operation == "softplus"
    assert functional.relu(x).operation == "relu"
    assert torch.mul(x, y) is x * y
    assert torch.absolute(x) is x.absolute() is abs(x)
    assert +x is x
    assert x**3 is x * x * x
    assert x**-1 is torch.reciprocal(x) is 1 / x
    assert x**0.5 is sqrt(x)
    assert x.clamp(-1, 2) is torch.clamp(x, min=-1, max=2) is minimum(maximum(x, -1), 2)


def test_composed_functions_are_torchs():
    graph = Graph()
    x, given = graph.input("x"), torch.linspace(0.1, 3, 7, dtype=torch.float64)
    pairs = {
        2**x: 2**given,
        torch.square(x): torch.square(given),
        torch.rsqrt(x): torch.rsqrt(given),
        functional.silu(x): functional.silu(given),
        x**-0.5: given**-0.5,
    }
    for node, wanted in pairs.items():
        torch.testing.assert_close(evaluate([node], {"x": given})[0], wanted)


def test_the_functions_work_on_tensors_and_numbers():
    x = torch.tensor([-1.0, 0.5])
    assert maximum(x, 0.0).tolist() == relu(x).tolist() == [0.0, 0.5]
    assert minimum(x, 0).tolist() == [-1.0, 0.0]
    assert absolute(x).tolist() == [1.0, 0.5]
    torch.testing.assert_close(log(exp(x)), x)
    assert sqrt(torch.tensor([4.0])).item() == 2
    assert sqrt(4.0) == 2
    assert sigmoid(-1000.0) == 0
    assert softplus(1000.0) == 1000
    assert sigmoid(0.3) == pytest.approx(1 / (1 + math.exp(-0.3)))
    assert softplus(0.3) == pytest.approx(math.log(1 + math.exp(0.3)))


def cell_of(function, **changes):
    return type("Mine", (Cell,), {"gates": ("n",), "step": function, **changes})


BAD = {
    "torch.softmax(a.n, 0)": r"torch's 'softmax' is not one a step may use; there are \+ -",
    "a.n @ a.n": "'@' is not elementwise",
    "a.n if a.n else s.h": "cannot branch",
    "a.n[0]": r"indexing \[0\] is not elementwise",
    "a.n.cumsum(0)": r"'\.cumsum' is not an operation",
    "np.tanh(a.n)": "numpy's 'tanh' knows no tensors; use the function of torch",
    "math.tanh(a.n)": "not a number yet",
    "int(a.n)": "not a number yet",
    "len(a.n)": "not a number yet",
    "a.n ** 2.5": r"from 1 to 8, or one of these negated, got \*\* 2.5",
    "a.n ** s.h": r"a power is a number, got \*\* s.h",
    "(-2) ** a.n": "above 0, got -2",
    "a.n % 2": "this operator is not one a step may use",
    "torch.where(a.n > 0, a.n, s.h)": "cannot compare values; use maximum",
    "max(a.n, s.h)": "cannot compare values; use maximum",
    "a.n if a.n == 0 else s.h": "cannot compare values",
    "a.n / 0": "must not divide by 0",
    "1 / (s.h * 0)": "div of 1, 0 is not a finite number",
    "torch.log(s.h * 0)": "log of 0 is not a finite number",
    "exp(1000.0) * a.n": "exp of 1000 is not a finite number",
    "a.n * float('nan')": "must be finite, got nan",
    "torch.tanh(a.n, s.h)": "raised TypeError: tanh",
    "a.n.maximum()": "maximum takes 2 values, got 1",
    "a.n.maximum(0)": r"'\.maximum' takes a value of the step, got 0; use maximum of seqloom.nn",
    "a.n.softplus()": r"tensors have no '\.softplus'; use the function softplus",
    "a.n.half_step()": r"'\.half_step' is not an operation",
    "functional.softplus(a.n, beta=2)": r"no further options, got softplus\(.*, beta=2\)",
    "functional.silu(a.n, inplace=True)": r"no further options, got silu\(.*, inplace=True\)",
    "a.n.clamp(0, 1, 2)": r"clamp in a step has no further options, got clamp\(.*, 0, 1, 2\)",
    "a.n.clamp(0, s.h)": r"clamp takes a bound, or two .* got min=0 and max=s\.h; use maximum",
    "torch.clamp(a.n)": "clamp takes a bound, or two .* got min=None and max=None",
    "exp('x')": "exp takes values of the step and numbers, got 'x'",
    "(lambda h: h.__iadd__(a.n))(s.h)": "must not change a value in place",
    "nothing": "raised NameError: name 'nothing' is not defined",
    "a.n * 'x'": "gates, states, vectors and numbers, got 'x'",
    "a.m": "no gate with a product of h 'm', it has n",
    "s.c": "no state 'c', it has h",
    "a.n + torch.ones(3)": "got tensor",
    "a['n']": r"asked for by its name, as a.i, got \['n'\]",
    "late('n', s.h)": r"late takes one of none, got 'n'",
    "late('n')": r"late takes a gate and a value of the step, got \('n',\)",
    "late.n(s.h)": r"late\('n', ...\), got late.n",
    "None": "a value of the step or a number, got h=None",
    "float('inf')": "a value of the step or a number, got h=inf",
}
WITHOUT_LINE = ("it has", "late ", "late(", "by its name", "or a number, got h")


@pytest.mark.parametrize("code", BAD)
def test_what_a_step_cannot_do_is_named_with_its_line(code, tmp_path):
    path = tmp_path / "torch" / "mine.py"  # a folder that is called as a package is
    path.parent.mkdir()
    path.write_text(
        "import math, numpy as np, torch; from torch.nn import functional\n"
        "from seqloom.kernels.functions import exp\n"
        "from seqloom.nn.cells import State\n"
        f"def step(a, s, late):\n    return State(h={code})\n",
        encoding="utf-8",
    )
    space: dict = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    with pytest.raises(CellError, match=BAD[code]) as error:
        cell_of(space["step"]).traced()
    if not any(part in str(error.value) for part in WITHOUT_LINE):
        assert f"{path}:5" in str(error.value)


def test_definitions_that_make_no_sense():
    def fine(a, s):
        return State(h=a.n)

    with pytest.raises(CellError, match=r"must return State\(h=...\), got c"):
        cell_of(lambda a, s: State(c=a.n)).traced()
    with pytest.raises(CellError, match="parameters are some of a, x, u, s, v, late, got 'b'"):
        cell_of(lambda b: b).traced()
    with pytest.raises(CellError, match="gates are different names"):
        cell_of(fine, gates=("n", "n")).traced()
    with pytest.raises(CellError, match="late gates must be among the gates n, got 'z'"):
        cell_of(fine, late=("z",)).traced()
    with pytest.raises(CellError, match=r"never calls late\('n'"):
        cell_of(lambda x, s: State(h=x.n), late=("n",)).traced()
    with pytest.raises(CellError, match="one round of products"):
        cell_of(
            lambda x, s, late: State(h=late("n", late("m", s.h))), gates=("n", "m"), late=("n", "m")
        ).traced()
    with pytest.raises(CellError, match=r"a gate and a state, got \('n',\) and \(\)"):
        cell_of(fine, states=()).traced()
    with pytest.raises(CellError, match=r"a gate and a state, got \(\) and"):
        cell_of(fine, gates=()).traced()
    with pytest.raises(CellError, match=r"vectors must be a tuple of names, as .*, got 'rate'"):
        cell_of(fine, vectors="rate").traced()
    with pytest.raises(CellError, match="begin with a letter, got 3"):
        cell_of(fine, gates=("n", 3)).traced()
    with pytest.raises(CellError, match=r"got '\\xb5', which code means as '\\u03bc'; name it so"):
        cell_of(fine, vectors=("\u00b5",)).traced()  # a sign that keyboards have for the letter
    with pytest.raises(CellError, match="begin with a letter, got '_n'"):
        cell_of(fine, gates=("_n",)).traced()
    with pytest.raises(ConfigError, match="cell Mine must name its gates"):
        type("Mine", (Cell,), {"step": fine}).traced()
    with pytest.raises(ConfigError, match="must be a plain function of the parts it uses, got 3"):
        cell_of(3).traced()
