"""A traced cell as Triton: one kernel that runs all steps forward, one that runs them backward.

A program owns some hidden units of some rows. It holds its columns of the recurrent matrix from the
first step to the last, keeps its own states in registers, and sees the others' through the outputs
in memory, after a barrier among the programs of its rows. Where one program owns all units there
is no barrier. Both directions are one launch, and rows are taken in the order of their lengths, so
that programs whose rows are short end early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seqloom.kernels.expressions import Expression, in_order
from seqloom.kernels.plan import Plan, Variant
from seqloom.kernels.tracing import TracedCell

_CALLS = {
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

HEADER = '''"""Printed from the equations of a cell."""
import triton
import triton.language as tl


@triton.jit
def _peek(pointer):
    return tl.inline_asm_elementwise(
        "ld.acquire.gpu.global.s32 $0, [$1];", "=r,l", [pointer], dtype=tl.int32, is_pure=False,
        pack=1,
    )


@triton.jit
def arrive(counter):
    """Say to the other programs of these rows that what was stored can be read."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")


@triton.jit
def wait(counter, flag, target, lost, PATIENCE: tl.constexpr):
    """Wait for the others; lost is 1 if they did not come in time."""
    tries = lost * PATIENCE
    while (tries < PATIENCE) & (_peek(counter) < target):
        tries += 1
    lost = (tries >= PATIENCE).to(tl.int32)
    if lost > 0:
        tl.store(flag, 1)
    tl.debug_barrier()
    return lost
'''


@dataclass(frozen=True)
class TritonProgram:
    """A cell ready for the GPU.

    Args:
        source: The module with `forward` and `backward`.
        forward: The pointers that `forward` takes, in order.
        backward: Those of `backward`.
        plan: What was printed.
        gates: The gates side by side in a product, rounded up to a power of 2.
        runs: The states, after the first, whose values at every step the way back reads.
    """

    source: str
    forward: tuple[str, ...]
    backward: tuple[str, ...]
    plan: Plan
    gates: int
    runs: tuple[str, ...]


def print_triton(cell: TracedCell, variant: Variant, chunks: int = 1) -> TritonProgram:
    """Print a cell's step and its derivatives.

    Args:
        cell: The cell.
        variant: A layer's options.
        chunks: In how many pieces a product takes the state, so that little of it is on chip.
    """
    return _Printer(Plan(cell, variant, decisions=True), chunks).program()


SIZES = ("T", "B", "clip")
CONSTANTS = (
    "H", "KC", "BB", "BH", "NU", "DIRECTIONS", "HOLD", "SAVE", "MASKED", "BIASED", "PRECISION",
    "PATIENCE",
)  # fmt: skip


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


class _Printer:
    def __init__(self, plan: Plan, chunks: int) -> None:
        self.plan, self.cell, self.chunks = plan, plan.cell, range(chunks)
        self.first, *self.others = self.cell.states
        self.gates = _power(len(plan.direct))
        read = {
            str(n.value)
            for n in in_order([*plan.gradients.values(), *plan.late_gradients.values()])
            if n.operation == "input"
        }
        self.read = read
        self.runs = tuple(k for k in self.others if f"s.{k}" in read)

    def program(self) -> TritonProgram:
        """Everything together."""
        forward, first = self._forward()
        backward, second = self._backward()
        source = "\n\n".join([HEADER, forward, backward])
        return TritonProgram(source, first, second, self.plan, self.gates, self.runs)

    # -- pieces ----------------------------------------------------------------------------------

    def _signature(self, name: str, pointers: Sequence[str]) -> list[str]:
        self._variables: dict[Expression, str] = {}
        constants = ", ".join(f"{c}: tl.constexpr" for c in CONSTANTS)
        return [
            '@triton.jit(do_not_specialize=["T", "B"])',
            f"def {name}({', '.join([*pointers, *SIZES])}, {constants}):",
            "    pu, pb, pd = tl.program_id(0), tl.program_id(1), tl.program_id(2)",
            "    place = pb * BB + tl.arange(0, BB)",
            "    unit = pu * BH + tl.arange(0, BH)",
            *(f"    k_{c} = {c} * KC + tl.arange(0, KC)" for c in self.chunks),
            "    row = tl.load(ORDER + place, mask=place < B, other=0)",
            "    count = tl.load(LENGTHS + row, mask=place < B, other=0)",
            "    steps = tl.max(count)",
            "    own = (place < B)[:, None] & (unit < H)[None, :]",
            "    begin = (pd * B + row)[:, None] * H + unit[None, :]",
            "    counter = COUNTERS + (pd * tl.num_programs(1) + pb) * 32",
            "    met, lost = 0, (steps < 0).to(tl.int32)",
            "    bound = clip",
        ]

    def _matrix(self, name: str, gates: Sequence[str], count: int, indent: str) -> list[str]:
        """A program's columns of the matrices of some gates, in chunks (KC, units * gates)."""
        numbers = [self.cell.gates.index(g) for g in gates]
        return [
            f"{indent}column = tl.arange(0, BH * {count})",
            f"{indent}which, gate = pu * BH + column // {count}, column % {count}",
            f"{indent}gate = {_chosen('gate', numbers)}",
            f"{indent}real = (which < H) & (column % {count} < {len(gates)})",
            *(
                f"{indent}{name}_{c} = tl.load(W + ((pd * {len(self.cell.gates)} + gate) * H"
                f" + which)[None, :] * H + k_{c}[:, None],"
                f" mask=(k_{c} < H)[:, None] & real[None, :], other=0.0)"
                for c in self.chunks
            ),
        ]

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
                value = _CALLS[node.operation].format(*(variables[a] for a in node.arguments))
                lines.append(f"{indent}{variables[node]} = {value}")
        return lines, {name: variables[node] for name, node in targets.items()}

    def _apart(self, name: str, gates: Sequence[str], count: int, prefix: str) -> list[str]:
        """Take (BB, units * gates) apart into a tile a gate."""
        lines = []
        parts = [name]
        shape = [2] * (count.bit_length() - 1)
        if shape:
            sizes = ", ".join(map(str, shape))
            lines.append(f"        {name}_0 = tl.reshape({name}, (BB, BH, {sizes}))")
            parts = [f"{name}_0"]
        for level in range(len(shape)):
            new = []
            for i, part in enumerate(parts):
                low, high = f"{name}_{level + 1}_{2 * i}", f"{name}_{level + 1}_{2 * i + 1}"
                lines.append(f"        {low}, {high} = tl.split({part})")
                new += [low, high]
            parts = new
        # Splitting takes the last, lowest bit first: put the halves back in the order of gates.
        order = _split_order(len(shape))
        for number, gate in enumerate(gates):
            lines.append(f"        {prefix}_{gate} = {parts[order[number]]}")
        return lines

    # -- forward ---------------------------------------------------------------------------------

    def _forward(self) -> tuple[str, tuple[str, ...]]:
        plan, cell = self.plan, self.cell
        pointers = ["X", "W", "BIAS", "V", "LENGTHS", "ORDER", "MASK", "KEEP", "OUT", "SAVED", "U"]
        pointers += ["LATE", "OPERAND", "COUNTERS", "FLAG"]
        pointers += [f"BEGIN_{k}" for k in cell.states] + [f"END_{k}" for k in cell.states]
        pointers += [f"RUN_{k}" for k in self.runs]
        known: dict[str, str] = {}
        lines = self._signature("forward", pointers)
        if plan.direct:
            lines += ["    if HOLD:", *self._matrix("w", plan.direct, self.gates, "        ")]
        if plan.late:
            lines += ["    if HOLD:", *self._late_matrices("        ")]
        lines += self._vectors(known)
        for state in cell.states:
            lines.append(
                f"    s_{state} = tl.load(BEGIN_{state} + begin, mask=own, other=0.0)"
                ".to(tl.float32)"
            )
            known[f"s.{state}"] = f"s_{state}"
        lines += [
            "    if MASKED:",
            *(
                f"        seen_{c} = tl.load(MASK + (pd * B + row)[:, None] * H + k_{c}[None, :],"
                f" mask=(place < B)[:, None] & (k_{c} < H)[None, :], other=0.0)"
                for c in self.chunks
            ),
            *_position("0", "    "),
            *self._load_inputs(known, "    "),
            "    for t in range(steps):",
            *self._products(known),
        ]
        targets = {f"new.{k}": v for k, v in plan.outputs.items()}
        body, found = self._body(targets | dict(plan.saved), known, "        ")
        lines += body
        for state in cell.states:
            lines.append(f"        s_{state} = tl.where(here, {found[f'new.{state}']}, s_{state})")
        lines.append(f"        tl.store(OUT + at * H + unit[None, :], s_{self.first}, mask=here)")
        lines += _arriving()
        # While the others come, what they do not need is stored, and the next inputs are loaded.
        lines += self._save(found, known)
        lines += _position("t + 1", "        ")
        lines += self._load_inputs(known, "        ")
        lines += _waiting()
        for state in cell.states:
            lines.append(f"    tl.store(END_{state} + begin, s_{state}, mask=own)")
        return "\n".join(lines), tuple(pointers)

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

    def _products(self, known: dict[str, str]) -> list[str]:
        """The recurrent products of a step, the late ones last."""
        plan, lines = self.plan, []
        if plan.direct:
            lines += self._direct_product()
            lines += self._apart("u", plan.direct, self.gates, "u")
        for gate in plan.direct:
            lines += self._bias(gate, f"u_{gate}")
            known[f"u.{gate}"] = f"u_{gate}"
            known[f"a.{gate}"] = f"(x_{gate} + u_{gate})"
        if plan.late:
            handed = {f"m.{g}": v for g, v in plan.operands.items()}
            body, found = self._body(handed, known, "        ")
            lines += [*body, *self._exchange_operands(found)]
            known |= {f"late.{g}": f"l_{g}" for g in plan.late}
        return lines

    def _save(self, found: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
        """What the way back needs."""
        plan = self.plan
        lines = ["        if SAVE:", "            saved_at = at"]

        def store(array: str, count: int, number: int, value: str) -> None:
            address = f"{array} + (saved_at * {count} + {number}) * H + unit[None, :]"
            lines.append(f"            tl.store({address}, {value}, mask=here)")

        for number, name in enumerate(plan.saved):
            store("SAVED", len(plan.saved), number, found[name])
        for state in self.runs:
            store(f"RUN_{state}", 1, 0, f"s_{state}")
        for number, gate in enumerate(plan.direct):
            if plan.joined and f"a.{gate}" in self.read:  # the sum is what is needed
                store("U", len(plan.direct), number, known[f"a.{gate}"])
            elif not plan.joined and "u" in plan.kept:
                store("U", len(plan.direct), number, known[f"u.{gate}"])
        for number, gate in enumerate(plan.late):
            if "late" in plan.kept:
                store("LATE", len(plan.late), number, f"l_{gate}")
        return lines

    def _load_inputs(self, known: dict[str, str], indent: str) -> list[str]:
        """What a step takes from outside."""
        cell, lines = self.cell, []
        for number, gate in enumerate(cell.gates):
            address = f"X + (at * {len(cell.gates)} + {number}) * H + unit[None, :]"
            lines.append(
                f"{indent}x_{gate} = tl.load({address}, mask=here, other=0.0).to(tl.float32)"
            )
            known[f"x.{gate}"] = f"x_{gate}"
        if self.plan.variant.keep:
            for number, state in enumerate(cell.states):
                address = f"KEEP + (at * {len(cell.states)} + {number}) * H + unit[None, :]"
                lines.append(
                    f"{indent}keep_{state} = tl.load({address}, mask=here, other=0.0)"
                    ".to(tl.float32)"
                )
                known[f"keep.{state}"] = f"keep_{state}"
        return lines

    def _direct_product(self) -> list[str]:
        lines = [
            "        if not HOLD:",
            *self._matrix("w", self.plan.direct, self.gates, "            "),
            f"        u = tl.zeros((BB, BH * {self.gates}), tl.float32)",
        ]
        for c in self.chunks:
            mask = f"mask=alive[:, None] & (k_{c} < H)[None, :], other=0.0"
            lines += [
                "        if t == 0:",
                f"            h = tl.load(BEGIN_{self.first} + (pd * B + row)[:, None] * H"
                f" + k_{c}[None, :], {mask})",
                "        else:",
                f"            h = tl.load(OUT + past * H + k_{c}[None, :], {mask},"
                " cache_modifier='.cg')",
                "        if MASKED:",
                f"            h = (h.to(tl.float32) * seen_{c}.to(tl.float32)).to(h.dtype)",
                f"        u = tl.dot(h, w_{c}, u, input_precision=PRECISION)",
            ]
        return lines

    def _bias(self, gate: str, name: str) -> list[str]:
        number = self.cell.gates.index(gate)
        address = f"BIAS + (pd * {len(self.cell.gates)} + {number}) * H + unit"
        return [
            "        if BIASED:",
            f"            {name} += tl.load({address}, mask=unit < H, other=0.0)[None, :]"
            ".to(tl.float32)",
        ]

    def _late_matrices(self, indent: str) -> list[str]:
        lines = []
        for gate in self.plan.late:
            number = self.cell.gates.index(gate)
            for c in self.chunks:
                lines.append(
                    f"{indent}wl_{gate}_{c} = tl.load(W + ((pd * {len(self.cell.gates)} + {number})"
                    f" * H + unit)[None, :] * H + k_{c}[:, None],"
                    f" mask=(k_{c} < H)[:, None] & (unit < H)[None, :], other=0.0)"
                )
        return lines

    def _exchange_operands(self, found: Mapping[str, str]) -> list[str]:
        """Late products: hand the operands round, then multiply."""
        plan = self.plan
        count = len(plan.late)
        where = f"(at * {count}"
        lines = []
        for number, gate in enumerate(plan.late):
            address = f"OPERAND + {where} + {number}) * H + unit[None, :]"
            lines.append(f"        tl.store({address}, {found[f'm.{gate}']}, mask=here)")
        lines += [*_arriving(), *_waiting()]
        lines += ["        if not HOLD:", *self._late_matrices(" " * 12)]
        for number, gate in enumerate(plan.late):  # each has an operand of its own
            lines.append(f"        l_{gate} = tl.zeros((BB, BH), tl.float32)")
            for c in self.chunks:
                lines += [
                    f"        m = tl.load(OPERAND + {where} + {number}) * H + k_{c}[None, :],"
                    f" mask=alive[:, None] & (k_{c} < H)[None, :], other=0.0,"
                    " cache_modifier='.cg')",
                    f"        l_{gate} = tl.dot(m, wl_{gate}_{c}, l_{gate},"
                    " input_precision=PRECISION)",
                ]
        for gate in plan.late:
            lines += self._bias(gate, f"l_{gate}")
        return lines

    # -- backward --------------------------------------------------------------------------------

    def _backward(self) -> tuple[str, tuple[str, ...]]:
        plan, cell = self.plan, self.cell
        pointers = ["X", "W", "V", "LENGTHS", "ORDER", "MASK", "KEEP", "OUT", "SAVED", "U", "LATE"]
        pointers += ["DOUT", "DX", "DU", "DLATE", "DV", "COUNTERS", "FLAG"]
        pointers += [f"BEGIN_{k}" for k in cell.states] + [f"DEND_{k}" for k in cell.states]
        pointers += [f"DBEGIN_{k}" for k in cell.states] + [f"RUN_{k}" for k in self.runs]
        known: dict[str, str] = {}
        lines = [*self._signature("backward", pointers), "    if HOLD:"]
        for gate in (*plan.direct, *plan.late):
            lines += self._turned(gate, "        ")
        lines += self._vectors(known)
        for vector in cell.vectors:
            lines.append(f"    dv_{vector} = tl.zeros((BB, BH), tl.float32)")
        for state in cell.states:
            lines.append(
                f"    d_{state} = tl.load(DEND_{state} + begin, mask=own, other=0.0).to(tl.float32)"
            )
            known[f"d.{state}"] = f"d_{state}"
        lines += [
            "    if MASKED:",
            "        seen = tl.load(MASK + begin, mask=own, other=0.0).to(tl.float32)",
            *_position("steps - 1", "    "),
            *self._reload(known, "steps - 1", "    "),
            "    for back in range(steps):",
            "        t = steps - 1 - back",
            "        saved_at = at",
            *self._late_back(known),
        ]
        body, found = self._body({f"d{n}": v for n, v in plan.gradients.items()}, known, " " * 8)
        lines += [*body, *self._put_gradients(found), *_arriving()]
        # While the others come, what the next step reads is loaded.
        for state in cell.states:
            lines.append(f"        old_{state} = {found[f'ds.{state}']}")
        lines.append("        was_here, was_alive = here, alive")
        lines += _position("t - 1", "        ")
        lines += self._reload(known, "t - 1", "        ")
        lines += [*_waiting(), *self._through()]
        for state in cell.states:
            more = " + through" if state == self.first and plan.direct else ""
            lines.append(f"        d_{state} = tl.where(was_here, old_{state}{more}, d_{state})")
        for state in cell.states:
            lines.append(f"    tl.store(DBEGIN_{state} + begin, d_{state}, mask=own)")
        for number, vector in enumerate(cell.vectors):
            address = f"DV + ((pb * DIRECTIONS + pd) * {len(cell.vectors)} + {number}) * H + unit"
            lines.append(f"    tl.store({address}, tl.sum(dv_{vector}, axis=0), mask=unit < H)")
        return "\n".join(lines), tuple(pointers)

    def _late_back(self, known: dict[str, str]) -> list[str]:
        """The gradients of the late products, handed round, and of their operands."""
        plan = self.plan
        count = len(plan.late)
        if not count:
            return []
        gradients = {f"dlate.{g}": v for g, v in plan.late_gradients.items()}
        lines, found = self._body(gradients, known, "        ")
        for number, gate in enumerate(plan.late):
            address = f"DLATE + (saved_at * {count} + {number}) * H + unit[None, :]"
            lines.append(f"        tl.store({address}, {found[f'dlate.{gate}']}, mask=here)")
        lines += [*_arriving(), *_waiting()]
        for number, gate in enumerate(plan.late):
            address = f"DLATE + (saved_at * {count} + {number}) * H"
            lines += self._turned_product(gate, address, f"dm_{gate}", "alive")
            known[f"dm.{gate}"] = f"dm_{gate}"
        return lines

    def _put_gradients(self, found: Mapping[str, str]) -> list[str]:
        plan, cell, lines = self.plan, self.cell, []
        kind = "a" if plan.joined else "x"
        for number, gate in enumerate(cell.gates):
            address = f"DX + (saved_at * {len(cell.gates)} + {number}) * H + unit[None, :]"
            lines.append(f"        tl.store({address}, {found[f'd{kind}.{gate}']}, mask=here)")
        for number, gate in enumerate(() if plan.joined else plan.direct):
            address = f"DU + (saved_at * {len(plan.direct)} + {number}) * H + unit[None, :]"
            lines.append(f"        tl.store({address}, {found[f'du.{gate}']}, mask=here)")
        for vector in cell.vectors:
            value = found[f"dv.{vector}"]
            lines.append(f"        dv_{vector} += tl.where(here, {value}, 0.0)")
        return lines

    def _through(self) -> list[str]:
        """The gradient of the state before, through all gates of all units."""
        plan, lines = self.plan, []
        array = "DX" if plan.joined else "DU"
        for number, gate in enumerate(plan.direct):
            address = f"{array} + (saved_at * {len(plan.direct)} + {number}) * H"
            lines += self._turned_product(gate, address, f"p_{gate}", "was_alive")
        if plan.direct:
            lines.append(f"        through = {' + '.join(f'p_{g}' for g in plan.direct)}")
            lines += ["        if MASKED:", "            through = through * seen"]
        return lines

    def _turned(self, gate: str, indent: str) -> list[str]:
        """The rows of a gate's matrix, its columns this program's units."""
        number = self.cell.gates.index(gate)
        return [
            f"{indent}w_{gate}_{c} = tl.load(W + ((pd * {len(self.cell.gates)} + {number}) * H"
            f" + k_{c})[:, None] * H + unit[None, :],"
            f" mask=(k_{c} < H)[:, None] & (unit < H)[None, :], other=0.0)"
            for c in self.chunks
        ]

    def _turned_product(self, gate: str, address: str, name: str, alive: str) -> list[str]:
        lines = ["        if not HOLD:", *self._turned(gate, "            ")]
        lines.append(f"        {name} = tl.zeros((BB, BH), tl.float32)")
        for c in self.chunks:
            lines += [
                f"        g = tl.load({address} + k_{c}[None, :],"
                f" mask={alive}[:, None] & (k_{c} < H)[None, :], other=0.0, cache_modifier='.cg')",
                f"        {name} = tl.dot(g, w_{gate}_{c}, {name}, input_precision=PRECISION)",
            ]
        return lines

    def _reload(self, known: dict[str, str], step: str, indent: str) -> list[str]:
        """What the way back reads of the way forth, and the gradient of what was put out."""
        plan, cell = self.plan, self.cell
        G = len(cell.gates)
        lines = []

        def load(name: str, address: str) -> None:
            variable = name.replace(".", "_")
            lines.append(
                f"{indent}{variable} = tl.load({address} + unit[None, :], mask=here, other=0.0)"
                ".to(tl.float32)"
            )
            known[name] = variable

        load("d.out", "DOUT + at * H")
        for number, name in enumerate(plan.saved):
            load(name, f"SAVED + (at * {len(plan.saved)} + {number}) * H")
        for number, gate in enumerate(cell.gates):
            if f"x.{gate}" in self.read:
                load(f"x.{gate}", f"X + (at * {G} + {number}) * H")
            if f"a.{gate}" in self.read:
                load(f"a.{gate}", f"U + (at * {G} + {number}) * H")
        for number, gate in enumerate(plan.direct):
            if f"u.{gate}" in self.read:
                load(f"u.{gate}", f"U + (at * {len(plan.direct)} + {number}) * H")
        for number, gate in enumerate(plan.late):
            if f"late.{gate}" in self.read:
                load(f"late.{gate}", f"LATE + (at * {len(plan.late)} + {number}) * H")
        for number, state in enumerate(cell.states):
            if f"keep.{state}" in self.read:
                load(f"keep.{state}", f"KEEP + (at * {len(cell.states)} + {number}) * H")
        for state in (self.first, *self.runs):
            if f"s.{state}" not in self.read:
                continue
            source = "OUT" if state == self.first else f"RUN_{state}"
            lines += [
                f"{indent}if {step} <= 0:",
                f"{indent}    s_{state} = tl.load(BEGIN_{state} + begin, mask=here, other=0.0)"
                ".to(tl.float32)",
                f"{indent}else:",
                f"{indent}    s_{state} = tl.load({source} + past * H + unit[None, :], mask=here,"
                " other=0.0).to(tl.float32)",
            ]
            known[f"s.{state}"] = f"s_{state}"
        return lines


def _arriving(indent: str = "        ") -> list[str]:
    return [f"{indent}if NU > 1:", f"{indent}    met += 1", f"{indent}    arrive(counter)"]


def _waiting(indent: str = "        ") -> list[str]:
    return [
        f"{indent}if NU > 1:",
        f"{indent}    lost = wait(counter, FLAG, met * NU, lost, PATIENCE)",
        f"{indent}else:",
        f"{indent}    tl.debug_barrier()",
    ]


def _position(step: str, indent: str) -> list[str]:
    """Where a step lies, of rows that have so many."""
    return [
        f"{indent}alive = ({step} < count) & ({step} + count >= count)",
        f"{indent}now = tl.where(alive, tl.where(pd == 1, count - 1 - ({step}), {step}), 0)",
        f"{indent}before = tl.where(pd == 1, now + 1, now - 1)",
        f"{indent}at = (row * T + now)[:, None] * DIRECTIONS + pd",
        f"{indent}past = (row * T + before)[:, None] * DIRECTIONS + pd",
        f"{indent}here = own & alive[:, None]",
    ]


def _chosen(name: str, numbers: Sequence[int]) -> str:
    """The number of a gate by its place among those of a product."""
    if list(numbers) == list(range(len(numbers))):
        return name
    text = str(numbers[-1])
    for place, number in reversed(list(enumerate(numbers[:-1]))):
        text = f"tl.where({name} == {place}, {number}, {text})"
    return text


def _split_order(levels: int) -> list[int]:
    """For each gate, which of the tiles it is in after `levels` splits of the last axis."""
    order = []
    for gate in range(1 << levels):
        bits = [(gate >> b) & 1 for b in range(levels)]  # the last axis is the lowest bit
        order.append(int("".join(map(str, bits)) or "0", 2))
    return order
