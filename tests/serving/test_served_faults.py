"""Faults: workers that end, too many requests, the end of the server, no disk and no streams."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Reply, Server, wait_for

ASKED = {"text": "the cat"}


@pytest.fixture(scope="module")
def small(counted: Path) -> Iterator[Server]:
    """A server of one request at a time, three that wait and eight connections."""
    options = ("--max-batch", 1, "--max-queue", 3, "--max-connections", 8)
    options = (*options, "--max-wait", 60_000, "--time-limit", 60)
    with Server(counted, *options) as running:
        yield running


class Asking:
    """A request on its way, in a thread of its own."""

    def __init__(self, server: Server, path: str = "/v1/score", value: Any = ASKED) -> None:
        self.reply: Reply | None = None
        self._thread = threading.Thread(target=self._ask, args=(server, path, value), daemon=True)
        self._thread.start()

    def _ask(self, server: Server, path: str, value: Any) -> None:
        self.reply = server.ask(path, value)

    def wait(self) -> Reply:
        self._thread.join(60)
        assert self.reply is not None, "it was never answered"
        return self.reply


def fill_up(server: Server) -> tuple[Asking, list[Asking]]:
    """Stop the worker with one request in its hands and three that wait."""
    server.signal_workers(signal.SIGSTOP)
    held = Asking(server)
    server.wait_metric("seqloom_in_hand", 1)
    waiting = [Asking(server) for _ in range(3)]
    server.wait_metric("seqloom_queue_length", 3)
    return held, waiting


def test_a_killed_worker_loses_no_request_and_is_replaced(small: Server):
    before = small.metric("seqloom_worker_restarts_total")
    held, waiting = fill_up(small)
    small.signal_workers(signal.SIGKILL)
    lost = held.wait()
    assert (lost.status, lost.code) == (503, "worker_died")
    assert int(lost.headers["retry-after"]) >= 1
    assert [each.wait().status for each in waiting] == [200] * 3
    small.wait_metric("seqloom_worker_restarts_total", before + 1)
    small.signal_workers(signal.SIGKILL)  # an idle one this time
    small.wait_metric("seqloom_worker_restarts_total", before + 2)
    assert small.ask("/v1/score", ASKED).status == 200


def test_workers_go_on_while_a_killed_template_is_replaced(small: Server):
    before = small.metric("seqloom_worker_restarts_total")
    template, (worker,) = small.template(), small.workers()
    os.kill(template, signal.SIGKILL)
    assert small.ask("/v1/score", ASKED).status == 200
    small.wait_metric("seqloom_template_restarts_total", 1)
    assert small.metric("seqloom_worker_restarts_total") == before
    os.kill(worker, signal.SIGKILL)
    small.wait_metric("seqloom_worker_restarts_total", before + 1)
    assert small.ask("/v1/score", ASKED).status == 200  # it waits for the new template
    assert small.template() != template


def test_a_killed_worker_comes_from_the_same_template(small: Server):
    template = small.template()
    for _ in range(5):
        (worker,) = small.workers()
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda worker=worker: small.workers() not in ([], [worker]), "another worker")
        assert small.ask("/v1/score", ASKED).status == 200
    assert small.template() == template


def test_a_stream_whose_worker_is_killed_ends_with_an_error(small: Server):
    small.signal_workers(signal.SIGSTOP)
    asking = Asking(small, "/v1/generate", {"stream": True})
    small.wait_metric("seqloom_in_hand", 1)
    small.signal_workers(signal.SIGKILL)
    reply = asking.wait()
    assert (reply.status, reply.code) == (503, "worker_died")  # no word was sent yet
    assert small.ask("/v1/score", ASKED).status == 200


def test_what_exceeds_the_queue_is_refused_and_what_fits_is_answered(small: Server):
    held, waiting = fill_up(small)
    for _ in range(5):
        refused = small.ask("/v1/score", ASKED)
        assert (refused.status, refused.code) == (429, "overloaded")
        assert int(refused.headers["retry-after"]) >= 1
    assert small.ask("/health").status == 200
    small.signal_workers(signal.SIGCONT)
    assert [each.wait().status for each in (held, *waiting)] == [200] * 4
    assert small.ask("/v1/score", ASKED).status == 200


def test_a_request_that_takes_too_long_is_answered_and_its_worker_replaced(counted: Path):
    with Server(counted, "--time-limit", 0.5) as server:
        server.signal_workers(signal.SIGSTOP)
        late = server.ask("/v1/score", ASKED)
        assert (late.status, late.code) == (503, "timeout")
        wait_for(lambda: server.ask("/v1/score", ASKED).status == 200, "another worker")


def test_sigterm_lets_what_was_asked_be_answered(counted: Path):
    with Server(counted, "--max-batch", 1, "--max-wait", 60_000, "--time-limit", 60) as server:
        server.signal_workers(signal.SIGSTOP)
        asked = [Asking(server) for _ in range(3)]
        server.wait_metric("seqloom_in_hand", 1)
        server.wait_metric("seqloom_queue_length", 2)
        template, workers = server.template(), server.workers()
        server.process.send_signal(signal.SIGTERM)

        def is_closed() -> bool:
            try:
                socket.create_connection(("127.0.0.1", server.port)).close()
            except ConnectionRefusedError:
                return True
            return False

        wait_for(is_closed, "no more connections")
        server.signal_workers(signal.SIGCONT)
        assert [each.wait().status for each in asked] == [200] * 3
        assert server.process.wait(60) == 0
        for process in (template, *workers):
            wait_for(lambda process=process: not Path(f"/proc/{process}").exists(), "their end")


def test_connections_are_bounded(small: Server):
    open_ones = [socket.create_connection(("127.0.0.1", small.port)) for _ in range(8)]
    try:
        reply = small.raw()
        assert reply.startswith(b"HTTP/1.1 503 ") and b"retry-after" in reply
        assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["code"] == "overloaded"
    finally:
        for each in open_ones:
            each.close()
    wait_for(lambda: small.raw(b"GET /health HTTP/1.0\r\n\r\n")[9:12] == b"200", "room")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def no_disk() -> None:
    """No file may grow: what a full disk is to a process that writes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def no_streams() -> None:
    for number in (0, 1, 2):
        os.close(number)


@pytest.mark.parametrize("without", [no_disk, no_streams])
def test_a_full_disk_and_closed_streams_do_not_stop_it(counted: Path, without):
    """With standard output and error on a full device, or closed."""
    port = free_port()
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        options = ("--port", port, "--max-wait", 60_000, "--time-limit", 60)
        server = Server(counted, "textrank", *options, stderr=full, preexec_fn=without)
        server.port = port
    try:
        wait_for(lambda: is_up(server), "a server")
        article = {"text": "A cat sat. A dog ran by. The cat saw the dog."}
        assert server.ask("/v1/summarize", article).status == 200
        server.signal_workers(signal.SIGKILL)  # its restart is logged
        server.wait_metric("seqloom_worker_restarts_total", 1)
        assert server.ask("/v1/score", ASKED).status == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    finally:
        server.__exit__()


def is_up(server: Server) -> bool:
    assert server.process.poll() is None, "the server ended"
    try:
        return server.ask("/ready").status == 200
    except ConnectionRefusedError:
        return False


def test_no_torch_is_needed_for_counts_and_extracts(counted: Path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from seqloom.serving.models import find_served\n"
        "from seqloom.serving.worker import load_served\n"
        "from seqloom.serving.readiness import describe, warm_up\n"
        "for one in find_served(sys.argv[1:]):\n"
        "    model = load_served(one); describe(model); warm_up(model)\n"
        "    print(one.name)"
    )
    run = [sys.executable, "-c", code, str(counted), "textrank"]
    found = subprocess.run(run, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["ngram", "textrank"]
