"""A server as a process of its own, and plain HTTP to ask it with."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 60.0  # seconds until something that must happen has not


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        error = self.value["error"]
        assert set(error) == {"code", "message"}
        return error["code"]


class Server:
    """`seqloom serve` on a port of the system's choice."""

    def __init__(self, *arguments: object, **popen: Any) -> None:
        command = [sys.executable, "-m", "seqloom", "serve", "--port", "0", *map(str, arguments)]
        popen.setdefault("stderr", subprocess.PIPE)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **popen)
        self.port = 0

    def read_port(self) -> Server:
        assert self.process.stderr is not None
        told = b""
        for line in self.process.stderr:
            told += line
            if found := re.search(rb"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return self
        raise AssertionError(f"the server ended: {told.decode()}")

    def __enter__(self) -> Server:
        return self.read_port()

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()

    def ask(
        self,
        path: str,
        value: Any = None,
        *,
        body: bytes | None = None,
        method: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        if value is not None:
            body = json.dumps(value).encode()
        given = {} if body is None else {"content-type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(
                method or ("GET" if body is None else "POST"),
                path,
                body,
                {**given, **(headers or {})},
            )
            reply = connection.getresponse()
            found = {name.lower(): text for name, text in reply.getheaders()}
            return Reply(reply.status, found, reply.read())
        finally:
            connection.close()

    def raw(self, *pieces: bytes) -> bytes:
        """Send bytes as they are; what comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            for piece in pieces:
                connection.sendall(piece)
            found = b""
            while piece := connection.recv(1 << 16):
                found += piece
            return found

    def metric(self, name: str) -> float:
        text = self.ask("/metrics").body.decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        assert found is not None, f"no {name} in the metrics"
        return float(found[1])

    def wait_metric(self, name: str, value: float) -> None:
        wait_for(lambda: self.metric(name) == value, f"{name} == {value}")

    def template(self) -> int:
        """The process its workers are forked from."""
        (found,) = children(self.process.pid)
        return found

    def workers(self) -> list[int]:
        """The processes of its workers."""
        return children(self.template())

    def signal_workers(self, number: signal.Signals) -> None:
        for process in self.workers():
            os.kill(process, number)

    def memory(self) -> int:
        """Bytes the app process holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def children(parent: int) -> list[int]:
    """The processes a process started."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(place.parent.name))
    return found


def wait_for(is_so: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def head(path: str, *lines: str) -> bytes:
    """The head of a POST request."""
    given = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *lines]
    return "\r\n".join([*given, "", ""]).encode()


def events(body: bytes) -> list[tuple[str, Any]]:
    """Server-sent events."""
    found = []
    for block in body.decode().split("\n\n"):
        if block:
            kind, data = block.split("\n", 1)
            found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def in_threads(calls: Sequence[Any]) -> list[Any]:
    """Call all at once."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: call(), calls))
