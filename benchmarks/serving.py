"""`/v1/answer` under load: throughput with and without batches, overload, memory, a killed worker.

    python benchmarks/serving.py --seconds 20 --overload 600 > report.txt

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
from contextlib import contextmanager
from pathlib import Path

from seqloom.tasks.reader import Reader
from serving_load import Client, Load

QUESTIONS, CLIENTS = 200, 32
PLAIN = "plain FastAPI"


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


def ours(place: Path, port: int, *options: object) -> list[str]:
    served = ["-m", "seqloom", "serve", f"reader={place}", "--port", str(port)]
    return [sys.executable, *served, *map(str, options)]


def plain(port: int) -> list[str]:
    return [
        sys.executable,
        "-m",
        "uvicorn",
        "serving_peer:app",
        "--port",
        str(port),
        "--no-access-log",
    ]


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
        """So many clients, after a while to get warm."""
        asyncio.run(self.client(port).closed(clients, min(seconds, 5)))  # warm
        return asyncio.run(self.client(port).closed(clients, seconds))

    def capacity(self, what: str, clients: int, *options: object) -> tuple[Load, Load]:
        """One client, then as many as keep it busy."""
        port = free_port()
        command = ours(self.place, port, *options) if what != PLAIN else plain(port)
        with process(command, port, READER=str(self.place)):
            alone = self.measure(port, 1, self.seconds)
            show(f"{what}, one client", alone)
            full = self.measure(port, clients, self.seconds)
            show(f"{what}, {clients} clients", full)
        return alone, full

    def overload(self, what: str, rate: float, seconds: float, *options: object) -> Load:
        """Twice what it can serve, with its memory and its queue looked at every second."""
        port = free_port()
        command = ours(self.place, port, *options) if what != PLAIN else plain(port)
        with process(command, port, READER=str(self.place)) as pid:
            asyncio.run(self.client(port).closed(CLIENTS, min(self.seconds, 10)))
            held: list[float] = []
            longest, last = 0.0, -1.0

            def look(now: float) -> None:
                nonlocal last, longest
                if now - last >= 1:
                    last = now
                    held.append(memory(pid))
                    if what != PLAIN:
                        longest = max(longest, metric(port, "seqloom_queue_length"))

            load = asyncio.run(self.client(port).at_rate(rate, seconds, look))
        show(f"{what}, {rate:.0f} a second for {seconds:.0f} s", load)
        third = max(1, len(held) // 3)
        early, late = sum(held[:third]) / third, sum(held[-third:]) / third
        print(
            f"\nMemory of all its processes: {early:.0f} MiB over the first third, {late:.0f} over "
            f"the last ({100 * (late / early - 1):+.1f}%), at most {max(held):.0f}; longest queue "
            f"seen {longest:.0f}.\n",
            flush=True,
        )
        return load

    def kill(self, rate: float, *options: object) -> None:
        """`kill -9` of the worker at the rate it can serve."""
        port = free_port()
        with process(ours(self.place, port, *options), port) as pid:
            asyncio.run(self.client(port).closed(CLIENTS, 3))
            killed = 0.0

            def look(now: float) -> None:
                nonlocal killed
                if now > 5 and not killed:
                    (worker,) = family(pid)[1:]
                    killed = time.perf_counter()
                    os.kill(worker, signal.SIGKILL)

            load = asyncio.run(self.client(port).at_rate(rate, 20, look))
        show(f"worker killed at {rate:.0f} a second", load)
        back = min(moment for moment in load.times if moment > killed + 0.05) - killed
        print(f"\nThe first answer after the kill came {back:.1f} s after it.\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a directory of a reader; made if it is not there")
    parser.add_argument("--seconds", type=float, default=20, help="of each part")
    parser.add_argument("--overload", type=float, default=60, help="seconds of the overload")
    parser.add_argument("--batch", type=int, default=4, help="requests a batch under overload")
    parser.add_argument("--wait", type=float, help="ms a request may wait; as long as one takes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(prepare(Path(given.model or folder) / "bidaf"), given.seconds)
        print("| | answers/s | p50, ms | p99, ms | refused | other | lost | wrong |")
        print("|---|---|---|---|---|---|---|---|")
        peer_alone, peer_full = run.capacity(PLAIN, CLIENTS)
        alone, single = run.capacity("one at a time", CLIENTS, "--max-batch", 1)
        _, batched = run.capacity("batches of up to 16", CLIENTS)
        bounds = ("--max-batch", given.batch, "--max-wait", given.wait or alone.ms(0.5))
        shown = f"batches of up to {given.batch}, waits of {bounds[-1]:.0f} ms"
        _, bounded = run.capacity(shown, 2 * given.batch, *bounds)
        print(
            f"\nBatches answer {batched.rate / single.rate:.2f} times as much as one at a time, "
            f"with the bounds {bounded.rate / single.rate:.2f} times; the plain handler "
            f"{peer_full.rate / single.rate:.2f} times.\n"
        )
        print("| | answers/s | p50, ms | p99, ms | refused | other | lost | wrong |")
        print("|---|---|---|---|---|---|---|---|")
        load = run.overload("with the bounds", 2 * bounded.rate, given.overload, *bounds)
        print(
            f"p99 of what was accepted: {load.ms(0.99) / alone.ms(0.99):.2f} times that unloaded.\n"
        )
        peer = run.overload(PLAIN, 2 * peer_full.rate, min(60, given.overload))
        print(f"Of the plain handler: {peer.ms(0.99) / peer_alone.ms(0.99):.2f} times.\n")
        run.kill(bounded.rate, *bounds)


if __name__ == "__main__":
    main()
