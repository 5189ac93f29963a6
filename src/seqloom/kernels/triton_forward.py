"""The kernel that runs a cell forward."""

from __future__ import annotations

from collections.abc import Mapping

from seqloom.kernels.triton_printing import CALLS, Kernel, slots_of, sums_of
from seqloom.kernels.triton_products import Product

_IN = " " * 8


class Forward(Kernel):
    """All steps of a recurrence, from the products of the input on."""

    name = "forward"

    def pointers(self) -> list[str]:
        """The arrays it takes: EX is where the others' states are seen, WHOLE before projection."""
        names = ["X", "W", "PROJECTION", "BIAS", "V", "LENGTHS", "ORDER", "MASK", "KEEP", "KEEP_R"]
        names += ["OUT", "EX", "WHOLE", "SAVED", "U", "LATE", "OPERAND", "COUNTERS", "FLAG"]
        names += [f"BEGIN_{k}" for k in self.cell.states] + [f"END_{k}" for k in self.cell.states]
        return names + [f"RUN_{k}" for k in self.runs]

    def products(self) -> list[Product]:
        """That of the state for the direct gates, one for each late gate, the projection."""
        form, gates, found = self.form, self.cell.gates, []
        if self.plan.direct:
            numbers = [gates.index(g) for g in self.plan.direct]
            found.append(Product(form, "u", "EX", form.state, numbers, len(gates), turned=False))
        for gate in self.plan.late:
            number = [gates.index(gate)]
            found.append(
                Product(form, f"l_{gate}", "OPERAND", form.size, number, len(gates), turned=False)
            )
        if self.plan.variant.projected:
            found.append(
                Product(form, "projected", "WHOLE", form.size, [0], 1, turned=False,
                        weights="PROJECTION", shape="RH")
            )  # fmt: skip
        return found

    def body(self) -> list[str]:
        """The lines of the kernel."""
        plan, cell = self.plan, self.cell
        known: dict[str, str] = {}
        lines = [*self._held(), *self._vectors(known), "    here, here_r = own, own_r"]
        for state in cell.states:
            _, own, begin = self.of(state)
            lines.append(self.first_value(f"s_{state}", f"BEGIN_{state} + {begin}", own, "BEGUN"))
            known[f"s.{state}"] = f"s_{state}"
        lines += self._biases()
        lines += ["    source = pd * B + row", *self._hand_on("    ", "source")]
        for state in self.runs:
            lines += ["    if SAVE:", *self.store(f"RUN_{state} + source", f"s_{state}", _IN)]
        lines += [*self.arrive("    "), *self.position("0", "    ")]
        lines += [*self._inputs(known, "    "), *self.wait("    "), "    for t in range(steps):"]
        lines += self._products(known)
        targets = {f"new.{k}": v for k, v in plan.outputs.items()}
        body, found = self._body(targets | dict(plan.saved), known, _IN)
        lines += body
        if plan.variant.projected:
            lines += self._project(found, known)
        for state in cell.states:  # all from those before, as one may be what another was
            here = "here_r" if state == self.first else "here"
            lines.append(f"{_IN}new_{state} = tl.where({here}, {found[f'new.{state}']}, s_{state})")
        lines += [f"{_IN}s_{state} = new_{state}" for state in cell.states]
        lines += [*self._hand_on(_IN, "front + at"), *self.arrive(_IN)]
        # While the others come, what they do not need is stored, and the next inputs are loaded.
        lines += [*self._save(found, known), f"{_IN}source = front + where"]
        lines += [*self.position("t + 1", _IN), *self._inputs(known, _IN), *self.wait(_IN)]
        for state in cell.states:
            _, own, begin = self.of(state)
            lines.append(f"    tl.store(END_{state} + {begin}, s_{state}, mask={own})")
        return lines

    def _project(self, found: dict[str, str], known: Mapping[str, str]) -> list[str]:
        """Hand the first state round, project it, and finish it."""
        value = f"new.{self.first}"
        lines = self.store("WHOLE + at", found[value], _IN, seen=True)
        lines += [*self.arrive(_IN), *self.wait(_IN)]
        lines += self.products()[-1].lines("(where * H)", _IN)
        if self.plan.variant.keep:
            kept = known[f"keep.{self.first}"]
            lines.append(f"{_IN}projected = (1.0 - {kept}) * projected + {kept} * s_{self.first}")
        if self.plan.variant.clip:
            above = CALLS["maximum"].format("projected", "-bound")
            lines.append(f"{_IN}projected = {CALLS['minimum'].format(above, 'bound')}")
        found[value] = "projected"
        return lines

    def _hand_on(self, indent: str, rows: str) -> list[str]:
        """Store the first state where the others see it, and where it is put out."""
        state, more = f"s_{self.first}", indent + "    "
        return [
            f"{indent}if MASKED:",
            f"{more}seen = tl.load(MASK + begin_r, mask=own_r, other=0.0).to(tl.float32)",
            f"{more}masked = {state} * seen",
            *self.store(f"EX + ({rows})", "masked", more, "R", seen=True),
            *self.store(f"OUT + ({rows})", state, more, "R"),
            f"{indent}else:",
            *self.store(f"EX + ({rows})", state, more, "R", seen=True),
        ]

    def _inputs(self, known: dict[str, str], indent: str) -> list[str]:
        """What a step takes from outside."""
        gates, lines = self.cell.gates, []
        for number, gate in enumerate(gates):
            place = f"X + (at * {len(gates)} + {number})"
            lines.append(self.load(f"x.{gate}", place, known, indent))
        if self.plan.variant.keep:
            lines += self.load_keep(self.cell.states, known, indent)
        return lines

    def _products(self, known: dict[str, str]) -> list[str]:
        """The recurrent products of a step, the late ones last."""
        plan, lines = self.plan, []
        products = self.products()
        if plan.variant.projected:
            products.pop()
        if plan.direct:
            direct = products.pop(0)
            lines += direct.lines("(source * R)", _IN)
            lines += direct.apart([f"u_{g}" for g in plan.direct], _IN)
        for gate in plan.direct:
            lines += self._bias(gate, f"u_{gate}")
            known[f"u.{gate}"] = f"u_{gate}"
            known[f"a.{gate}"] = f"(x_{gate} + u_{gate})"
        if not plan.late:
            return lines
        handed = {f"m.{g}": v for g, v in plan.operands.items()}
        body, found = self._body(handed, known, _IN)
        lines += body
        count = len(plan.late)
        for number, gate in enumerate(plan.late):
            place = f"OPERAND + (at * {count} + {number})"
            lines += self.store(place, found[f"m.{gate}"], _IN, seen=True)
        lines += [*self.arrive(_IN), *self.wait(_IN)]
        for number, (gate, product) in enumerate(zip(plan.late, products, strict=True)):
            lines += product.lines(f"((where * {count} + {number}) * H)", _IN)
            lines += self._bias(gate, f"l_{gate}")
            known[f"late.{gate}"] = f"l_{gate}"
        return lines

    def _biases(self) -> list[str]:
        """Load those of the recurrent products."""
        lines = ["    if BIASED:"]
        for number, gate in enumerate(self.cell.gates):
            address = f"BIAS + (pd * {len(self.cell.gates)} + {number}) * H + unit"
            lines.append(
                f"        b_{gate} = tl.load({address}, mask=unit < H, other=0.0)[None, :]"
                ".to(tl.float32)"
            )
        return lines

    def _bias(self, gate: str, name: str) -> list[str]:
        return [f"{_IN}if BIASED:", f"{_IN}    {name} += b_{gate}"]

    def _save(self, found: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
        """What the way back needs."""
        plan, more = self.plan, _IN + "    "
        lines = []
        for number, name in enumerate(plan.saved):
            lines += self.store(f"SAVED + (at * {slots_of(plan)} + {number})", found[name], more)
        for state in self.runs:
            lines += self.store(f"RUN_{state} + (front + at)", f"s_{state}", more)
        sums = sums_of(plan)
        for number, gate in enumerate(sums):
            value = known[f"{'a' if plan.joined else 'u'}.{gate}"]
            lines += self.store(f"U + (at * {len(sums)} + {number})", value, more)
        for number, gate in enumerate(plan.late):
            if "late" in plan.kept:
                place = f"LATE + (at * {len(plan.late)} + {number})"
                lines += self.store(place, f"l_{gate}", more)
        return [f"{_IN}if SAVE:", *lines] if lines else []
