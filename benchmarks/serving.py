"""`/v1/answer` under load: batches, throughput, overload, memory, killed processes.

    python benchmarks/serving.py > benchmarks/results/DATE-serving.md

prints the whole report, in less than 15 minutes. The shipped `english-reader` (a BiDAF of the
paper's size) is asked 200 questions on passages of 100 to 160 words. Client and server are on one
machine; the worker has one thread. Beside it, the same reader behind a plain FastAPI handler, in
the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from seqloom.tasks.loading import load
from serving_load import Client, Load
from serving_processes import Running, Server

MODEL, QUESTIONS, CLIENTS = "english-reader", 200, 32
PLAIN, ALONE, DEFAULT, PATIENT = (
    "plain FastAPI",
    "one at a time",
    "the default",
    "waits of up to 5 s",
)
WAITS = ("--max-wait", 5000)
SERVERS = {
    PLAIN: Server(is_plain=True),
    ALONE: Server(("--max-batch", 1, *WAITS)),
    DEFAULT: Server(),
    PATIENT: Server(WAITS),
}
TITLE = """| | answers/s | p50, ms | p99, ms | refused | other | lost | wrong |
|---|---|---|---|---|---|---|---|"""
EACH = 2.5  # seconds from one kill to the next


def questions() -> list[tuple[str, str]]:
    from seqloom.data.datasets import open_dataset

    found = []
    for each in open_dataset("squad-v1.1", "valid"):
        if 100 <= len(each.passage.split()) <= 160:
            found.append((each.passage, each.question))
        if len(found) == QUESTIONS:
            break
    return found


def load_average() -> str:
    return f"{os.getloadavg()[0]:.2f}"


def say(text: str = "") -> None:
    print(text, flush=True)


def show(what: str, load: Load) -> None:
    say(
        f"| {what} | {load.rate:.1f} | {load.ms(0.5):.0f} | {load.ms(0.99):.0f} | {load.refused} "
        f"| {load.other} | {load.lost} | {load.wrong} |"
    )


class Report:
    """All parts, one after another."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.asked = questions()
        self.model = load(MODEL)
        self.expected = [self.model.answer_all([each], top=3)[0][0] for each in self.asked]
        self.bodies = [json.dumps({"passage": p, "question": q}).encode() for p, q in self.asked]

    def head(self, command: str) -> None:
        """What was run where."""
        import torch

        say("# `/v1/answer` under load\n")
        say(f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, torch")
        say(f"{torch.__version__}, {os.cpu_count()} cores that client and server share. Load")
        say(f"average before: {load_average()}. The shipped `{MODEL}`, {QUESTIONS} questions on")
        say("passages of 100 to 160 words, one worker of one thread.\n")
        say('"Wrong" counts answers whose span is not the library\'s own for that question alone,')
        say('or whose probability differs by 1e-4. "Refused" is 429 or 503 with Retry-After,')
        say('"other" any other status, "lost" no answer at all.\n')

    def batches(self, seconds: float) -> None:
        """What a batch costs, in the library alone."""
        say("## What a batch costs\n")
        say("In the library, without a server; times of one batch, and answers a second against")
        say("one at a time. Requests of mixed lengths, as they come.\n")
        say("| batch of | median, ms | longest, ms | of one's time | answers/s, times one's |")
        say("|---|---|---|---|---|")
        one = 0.0
        for count in (1, 2, 4, 6, 8, 12, 16):
            found, place, until = [], 0, time.perf_counter() + seconds
            while time.perf_counter() < until:
                batch = [self.asked[(place + i) % QUESTIONS] for i in range(count)]
                place += count
                began = time.perf_counter()
                self.model.answer_all(batch, top=3)
                found.append(time.perf_counter() - began)
            median = 1000 * statistics.median(found)
            one = one or median
            say(
                f"| {count} | {median:.1f} | {1000 * max(found):.1f} | {median / one:.2f} "
                f"| {count * one / median:.2f} |"
            )
        say()

    def client(self, server: Running) -> Client:
        """Who asks the questions, and knows the library's answers."""

        def is_right(number: int, found: dict[str, object]) -> bool:
            best = self.expected[number]
            same = (found["start"], found["end"]) == (best.start, best.end)
            return same and abs(float(str(found["probability"])) - best.probability) < 1e-4

        return Client(server.port, self.bodies, is_right)

    def measure(self, server: Running, clients: int, seconds: float) -> Load:
        """So many clients for so long."""
        return asyncio.run(self.client(server).closed(clients, seconds))

    def capacity(self, seconds: float, rounds: int) -> dict[str, float]:
        """One client, then many: all servers in turn, so that other work falls on all alike.

        Returns:
            Answers a second of each with many clients.
        """
        say(f"## Throughput\n\nAll four servers run; each is asked for {seconds:.0f} s by one")
        say(f"client and for {seconds:.0f} s by {CLIENTS}, {rounds} times in turn. Who is refused")
        say(f"tries again after 0.1 s. Load average: {load_average()}.\n\n{TITLE}")
        found = {name: (Load(), Load()) for name in SERVERS}
        with ExitStack() as stack:
            running = {}
            for name, server in SERVERS.items():
                running[name] = stack.enter_context(server.running(MODEL))
                self.measure(running[name], 1, 2)  # warm
            for _ in range(rounds):
                for name, loads in found.items():
                    for load, clients in zip(loads, (1, CLIENTS), strict=True):
                        load.add(self.measure(running[name], clients, seconds))
        for name, (alone, full) in found.items():
            show(f"{name}, one client", alone)
            show(f"{name}, {CLIENTS} clients", full)
        rates = {name: full.rate for name, (_, full) in found.items()}
        times = {name: f"{rate / rates[ALONE]:.2f}" for name, rate in rates.items()}
        say(f"\nAgainst one at a time, the default answers {times[DEFAULT]} times as much (asked:")
        say(f"2), with {PATIENT} {times[PATIENT]}, the plain handler, whose threads use all cores,")
        say(f"{times[PLAIN]}.\n")
        return rates

    def overload(self, name: str, rate: float, seconds: float) -> None:
        """Twice what it can serve for 50 s of each minute, and one client for 10 s."""
        alone, load = Load(), Load()
        held: list[float] = []
        longest, last = 0.0, 0.0
        with SERVERS[name].running(MODEL) as server:
            self.measure(server, 1, 3)

            def look(_: float) -> None:
                nonlocal last, longest
                if time.monotonic() - last >= 5:
                    last = time.monotonic()
                    held.append(server.memory())
                    if name != PLAIN:
                        longest = max(longest, server.metric("seqloom_queue_length"))

            began = time.monotonic()
            while (left := seconds - (time.monotonic() - began)) > 1:
                alone.add(self.measure(server, 1, min(10, left / 6)))
                asked = self.client(server).at_rate(rate, min(50, left * 5 / 6), look)
                load.add(asyncio.run(asked))
        show(f"{name}, one client", alone)
        show(f"{name}, {rate:.0f} a second", load)
        third = max(1, len(held) // 3)
        early, late = sum(held[:third]) / third, sum(held[-third:]) / third
        say(f"\n- p99 of what was accepted: {load.ms(0.99) / alone.ms(0.99):.2f} times that of one")
        say("  client (asked: below 3).")
        say(
            f"- Memory of all processes, what they share counted once: {early:.0f} MiB in the first"
        )
        say(
            f"  third, {late:.0f} in the last, {100 * (late / early - 1):+.1f}% (asked: 5), at most"
        )
        say(f"  {max(held):.0f}.")
        if name != PLAIN:
            say(f"- The longest queue seen was {longest:.0f}, looked at every 5 s (the bound: 64).")
        say(f"- Load average after: {load_average()}.\n")

    def kill(self, what: str, options: Sequence[object], rate: float, kills: int) -> float:
        """`kill -9` again and again at a rate it can serve; the longest time to an answer."""
        moments: list[float] = []
        with Server(tuple(options)).running(MODEL) as server:
            self.measure(server, 1, 2)

            def look(now: float) -> None:
                if len(moments) < kills and now > EACH * (len(moments) + 1):
                    moments.append(time.perf_counter())
                    victims = server.workers()
                    if what == "template":
                        os.kill(server.template(), signal.SIGKILL)
                    os.kill(victims[0], signal.SIGKILL)

            # A killed template comes back in seconds, so it is killed once and given time.
            spare = 15 if what == "template" else 2 * EACH
            load = asyncio.run(self.client(server).at_rate(rate, EACH * kills + spare, look))
        show(f"{what} killed {len(moments)} times" if kills > 1 else f"{what} killed", load)
        return max(load.back(moment) for moment in moments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4, help="of each part of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10, help="of the overload")
    parser.add_argument("--kills", type=int, default=5)
    given = parser.parse_args()
    began = time.monotonic()
    changed = [f"--{k} {v:g}" for k, v in vars(given).items() if v != parser.get_default(k)]
    report = Report()
    report.head(" ".join(["python benchmarks/serving.py", *changed]))
    report.batches(given.seconds / 2)
    rates = report.capacity(given.seconds, given.rounds)
    say(f"## Twice the rate it can serve, for {given.minutes:g} minutes\n")
    say(
        f"With the default settings, 50 s at twice the {rates[DEFAULT]:.1f} a second from above and"
    )
    say("10 s of one client, in turn; then the plain handler for half a minute.\n")
    say(TITLE)
    report.overload(DEFAULT, 2 * rates[DEFAULT], 60 * given.minutes)
    say(TITLE)
    report.overload(PLAIN, 2 * rates[PLAIN], min(30, 60 * given.minutes))
    rate = rates[ALONE] / 2
    say(f"## `kill -9`\n\nAt {rate:.0f} questions a second; a kill every {EACH:g} s.\n\n{TITLE}")
    one = report.kill("a worker", (), rate, given.kills)
    two = report.kill("one of two workers", ("--workers", 2), rate, given.kills)
    both = report.kill("template", (), rate, 1)
    say(
        "\nEvery request had an answer if none was lost. After a kill, the first answer to what was"
    )
    say(
        f"asked later came within {one:.2f} s with one worker (asked: 5), {two:.2f} s with two, and"
    )
    say(f"{both:.1f} s when the template and the only worker were killed at the same moment.\n")
    say(f"Load average after: {load_average()}. It took {(time.monotonic() - began) / 60:.1f} min.")


if __name__ == "__main__":
    main()
