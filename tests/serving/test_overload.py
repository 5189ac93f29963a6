"""The service when more is asked than it can answer, in time that a test advances itself."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from seqloom.serving import batching, pace
from seqloom.serving.batching import Ticket
from seqloom.serving.errors import ServingError
from seqloom.serving.models import ServedModel
from seqloom.serving.pace import FACTOR, LEAST, STEP, Pace
from seqloom.serving.service import Service
from seqloom.serving.settings import ServeConfig

SECONDS = 20.0
ONE, FIXED, EACH = 0.016, 0.009, 0.0066  # one request, and a batch: FIXED + EACH for each


class _NoFiles(selectors.SelectSelector):
    """Nothing ever comes from outside; to wait is to move the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now += max(0.0, timeout or 0.0)
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.files = _NoFiles()
        super().__init__(self.files)

    def time(self) -> float:
        return self.files.now


class _Worker:
    """Takes as long as a batch of these sizes does, more or less."""

    def __init__(self) -> None:
        self._chance = random.Random(1)

    async def answer(self, batch: Sequence[Ticket], _limit: float) -> None:
        size = sum(ticket.size for ticket in batch) / 800
        seconds = ONE * size if len(batch) == 1 else FIXED + EACH * size
        await asyncio.sleep(seconds * self._chance.uniform(0.95, 1.1))
        for ticket in batch:
            ticket.succeed(b"{}")

    async def wait_end(self) -> None:
        await asyncio.Event().wait()

    async def end(self) -> None:
        pass


class _Source:
    async def start(self) -> None:
        pass

    async def make(self) -> _Worker:
        return _Worker()

    async def close(self) -> None:
        pass


class Users:
    """Who asks, and how long each answer took."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.took: list[float] = []
        self.refused = 0
        self._chance = random.Random(2)

    async def ask(self, size: float = 1.0) -> bool:
        loop = asyncio.get_running_loop()
        began, length = loop.time(), int(800 * size * self._chance.uniform(0.8, 1.25))
        values = {"passage": "x" * length, "question": "", "k": 1, "threshold": 0.0}
        try:
            await self.service.ask("answer", None, {**values, "attention": False})
        except ServingError as error:
            assert error.status_code == 429
            self.refused += 1
            return False
        self.took.append(loop.time() - began)
        return True

    async def one_after_another(self, seconds: float = SECONDS) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            if not await self.ask():
                await asyncio.sleep(0.1)

    async def at_rate(self, rate: float, sizes: Sequence[float] = (1.0,)) -> None:
        loop = asyncio.get_running_loop()
        until, running = loop.time() + SECONDS, []
        while loop.time() < until:
            await asyncio.sleep(self._chance.expovariate(rate))
            size = self._chance.choice(sizes)
            running.append(asyncio.ensure_future(self.ask(size)))
        await asyncio.gather(*running)

    @property
    def p99(self) -> float:
        return sorted(self.took)[int(0.99 * len(self.took))]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Users]:
    """Let users ask a service of these settings that has had 200 requests before."""

    def started(asking: Callable[[Users], Awaitable[object]], **settings: Any) -> Users:
        loop = _Loop()
        for module in (pace, batching):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=loop.time))

        async def main() -> Users:
            model = ServedModel(name="m", task="answer", architecture="bidaf", place=None)
            service = Service([model], ServeConfig(time_limit=1e6, **settings))
            service._source = _Source()  # type: ignore[assignment]
            await service.start()
            users = Users(service)
            for _ in range(200):
                assert await users.ask()
            users.took.clear()
            await asking(users)
            await service.close()
            return users

        try:
            return loop.run_until_complete(main())
        finally:
            loop.close()

    return started


def many(users: Users) -> Awaitable[object]:
    return asyncio.gather(*(users.one_after_another() for _ in range(32)))


def test_overload_keeps_times_within_three_times_and_batches_pay(run: Callable[..., Users]):
    """With the settings a server has by default, and costs like those of the shipped reader."""
    alone = run(Users.one_after_another)
    one_at_a_time = run(many, max_batch=1, max_wait=5.0)
    full = run(many)
    assert full.refused > 0 == alone.refused
    assert len(full.took) > 1.6 * len(one_at_a_time.took)
    twice = run(lambda users: users.at_rate(2 * len(full.took) / SECONDS))
    assert twice.p99 < 3 * alone.p99
    assert len(twice.took) > 1.6 * len(one_at_a_time.took)
    assert twice.refused + len(twice.took) > 1.9 * len(full.took)


def test_what_can_be_answered_is_not_refused(run: Callable[..., Users]):
    half = run(lambda users: users.at_rate(0.5 / ONE))
    assert half.refused < 0.02 * len(half.took)
    # A long request in twenty holds up the others: unloaded, that is what one of them takes too.
    mixed = run(lambda users: users.at_rate(0.2 / ONE, sizes=[1.0] * 19 + [10.0]))
    assert mixed.refused < 0.06 * len(mixed.took)


def test_patient_clients_get_all_the_answers_and_larger_batches(run: Callable[..., Users]):
    full = run(many)
    patient = run(many, max_wait=5.0)
    assert patient.refused == 0
    assert len(patient.took) > 1.1 * len(full.took)
    assert patient.p99 > 2 * full.p99


def tickets(*sizes: int, job: str = "answer", common: object = ()) -> list[Ticket]:
    loop = asyncio.get_running_loop()
    return [Ticket(job, "m", common, b"{}", size, loop.create_future()) for size in sizes]  # type: ignore[arg-type]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(now=0.0)
    for module in (pace, batching):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def test_what_batches_take_is_learned_from_those_before(clock: SimpleNamespace):
    async def check() -> None:
        known = Pace(workers=1)

        def took(seconds: float, *sizes: int) -> None:
            batch = tickets(*sizes)
            known.begin(0, batch)
            clock.now += seconds
            assert known.end(0, batch) == pytest.approx(seconds)

        assert known.seconds(tickets(5)) == 0  # nothing is known
        took(0.1, 100)
        assert known.limit == pytest.approx(FACTOR * 0.1)
        assert known.seconds(tickets(100)) == pytest.approx(0.1)
        assert known.seconds(tickets(200)) == pytest.approx(0.2)  # in proportion, until told else
        assert known.seconds(tickets(100, 100)) == pytest.approx(0.1 * (1 + STEP))
        for _ in range(200):
            took(0.25, *[100] * 4)
        assert known.seconds(tickets(*[100] * 4)) == pytest.approx(0.25)
        assert known.seconds(tickets(*[50] * 4)) == pytest.approx(0.125)  # half as large
        assert known.seconds(tickets(*[100] * 7)) == pytest.approx(0.25 + 3 * STEP * 0.1)
        took(0.15, *[100] * 9)
        assert known.seconds(tickets(*[100] * 4)) == pytest.approx(0.15)  # no more than nine
        assert known.limit == pytest.approx(FACTOR * 0.1)  # batches say nothing of a request alone
        for _ in range(300):
            took(0.1, 100)
            took(0.13, 200)  # half of it whatever its size
        assert known.seconds(tickets(200)) == pytest.approx(0.13, rel=0.05)
        known.begin(0, tickets(100))
        clock.now += 0.04
        assert known.wait() == pytest.approx(0.06, rel=0.1)
        clock.now += 7
        assert known.wait() == 0  # it should have ended
        before = known.seconds(tickets(100))
        known.end(0, tickets(100), is_whole=False)
        assert known.seconds(tickets(100)) == before  # its worker was killed
        assert known.wait() == 0

    asyncio.run(check())


def test_the_limit_has_bounds_and_is_that_of_the_slowest_kind(clock: SimpleNamespace):
    async def check() -> None:
        known = Pace(workers=1)
        for seconds, job in ((0.001, "tag"), (0.02, "answer"), (60.0, "summarize")):
            batch = tickets(10, job=job, common=None)
            known.begin(0, batch)
            clock.now += seconds
            known.end(0, batch)
            assert known.limit == pytest.approx(
                {0.001: LEAST, 0.02: FACTOR * 0.02, 60.0: 5.0}[seconds]
            )

    asyncio.run(check())
