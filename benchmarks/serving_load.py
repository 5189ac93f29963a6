"""Load for a server: requests one after another, by many clients at once, or at a given rate."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

PATIENCE = 60.0


@dataclass
class Load:
    """What became of requests: seconds and status of each, and how many were wrong.

    Attributes:
        answered: Seconds each request that was answered with 200 took.
        refused: How many were refused with 429 or 503 and a Retry-After.
        other: How many had another status, or no Retry-After.
        lost: How many had no answer at all.
        wrong: How many answers were not the library's.
        seconds: How long it took in all.
        spans: When each of these was asked and answered.
    """

    answered: list[float] = field(default_factory=list)
    refused: int = 0
    other: int = 0
    lost: int = 0
    wrong: int = 0
    seconds: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.answered) / self.seconds

    def add(self, other: Load) -> None:
        """Add what became of further requests."""
        self.answered += other.answered
        self.spans += other.spans
        for name in ("refused", "other", "lost", "wrong", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def back(self, moment: float) -> float:
        """Seconds from a moment to the first answer to what was asked after it."""
        return min(end for began, end in self.spans if began > moment) - moment

    def ms(self, share: float) -> float:
        """A quantile of the time to an answer, in milliseconds."""
        return 1000 * float(np.quantile(self.answered, share)) if self.answered else float("nan")


class Client:
    """Connections to a server that are kept and used again.

    Args:
        port: Its port.
        bodies: The bodies of requests, taken in turn.
        is_right: Whether the answer to the i-th of them is right.
    """

    def __init__(
        self, port: int, bodies: list[bytes], is_right: Callable[[int, dict[str, object]], bool]
    ) -> None:
        self.port, self.is_right = port, is_right
        self.requests = [
            b"POST /v1/answer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            for body in bodies
        ]
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._next = itertools.count()

    async def ask(self, load: Load) -> None:
        """Ask the next question and note what came of it."""
        number = next(self._next) % len(self.requests)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                status, head, body = await self._exchange(self.requests[number])
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            load.lost += 1
            return
        if status == 200:
            now = time.perf_counter()
            load.answered.append(now - began)
            load.spans.append((began, now))
            load.wrong += not self.is_right(number, json.loads(body))
        elif status in (429, 503) and b"retry-after" in head.lower():
            load.refused += 1
        else:
            load.other += 1

    async def _exchange(self, request: bytes) -> tuple[int, bytes, bytes]:
        reader, writer = await self._connection()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(length[1]) if length else 0)
        if b"connection: close" in head.lower():
            writer.close()
        else:
            self._free.append((reader, writer))
        return int(head[9:12]), head, body

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._free:
            reader, writer = self._free.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def closed(self, clients: int, seconds: float) -> Load:
        """So many clients, each with its next question when the last one is answered."""
        load, began = Load(), time.perf_counter()

        async def one() -> None:
            while time.perf_counter() < began + seconds:
                refused = load.refused
                await self.ask(load)
                if load.refused > refused:
                    await asyncio.sleep(0.1)

        await asyncio.gather(*(one() for _ in range(clients)))
        load.seconds = time.perf_counter() - began
        return load

    async def at_rate(
        self, rate: float, seconds: float, during: Callable[[float], None] = lambda _: None
    ) -> Load:
        """Questions at random moments, so many a second, whether the last is answered or not."""
        load, began, chance = Load(), time.perf_counter(), random.Random(0)
        due, running = began, set()
        while due < began + seconds:
            due += chance.expovariate(rate)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            task = asyncio.create_task(self.ask(load))
            running.add(task)
            task.add_done_callback(running.discard)
            during(time.perf_counter() - began)
        await asyncio.gather(*running)
        load.seconds = time.perf_counter() - began
        return load
