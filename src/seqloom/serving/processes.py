"""A worker as the app sees it: a process at the other end of a socket."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from seqloom.errors import DataError
from seqloom.serving.batching import Ticket
from seqloom.serving.errors import ServingError
from seqloom.serving.framing import Kind, dump, encode, receive
from seqloom.serving.models import ServedModel

LOADING = 300.0  # seconds a worker may take to load its models


class WorkerGoneError(Exception):
    """A worker ended, or was ended because it took too long."""


class WorkerProcess:
    """A process that holds the models and answers one batch at a time.

    `start` makes one. It is a new interpreter, not a fork, with the given number of threads.
    """

    def __init__(self, process: subprocess.Popen[bytes], reader: Any, writer: Any) -> None:
        self.process = process
        self._reader: asyncio.StreamReader = reader
        self._writer: asyncio.StreamWriter = writer
        self.facts: dict[str, Any] = {}

    @classmethod
    async def start(cls, models: Sequence[ServedModel], threads: int) -> WorkerProcess:
        """Start one and wait until its models are loaded.

        Raises:
            DataError: If it cannot load them, with the reason it gave.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "seqloom.serving.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **_threads(threads)},
            )
        ours.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=ours)
        worker = cls(process, reader, writer)
        try:
            async with asyncio.timeout(LOADING):
                writer.write(encode(Kind.SETUP, dump([model.to_dict() for model in models])))
                message = await receive(reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            await worker.end()
            raise DataError(
                f"a worker ended with status {process.returncode} while it loaded the models; "
                "see its own message above"
            ) from None
        except TimeoutError:
            await worker.end()
            raise DataError(f"models must load within {LOADING:.0f} s, got no answer") from None
        except BaseException:
            await worker.end()
            raise
        if message.kind == Kind.FAILED:
            await worker.end()
            raise DataError(message.content.decode("utf-8", "replace"))
        worker.facts = json.loads(message.content)
        return worker

    async def answer(self, batch: Sequence[Ticket], time_limit: float) -> None:
        """Have a batch answered. Every request of it has its answer or its error afterwards.

        Raises:
            WorkerGoneError: If the worker is of no use any more.
        """
        payloads = b",".join(ticket.payload for ticket in batch)
        head = json.dumps({"job": batch[0].job, "model": batch[0].model})[:-1].encode()
        try:
            async with asyncio.timeout(time_limit):
                content = head + b',"payloads":[' + payloads + b"]}"
                self._writer.write(encode(Kind.BATCH, content))
                await self._writer.drain()
                await self._read_answers(batch)
        except TimeoutError:
            error = ServingError(
                503, "timeout", "the request took too long; ask for less", retry_after=1
            )
        except (asyncio.IncompleteReadError, ConnectionError):
            error = ServingError(
                503,
                "worker_died",
                "the worker that had this request ended; another one is started",
                retry_after=1,
            )
        else:
            return
        for ticket in batch:
            ticket.fail(error)
        raise WorkerGoneError from None

    async def _read_answers(self, batch: Sequence[Ticket]) -> None:
        while (message := await receive(self._reader)).kind != Kind.END:
            ticket = batch[message.number]
            if message.kind == Kind.ANSWER:
                ticket.succeed(message.content)
            elif message.kind == Kind.EVENT and ticket.pieces is not None:
                ticket.pieces.put_nowait(message.content)
            elif message.kind == Kind.ERROR:
                status, told = int(message.content[:3]), json.loads(message.content[3:])["error"]
                ticket.fail(ServingError(status, told["code"], told["message"]))

    async def wait_end(self) -> None:
        """Return when an idle worker ends; it has nothing to say of itself."""
        with suppress(ConnectionError):
            await self._reader.read(1)

    async def end(self) -> None:
        """End the process, whatever it does."""
        self._writer.close()
        with suppress(ProcessLookupError):
            self.process.kill()
        await asyncio.to_thread(self.process.wait)


def _threads(count: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {**dict.fromkeys(names, str(count)), "TOKENIZERS_PARALLELISM": "false"}
