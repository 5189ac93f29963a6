"""Printing one product of a step: its operand from the other programs, its matrix held on chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """How the products of a kernel are done.

    Args:
        size: Width of the arrays over units.
        state: Width of those over the first state, which differs where that is projected.
        chunk: Columns of an operand that a product takes at a time.
        split: Into how many parts a chunk is cut that warps multiply side by side; their results
            are added. 1 for none, which suits many rows.
        pack: Loads of 16 bytes a thread has under way while it looks for an operand; 0 where a
            barrier and plain loads are used.
        wide: Whether a number takes 4 bytes, and not 2.
        parts: How many programs share a turned product: each takes a part of the operand's columns
            for the units of all of them, and they add what they found. So each part of an operand
            is read by fewer programs.
        registers: Whether operands are multiplied from registers, and not from on-chip memory.
        stages: How many chunks of operand and matrix are under way at once, where no part of the
            matrix is held; 0 where it is.
    """

    size: int
    state: int
    chunk: int
    split: int = 1
    pack: int = 0
    wide: bool = False
    parts: int = 1
    registers: bool = False
    stages: int = 0

    @property
    def in_load(self) -> int:
        """Numbers a load of 16 bytes has."""
        return 4 if self.wide else 8

    def chunks(self, width: int) -> int:
        """How many chunks an operand has."""
        return -(-width // self.chunk)

    def is_ragged(self, width: int) -> bool:
        """Whether the last chunk goes beyond an operand's end."""
        return width % self.chunk != 0


class Product:
    """A product of rows of an array, all units, with a matrix of this program's units.

    Args:
        form: How it is done.
        label: What its variables are called.
        array: The array of the operand.
        width: Its columns.
        gates: The numbers of the gates whose matrices are multiplied.
        all_gates: How many gates the weights have.
        weights: The array of the matrices, (directions, gates, rows, columns).
        shape: What the rows and columns of one are over: "H" units or "R" of the first state.
        turned: Whether the operand has the gates' gradients side by side, and the matrix is turned;
            otherwise the gates are side by side in the result.
    """

    def __init__(
        self, form: Form, label: str, array: str, width: int, gates: Sequence[int],
        all_gates: int, *, turned: bool, weights: str = "W", shape: str = "HR",
    ) -> None:  # fmt: skip
        self.form, self.label, self.array, self.width = form, label, array, width
        self.gates, self.all_gates, self.turned = list(gates), all_gates, turned
        self.weights, self.height, self.stride = weights, shape[0], shape[1]
        self.over = self.stride if turned else self.height  # what the result is over
        self.tile = f"B{self.over}"
        self.parts = form.parts if turned and len(self.gates) > 1 else 1
        self.mine = width // self.parts  # columns of this program
        # What is side by side in the result: gates, or the units of programs that share it.
        self.across = self.parts if turned else power(len(self.gates))

    # -- the matrix ------------------------------------------------------------------------------

    def matrix(self, indent: str) -> list[str]:
        """Load the chunks of the program's part of the matrix that are held."""
        if self.form.stages:
            return []
        lines = []
        for c in range(self.form.chunks(self.mine)):
            lines += [f"{indent}if {c} < HELD:", *self._chunk(c, indent + "    ")]
        return lines

    def _chunk(self, c: int, indent: str) -> list[str]:
        """Load a chunk of it (split, columns, units * gates)."""
        form, lines = self.form, self._columns(indent)
        if form.split > 1:
            part = form.chunk // form.split
            k = (
                f"tl.arange(0, {form.split})[:, None, None] * {part}"
                f" + tl.arange(0, {part})[None, :, None]"
            )
            last = "[None, None, :]"
        else:
            k, last = f"tl.arange(0, {form.chunk})[:, None]", "[None, :]"
        lines.append(f"{indent}k = {self._begin(c)} + {k}")
        name, mask = f"w_{self.label}", f"mask=(k < {self.width}) & kept{last}, other=0.0"
        first, height, stride = f"pd * {self.all_gates}", self.height, self.stride
        if self.turned:
            lines.append(f"{indent}gate = {_chosen(f'(k // {height})', self.gates)}")
            address = f"(({first} + gate) * {height} + k % {height}) * {stride} + which{last}"
        else:
            address = f"(({first} + gate{last}) * {height} + which{last}) * {stride} + k"
        return [
            *lines,
            f"{indent}{name}_{c} = {self._near(f'tl.load({self.weights} + {address}, {mask})')}",
        ]

    def _columns(self, indent: str) -> list[str]:
        """Of the matrix: which units and gates they are of, and whether there are such."""
        lines = [f"{indent}column = tl.arange(0, {self.tile} * {self.across})"]
        if self.turned:
            first = f"pu // {self.parts} * {self.parts}" if self.parts > 1 else "pu"
            return [
                *lines,
                f"{indent}which = {first} * {self.tile} + column",
                f"{indent}kept = which < {self.over}",
            ]
        count = len(self.gates)
        return [
            *lines,
            f"{indent}which = pu * {self.tile} + column // {self.across}",
            f"{indent}gate = {_chosen(f'(column % {self.across})', self.gates)}",
            f"{indent}kept = (which < {self.over}) & (column % {self.across} < {count})",
        ]

    def _streamed(self, rows: str, indent: str) -> list[str]:
        """Multiply chunk after chunk, with some of both sides under way.

        Columns of an operand and of a matrix lie side by side in memory, so that they are copied
        on chip without going through registers: a turned matrix is handed over turned.
        """
        form, label, inner = self.form, self.label, indent + "    "
        first, count = f"pd * {self.all_gates}", form.chunks(self.mine)
        begin = f"pu % {self.parts} * {self.mine} + " if self.parts > 1 else ""
        operand = (
            f"tl.load({self.array} + {rows}[:, None] + k[None, :], mask=k[None, :] < {self.width},"
            " other=0.0, cache_modifier='.cg')"
        )
        if self.turned:
            gate = [f"{inner}gate = {_chosen(f'(k // {self.height})', self.gates)}"]
            line = f"(({first} + gate[:, None]) * {self.stride} + which[None, :])"
            address = f"{line} * {self.height} + (k % {self.height})[:, None]"
        else:
            gate = []
            address = f"(({first} + gate) * {self.height} + which)[None, :] * {self.stride}"
            address += " + k[:, None]"
        mask = f"mask=(k < {self.width})[:, None] & kept[None, :], other=0.0"
        return [
            *self._columns(indent),
            f"{indent}{label} = tl.zeros((BB, {self.tile} * {self.across}), tl.float32)",
            f"{indent}for part in tl.range(0, {count}, num_stages={form.stages}):",
            f"{inner}k = {begin}part * {form.chunk} + tl.arange(0, {form.chunk})",
            *gate,
            f"{inner}near = {self._near(operand)}",
            f"{inner}far = tl.load({self.weights} + {address}, {mask})",
            f"{inner}{label} = tl.dot(near, far, {label}, input_precision=PRECISION)",
        ]

    def _near(self, value: str) -> str:
        """Rounded for products that take fewer bits than numbers have."""
        return f"nearest({value}, PRECISION)" if self.form.wide else value

    # -- a step ----------------------------------------------------------------------------------

    def lines(self, rows: str, indent: str) -> list[str]:
        """Multiply; `rows` are the places of the operand's rows in the array.

        The result is called `label`, and has the gates apart as its last axes of 2.
        """
        lines = (self._streamed if self.form.stages else self._in_chunks)(rows, indent)
        if self.parts > 1:
            return [*lines, *self._shared(indent)]
        return [*lines, *self._added(indent)]

    def _in_chunks(self, rows: str, indent: str) -> list[str]:
        """Multiply chunk by chunk, with a matrix that is held as far as it can be."""
        count, lines = self.form.chunks(self.mine), []
        for c in range(-1, count):
            if c + 1 < count:  # the next one is under way while one is multiplied
                lines += self._operand(c + 1, rows, indent)
                lines += [f"{indent}if {c + 1} >= HELD:", *self._chunk(c + 1, indent + "    ")]
            if c >= 0:
                lines += self._multiplied(c, indent)
        return lines

    def _operand(self, c: int, rows: str, indent: str) -> list[str]:
        """A chunk of the operand."""
        if not self.form.pack:
            return self._loaded(c, rows, indent)
        lines = [f"{indent}if NU > 1:", *self._looked(c, rows, indent + "    ")]
        return [*lines, f"{indent}else:", *self._loaded(c, rows, indent + "    ")]

    def _begin(self, c: int) -> str:
        """The first column of a chunk."""
        if self.parts == 1:
            return str(c * self.form.chunk)
        return f"(pu % {self.parts} * {self.mine} + {c * self.form.chunk})"

    def _looked(self, c: int, rows: str, indent: str) -> list[str]:
        form = self.form
        columns = f"tl.arange(0, {form.chunk // form.in_load}) * {form.in_load}"
        columns = f"({c * form.chunk} + {columns})[None, :]"
        address = f"({self.array} + {rows}[:, None] + {columns}).to(tl.int64)"
        if form.is_ragged(self.width):
            address = f"tl.where({columns} < {self.width}, {address}, 0)"
        return [
            f"{indent}o_{c} = tl.reshape(look({address}, FLAG, {self.array}.dtype.element_ty),"
            f" (BB, {form.chunk}))"
        ]

    def _loaded(self, c: int, rows: str, indent: str) -> list[str]:
        columns = f"({self._begin(c)} + tl.arange(0, {self.form.chunk}))[None, :]"
        return [
            f"{indent}o_{c} = tl.load({self.array} + {rows}[:, None] + {columns},"
            f" mask={columns} < {self.width}, other=0.0, cache_modifier='.cg')"
        ]

    def _multiplied(self, c: int, indent: str) -> list[str]:
        form, label = self.form, self.label
        operand = self._near(f"o_{c}")
        if form.registers and not form.wide:
            operand = f"in_registers({operand})"
        if form.split > 1:
            operand = (
                f"tl.permute(tl.reshape({operand}, (BB, {form.split}, {form.chunk // form.split})),"
                " (1, 0, 2))"
            )
        sum_before = f" {label}," if c else ""
        return [
            f"{indent}{label} = tl.dot({operand}, w_{label}_{c},{sum_before}"
            " input_precision=PRECISION)"
        ]

    def _added(self, indent: str) -> list[str]:
        """Add what the warps found, and take the gates apart."""
        name, parts, gates = self.label, _bits(self.form.split), _bits(self.across)
        first = ["2"] * parts + ["BB", self.tile] + ["2"] * gates
        lines = [f"{indent}{name} = tl.reshape({name}, ({', '.join(first)}))"]
        if parts:
            order = [*range(parts, len(first)), *range(parts)]
            lines.append(f"{indent}{name} = tl.permute({name}, {tuple(order)})")
        for _ in range(parts):
            lines += [
                f"{indent}one, other = tl.split({name})",
                f"{indent}{name} = one + other",
            ]
        return lines

    def _shared(self, indent: str) -> list[str]:
        """Hand the other programs of a product their units' sums, and add up one's own."""
        name, parts, tile = self.label, self.parts, f"BB * {self.tile} * {self.parts}"
        slot = "((back % 2 * DIRECTIONS + pd) * tl.num_programs(1) + pb) * NU"
        slot += f" + pu // {parts} * {parts}"
        inner = f"tl.arange(0, BB)[:, None] * {self.tile}"
        columns = f"tl.arange(0, {self.tile} * {parts})[None, :]"
        lines = [
            f"{indent}slot = PARTIAL + ({slot}) * ({tile})",
            f"{indent}place_of = {columns} // {self.tile} * (BB * {self.tile}) + {inner}",
            f"{indent}place_of += {columns} % {self.tile}",
            f"{indent}tl.store(slot + pu % {parts} * ({tile}) + place_of, {name})",
            f"{indent}shared += 1",
            f"{indent}arrive(group)",
            f"{indent}lost = wait(group, FLAG, shared * {parts}, lost, PATIENCE)",
        ]
        own = f"slot + pu % {parts} * (BB * {self.tile}) + {inner}"
        own += f" + tl.arange(0, {self.tile})[None, :]"
        for j in range(parts):
            start = f"{name} = " if not j else f"{name} += "
            lines.append(f"{indent}{start}tl.load({own} + {j} * ({tile}), cache_modifier='.cg')")
        return lines

    def apart(self, names: Sequence[str], indent: str) -> list[str]:
        """Give each gate of the result a name."""
        lines, pieces = [], [self.label]
        for level in range(_bits(self.across)):
            new = []
            for i, piece in enumerate(pieces):
                low, high = (f"{self.label}_{level}_{2 * i + j}" for j in range(2))
                lines.append(f"{indent}{low}, {high} = tl.split({piece})")
                new += [low, high]
            pieces = new
        order = _split_order(_bits(self.across))
        for number, name in enumerate(names):
            lines.append(f"{indent}{name} = {pieces[order[number]]}")
        return lines


def power(n: int) -> int:
    """The next power of 2."""
    return 1 << max(0, n - 1).bit_length()


def _bits(n: int) -> int:
    return n.bit_length() - 1


def _chosen(name: str, numbers: Sequence[int]) -> str:
    """The number of a gate by its place among those of a product."""
    if list(numbers) == list(range(len(numbers))):
        return name
    if len(numbers) == 1:
        return f"{name} * 0 + {numbers[0]}"
    text = str(numbers[-1])
    for place, number in reversed(list(enumerate(numbers[:-1]))):
        text = f"tl.where({name} == {place}, {number}, {text})"
    return text


def _split_order(levels: int) -> list[int]:
    """For each gate, which of the pieces it is in after `levels` splits of the last axis."""
    order = []
    for gate in range(1 << levels):
        bits = [(gate >> b) & 1 for b in range(levels)]  # the last axis is the lowest bit
        order.append(int("".join(map(str, bits)) or "0", 2))
    return order
