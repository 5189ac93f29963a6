"""How fast recurrent layers are: ours, torch's and a plain loop, in turn in one run."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from seqloom.kernels.choice import line_of
from seqloom.nn.cells import CELLS, Cell
from seqloom.nn.recurrent import TORCH_NAMES, Recurrent

PEERS: dict[str, Callable[..., nn.RNNBase]] = {
    "rnn": nn.RNN,
    "rnn-relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}  # what torch has


@dataclass(frozen=True)
class Case:
    """What is measured.

    Args:
        cell: A cell's name, or a cell.
        batch: Rows.
        steps: Steps of the longest.
        hidden: Width of the input and of the state.
        share: The share of steps that are real, on average; below 1 the rows have lengths evenly
            spread between the shortest and the longest that give it.
        training: Whether the way back is walked as well.
        device: Where.
    """

    cell: str | type[Cell] = "lstm"
    batch: int = 32
    steps: int = 128
    hidden: int = 256
    share: float = 1.0
    training: bool = True
    device: str = "cpu"

    @property
    def name(self) -> str:
        """What a table calls it."""
        cell = self.cell if isinstance(self.cell, str) else self.cell.__name__
        what = "forward + backward" if self.training else "forward"
        real = "" if self.share == 1 else f", {self.share:.0%} real"
        return f"{cell}, B={self.batch} T={self.steps} H={self.hidden}{real}, {what}"

    @property
    def short(self) -> str:
        """What a picture calls it."""
        cell = self.cell if isinstance(self.cell, str) else self.cell.__name__
        real = "" if self.share == 1 else f", {self.share:.0%} real"
        return f"{cell} {self.hidden}{real}{', training' if self.training else ', forward'}"

    def lengths(self) -> Tensor | None:
        """How many steps each row has; None if all have all."""
        if self.share == 1:
            return None
        shortest = max(1, round((2 * self.share - 1) * self.steps))
        return torch.linspace(self.steps, shortest, self.batch).round().long()


class Timed(NamedTuple):
    """Seconds of each round, by contestant, and the contestant that others are measured by."""

    seconds: Mapping[str, list[float]]
    peer: str

    def ratio(self, name: str) -> tuple[float, float, float]:
        """Time over the peer's time in the same round: the median, the least and the most."""
        ratios = [a / b for a, b in zip(self.seconds[name], self.seconds[self.peer], strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)

    def milliseconds(self, name: str) -> float:
        """The median time."""
        return 1000 * statistics.median(self.seconds[name])


def contestants(
    case: Case, backends: Sequence[str] = ("auto",), *, peer: str | None = None
) -> dict[str, Callable[[], None]]:
    """What runs a case: torch's layer on the padded batch, packed, and ours by some backends.

    Args:
        case: What to run.
        backends: Those of our own layer.
        peer: The layer of torch's to compare with: the cell's own where torch has it, the LSTM
            where it does not.
    """
    torch.manual_seed(0)
    H, lengths = case.hidden, case.lengths()
    x = torch.randn(case.batch, case.steps, H, device=case.device)
    x.requires_grad_(case.training)
    named = case.cell if isinstance(case.cell, str) else ""
    theirs = PEERS[peer or (named if named in PEERS else "lstm")]
    layer = theirs(H, H, batch_first=True).to(case.device)
    found = {"nn": _job(layer, lambda: layer(x)[0], case)}
    if lengths is not None:

        def packed() -> Tensor:
            given = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=True)
            return layer(given)[0].data  # type: ignore[no-any-return]

        found["nn, packed"] = _job(layer, packed, case)
    for backend in backends:
        own = Recurrent(case.cell, H, H, backend=backend).to(case.device)
        given = None if lengths is None else lengths.to(case.device)
        found[backend] = _job(own, partial(_outputs, own, x, given), case)
    return found


def _outputs(layer: Recurrent, x: Tensor, lengths: Tensor | None) -> Tensor:
    return layer(x, lengths).outputs  # type: ignore[no-any-return]


def _job(layer: nn.Module, run: Callable[[], Tensor], case: Case) -> Callable[[], None]:
    weights = [*layer.parameters()]

    def train() -> None:
        y = run()
        torch.autograd.grad(y.sum(), weights)
        _finish(case)

    def infer() -> None:
        with torch.no_grad():
            run()
        _finish(case)

    return train if case.training else infer


def _finish(case: Case) -> None:
    if case.device != "cpu":
        torch.cuda.synchronize()


def measure(jobs: Mapping[str, Callable[[], Any]], repeats: int = 9, peer: str = "nn") -> Timed:
    """Run every job in turn, round after round, after two rounds that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 2):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            if turn >= 2:
                seconds[name].append(time.perf_counter() - began)
    return Timed(seconds, peer)


def cases(
    hidden: Sequence[int] = (256, 512), *, batch: int = 32, steps: int = 128
) -> Iterator[Case]:
    """What `seqloom bench recurrent` measures."""
    for size in hidden:
        for cell in ("lstm", "gru", "peephole-lstm", "gru-before"):
            yield Case(cell, batch, steps, size)
        for cell in ("lstm", "peephole-lstm"):
            yield Case(cell, batch, steps, size, share=0.59)
        for cell in ("lstm", "gru"):
            yield Case(cell, batch, steps, size, training=False)


def title(case: Case, contestant: str) -> str:
    """What a table calls a contestant."""
    named = case.cell if isinstance(case.cell, str) and case.cell in PEERS else "lstm"
    own = {"nn": f"torch's {named}, padded", "nn, packed": f"torch's {named}, packed"}
    return own.get(contestant, f"seqloom, {contestant}")


TUNED = (64, 256, 1024)  # hidden sizes measured for `auto`


def tune(
    say: Callable[[str], None], *, repeats: int = 5, sizes: Sequence[int] = TUNED, steps: int = 32
) -> dict[str, Any]:
    """Measure what `auto` chooses by: our loops and kernels against torch's layers, here.

    Where there is a card, how kernels are best cut there is found as well.

    Args:
        say: Told how it goes, line by line.
        repeats: Rounds of each case.
        sizes: The hidden sizes.
        steps: Of each sequence.

    Returns:
        The table, as `seqloom.kernels.measured.save_table` takes it.
    """
    ratios: dict[str, dict[str, float]] = {}
    kinds = ((1, 1.0), (32, 1.0), (4, 0.59), (32, 0.59))  # rows, and the share that is real
    for cell, training, (batch, share), size in itertools.product(
        PEERS, (True, False), kinds, sizes
    ):
        case = Case(cell, batch, steps, size, share, training)
        jobs = contestants(case, ("torch", "cpu"))
        found = measure({name: jobs[name] for name in ("torch", "cpu")}, repeats, peer="torch")
        name = TORCH_NAMES[CELLS[cell]]
        line = line_of(name, batch, training=training, ragged=share < 1)
        ratios.setdefault(line, {})[str(size)] = round(found.ratio("cpu")[0], 3)
        say(f"{case.name}: cpu takes {found.ratio('cpu')[0]:.2f} of torch's time")
    table = {"measured": str(date.today()), "threads": torch.get_num_threads(), "ratios": ratios}
    if torch.cuda.is_available():
        from seqloom.nn.timing_gpu import tune_gpu

        table |= tune_gpu(say)
    return table
