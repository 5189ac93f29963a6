"""The kernel that runs a cell backward."""

from __future__ import annotations

from collections.abc import Mapping

from seqloom.kernels.triton_printing import Kernel, slots_of, sums_of
from seqloom.kernels.triton_products import Product

_IN = " " * 8


class Backward(Kernel):
    """The gradients of steps, from the last to the first; those of the weights come later.

    Of the steps from `since` to `until`. Where APART is set, the gradients that others look for are
    handed on in an array of these steps alone, and stored once more where they stay.
    """

    name = "backward"

    def pointers(self) -> list[str]:
        """The arrays it takes."""
        states = self.cell.states
        names = ["X", "W", "PROJECTION", "V", "LENGTHS", "ORDER", "MASK", "KEEP", "KEEP_R", "OUT"]
        names += ["SAVED", "U", "LATE", "DOUT", "DX", "DU", "HANDED", "DLATE", "DR", "DV"]
        names += ["PARTIAL", "COUNTERS", "FLAG"]
        names += [f"DEND_{k}" for k in states]
        return names + [f"DBEGIN_{k}" for k in states] + [f"RUN_{k}" for k in self.runs]

    def products(self) -> list[Product]:
        """That of all direct gates' gradients, one for each late gate's, that of the projection."""
        form, gates, found = self.form, self.cell.gates, []
        direct = [gates.index(g) for g in self.plan.direct]
        if direct:
            width = form.size * len(direct)
            found.append(Product(form, "through", "HANDED", width, direct, len(gates), turned=True))
        for gate in self.plan.late:
            number = [gates.index(gate)]
            found.append(
                Product(form, f"dm_{gate}", "DLATE", form.size, number, len(gates), turned=True)
            )
        if self.plan.variant.projected:
            found.append(
                Product(form, "whole", "DR", form.state, [0], 1, turned=True,
                        weights="PROJECTION", shape="RH")
            )  # fmt: skip
        return found

    def body(self) -> list[str]:
        """The lines of the kernel."""
        plan, cell = self.plan, self.cell
        known: dict[str, str] = {}
        lines = [*self._held(), *self._vectors(known)]
        if self.form.parts > 1:
            lines += [
                f"    group = (pd * tl.num_programs(1) + pb) * (NU // {self.form.parts})",
                f"    group += tl.num_programs(1) * DIRECTIONS + pu // {self.form.parts}",
                "    group = COUNTERS + group * 32",
            ]
        for vector in cell.vectors:
            lines.append(f"    dv_{vector} = tl.zeros((BB, BH), tl.float32)")
        for state in cell.states:
            _, own, begin = self.of(state)
            lines.append(self.first_value(f"d_{state}", f"DEND_{state} + {begin}", own, "ENDED"))
            known[f"d.{state}"] = f"d_{state}"
        lines += [
            "    if MASKED:",
            "        seen = tl.load(MASK + begin_r, mask=own_r, other=0.0).to(tl.float32)",
            "    last = tl.minimum(steps, until)",
            *self.position("last - 1", "    "),
            *self._reload(known, "last - 1", "    "),
            "    for back in range(last - since):",
            "        t = last - 1 - back",
            *self._handing(),
            *self._unproject(known),
            *self._late(known),
        ]
        body, found = self._body({f"d{n}": v for n, v in plan.gradients.items()}, known, _IN)
        lines += [*body, *self._put_seen(found), *self.arrive(_IN), *self._put(found)]
        # While the others come, what the next step reads is loaded.
        for state in cell.states:
            if state == self.first and plan.variant.projected:
                lines.append(f"{_IN}old_{state} = carried")
            else:
                lines.append(f"{_IN}old_{state} = {found[f'ds.{state}']}")
        lines.append(f"{_IN}was_here, was_here_r = here, here_r")
        lines += [*self.position("t - 1", _IN), *self._reload(known, "t - 1", _IN)]
        lines += [*self.wait(_IN), *self._through()]
        for state in cell.states:
            more = " + through" if state == self.first and plan.direct else ""
            here = "was_here_r" if state == self.first else "was_here"
            lines.append(f"{_IN}d_{state} = tl.where({here}, old_{state}{more}, d_{state})")
        for state in cell.states:
            _, own, begin = self.of(state)
            lines.append(f"    tl.store(DBEGIN_{state} + {begin}, d_{state}, mask={own})")
        for number, vector in enumerate(cell.vectors):
            address = f"DV + ((pb * DIRECTIONS + pd) * {len(cell.vectors)} + {number}) * H + unit"
            lines.append(f"    tl.store({address}, tl.sum(dv_{vector}, axis=0), mask=unit < H)")
        return lines

    def _handing(self) -> list[str]:
        """Where this step's gradients are handed on, and where those of others are found."""
        over = "* (until - since) + t - since) * DIRECTIONS + pd"
        return [
            f"{_IN}put_at, source = at, where",
            f"{_IN}if APART:",
            f"{_IN}    put_at = (row {over}",
            f"{_IN}    source = put_at",
            f"{_IN}    if RAGGED:",
            f"{_IN}        source = tl.where(alive, put_at, (lead {over})",
        ]

    def _unproject(self, known: dict[str, str]) -> list[str]:
        """The gradient of the first state before its projection, from that of what was put out."""
        variant = self.plan.variant
        if not variant.projected:
            return []
        lines = [f"{_IN}outer = d_{self.first} + dout"]
        if variant.clip:
            lines.append(f"{_IN}outer = tl.where(tl.abs(put_out) < bound, outer, 0.0)")
        lines.append(f"{_IN}carried = tl.zeros((BB, BR), tl.float32)")
        if variant.keep:
            kept = known[f"keep.{self.first}"]
            lines += [f"{_IN}carried = {kept} * outer", f"{_IN}outer = (1.0 - {kept}) * outer"]
        lines += self.store("DR + at", "outer", _IN, "R", seen=True)
        lines += [*self.arrive(_IN), *self.wait(_IN)]
        lines += self.products()[-1].lines("(where * R)", _IN)
        known[f"d.{self.first}"] = "whole"
        return lines

    def _late(self, known: dict[str, str]) -> list[str]:
        """The gradients of the late products, handed round, and of their operands."""
        plan = self.plan
        count = len(plan.late)
        if not count:
            return []
        gradients = {f"dlate.{g}": v for g, v in plan.late_gradients.items()}
        lines, found = self._body(gradients, known, _IN)
        for number, gate in enumerate(plan.late):
            place = f"DLATE + (at * {count} + {number})"
            lines += self.store(place, found[f"dlate.{gate}"], _IN, seen=True)
        lines += [*self.arrive(_IN), *self.wait(_IN)]
        products = self.products()[1 if plan.direct else 0 :][:count]
        for number, (gate, product) in enumerate(zip(plan.late, products, strict=True)):
            lines += product.lines(f"((where * {count} + {number}) * H)", _IN)
            known[f"dm.{gate}"] = f"dm_{gate}"
        return lines

    def _put_seen(self, found: Mapping[str, str]) -> list[str]:
        plan, lines = self.plan, []
        kind = "da" if plan.joined else "du"
        for number, gate in enumerate(plan.direct):
            place = f"HANDED + (put_at * {len(plan.direct)} + {number})"
            lines += self.store(place, found[f"{kind}.{gate}"], _IN, seen=True)
        return lines

    def _put(self, found: Mapping[str, str]) -> list[str]:
        """Store the gradients that the others do not need."""
        gates, lines = self.cell.gates, []
        kind = "da" if self.plan.joined else "dx"
        indent = _IN + "    " * self.plan.joined
        for number, gate in enumerate(gates):
            place = f"DX + (at * {len(gates)} + {number})"
            lines += [
                f"{indent}stays = tl.where(real, {found[f'{kind}.{gate}']}, 0.0)",
                *self.store(place, "stays", indent),
            ]
        if self.plan.joined:  # otherwise it is where they were handed on
            lines.insert(0, f"{_IN}if APART:")
        for vector in self.cell.vectors:
            lines.append(f"{_IN}dv_{vector} += tl.where(here, {found[f'dv.{vector}']}, 0.0)")
        return lines

    def _through(self) -> list[str]:
        """The gradient of the state before, through all gates of all units."""
        if not self.plan.direct:
            return []
        rows = f"(source * {len(self.plan.direct)} * H)"
        lines = self.products()[0].lines(rows, _IN)
        return [*lines, f"{_IN}if MASKED:", f"{_IN}    through = through * seen"]

    def _reload(self, known: dict[str, str], step: str, indent: str) -> list[str]:
        """What the way back reads of the way forth, and the gradient of what was put out."""
        plan, cell = self.plan, self.cell
        G, lines = len(cell.gates), []

        def load(name: str, array: str, count: int, number: int) -> None:
            if name in self.read or name in plan.saved:
                place = f"{array} + (at * {count} + {number})"
                lines.append(self.load(name, place, known, indent))

        lines.append(self.load("dout", "DOUT + at", known, indent, "R"))
        if plan.variant.projected and plan.variant.clip:
            lines.append(self.load("put_out", "OUT + (front + at)", known, indent, "R"))
        for number, name in enumerate(plan.saved):
            load(name, "SAVED", slots_of(plan), number)
        for number, gate in enumerate(cell.gates):
            load(f"x.{gate}", "X", G, number)
        sums = sums_of(plan)
        for number, gate in enumerate(sums):
            load(f"{'a' if plan.joined else 'u'}.{gate}", "U", len(sums), number)
        for number, gate in enumerate(plan.late):
            load(f"late.{gate}", "LATE", len(plan.late), number)
        if plan.variant.keep:
            lines += self.load_keep(cell.states, known, indent)
        needed = [k for k in (self.first, *self.runs) if f"s.{k}" in self.read]
        if needed:
            lines += [
                f"{indent}past = at + tl.where(pd == 1, DIRECTIONS, -DIRECTIONS)",
                f"{indent}past = tl.where({step} <= 0, pd * B + row, front + past)",
            ]
        for state in needed:
            array, over = ("OUT", "R") if state == self.first else (f"RUN_{state}", "H")
            lines.append(self.load(f"s.{state}", f"{array} + past", known, indent, over))
        for state in self.runs:
            if f"e.{state}" in self.read:
                place = f"RUN_{state} + (front + at)"
                lines.append(self.load(f"e.{state}", place, known, indent))
        return lines
