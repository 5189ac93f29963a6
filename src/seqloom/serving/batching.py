"""The queue: bounded, in order of arrival, and handed out as batches of alike requests."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from seqloom.serving.errors import ServingError


@dataclass(eq=False, slots=True)
class Ticket:
    """A request that waits for its answer.

    Args:
        job: The name of the job.
        model: The name of the model, if the job needs one.
        alike: What requests of one batch have in common, besides job and model; None for a request
            that must be alone.
        payload: What is asked, as JSON.
        size: How large it is, in characters.
        answer: Gets the answer, as JSON, or the error.
        pieces: Gets the pieces of an answer that comes in pieces, then None.
        arrived: When it came.
    """

    job: str
    model: str | None
    alike: Hashable | None
    payload: bytes
    size: int
    answer: asyncio.Future[bytes]
    pieces: asyncio.Queue[bytes | None] | None = None
    arrived: float = field(default_factory=lambda: time.monotonic())  # noqa: PLW0108 (a test's)

    def goes_with(self, other: Ticket) -> bool:
        """Whether both can be answered at once."""
        return (
            self.alike is not None
            and self.job == other.job
            and self.model == other.model
            and self.alike == other.alike
        )

    def fail(self, error: ServingError) -> None:
        """Answer with an error, if it has no answer yet."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # nobody may be waiting any more
        self.close()

    def succeed(self, content: bytes) -> None:
        """Answer, if it has no answer yet."""
        if not self.answer.done():
            self.answer.set_result(content)
        self.close()

    def close(self) -> None:
        """End the pieces."""
        if self.pieces is not None:
            self.pieces.put_nowait(None)


class BatchQueue:
    """Requests that wait, and the batches made of them.

    A worker that is idle takes the oldest request at once and what goes with it; while all are
    busy, more of them gather, so batches grow with the load. When more come than can be answered
    in time, the oldest are left out, not the newest: to refuse who waited longest lets all others
    wait less, and so batches be larger.

    Similar: Maurer (2015), "Fail at Scale", ACM Queue 13(8), "Adaptive LIFO".

    Args:
        max_queue: How many may wait.
        max_batch: How many requests a batch has at most.
        max_size: Characters of a batch at most, unless one request alone has more.
        wait: Seconds the oldest may wait for others while a worker is idle.
        lasts: Whether a request is answered in time if its batch begins so many seconds from now;
            see `seqloom.serving.pace.Patience`.
        on_refuse: Called when one that waited is refused.
    """

    def __init__(
        self,
        max_queue: int,
        max_batch: int,
        max_size: int,
        *,
        wait: float = 0.0,
        lasts: Callable[[Ticket, float, Sequence[Ticket]], bool] = lambda *_: True,
        on_refuse: Callable[[], object] = lambda: None,
    ) -> None:
        self.max_queue, self.max_batch = max_queue, max_batch
        self.max_size, self.wait = max_size, wait
        self._lasts, self._on_refuse = lasts, on_refuse
        self._waiting: deque[Ticket] = deque()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, ticket: Ticket) -> bool:
        """Let a request wait; False if too many do."""
        if len(self._waiting) >= self.max_queue:
            self._drop_answered()
            if len(self._waiting) >= self.max_queue:
                return False
        self._waiting.append(ticket)
        self._arrived.set()
        return True

    def put_back(self, batch: list[Ticket]) -> None:
        """Let a batch that nobody began wait again, before all others."""
        self._waiting.extendleft(reversed(batch))
        self._arrived.set()

    def _drop_answered(self) -> None:
        """Let go of requests that gave up."""
        self._waiting = deque(t for t in self._waiting if not t.answer.done())

    def refuse_late(self, wait: float = 0.0) -> None:
        """Refuse who cannot be answered in time by a worker that is free so many seconds from now.

        What gave up is let go.
        """
        self._drop_answered()
        late = [each for each in self._waiting if not self._lasts(each, wait, [each])]
        for ticket in late:
            ticket.fail(overloaded())
            self._on_refuse()
        if late:
            self._drop_answered()

    async def take(self) -> list[Ticket]:
        """Wait for requests and return a batch of them; nobody else gets these."""
        while True:
            self.refuse_late()
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            head = self._waiting[0]
            batch = self._batch(head)
            left = head.arrived + self.wait - time.monotonic()
            if head.alike is None or len(batch) >= self.max_batch or left <= 0:
                taken = set(map(id, batch))
                self._waiting = deque(t for t in self._waiting if id(t) not in taken)
                return batch
            self._arrived.clear()
            try:
                async with asyncio.timeout(left):
                    await self._arrived.wait()
            except TimeoutError:
                pass

    def _batch(self, head: Ticket) -> list[Ticket]:
        """What goes with the oldest request, in order; without the oldest if they would be late."""
        together = [each for each in self._waiting if each is head or each.goes_with(head)]
        for first, oldest in enumerate(together):
            batch = self._bounded(together[first:])
            if self._lasts(oldest, 0.0, batch):
                return batch
        return [head]

    def _bounded(self, given: list[Ticket]) -> list[Ticket]:
        size, count = given[0].size, 1
        while count < min(len(given), self.max_batch):
            size += given[count].size
            if size > self.max_size:
                break
            count += 1
        return given[:count]

    def fail_all(self, error: ServingError) -> None:
        """Answer everyone who waits with an error."""
        while self._waiting:
            self._waiting.popleft().fail(error)


def overloaded(seconds: float = 1.0) -> ServingError:
    """What is told who asks for more than can be answered, and when to try again."""
    return ServingError(
        429,
        "overloaded",
        "more is asked than can be answered; try again later",
        retry_after=max(1, math.ceil(seconds)),
    )


def alike(values: dict[str, Any], items: tuple[str, ...]) -> Hashable:
    """What requests of a batch must have in common."""
    return tuple((name, value) for name, value in values.items() if name not in items)
