"""Speed and memory of extractive summarizers beside sumy and summa, and how cost grows.

    pip install sumy summa
    python benchmarks/summary_speed.py [--part short|long|growth|stream|pruning] [--rounds N]

Everyone starts from raw text. sumy's own sentence splitter needs data of nltk that is not part of
it, so it is given a splitter of one regular expression, which is quicker. Long texts are BBC
articles one after the other, cut to so many sentences. Every time is in the same process, rounds
alternate between the systems, and the median and the range of the rounds are shown. Times are
of the processor (all run on one thread), so that what else the machine does matters less; only
"stream" is by the clock.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from seqloom import Summarizer
from seqloom.data.datasets import open_dataset
from seqloom.extract import split_units

SIZES = (500, 1000, 2000, 5000, 10_000, 20_000)
SEED = 11


def articles() -> list[str]:
    pairs = open_dataset("bbc-news-summary", "all", variant="summary")
    found = [pair.source for pair in pairs]
    random.Random(SEED).shuffle(found)
    return found


def long_text(sentences: int) -> str:
    """So many different sentences of running text."""
    found: list[str] = []
    for text in articles():
        units, _ = split_units(text)
        found += [text[u.start : u.end] for u in units if not u.is_heading]
        if len(found) >= sentences:
            break
    return " ".join(found[:sentences])


def peers() -> dict[str, Callable[[str], Any]]:
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from summa import summarizer as summa
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.nlp.stemmers import Stemmer
    from sumy.nlp.tokenizers import Tokenizer
    from sumy.summarizers.lex_rank import LexRankSummarizer
    from sumy.summarizers.text_rank import TextRankSummarizer
    from sumy.utils import get_stop_words

    class Words:
        split = NLTKWordTokenizer().tokenize

        def to_words(self, text: str) -> tuple[str, ...]:
            return tuple(w for w in self.split(text) if Tokenizer._WORD_PATTERN.match(w))

    words, ends = Words(), re.compile(r"(?<=[.!?])\s+")

    def of_sumy(make: Any) -> Callable[[str], Any]:
        model = make(Stemmer("english"))
        model.stop_words = get_stop_words("english")

        def run(text: str) -> Any:
            made = [Sentence(s, words) for s in ends.split(text) if s.strip()]
            return model(ObjectDocumentModel([Paragraph(made)]), 5)

        return run

    return {
        "sumy TextRank": of_sumy(TextRankSummarizer),
        "sumy LexRank": of_sumy(LexRankSummarizer),
        "summa TextRank": lambda text: summa.summarize(text, ratio=0.2),
    }


def own() -> dict[str, Callable[[str], Any]]:
    made = {
        "textrank": Summarizer("textrank"),
        "textrank, unweighted": Summarizer("textrank", weighted=False),
        "lexrank": Summarizer("lexrank"),
        "lexrank, continuous": Summarizer("lexrank", threshold=None),
        "tfidf": Summarizer("tfidf"),
        "features": Summarizer("features"),
    }
    return {
        name: (lambda text, m=model: m.summarize(text, sentences=5)) for name, model in made.items()
    }


def rounds_of(
    systems: dict[str, Callable[[int], Any]],
    count: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Seconds of each system in each round, which it is told the number of."""
    found: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(count):
        for name, work in systems.items():
            began = clock()
            work(number)
            found[name].append(clock() - began)
    return found


def show(times: dict[str, list[float]], per: float, unit: str, base: dict[str, str]) -> None:
    print(f"| system | {unit}, median (range) | times as fast as |\n|---|---|---|")
    for name, values in times.items():
        cells = [statistics.median(values), min(values), max(values)]
        a, b, c = (value * per for value in cells)
        ratio = ""
        if name in base:
            ratios = sorted(x / y for x, y in zip(times[base[name]], values, strict=True))
            middle = statistics.median(ratios)
            ratio = f"{middle:.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}) {base[name]}"
        print(f"| {name} | {a:.3g} ({b:.3g} to {c:.3g}) | {ratio} |")
    print()


def short(count: int) -> None:
    texts = articles()[: 100 * count + 1]
    systems = own() | peers()
    for work in systems.values():
        work(texts[-1])

    def run(work: Callable[[str], Any], number: int) -> None:
        for text in texts[100 * number : 100 * (number + 1)]:  # which nobody has met before
            work(text)

    times = rounds_of({n: partial(run, w) for n, w in systems.items()}, count)
    fastest = min(("sumy TextRank", "summa TextRank"), key=lambda n: statistics.median(times[n]))
    average = sum(len(split_units(t)[0]) for t in texts) / len(texts)
    print(f"100 other BBC articles a round, {average:.0f} sentences each, {count} rounds\n")
    base = {"textrank": fastest, "textrank, unweighted": fastest, "lexrank": "sumy LexRank"}
    show(times, 10, "ms a text", base | {"lexrank, continuous": "sumy LexRank"})


def long(count: int) -> None:
    text = long_text(1000)
    theirs = peers()
    del theirs["sumy LexRank"]
    systems = own() | theirs
    for name, work in systems.items():
        if name not in theirs:
            work(text)
    times = rounds_of({n: (lambda _, w=w: w(text)) for n, w in systems.items()}, count)
    print(f"one text of 1,000 sentences, {count} rounds\n")
    show(times, 1000, "ms", {"textrank": "sumy TextRank", "textrank, unweighted": "sumy TextRank"})


def growth(count: int) -> None:
    print(f"time from raw text, {count} rounds; memory of a process of its own\n")
    systems = own()
    kept = ("textrank", "textrank, unweighted", "lexrank", "lexrank, continuous")
    texts = {size: long_text(size) for size in SIZES}
    print("| system | " + " | ".join(f"{size:,}" for size in SIZES) + " | exponent |")
    print("|---" * (len(SIZES) + 2) + "|")
    for name in kept:
        work = systems[name]
        work(texts[500])
        seconds = []
        for size in SIZES:
            values = rounds_of({"": lambda _, w=work, s=size: w(texts[s])}, count)[""]
            seconds.append(statistics.median(values))
        cells = " | ".join(f"{value:.3f} s" for value in seconds)
        print(f"| {name} | {cells} | {exponent(seconds):.2f} |", flush=True)
    print()
    for name in kept:
        code = f"import summary_speed as s; s.memory({name!r}, 10_000)"
        folder = __file__.rpartition("/")[0] or "."
        found = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
        )
        print(f"10,000 sentences, {name}: {found.stdout.strip()}", flush=True)


def exponent(seconds: list[float]) -> float:
    """The slope of time over size, both as logarithms, by least squares."""
    x, y = [math.log(s) for s in SIZES], [math.log(s) for s in seconds]
    a, b = statistics.mean(x), statistics.mean(y)
    return sum((p - a) * (q - b) for p, q in zip(x, y, strict=True)) / sum((p - a) ** 2 for p in x)


def memory(name: str, size: int) -> None:
    text = long_text(size)
    work = own()[name]
    work(long_text(20))
    began = time.perf_counter()
    work(text)
    seconds = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:.2f} s, {most:.0f} MB at most, interpreter, corpus and compiler included")


def pruning(_: int) -> None:
    """The share of chosen sentences that are those of the exact computation."""
    most = (5, 20, 100, 400)
    print("| system | `max_pairs` | sentences | same, of " + " | of ".join(map(str, most)) + " |")
    print("|---" * (len(most) + 3) + "|")
    for size in (2000, 5000, 20_000):
        text = long_text(size)
        for name, options in (
            ("textrank", {}),
            ("textrank, unweighted", {"weighted": False}),
            ("lexrank", {}),
        ):
            arch = name.partition(",")[0]
            if name == "textrank" and size > 5000:
                continue  # all its pairs, listed, would take a gigabyte
            # Weighted TextRank is exact; a threshold just above 0 lists all pairs instead.
            listed = {"threshold": 1e-12} if name == "textrank" else {}
            exact = Summarizer(arch, **options | listed, max_pairs=None)
            expected = [chosen_of(exact, text, count) for count in most]
            for bound in ({},) if name == "textrank" else ({}, {"max_pairs": 350}):
                model = Summarizer(arch, **options, **bound)
                same = [
                    len(chosen_of(model, text, count) & own) / count
                    for count, own in zip(most, expected, strict=True)
                ]
                cells = " | ".join(f"{100 * share:.1f}%" for share in same)
                shown = model.model_.config.max_pairs
                print(f"| {name} | {shown:,} | {size:,} | {cells} |", flush=True)


def chosen_of(model: Summarizer, text: str, count: int) -> set[int]:
    return {s.index for s in model.summarize(text, sentences=count)}


def stream(count: int) -> None:
    model = Summarizer("textrank")
    for title, texts in (
        ("1,000 articles", articles()[:1000]),
        ("20 texts of 2,000 sentences", [long_text(2000)] * 20),
    ):
        list(model.summarize_all(texts[:4]))
        times = rounds_of(
            {
                "one thread": lambda _: list(model.summarize_all(texts, threads=1)),  # noqa: B023
                "all cores": lambda _: list(model.summarize_all(texts)),  # noqa: B023
            },
            count,
            time.perf_counter,
        )
        print(title + "\n")
        show(times, 1000 / len(texts), "ms a text", {"all cores": "one thread"})


PARTS = {"short": short, "long": long, "growth": growth, "stream": stream, "pruning": pruning}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=PARTS, default="short")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    PARTS[arguments.part](arguments.rounds)


if __name__ == "__main__":
    main()
