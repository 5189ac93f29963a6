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
import textwrap
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from seqloom.tasks.loading import load
from serving_load import Client, Load
from serving_processes import Running, Server, Watch

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
EACH = 2.0  # seconds from one kill to the next


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


def tell(*sentences: str) -> None:
    """Print a paragraph."""
    say(textwrap.fill(" ".join(sentences), 118, break_long_words=False) + "\n")


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
        self.model.answer_all(self.asked[:8])  # what is loaded on first use is loaded now
        self.expected = [self.model.answer_all([each], top=3)[0][0] for each in self.asked]
        self.bodies = [json.dumps({"passage": p, "question": q}).encode() for p, q in self.asked]

    def head(self, command: str) -> None:
        """What was run where."""
        import torch

        say("# `/v1/answer` under load\n")
        tell(
            f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, torch",
            f"{torch.__version__}, {os.cpu_count()} cores that client and server share. Load",
            f"average before: {load_average()}. The shipped `{MODEL}`, {QUESTIONS} questions on",
            "passages of 100 to 160 words, one worker of one thread.",
        )
        tell(
            '"Wrong" counts answers whose span is not the library\'s own for that question alone,',
            'or whose probability differs by 1e-4. "Refused" is 429 or 503 with Retry-After,',
            '"other" any other status, "lost" no answer at all.',
        )

    def batches(self, seconds: float) -> None:
        """What a batch costs, in the library alone."""
        say("## What a batch costs\n")
        tell(
            "In the library, without a server: the time of a batch, and answers a second against",
            "those of one at a time. Texts of mixed lengths, as they come.",
        )
        say("| batch of | median, ms | longest, ms | of one's time | answers/s, times one's |")
        say("|---|---|---|---|---|")
        one, slow, pays, ratio = 0.0, 0.0, 0, float("nan")
        for count in (1, 2, 4, 6, 8, 12, 16):
            found, place, until = [], 0, time.perf_counter() + seconds
            while time.perf_counter() < until:
                batch = [self.asked[(place + i) % QUESTIONS] for i in range(count)]
                place += count
                began = time.perf_counter()
                self.model.answer_all(batch, top=3)
                found.append(time.perf_counter() - began)
            median = 1000 * statistics.median(found)
            if count == 1:
                one, slow = median, 1000 * statistics.quantiles(found, n=100)[98]
            if not pays and count * one >= 2 * median:
                pays, ratio = count, median / one
            say(
                f"| {count} | {median:.1f} | {1000 * max(found):.1f} | {median / one:.2f} "
                f"| {count * one / median:.2f} |"
            )
        limit = 3 * slow / one
        can = "could" if pays and 1.5 * ratio <= limit else "could not"
        say()
        tell(
            f"Twice the answers a second need batches of {pays or 'more than 16'}, which take",
            f"{ratio:.2f} times one's time. At twice the rate, a batch gathers while half of the",
            f"one before runs, so its requests take up to {1.5 * ratio:.1f} times one's time; 3",
            f"times the p99 of one is {limit:.1f} times one's time. By these figures, twice the",
            f"answers and a p99 below 3 times that of one {can} be had with one setting. The",
            "default is made to keep the p99, `--max-wait 5000` to have the answers.",
        )

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
        say("## Throughput\n")
        tell(
            f"All four servers run; each is asked for {seconds:g} s by one client and for",
            f"{seconds:g} s by {CLIENTS}, {rounds} times in turn. Who is refused tries again after",
            f"0.1 s. Load average: {load_average()}.",
        )
        say(TITLE)
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
        say()
        tell(
            f"Against one at a time, the default answers {times[DEFAULT]} times as much, with",
            f"{PATIENT} {times[PATIENT]} (asked: 2), the plain handler, whose threads use all",
            f"cores, {times[PLAIN]}.",
        )
        return rates

    def overload(self, name: str, rate: float, seconds: float) -> None:
        """Twice what it can serve for 50 s of each minute, and one client for 10 s."""
        alone, load = Load(), Load()
        with SERVERS[name].running(MODEL) as server, Watch(server) as seen:
            self.measure(server, 1, 3)
            began = time.monotonic()
            while (left := seconds - (time.monotonic() - began)) > 1:
                alone.add(self.measure(server, 1, min(10, left / 6)))
                asked = self.client(server).at_rate(rate, min(50, left * 5 / 6))
                load.add(asyncio.run(asked))
        held = seen.memory
        show(f"{name}, one client", alone)
        show(f"{name}, {rate:.0f} a second", load)
        third = max(1, len(held) // 3)
        early, late = sum(held[:third]) / third, sum(held[-third:]) / third
        say()
        tell(
            f"p99 of what was accepted: {load.ms(0.99) / alone.ms(0.99):.2f} times that of one",
            "client (asked: below 3). Memory of all processes, what they share counted once:",
            f"{early:.0f} MiB in the first third, {late:.0f} in the last,",
            f"{100 * (late / early - 1):+.1f}% (asked: 5), at most {max(held):.0f}.",
            *(
                []
                if name == PLAIN
                else [f"The longest queue seen was {seen.queue:.0f} (bound: 64)."]
            ),
            f"Load average after: {load_average()}.",
        )

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
    say(f"## Twice the rate it can serve, for {given.minutes:g} min\n")
    tell(
        f"With the default settings, 50 s at twice the {rates[DEFAULT]:.1f} a second from above",
        "and 10 s of one client, in turn; then the plain handler for 15 s.",
    )
    say(TITLE)
    report.overload(DEFAULT, 2 * rates[DEFAULT], 60 * given.minutes)
    say(TITLE)
    report.overload(PLAIN, 2 * rates[PLAIN], min(15, 60 * given.minutes))
    rate = rates[ALONE] / 2
    say(f"## `kill -9`\n\nAt {rate:.0f} questions a second; a kill every {EACH:g} s.\n\n{TITLE}")
    one = report.kill("a worker", (), rate, given.kills)
    two = report.kill("one of two workers", ("--workers", 2), rate, given.kills)
    both = report.kill("template", (), rate, 1)
    say()
    tell(
        "Every request had an answer if none was lost. After a kill, the first answer to what was",
        f"asked later came within {one:.2f} s with one worker (asked: 5), {two:.2f} s with two,",
        f"and {both:.1f} s when the template and the only worker were killed at the same moment.",
    )
    minutes = (time.monotonic() - began) / 60
    say(f"Load average after: {load_average()}. It took {minutes:.1f} min.")


if __name__ == "__main__":
    main()
