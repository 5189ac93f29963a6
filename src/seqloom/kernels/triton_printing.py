"""A traced cell as Triton: one kernel that runs all steps forward, one that runs them backward.

A program owns some hidden units of some rows. It holds its part of the recurrent matrix from the
first step to the last, keeps its own states in registers, and sees the others' through memory, as
`triton_text` has it. Both directions are one launch, and rows are taken in the order of their
lengths, so that programs whose rows are short end early.

Arrays of states have a place for the state before the first step in front: (directions, B) rows,
then (B, T, directions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from seqloom.kernels.expressions import Expression
from seqloom.kernels.plan import Plan
from seqloom.kernels.triton_products import Form, Product
from seqloom.kernels.triton_text import BAD_LENGTH, HEADER, print_look
from seqloom.kernels.walking import in_order

CALLS = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}",
    "exp": "tl.exp({})", "log": "tl.log({})", "sqrt": "tl.sqrt({})", "abs": "tl.abs({})",
    "sigmoid": "tl.sigmoid({})", "tanh": "2.0 * tl.sigmoid(2.0 * {}) - 1.0",
    "softplus": "tl.maximum({0}, 0.0) + tl.log(1.0 + tl.exp(-tl.abs({0})))",
    "relu": "tl.where({0} <= 0.0, 0.0, {0})",
    "maximum": "tl.maximum({}, {}, propagate_nan=tl.PropagateNan.ALL)",
    "minimum": "tl.minimum({}, {}, propagate_nan=tl.PropagateNan.ALL)",
    "step": "tl.where({} > 0.0, 1.0, 0.0)",
    "half_step": "tl.where({0} > 0.0, 1.0, tl.where({0} == 0.0, 0.5, 0.0))",
    "sign": "tl.where({0} > 0.0, 1.0, tl.where({0} < 0.0, -1.0, 0.0))",
}  # fmt: skip

_WHERE = {"H": ("unit", "here"), "R": ("spot", "here_r")}

SIZES = ("T", "B", "clip", "since", "until")
CONSTANTS = (
    "H", "R", "REAL", "REAL_R", "BB", "BH", "BR", "NU", "DIRECTIONS", "HELD", "SAVE", "MASKED",
    "BIASED", "BEGUN", "ENDED", "RAGGED", "APART", "PRECISION", "PATIENCE",
)  # fmt: skip


@dataclass(frozen=True)
class TritonProgram:
    """A kernel ready for the GPU.

    Args:
        source: The module it is in.
        name: What it is called there.
        pointers: The pointers that it takes, in order.
    """

    source: str
    name: str
    pointers: tuple[str, ...]


class Kernel:
    """What the two kernels of a cell have in common.

    Args:
        plan: The step and its derivatives.
        form: How products are done.
    """

    name: str

    def __init__(self, plan: Plan, form: Form) -> None:
        self.plan, self.cell, self.form = plan, plan.cell, form
        self.first, *self.others = self.cell.states
        self.read = read_back(plan)
        self.runs = runs_of(plan)
        self._variables: dict[Expression, str] = {}

    def program(self) -> TritonProgram:
        """The kernel as a module."""
        pointers = self.pointers()
        source = [HEADER]
        if self.form.pack:
            guarded = any(self.form.is_ragged(p.width) for p in self.products())
            source.append(print_look(self.form.pack, wide=self.form.wide, guarded=guarded))
        source.append("\n".join([*self._signature(pointers), *self.body()]))
        return TritonProgram("\n\n".join(source) + "\n", self.name, tuple(pointers))

    def pointers(self) -> list[str]:
        """The arrays it takes."""
        raise NotImplementedError

    def products(self) -> list[Product]:
        """Its products."""
        raise NotImplementedError

    def body(self) -> list[str]:
        """Its lines."""
        raise NotImplementedError

    # -- pieces ----------------------------------------------------------------------------------

    def _signature(self, pointers: Sequence[str]) -> list[str]:
        constants = ", ".join(f"{c}: tl.constexpr" for c in CONSTANTS)
        return [
            '@triton.jit(do_not_specialize=["T", "B", "since", "until"])',
            f"def {self.name}({', '.join([*pointers, *SIZES])}, {constants}):",
            "    pu, pb, pd = tl.program_id(0), tl.program_id(1), tl.program_id(2)",
            "    place = pb * BB + tl.arange(0, BB)",
            "    unit = pu * BH + tl.arange(0, BH)",
            "    real = (unit < REAL)[None, :]",
            "    if RAGGED:",
            "        row = tl.load(ORDER + tl.minimum(place, B - 1))",
            "        lead = tl.load(ORDER + pb * BB)",  # the longest of these rows
            "        given = tl.load(LENGTHS + row)",
            "        count = tl.minimum(tl.maximum(given, 1), T)",
            f"        tl.store(FLAG + place * 0, {BAD_LENGTH}, mask=count != given)",
            "        steps = tl.minimum(tl.maximum(tl.load(LENGTHS + lead), 1), T).to(tl.int32)",
            "    else:",
            "        row = tl.minimum(place, B - 1).to(tl.int64)",
            "        steps = T",
            "    own = (place < B)[:, None] & (unit < H)[None, :]",
            "    begin = (pd * B + row)[:, None] * H + unit[None, :]",
            *self._spots(),
            "    front = (B + 0).to(tl.int64) * DIRECTIONS",
            "    counter = COUNTERS + (pd * tl.num_programs(1) + pb) * 32",
            "    met, shared, lost = 0, 0, (steps < 0).to(tl.int32)",
            "    bound = clip",
        ]

    def _spots(self) -> list[str]:
        """What a program owns of the first state: its units, unless that is projected."""
        if not self.plan.variant.projected:
            return ["    spot, real_r, own_r, begin_r = unit, real, own, begin"]
        return [
            "    spot = pu * BR + tl.arange(0, BR)",
            "    real_r = (spot < REAL_R)[None, :]",
            "    own_r = (place < B)[:, None] & (spot < R)[None, :]",
            "    begin_r = (pd * B + row)[:, None] * R + spot[None, :]",
        ]

    def _held(self) -> list[str]:
        return [line for product in self.products() for line in product.matrix("    ")]

    def _body(
        self, targets: Mapping[str, Expression], known: Mapping[str, str], indent: str
    ) -> tuple[list[str], dict[str, str]]:
        """Lines that compute values not computed yet, and what each is called."""
        variables = self._variables
        lines = []
        for node in in_order(targets.values()):
            if node in variables:
                continue
            if node.operation == "number":
                variables[node] = repr(node.value)
            elif node.operation == "input":
                variables[node] = "bound" if node.value == "clip" else known[str(node.value)]
            else:
                variables[node] = f"n{len(variables)}"
                value = CALLS[node.operation].format(*(variables[a] for a in node.arguments))
                lines.append(f"{indent}{variables[node]} = {value}")
        return lines, {name: variables[node] for name, node in targets.items()}

    def _vectors(self, known: dict[str, str]) -> list[str]:
        lines = []
        for number, vector in enumerate(self.cell.vectors):
            address = f"V + (pd * {len(self.cell.vectors)} + {number}) * H + unit"
            lines.append(
                f"    v_{vector} = tl.load({address}, mask=unit < H, other=0.0)[None, :]"
                ".to(tl.float32)"
            )
            known[f"v.{vector}"] = f"v_{vector}"
        return lines

    def load(
        self, name: str, place: str, known: dict[str, str], indent: str, over: str = "H"
    ) -> str:
        """Load a tile of this program's rows and units, by the places of the rows."""
        variable = name.replace(".", "_")
        known[name] = variable
        unit, here = _WHERE[over]
        return (
            f"{indent}{variable} = tl.load({place}[:, None] * {over} + {unit}[None, :],"
            f" mask={here}, other=0.0).to(tl.float32)"
        )

    def store(
        self, place: str, value: str, indent: str, over: str = "H", *, seen: bool = False
    ) -> list[str]:
        """Store such a tile; what the others see must be numbers, and 0 beyond the last unit."""
        lines, (unit, here) = [], _WHERE[over]
        if seen:
            real, count = ("real", "REAL") if over == "H" else ("real_r", "REAL_R")
            lines += [
                f"{indent}handed = tl.where({value} == {value}, {value}, float('nan'))",
                f"{indent}if {count} < {over}:",
                f"{indent}    handed = tl.where({real}, handed, 0.0)",
            ]
            value = "handed"
        address = f"{place}[:, None] * {over} + {unit}[None, :]"
        return [*lines, f"{indent}tl.store({address}, {value}, mask={here})"]

    def first_value(self, name: str, place: str, own: str, given: str) -> str:
        """What a value begins with: what is given, or 0.

        By a load in either case, under a condition that the compiler cannot know, so that the
        value is laid out as a loaded one.
        """
        some = f"{own} & (place < (B if {given} else -B))[:, None]"
        return f"    {name} = tl.load({place}, mask={some}, other=0.0).to(tl.float32)"

    def load_keep(self, states: Sequence[str], known: dict[str, str], indent: str) -> list[str]:
        """Load the shares of states that stay; that of the first has an array of its own."""
        lines = []
        for state in states:
            if state == self.first:
                lines.append(self.load(f"keep.{state}", "KEEP_R + at", known, indent, "R"))
                continue
            place = f"KEEP + (at * {len(self.others)} + {self.others.index(state)})"
            lines.append(self.load(f"keep.{state}", place, known, indent))
        return lines

    def of(self, state: str) -> tuple[str, str, str]:
        """What a state is over, the mask of what is owned of it, and where it begins."""
        return ("R", "own_r", "begin_r") if state == self.first else ("H", "own", "begin")

    def arrive(self, indent: str) -> list[str]:
        """Say that what the others need is stored."""
        if self.form.pack:
            return []
        return [f"{indent}if NU > 1:", f"{indent}    met += 1", f"{indent}    arrive(counter)"]

    def wait(self, indent: str) -> list[str]:
        """Wait until the others have stored."""
        alone = [f"{indent}if NU == 1:", f"{indent}    tl.debug_barrier()"]
        if self.form.pack:
            return alone
        return [
            *alone,
            f"{indent}else:",
            f"{indent}    lost = wait(counter, FLAG, met * NU, lost, PATIENCE)",
        ]

    def position(self, step: str, indent: str) -> list[str]:
        """Where a step lies (`at`), of rows that have so many; and where others' rows do (`look`).

        Rows that are over, or have not begun, are looked for where the longest one lies.
        """
        projected = self.plan.variant.projected
        return [
            f"{indent}if RAGGED:",
            f"{indent}    alive = ({step} < count) & ({step} + count >= count)",
            f"{indent}    now = tl.where(pd == 1, count - 1 - ({step}), {step})",
            f"{indent}    at = (row * T + tl.where(alive, now, 0)) * DIRECTIONS + pd",
            f"{indent}    here = own & alive[:, None]",
            f"{indent}    here_r = {'own_r & alive[:, None]' if projected else 'here'}",
            f"{indent}    ahead = tl.where(pd == 1, steps - 1 - ({step}), {step})",
            f"{indent}    where = tl.where(alive, at, (lead * T + ahead) * DIRECTIONS + pd)",
            f"{indent}else:",
            f"{indent}    now = tl.minimum(tl.maximum({step}, 0), T - 1)",
            f"{indent}    now = tl.where(pd == 1, T - 1 - now, now)",
            f"{indent}    at = (row * T + now) * DIRECTIONS + pd",
            f"{indent}    here, here_r, where = own, own_r, at",
        ]


def read_back(plan: Plan) -> frozenset[str]:
    """The inputs that a plan's way back reads."""
    nodes = in_order([*plan.gradients.values(), *plan.late_gradients.values()])
    return frozenset(str(n.value) for n in nodes if n.operation == "input")


@cache
def runs_of(plan: Plan) -> tuple[str, ...]:
    """The states, after the first, whose values at every step the way back reads."""
    read = read_back(plan)
    return tuple(k for k in plan.cell.states[1:] if read & {f"s.{k}", f"e.{k}"})


@cache
def sums_of(plan: Plan) -> tuple[str, ...]:
    """The gates whose recurrent product, or the sum it is part of, the way back reads."""
    read, kind = read_back(plan), "a" if plan.joined else "u"
    return tuple(g for g in plan.direct if f"{kind}.{g}" in read)


@cache
def in_place(plan: Plan) -> bool:
    """Whether what is saved takes the place of the products of the input, which nobody reads again.

    And the gradients of these products, in turn, the place of what is saved.
    """
    kept = "x" in plan.kept and not plan.joined
    return len(plan.saved) <= len(plan.cell.gates) and not kept


def slots_of(plan: Plan) -> int:
    """How many values of a step and unit lie side by side in the array of what is saved."""
    return len(plan.cell.gates) if in_place(plan) else len(plan.saved)
