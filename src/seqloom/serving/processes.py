"""Other processes as the app sees them: each at the other end of a socket."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from seqloom.errors import DataError
from seqloom.serving.batching import Ticket
from seqloom.serving.errors import ServingError
from seqloom.serving.framing import Kind, dump, encode, receive

LOADING = 300.0  # seconds a worker may take to load its models


class WorkerGoneError(Exception):
    """A worker ended, or was ended because it took too long."""


class EndedProcess(Protocol):
    """What is needed of a process to end it; `subprocess.Popen` has it."""

    pid: int

    def kill(self) -> None:
        """End it, whatever it does."""

    def wait(self) -> object:
        """Return when it has ended."""


class ForkedProcess:
    """A process that is the child of another, by a descriptor that never names a later one."""

    def __init__(self, pid: int) -> None:
        self.pid, self._descriptor = pid, os.pidfd_open(pid)

    def kill(self) -> None:
        """End it, whatever it does."""
        signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def wait(self) -> None:
        """Return when it has ended."""
        select.select([self._descriptor], [], [])
        with suppress(ChildProcessError):  # it became ours if its parent ended and we are the first
            os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED)

    def __del__(self) -> None:
        os.close(self._descriptor)


class Channel(NamedTuple):
    """A socket to another process."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def over(cls, ours: socket.socket) -> Channel:
        """One over this end of a pair of sockets."""
        ours.setblocking(False)
        return cls(*await asyncio.open_connection(sock=ours))


def start_interpreter(threads: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a new interpreter that runs `seqloom.serving.worker`; the socket leads to it."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "seqloom.serving.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **_threads(threads)},
            )
    except BaseException:
        ours.close()
        raise
    return process, ours


async def set_up(
    process: subprocess.Popen[bytes], channel: Channel, setup: Mapping[str, Any]
) -> dict[str, Any]:
    """Tell a new process what to load, and wait until it has; what it tells of itself.

    Raises:
        DataError: If it cannot load them, with the reason it gave.
    """
    try:
        async with asyncio.timeout(LOADING):
            channel.writer.write(encode(Kind.SETUP, dump(setup)))
            message = await receive(channel.reader)
    except (asyncio.IncompleteReadError, ConnectionError):
        await asyncio.to_thread(process.wait)
        raise DataError(
            f"a worker ended with status {process.returncode} while it loaded the models; "
            "see its own message above"
        ) from None
    except TimeoutError:
        raise DataError(f"models must load within {LOADING:.0f} s, got no answer") from None
    if message.kind == Kind.FAILED:
        raise DataError(message.content.decode("utf-8", "replace"))
    told: dict[str, Any] = json.loads(message.content)
    return told


class WorkerProcess:
    """A process that holds the models and answers one batch at a time.

    Args:
        process: The process.
        channel: The socket to it.
    """

    def __init__(self, process: EndedProcess, channel: Channel) -> None:
        self.process = process
        self._reader, self._writer = channel

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
