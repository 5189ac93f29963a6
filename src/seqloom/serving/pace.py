"""How long batches take, and so which requests can be answered in time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from seqloom.serving.batching import Ticket

SHARE = 0.1  # of a new measurement in a smoothed one
KEPT, HIGH = 200, 0.98  # of so many requests, the size that few exceeded
FACTOR = 2.8  # how many times what that takes alone a request may be expected to take under load;
# so that it takes less than 3 times, as not everything comes as expected
LEAST, MOST = 0.025, 5.0  # seconds: the bounds of that limit
STEP = 0.4  # what one more request in a batch is thought to cost, in times of one alone
SPREAD = 0.05  # of sizes, relative; below it they do not tell what a larger request costs


@dataclass
class _Kind:
    """What is known of requests of one job and model.

    Attributes:
        sizes: The sizes of the last requests.
        seconds: The smoothed seconds of batches of one.
        size: Their smoothed size.
        spread: The smoothed square of the difference of a size to that.
        together: The smoothed product of that difference and the one of the seconds.
        costs: What batches of so many cost, in times of what one request of their mean size costs.
    """

    sizes: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    seconds: float = 0.0
    size: float = 0.0
    spread: float = 0.0
    together: float = 0.0
    costs: dict[int, float] = field(default_factory=dict)

    def add(self, sizes: Sequence[float], seconds: float) -> None:
        """Learn from a batch."""
        if len(sizes) == 1 or not self.sizes:
            share = SHARE if self.sizes else 1.0
            by, longer = sum(sizes) / len(sizes) - self.size, seconds - self.seconds
            self.size += share * by
            self.seconds += share * longer
            if self.sizes:  # as Welford's sums, with weights that fade
                self.spread += share * ((1 - share) * by * by - self.spread)
                self.together += share * ((1 - share) * by * longer - self.together)
        else:
            count, cost = len(sizes), seconds / self.expected([sum(sizes) / len(sizes)])
            old = self.costs.get(count, cost)
            self.costs[count] = old + SHARE * (min(cost, 2.0 * count) - old)
        self.sizes.extend(sizes)

    def expected(self, sizes: Sequence[float]) -> float:
        """The seconds of a batch of requests of these sizes."""
        if len(sizes) > 1:
            return self.cost(len(sizes)) * self.expected([sum(sizes) / len(sizes)])
        most = self.seconds / self.size  # in proportion
        slope = most
        if self.spread > (SPREAD * self.size) ** 2:
            slope = min(most, max(0.0, self.together / self.spread))
        return self.seconds + slope * (sizes[0] - self.size)

    def cost(self, count: int) -> float:
        """What a batch of so many costs, in times of one.

        Of a count that was never seen, it is that of the next smaller one and `STEP` for each more:
        little, so that larger batches are tried. A smaller batch costs no more than a larger one.
        """
        below = max((n for n in self.costs if n <= count), default=1)
        found = self.costs.get(below, 1.0) + STEP * (count - below)
        return min([found, *(cost for n, cost in self.costs.items() if n > count)])

    def high(self) -> float:
        """The seconds that a large request takes alone."""
        return self.expected([sorted(self.sizes)[int(HIGH * (len(self.sizes) - 1))]])


class Pace:
    """The seconds of batches, by kind, and when those under way end.

    A request alone is expected to take the mean of batches of one, and what a regression on its
    size adds. A batch of n is expected to take c(n) times what one of its mean size takes alone;
    c(n) is the smoothed cost of batches of n.

    Args:
        workers: How many batches can be under way.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._kinds: dict[Hashable, _Kind] = {}
        self._under_way: dict[int, tuple[float, float]] = {}
        self._usual = 0.0
        self.limit = MOST

    def begin(self, worker: int, batch: Sequence[Ticket]) -> None:
        """A worker begins a batch."""
        now = time.monotonic()
        self._under_way[worker] = now, now + self.seconds(batch)

    def end(self, worker: int, batch: Sequence[Ticket], *, is_whole: bool = True) -> float:
        """A worker ended its batch; how many seconds it took. Nothing is learned of a part."""
        began, _ = self._under_way.pop(worker)
        seconds = time.monotonic() - began
        if is_whole:
            self._usual += (SHARE if self._kinds else 1.0) * (seconds - self._usual)
            kind = self._kinds.setdefault((batch[0].job, batch[0].model), _Kind())
            kind.add(_sizes(batch), seconds)
            usual = FACTOR * max(each.high() for each in self._kinds.values())
            self.limit = min(MOST, max(LEAST, usual))
        return seconds

    def seconds(self, batch: Sequence[Ticket]) -> float:
        """What a batch is expected to take; 0 while nothing is known of its kind."""
        kind = self._kinds.get((batch[0].job, batch[0].model))
        return 0.0 if kind is None else kind.expected(_sizes(batch))

    def wait(self, batches: int = 0) -> float:
        """Seconds until a worker is free that has answered so many further batches."""
        more = batches * self._usual
        if len(self._under_way) < self._workers:
            return more
        now = time.monotonic()
        return min(max(0.0, end - now) for _, end in self._under_way.values()) + more


def _sizes(batch: Sequence[Ticket]) -> list[float]:
    return [float(max(1, each.size)) for each in batch]


class Patience:
    """How long a request may take before it is refused.

    With `max_wait` it may wait so many seconds for a worker. Without, it must be answered within
    `FACTOR` times what the slowest kind of request takes alone, by the measurements of `pace`, or
    what it takes itself.

    Args:
        pace: How long batches take.
        max_wait: Seconds.
    """

    def __init__(self, pace: Pace, max_wait: float | None) -> None:
        self._pace, self._max_wait = pace, max_wait

    @property
    def limit(self) -> float:
        """The seconds at present."""
        return self._pace.limit if self._max_wait is None else self._max_wait

    def lasts(self, ticket: Ticket, wait: float, batch: Sequence[Ticket]) -> bool:
        """Whether a request is in time if its batch begins so many seconds from now."""
        waited = time.monotonic() - ticket.arrived + wait
        if self._max_wait is not None:
            return waited <= self._max_wait
        own = FACTOR * self._pace.seconds([ticket])
        return waited + self._pace.seconds(batch) <= max(self._pace.limit, own)
