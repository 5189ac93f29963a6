"""`/v1/answer` under load: throughput with and without batches, overload, memory, a killed worker.

    python benchmarks/serving.py --minutes 10 > report.txt

One BiDAF of the paper's size, fitted for an epoch to 300 questions of SQuAD (its speed does not
depend on how well it answers), asked 200 questions on passages of 100 to 160 words. Client and
server are on one machine; the worker has one thread. Beside it, the same reader behind a plain
FastAPI handler, in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from seqloom.tasks.reader import Reader
from serving_load import Client, Load

QUESTIONS, CLIENTS = 200, 32


def prepare(place: Path) -> Path:
    """A reader to serve."""
    if not place.exists():
        from seqloom.data.datasets import open_dataset

        train = list(itertools.islice(open_dataset("squad-v1.1", "train"), 300))
        model = Reader("bidaf", valid_share=0, min_count=1, training={"epochs": 1, "device": "cpu"})
        model.fit(train).save(place)
    return place


def questions() -> list[tuple[str, str]]:
    from seqloom.data.datasets import open_dataset

    found = []
    for each in open_dataset("squad-v1.1", "valid"):
        if 100 <= len(each.passage.split()) <= 160:
            found.append((each.passage, each.question))
        if len(found) == QUESTIONS:
            break
    return found


@contextmanager
def process(command: list[str], port: int, **environment: str) -> Iterator[int]:
    """A server; its process id."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    running = subprocess.Popen(
        command, env=env, stderr=subprocess.DEVNULL, cwd=Path(__file__).parent
    )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                if running.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("a server did not start") from None
                time.sleep(0.1)
        yield running.pid
    finally:
        running.terminate()
        running.wait(60)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@dataclass(frozen=True)
class Server:
    """What is served how.

    Args:
        clients: How many keep it busy.
        options: Of `seqloom serve`.
        is_plain: Whether it is the plain handler.
    """

    clients: int
    options: tuple[object, ...]
    is_plain: bool = False

    @contextmanager
    def running(self, place: Path) -> Iterator[tuple[int, int]]:
        """Its port and its process id."""
        port = free_port()
        if self.is_plain:
            own = ["uvicorn", "serving_peer:app", "--port", str(port), "--no-access-log"]
        else:
            served = ["seqloom", "serve", f"reader={place}", "--port", str(port)]
            own = [*served, *map(str, self.options)]
        with process([sys.executable, "-m", *own], port, READER=str(place)) as pid:
            yield port, pid


def family(pid: int) -> list[int]:
    """A process and its children."""
    found = [pid]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def memory(pid: int) -> float:
    """MiB a process and its children hold."""
    pages = 0
    for each in family(pid):
        try:
            pages += int(Path(f"/proc/{each}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def metric(port: int, name: str) -> float:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b"".join(iter(lambda: connection.recv(65536), b""))
    found = re.search(rf"^{re.escape(name)} (\S+)$".encode(), text, re.MULTILINE)
    return float(found[1]) if found else float("nan")


def show(what: str, load: Load) -> None:
    print(
        f"| {what} | {load.rate:.1f} | {load.ms(0.5):.0f} | {load.ms(0.99):.0f} | {load.refused} "
        f"| {load.other} | {load.lost} | {load.wrong} |",
        flush=True,
    )


class Run:
    """All parts, on one model."""

    def __init__(self, place: Path, seconds: float) -> None:
        self.place, self.seconds = place, seconds
        asked = questions()
        model = Reader.load(place)
        self.expected = [model.answer_all([each], top=3)[0][0] for each in asked]
        self.bodies = [json.dumps({"passage": p, "question": q}).encode() for p, q in asked]

    def client(self, port: int) -> Client:
        """Who asks the questions, and knows the library's answers."""

        def is_right(number: int, found: dict[str, object]) -> bool:
            best = self.expected[number]
            same = (found["start"], found["end"]) == (best.start, best.end)
            return same and abs(float(str(found["probability"])) - best.probability) < 1e-4

        return Client(port, self.bodies, is_right)

    def measure(self, port: int, clients: int, seconds: float) -> Load:
        """So many clients for so long."""
        return asyncio.run(self.client(port).closed(clients, seconds))

    def capacity(self, servers: dict[str, Server], rounds: int) -> dict[str, tuple[Load, Load]]:
        """One client, then as many as keep it busy: all servers in turn, so that they compare.

        Other work on the machine then falls on all of them alike.
        """
        found = {name: (Load(), Load()) for name in servers}
        with ExitStack() as stack:
            ports = {}
            for name, server in servers.items():
                ports[name], _ = stack.enter_context(server.running(self.place))
                self.measure(ports[name], server.clients, 3)  # warm
            for _ in range(rounds):
                for name, server in servers.items():
                    alone, full = found[name]
                    alone += self.measure(ports[name], 1, self.seconds)
                    full += self.measure(ports[name], server.clients, self.seconds)
        for name, (alone, full) in found.items():
            show(f"{name}, one client", alone)
            show(f"{name}, {servers[name].clients} clients", full)
        return found

    def overload(self, name: str, server: Server, rate: float, minutes: float) -> None:
        """Twice what it can serve for 50 s of each minute, and one client for 10 s.

        Memory and queue are looked at every second.
        """
        with server.running(self.place) as (port, pid):
            self.measure(port, server.clients, 10)
            held: list[float] = []
            longest, last = 0.0, 0.0

            def look(_: float) -> None:
                nonlocal last, longest
                if time.monotonic() - last >= 1:
                    last = time.monotonic()
                    held.append(memory(pid))
                    if not server.is_plain:
                        longest = max(longest, metric(port, "seqloom_queue_length"))

            alone, load, began = Load(), Load(), time.monotonic()
            while time.monotonic() < began + 60 * minutes:
                alone += self.measure(port, 1, 10)
                load += asyncio.run(self.client(port).at_rate(rate, 50, look))
        show(f"{name}, one client", alone)
        show(f"{name}, {rate:.0f} a second", load)
        third = max(1, len(held) // 3)
        early, late = sum(held[:third]) / third, sum(held[-third:]) / third
        print(
            f"\np99 of what was accepted: {load.ms(0.99) / alone.ms(0.99):.2f} times that of one "
            f"client. Memory of all its processes over {minutes:.0f} minutes: {early:.0f} MiB in "
            f"the first third, {late:.0f} in the last ({100 * (late / early - 1):+.1f}%), at most "
            f"{max(held):.0f}. Longest queue seen: {longest:.0f}.\n",
            flush=True,
        )

    def kill(self, server: Server, rate: float) -> None:
        """`kill -9` of the worker at a rate it can serve."""
        with server.running(self.place) as (port, pid):
            self.measure(port, server.clients, 3)
            killed = 0.0

            def look(now: float) -> None:
                nonlocal killed
                if now > 5 and not killed:
                    worker = family(pid)[1]
                    killed = time.perf_counter()
                    os.kill(worker, signal.SIGKILL)

            load = asyncio.run(self.client(port).at_rate(rate, 20, look))
        options = " ".join(map(str, server.options)) or "one worker"
        show(f"a worker killed, {options}, {rate:.0f} a second", load)
        back = min(moment for moment in load.times if moment > killed + 0.1) - killed
        print(f"\nThe first answer came {back:.1f} s after the kill.\n", flush=True)


def title() -> None:
    print("| | answers/s | p50, ms | p99, ms | refused | other | lost | wrong |")
    print("|---|---|---|---|---|---|---|---|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a directory of a reader; made if it is not there")
    parser.add_argument("--seconds", type=float, default=10, help="of each part of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10, help="of the overload")
    parser.add_argument("--batch", type=int, default=4, help="requests a batch under overload")
    parser.add_argument("--wait", type=float, default=30, help="ms a request may wait then")
    parser.add_argument("--kill", type=float, help="only kill workers, at so many a second")
    given = parser.parse_args()
    bounded = Server(2 * given.batch, ("--max-batch", given.batch, "--max-wait", given.wait))
    name = f"batches of up to {given.batch}, waits of {given.wait:.0f} ms"
    servers = {
        "plain FastAPI": Server(CLIENTS, (), is_plain=True),
        "one at a time": Server(CLIENTS, ("--max-batch", 1)),
        "batches of up to 16": Server(CLIENTS, ()),
        name: bounded,
    }
    with tempfile.TemporaryDirectory() as folder:
        run = Run(prepare(Path(given.model or folder) / "bidaf"), given.seconds)
        two = Server(CLIENTS, ("--workers", 2))
        if given.kill:
            title()
            for each in (servers["batches of up to 16"], two):
                run.kill(each, given.kill)
            return
        title()
        rates = {key: full.rate for key, (_, full) in run.capacity(servers, given.rounds).items()}
        told = ", ".join(
            f"{key}: {rate / rates['one at a time']:.2f}" for key, rate in rates.items()
        )
        print(f"\nAnswers a second against one at a time: {told}.\n")
        title()
        run.overload(name, bounded, 2 * rates[name], given.minutes)
        title()
        plain = servers["plain FastAPI"]
        run.overload("plain FastAPI", plain, 2 * rates["plain FastAPI"], min(1, given.minutes))
        title()
        for each in (servers["batches of up to 16"], two):
            run.kill(each, rates["one at a time"] / 2)


if __name__ == "__main__":
    main()
