"""Where workers come from: a template that has the models and is forked for each."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from seqloom.errors import DataError
from seqloom.serving.framing import FORK, receive
from seqloom.serving.models import ServedModel
from seqloom.serving.processes import (
    Channel,
    ForkedProcess,
    WorkerProcess,
    set_up,
    start_interpreter,
)

_log = logging.getLogger(__name__)
FORKING = 5.0  # seconds a template may take to fork
LONGEST_PAUSE = 5.0  # seconds between tries to start what cannot be started


def can_fork() -> bool:
    """Whether workers may be forks of a template.

    Elsewhere than on Linux, system libraries do not survive a fork. A sandbox may lack the calls
    that end a process which is not one's own child.
    """
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


class Workers:
    """Makes workers.

    The template is a process that imports and loads everything once and never answers. A worker is
    a fork of it: it is there in milliseconds, and all of them share the memory of the weights. A
    template that ends is started anew while its workers go on. Where a fork is not safe (see
    `can_fork`), or a library started threads, a worker is a new interpreter that loads the models
    itself.

    Args:
        models: What they serve.
        threads: Threads of each.
        on_restart: Called when a template ended.
    """

    def __init__(
        self,
        models: Sequence[ServedModel],
        threads: int,
        on_restart: Callable[[], object] = lambda: None,
    ) -> None:
        self.models, self.threads = models, threads
        self.facts: dict[str, Any] = {}
        self._on_restart = on_restart
        self._forks = can_fork()
        self._template: _Template | None = None
        self._is_there = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the models.

        Raises:
            DataError: If they cannot be loaded, with the reason.
        """
        if not self._forks:
            return
        template = await _Template.start(self._setup(forks=True))
        self.facts = template.facts
        if not template.is_safe:
            _log.warning("a library started threads, so workers are new interpreters, not forks")
            await template.end()
            self._forks = False
            return
        self._template = template
        self._is_there.set()
        self._keeper = asyncio.create_task(self._keep(template))

    def _setup(self, *, forks: bool) -> dict[str, Any]:
        models = [model.to_dict() for model in self.models]
        return {"models": models, "threads": self.threads, "forks": forks}

    async def _keep(self, template: _Template) -> None:
        """When the template ends, start another."""
        while True:
            await template.wait_end()
            self._is_there.clear()
            self._on_restart()
            _log.error("the template of the workers ended; starting another")
            await template.end()
            template = self._template = await self._another()
            self._is_there.set()

    async def _another(self) -> _Template:
        pause = 0.1
        while True:
            try:
                return await _Template.start(self._setup(forks=True))
            except (DataError, OSError) as error:
                _log.error("no template can be started: %s", error)
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, 2 * pause)

    async def make(self) -> WorkerProcess:
        """Make a worker that takes requests.

        Raises:
            DataError: If it cannot load the models.
            OSError: If there can be no further process now.
        """
        if self._forks:
            await self._is_there.wait()
            assert self._template is not None
            return await self._template.fork()
        process, ours = start_interpreter(self.threads)
        channel = await Channel.over(ours)
        worker = WorkerProcess(process, channel)
        try:
            self.facts = (await set_up(process, channel, self._setup(forks=False)))["facts"]
        except BaseException:
            await worker.end()
            raise
        return worker

    async def close(self) -> None:
        """End the template; workers end when their own sockets do."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._template is not None:
            await self._template.end()


class _Template:
    """The process that is forked; `start` makes one."""

    def __init__(self, process: subprocess.Popen[bytes], ours: socket.socket) -> None:
        self._process = process
        self._control = ours.dup()  # streams cannot hand on a socket
        self._waiting: asyncio.Task[int] | None = None
        self.facts: dict[str, Any] = {}
        self.is_safe = False

    @classmethod
    async def start(cls, setup: dict[str, Any]) -> _Template:
        """Start one and wait until it has loaded the models."""
        process, ours = start_interpreter(1)  # a pool of threads would not survive the fork
        template = cls(process, ours)
        channel = await Channel.over(ours)
        try:
            told = await set_up(process, channel, setup)
        except BaseException:
            await template.end()
            raise
        finally:
            channel.writer.close()  # it speaks no more
        template.facts, template.is_safe = told["facts"], told["threads"] == 1
        return template

    async def fork(self) -> WorkerProcess:
        """Have it fork; the child is a worker on a socket of its own and says so there."""
        ours, theirs = socket.socketpair()
        channel = await Channel.over(ours)
        try:
            async with asyncio.timeout(FORKING):
                with theirs:
                    socket.send_fds(self._control, [FORK], [theirs.fileno()])
                child = json.loads((await receive(channel.reader)).content)
            return WorkerProcess(ForkedProcess(child["pid"]), channel)
        except TimeoutError:
            self._kill()  # it hangs; another one is started
            channel.writer.close()
            raise OSError("the template of the workers did not fork in time") from None
        except (asyncio.IncompleteReadError, OSError):
            channel.writer.close()
            raise OSError("the template of the workers could not fork") from None
        except BaseException:
            channel.writer.close()
            raise

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def wait_end(self) -> None:
        """Return when it has ended."""
        if self._waiting is None:
            self._waiting = asyncio.create_task(asyncio.to_thread(self._process.wait))
        await asyncio.shield(self._waiting)

    async def end(self) -> None:
        """End it."""
        self._control.close()
        self._kill()
        await self.wait_end()
