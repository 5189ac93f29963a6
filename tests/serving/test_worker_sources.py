"""Where workers come from: forks of a template, and new interpreters where a fork is not safe."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from served import Server, wait_for

import seqloom
from seqloom.errors import DataError
from seqloom.serving import workers as source
from seqloom.serving.batching import Ticket
from seqloom.serving.models import find_served
from seqloom.serving.processes import WorkerProcess
from seqloom.serving.workers import Workers

TEXT = "the cat sat"
PASSAGE = "Ada Lovelace was born in London in 1815. Her daughter was born in Surrey. " * 2


async def log_probs(worker: WorkerProcess) -> list[float]:
    """What a worker says of the text."""
    answer = asyncio.get_running_loop().create_future()
    payload = json.dumps({"text": TEXT}).encode()
    await worker.answer([Ticket("score", "ngram", None, payload, 1, answer)], 60)
    found: list[float] = json.loads(await answer)["log_probs"]
    return found


def use(models: Sequence[object], run: Any) -> Any:
    """Start a source of workers and run something with it."""

    async def started() -> Any:
        given = Workers(find_served([str(each) for each in models]), 1)
        try:
            await given.start()
            return await run(given)
        finally:
            await given.close()

    return asyncio.run(started())


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_worker_is_a_fork_of_the_template_and_says_what_the_library_says(counted: Path):
    async def run(given: Workers) -> None:
        first, second = await given.make(), await given.make()
        try:
            assert await log_probs(first) == await log_probs(second) == expected
            assert parent(first.process.pid) == parent(second.process.pid) != os.getpid()
        finally:
            await asyncio.gather(first.end(), second.end())
        assert not Path(f"/proc/{first.process.pid}").exists()  # it is buried too
        assert given.facts["ngram"]["parameters"] > 0

    expected = pytest.approx(seqloom.load(counted).score(TEXT).log_probs)
    use([counted], run)


def test_a_template_that_hangs_is_replaced(counted: Path, monkeypatch: pytest.MonkeyPatch):
    async def run(given: Workers) -> None:
        worker = await given.make()
        before = parent(worker.process.pid)
        os.kill(before, signal.SIGSTOP)
        monkeypatch.setattr(source, "FORKING", 0.1)
        with pytest.raises(OSError, match="did not fork in time"):
            await given.make()
        monkeypatch.undo()
        while True:  # the first try may come before the end of the other was seen
            try:
                other = await given.make()
                break
            except OSError:
                await asyncio.sleep(0.1)
        try:
            assert parent(other.process.pid) not in (before, os.getpid())
            assert await log_probs(other) == await log_probs(worker)  # the older one goes on
        finally:
            await asyncio.gather(worker.end(), other.end())

    use([counted], run)


@pytest.mark.parametrize("reason", ["system", "threads"])
def test_where_a_fork_is_not_safe_a_worker_is_a_new_interpreter(
    counted: Path, monkeypatch: pytest.MonkeyPatch, reason: str
):
    set_up = source.set_up

    async def with_threads(*arguments: Any) -> dict[str, Any]:
        return {**await set_up(*arguments), "threads": 2}

    async def run(given: Workers) -> list[float]:
        worker = await given.make()
        try:
            assert parent(worker.process.pid) == os.getpid()
            assert given.facts["ngram"]["parameters"] > 0
            return await log_probs(worker)
        finally:
            await worker.end()

    if reason == "system":
        monkeypatch.setattr(source, "can_fork", lambda: False)
    else:
        monkeypatch.setattr(source, "set_up", with_threads)
    assert use([counted], run) == pytest.approx(seqloom.load(counted).score(TEXT).log_probs)


def test_a_sandbox_without_the_calls_has_no_forks(monkeypatch: pytest.MonkeyPatch):
    def refuse(_process: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    assert source.can_fork()
    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert not source.can_fork()
    monkeypatch.undo()
    monkeypatch.setattr(source.sys, "platform", "darwin")
    assert not source.can_fork()


@pytest.mark.parametrize("forks", [True, False])
def test_a_model_that_changed_since_is_refused_with_the_reason(
    counted: Path, monkeypatch: pytest.MonkeyPatch, forks: bool
):
    async def run() -> None:
        (model,) = find_served([str(counted)])
        changed = type(model)(**{**model.to_dict(), "digest": "another"})
        given = Workers([changed], 1)
        try:
            await given.start()
            await given.make()
        finally:
            await given.close()

    monkeypatch.setattr(source, "can_fork", lambda: forks)
    with pytest.raises(DataError, match="another model than when the server started"):
        asyncio.run(run())


def test_a_forked_worker_has_its_threads_and_answers_right():
    """The template has one thread; a worker starts the others when it computes."""
    asked = {"passage": PASSAGE, "question": "Where was Ada born?"}
    with Server("english-reader", "--threads", 2, "--time-limit", 60) as server:
        found = server.ask("/v1/answer", asked).value
        (worker,) = server.workers()
        tasks = [Path(f"/proc/{each}/task") for each in (server.template(), worker)]
        counts = [len(list(each.iterdir())) for each in tasks]
        server.signal_workers(signal.SIGKILL)
        wait_for(lambda: server.workers() not in ([], [worker]), "another worker")
        again = server.ask("/v1/answer", asked).value
    assert counts[0] == 1 < counts[1]
    best = seqloom.load("english-reader").answer(PASSAGE, asked["question"])
    for each in (found, again):
        assert (each["start"], each["end"]) == (best.start, best.end)
        assert each["probability"] == pytest.approx(best.probability, abs=1e-4)
