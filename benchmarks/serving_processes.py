"""The servers that `benchmarks/serving.py` loads, and what can be seen of them from outside."""

from __future__ import annotations

import math
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Server:
    """What is served how.

    Args:
        options: Of `seqloom serve`.
        is_plain: Whether it is the plain handler instead.
    """

    options: tuple[object, ...] = ()
    is_plain: bool = False

    @contextmanager
    def running(self, model: str) -> Iterator[Running]:
        """Start it; it is ended in the end."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = int(listener.getsockname()[1])
        if self.is_plain:
            own = ["uvicorn", "serving_peer:app", "--port", str(port), "--no-access-log"]
        else:
            own = ["seqloom", "serve", model, "--port", str(port), *map(str, self.options)]
        process = subprocess.Popen(
            [sys.executable, "-m", *own],
            env={**os.environ, "OMP_NUM_THREADS": "1", "READER": model},
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parent,
        )
        try:
            _wait(process, port)
            yield Running(port, process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("a server did not start") from None
            time.sleep(0.1)


@dataclass(frozen=True)
class Running:
    """A server that runs.

    Args:
        port: Its port.
        pid: The process of its app.
    """

    port: int
    pid: int

    def template(self) -> int:
        """The process its workers are forked from."""
        return _children(self.pid)[0]

    def workers(self) -> list[int]:
        """The processes of its workers."""
        return _children(self.template())

    def memory(self) -> float:
        """MiB all of its processes hold; what several share counts once."""
        kilobytes, todo = 0, [self.pid]
        while todo:
            process = todo.pop()
            todo += _children(process)
            try:
                text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
            except OSError:
                continue  # it just ended
            kilobytes += int(re.search(r"^Pss: +(\d+)", text, re.MULTILINE)[1])
        return kilobytes / 1024

    def metric(self, name: str) -> float:
        """A number of /metrics."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: connection.recv(65536), b""))
        found = re.search(rf"^{re.escape(name)} (\S+)$".encode(), text, re.MULTILINE)
        return float(found[1]) if found else float("nan")


class Watch:
    """Looks at a server every 5 s while it is loaded, in a thread of its own.

    Attributes:
        memory: MiB at each look.
        queue: The longest queue seen.
    """

    def __init__(self, server: Running) -> None:
        self.memory: list[float] = []
        self.queue = 0.0
        self._server, self._ended = server, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(5):
            self.memory.append(self._server.memory())
            length = self._server.metric("seqloom_queue_length")
            self.queue = max(self.queue, 0.0 if math.isnan(length) else length)


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found
