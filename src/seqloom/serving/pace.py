"""How long batches take, and so how long a request would wait."""

from __future__ import annotations

import time
from collections.abc import Hashable

SHARE = 0.2  # of a new measurement in the smoothed one


class Pace:
    """The smoothed seconds of batches, by kind, and when those under way began.

    Args:
        workers: How many batches can be under way.
        max_batch: How many requests a batch has at most.
    """

    def __init__(self, workers: int, max_batch: int) -> None:
        self._workers, self._max_batch = workers, max_batch
        self._seconds: dict[Hashable, float] = {}
        self._any = 0.0
        self._under_way: dict[int, tuple[Hashable, float]] = {}

    def begin(self, worker: int, kind: Hashable) -> None:
        """A worker begins a batch."""
        self._under_way[worker] = kind, time.monotonic()

    def end(self, worker: int) -> float:
        """A worker ended its batch; how many seconds it took."""
        kind, began = self._under_way.pop(worker)
        seconds = time.monotonic() - began
        self._seconds[kind] = _mixed(self._seconds.get(kind), seconds)
        self._any = _mixed(self._any or None, seconds)
        return seconds

    def wait(self, waiting: int) -> float:
        """Seconds a request would wait behind so many others."""
        if len(self._under_way) < self._workers and not waiting:
            return 0.0
        now = time.monotonic()
        left = (
            max(0.0, began + self._seconds.get(kind, 0.0) - now)
            for kind, began in self._under_way.values()
        )
        batches = waiting // (self._max_batch * self._workers)
        return min(left, default=0.0) + batches * self._any


def _mixed(old: float | None, new: float) -> float:
    return new if old is None else old + SHARE * (new - old)
