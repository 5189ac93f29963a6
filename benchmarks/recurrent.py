"""Recurrent layers against torch's own, a plain loop and a compiled one, in one run.

    python benchmarks/recurrent.py --save benchmarks/results/DATE-recurrent.md

The made-up cell of the tests is there too: three states, a second product, a vector. `--compile`
adds `torch.compile` of the plain loop at one point (it takes minutes to compile).
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from datetime import date
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from made_up import MadeUp
from seqloom.figures import grouped_bars, save
from seqloom.nn.recurrent import Recurrent
from seqloom.nn.timing import Case, Timed, cases, contestants, measure, title


def row(case: Case, found: Timed, name: str) -> str:
    middle, least, most = found.ratio(name)
    return (
        f"| {case.name} | {title(case, name)} | {found.milliseconds(name):.1f} | "
        f"{middle:.2f} ({least:.2f} to {most:.2f}) |"
    )


def compiled_loop(case: Case) -> tuple[list[str], Timed]:
    """The plain loop, as it is and compiled."""
    jobs = contestants(case, ("auto", "reference"))
    layer = Recurrent(case.cell, case.hidden, case.hidden, backend="reference")
    weights = list(layer.parameters())
    compiled = torch.compile(layer)
    x = torch.randn(case.batch, case.steps, case.hidden, requires_grad=True)

    def job() -> None:
        torch.autograd.grad(compiled(x).outputs.sum(), weights)

    began = time.perf_counter()
    job()
    seconds = time.perf_counter() - began
    found = measure(jobs | {"torch.compile of the loop": job}, 5)
    rows = [row(case, found, name) for name in found.seconds]
    return [*rows, "", f"torch.compile took {seconds:.0f} s before its first result."], found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    lines = [
        "# Recurrent layers on the CPU",
        "",
        "    python benchmarks/recurrent.py --compile --save FILE --plot FILE",
        "",
        f"{date.today()}, {platform.machine()}, {torch.get_num_threads()} threads, torch "
        f"{torch.__version__}, float32. Time in milliseconds, and over the time of torch's layer "
        f"on the padded batch in the same round: median of {given.repeats} rounds (range).",
        "",
        "| case | who | ms | ratio |",
        "|---|---|---|---|",
    ]
    drawn: dict[str, dict[str, float]] = {}
    all_cases = list(cases(given.hidden))
    all_cases += [Case(MadeUp, hidden=size) for size in given.hidden]
    for case in all_cases:
        print(f"... {case.name}", file=sys.stderr)
        found = measure(contestants(case, ("auto", "cpu")), given.repeats)
        lines += [row(case, found, name) for name in found.seconds]
        for name in found.seconds:
            if name != found.peer:
                drawn.setdefault(title(case, name), {})[case.short] = found.ratio(name)[0]
    case = Case("peephole-lstm", hidden=given.hidden[0])
    found = measure(contestants(case, ("auto", "reference")), 3)
    lines += ["", "The visible loop in plain PyTorch:", "", *lines[6:8]]
    lines += [row(case, found, name) for name in found.seconds]
    if given.compile:
        case = Case("peephole-lstm", steps=64, hidden=given.hidden[0])
        print("... torch.compile", file=sys.stderr)
        lines += ["", "And compiled by torch, 64 steps:", "", *lines[6:8]]
        lines += compiled_loop(case)[0]
    report = "\n".join(lines) + "\n"
    print(report)
    if given.save:
        given.save.write_text(report, encoding="utf-8")
    if given.plot:
        label = "time over that of torch's layer on the padded batch"
        save(
            grouped_bars(drawn, references={"torch": 1.0}, horizontal=True, label=label), given.plot
        )


if __name__ == "__main__":
    main()
