"""The queue by itself: bounds, order, which requests go together, and the text of the metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from seqloom.errors import DataError
from seqloom.serving.batching import BatchQueue, Ticket, alike
from seqloom.serving.errors import ServingError, told_without_input
from seqloom.serving.framing import dump
from seqloom.serving.metrics import Metrics


def ticket(job: str = "score", common: object = (), size: int = 1) -> Ticket:
    return Ticket(job, "m", common, b"{}", size, asyncio.get_running_loop().create_future())  # type: ignore[arg-type]


def test_batches_hold_alike_requests_in_order():
    async def run() -> None:
        queue = BatchQueue(max_queue=10, max_batch=3, max_size=100)
        first, other, alone = ticket(), ticket("classify"), ticket(common=None)
        rest = [ticket() for _ in range(3)]
        for each in (first, other, rest[0], alone, rest[1], rest[2]):
            assert queue.put(each)
        assert await queue.take() == [first, rest[0], rest[1]]
        assert await queue.take() == [other]
        assert await queue.take() == [alone]
        assert await queue.take() == [rest[2]]
        assert len(queue) == 0

    asyncio.run(run())


def test_options_and_sizes_keep_requests_apart():
    async def run() -> None:
        queue = BatchQueue(max_queue=10, max_batch=9, max_size=10)
        a, b, c, d = ticket(size=6), ticket(size=4), ticket(common=(1,)), ticket(size=1)
        for each in (a, b, c, d):
            queue.put(each)
        assert await queue.take() == [a, b]
        assert await queue.take() == [c]
        assert await queue.take() == [d]
        huge = ticket(size=1000)
        queue.put(huge)
        assert await queue.take() == [huge]

    asyncio.run(run())


def test_the_queue_is_bounded_and_forgets_who_gave_up():
    async def run() -> None:
        queue = BatchQueue(max_queue=2, max_batch=1, max_size=10)
        first = ticket()
        assert queue.put(first) and queue.put(ticket()) and not queue.put(ticket())
        first.answer.cancel()
        assert queue.put(ticket())
        assert not queue.put(ticket())

    asyncio.run(run())


def test_an_idle_worker_waits_for_a_full_batch_or_the_time():
    async def run() -> None:
        queue = BatchQueue(max_queue=9, max_batch=2, max_size=10, wait=1000)
        taking = asyncio.create_task(queue.take())
        first, second = ticket(), ticket()
        queue.put(first)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not taking.done()
        queue.put(second)
        assert await taking == [first, second]
        queue.wait = 0
        last = ticket()
        queue.put(last)
        assert await queue.take() == [last]

    asyncio.run(run())


def test_what_nobody_began_comes_first_again():
    async def run() -> None:
        queue = BatchQueue(max_queue=9, max_batch=2, max_size=10)
        one, two, three = ticket(), ticket(), ticket()
        for each in (one, two, three):
            queue.put(each)
        queue.put_back(await queue.take())
        assert await queue.take() == [one, two]
        queue.fail_all(ServingError(503, "draining", "ends"))
        with pytest.raises(ServingError, match="ends"):
            await three.answer

    asyncio.run(run())


def test_who_cannot_be_in_time_is_refused_in_place_of_being_served():
    """In time is, here, who has not waited for 100 s when a batch of 2 s a request ends."""

    async def run() -> None:
        def lasts(one: Ticket, wait: float, batch: Sequence[Ticket]) -> bool:
            return time.monotonic() - one.arrived + wait + 2 * len(batch) <= 100

        refused: list[int] = []
        queue = BatchQueue(9, 9, 100, lasts=lasts, on_refuse=lambda: refused.append(1))
        waiting = [ticket() for _ in range(5)]
        for each, waited in zip(waiting, (101, 97, 95, 50, 10), strict=True):
            each.arrived -= waited
            queue.put(each)
        # The first cannot be answered any more, the second not together with all others.
        assert await queue.take() == waiting[3:]
        assert len(queue) == 2 and len(refused) == 1
        queue.refuse_late(4.0)  # a worker is free when that batch is done
        assert len(queue) == 0 and len(refused) == 3
        for each in waiting[:3]:
            with pytest.raises(ServingError, match="try again later") as told:
                await each.answer
            assert told.value.status_code == 429

    asyncio.run(run())


def test_requests_that_differ_in_their_items_alone_are_alike():
    asked = {"text": "a", "explain": True}
    assert alike(asked, ("text",)) == alike({**asked, "text": "b"}, ("text",))
    assert alike(asked, ("text",)) != alike({**asked, "explain": False}, ("text",))


def test_metrics_are_text_for_prometheus():
    metrics = Metrics()
    metrics.gauge("seqloom_queue_length", "Requests that wait.", lambda: 3)
    metrics.add("seqloom_requests_total", 1, endpoint='a"b\\', status="200")
    for value in (1, 2, 3, 500):
        metrics.observe("seqloom_batch_size", value, model="m")
    text = metrics.text()
    assert "# TYPE seqloom_queue_length gauge\nseqloom_queue_length 3\n" in text
    assert 'seqloom_requests_total{endpoint="a\\"b\\\\",status="200"} 1\n' in text
    expected = {"1": 1, "2": 2, "4": 3, "8": 3, "128": 3, "+Inf": 4}
    for bound, count in expected.items():
        assert f'seqloom_batch_size_bucket{{model="m",le="{bound}"}} {count}\n' in text
    assert 'seqloom_batch_size_sum{model="m"} 506\n' in text
    assert 'seqloom_batch_size_count{model="m"} 4\n' in text


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("a text must hold one blank, got 2 in 'secret'; write one", "a text must hold one blank"),
        (
            "there must be a vector for the word, got 'secret'",
            "there must be a vector for the word",
        ),
        ("secret is not right", "the model cannot use this input"),
        ("got 'secret'", "the model cannot use this input"),
    ],
)
def test_errors_lose_what_they_quote(message: str, told: str):
    assert told_without_input(DataError(message), {"text": "the secret thing"}) == told


def test_numbers_that_json_lacks_are_null():
    found = dump({"a": [float("nan"), 1.5], "b": (float("-inf"),), "c": "\ud800"})
    assert found == b'{"a":[null,1.5],"b":[null],"c":"?"}'
