"""Who asks the workers: the queue in front of them, and their keeping."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

from starlette.requests import HTTPConnection

from seqloom.errors import DataError
from seqloom.serving.batching import BatchQueue, Ticket, alike, overloaded
from seqloom.serving.errors import ServingError
from seqloom.serving.jobs import all_jobs, endpoints
from seqloom.serving.metrics import Metrics
from seqloom.serving.models import ServedModel
from seqloom.serving.pace import Pace, Patience
from seqloom.serving.processes import WorkerGoneError, WorkerProcess
from seqloom.serving.settings import ServeConfig
from seqloom.serving.workers import LONGEST_PAUSE, Workers

_log = logging.getLogger(__name__)
PATIENCE = "Seconds in which a request is answered or refused, or may wait with --max-wait."


class Service:
    """Answers requests with the help of worker processes.

    A request waits in a bounded queue, goes to a worker with others like it, and has its answer or
    an error within the time limit, whatever happens to the worker. A worker that ends is started
    anew at once; the requests it had are answered with 503, as they may be what ended it.

    Args:
        models: The models; the first of a task is its default.
        config: The settings.
    """

    def __init__(self, models: Sequence[ServedModel], config: ServeConfig) -> None:
        self.models, self.config = list(models), config
        self.metrics = Metrics()
        self.draining = False
        self._jobs = all_jobs()
        self._pace = Pace(config.workers)
        self._patience = Patience(self._pace, config.max_wait)
        self._queue = BatchQueue(
            config.max_queue,
            config.max_batch,
            config.max_characters,
            wait=config.batch_wait,
            lasts=self._patience.lasts,
            on_refuse=self._count_refused,
        )
        self._source = Workers(
            self.models,
            config.threads,
            lambda: self.metrics.add("seqloom_template_restarts_total", 1),
        )
        self._workers: dict[int, WorkerProcess] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._apart = 0
        self._in_hand = 0
        self.metrics.gauge("seqloom_queue_length", "Requests that wait.", lambda: len(self._queue))
        self.metrics.gauge("seqloom_queue_limit", "How many may wait.", lambda: config.max_queue)
        self.metrics.gauge("seqloom_in_hand", "Requests workers have.", lambda: self._in_hand)
        self.metrics.gauge("seqloom_patience_seconds", PATIENCE, lambda: self._patience.limit)
        self.metrics.gauge("seqloom_workers_ready", "Workers that take requests.", self.ready)
        for name in ("worker_restarts", "template_restarts", "batches"):
            self.metrics.add(f"seqloom_{name}_total", 0)

    # -- workers ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the workers and wait until they have their models.

        Raises:
            DataError: If a model cannot be loaded.
        """
        await self._source.start()
        numbers = range(self.config.workers)
        started = await asyncio.gather(
            *(self._source.make() for _ in numbers), return_exceptions=True
        )
        for worker in started:
            if isinstance(worker, BaseException):
                ends = [one.end() for one in started if isinstance(one, WorkerProcess)]
                await asyncio.gather(*ends)
                raise worker
        for number, worker in enumerate(cast("list[WorkerProcess]", started)):
            self._workers[number] = worker
            self._keepers.append(asyncio.create_task(self._keep(number)))

    def ready(self) -> int:
        """How many workers take requests."""
        return 0 if self.draining else len(self._workers)

    async def _keep(self, number: int) -> None:
        """Give a worker batches; when it ends, start another."""
        pause = 0.1
        while True:
            worker = self._workers.get(number)
            if worker is not None:
                await self._work(number, worker)
                del self._workers[number]
                self.metrics.add("seqloom_worker_restarts_total", 1)
                _log.error("worker %d ended; starting another", worker.process.pid)
                await worker.end()
            try:
                fresh = await self._source.make()
            except (DataError, OSError) as error:
                _log.error("no worker can be started: %s", error)
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, 2 * pause)
                continue
            self._workers[number] = fresh
            pause = 0.1

    async def _work(self, number: int, worker: WorkerProcess) -> None:
        """Have batches answered until the worker is of no use any more."""
        while True:
            batch = await self._next_batch(worker)
            if batch is None:
                return
            self._pace.begin(number, batch)
            self._queue.refuse_late(self._pace.wait())
            self._in_hand += len(batch)
            is_whole = False
            try:
                await worker.answer(batch, self.config.time_limit)
                is_whole = True
            except WorkerGoneError:
                return
            except asyncio.CancelledError:
                for ticket in batch:
                    ticket.fail(_draining())
                raise
            finally:
                self._in_hand -= len(batch)
                seconds = self._pace.end(number, batch, is_whole=is_whole)
                self.metrics.add("seqloom_batches_total", 1)
                self.metrics.observe("seqloom_batch_size", len(batch), model=batch[0].model or "")
                self.metrics.observe("seqloom_batch_seconds", seconds, model=batch[0].model or "")

    async def _next_batch(self, worker: WorkerProcess) -> list[Ticket] | None:
        """A batch for a worker, or None if it ended while it had nothing to do."""
        taking = asyncio.create_task(self._queue.take())
        ending = asyncio.create_task(worker.wait_end())
        batch = None
        try:
            await asyncio.wait({taking, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                batch = taking.result()
                return batch
            return None
        finally:
            ended = [taking.cancel(), ending.cancel()]
            await asyncio.gather(taking, ending, return_exceptions=True)
            if batch is None and not ended[0] and not taking.cancelled():
                self._queue.put_back(taking.result())  # taken at the very moment

    async def close(self) -> None:
        """End the workers; who still waits is told so."""
        self.draining = True
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        self._queue.fail_all(_draining())
        await asyncio.gather(*(worker.end() for worker in self._workers.values()))
        self._workers.clear()
        await self._source.close()

    # -- requests --------------------------------------------------------------------------------

    def model_for(self, job: str, name: str | None) -> str | None:
        """The name of the model that is to answer.

        Raises:
            ServingError: If there is none.
        """
        task = self._jobs[job].task if job in self._jobs else job
        if not task:
            return None
        served = [model for model in self.models if model.task == task]
        if not served:
            raise ServingError(404, "no_model", "no model for this task is served")
        if name is None:
            return served[0].name
        if not any(model.name == name for model in served):
            raise ServingError(
                404, "unknown_model", "no model of that name is served for this task"
            )
        return name

    def _ticket(self, job: str, model: str | None, values: Mapping[str, Any]) -> Ticket:
        chosen = self.model_for(job, model)
        known = self._jobs[job]
        for field in known.models:
            if values.get(field) is not None:
                self.model_for(job, values[field])
        size = sum(map(len, filter(lambda value: isinstance(value, str), values.values())))
        if size > self.config.max_characters:
            raise ServingError(
                413,
                "too_long",
                f"texts must have at most {self.config.max_characters} characters together",
            )
        common = alike(dict(values), known.items) if known.many else None
        payload = json.dumps(values, ensure_ascii=False).encode()
        answer = asyncio.get_running_loop().create_future()
        return Ticket(job, chosen, common, payload, size, answer)

    def _put(self, ticket: Ticket) -> None:
        if self.draining:
            raise _draining()
        batches = len(self._queue) // (self.config.max_batch * self.config.workers)
        wait = self._pace.wait(batches)
        if not self._patience.lasts(ticket, wait, [ticket]) or not self._queue.put(ticket):
            self._count_refused()
            raise overloaded(wait)

    def _count_refused(self) -> None:
        self.metrics.add("seqloom_refused_total", 1, reason="queue")

    async def ask(self, job: str, model: str | None, values: Mapping[str, Any]) -> bytes:
        """Have a request answered; the answer is JSON.

        Raises:
            ServingError: If it cannot be.
        """
        ticket = self._ticket(job, model, values)
        self._put(ticket)
        try:
            async with asyncio.timeout(self.config.time_limit):
                return await ticket.answer
        except TimeoutError:
            raise _timeout() from None

    async def stream(
        self, job: str, model: str | None, values: Mapping[str, Any]
    ) -> AsyncIterator[bytes]:
        """Have a request answered in pieces, each JSON; the last one is the answer.

        Raises:
            ServingError: If it cannot be.
        """
        ticket = self._ticket(job, model, values)
        ticket.pieces = asyncio.Queue()
        self._put(ticket)
        async for piece in self._pieces(ticket, self.config.time_limit):
            yield piece

    async def _pieces(self, ticket: Ticket, time_limit: float) -> AsyncIterator[bytes]:
        assert ticket.pieces is not None
        deadline = asyncio.get_running_loop().time() + time_limit
        try:
            while True:
                async with asyncio.timeout_at(deadline):
                    piece = await ticket.pieces.get()
                if piece is None:
                    break
                yield piece
            yield await ticket.answer
        except TimeoutError:
            raise _timeout() from None
        finally:
            ticket.answer.cancel()  # if nobody listens any more, it need not be begun

    async def apart(
        self, job: str, values: Mapping[str, Any], *, time_limit: float
    ) -> AsyncIterator[bytes]:
        """Run a job that takes long, such as training, in a process of its own; one at a time.

        Yields:
            Its pieces, each JSON, and its answer last.

        Raises:
            ServingError: If another such job runs, or this one fails.
        """
        if self._apart:
            raise ServingError(429, "overloaded", "another long job runs", retry_after=10)
        self._apart += 1
        worker = None
        try:
            worker = await self._source.make()
            answer = asyncio.get_running_loop().create_future()
            payload = json.dumps(values, ensure_ascii=False).encode()
            ticket = Ticket(job, None, None, payload, 0, answer, asyncio.Queue())
            running = asyncio.create_task(worker.answer([ticket], time_limit))
            try:
                async for piece in self._pieces(ticket, time_limit):
                    yield piece
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        finally:
            self._apart -= 1
            if worker is not None:
                await worker.end()

    # -- what there is ---------------------------------------------------------------------------

    def describe(self) -> list[dict[str, Any]]:
        """The models that are served, as plain values."""
        first: dict[str, str] = {}
        for model in self.models:
            first.setdefault(model.task, model.name)
        found = []
        for model in self.models:
            names = endpoints(model.task)
            found.append(
                {
                    "name": model.name,
                    "task": model.task,
                    "architecture": model.architecture,
                    "endpoints": names,
                    "default_for": names if first[model.task] == model.name else [],
                    "metrics": {k: v for k, v in model.metrics.items() if _is_plain(v)},
                    **self._source.facts[model.name],
                }
            )
        return found


def service_of(connection: HTTPConnection) -> Service:
    """The service behind the app of a request."""
    return cast("Service", connection.app.state.service)


def _is_plain(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _draining() -> ServingError:
    return ServingError(503, "draining", "the server is about to end", retry_after=5)


def _timeout() -> ServingError:
    return ServingError(503, "timeout", "the request took too long; ask for less", retry_after=1)
