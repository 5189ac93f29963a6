"""Speed of reading text, memory of training data, waste of padding, time to start.

    python benchmarks/text_and_data.py [--save FILE]

Needs the data sets named below in $SEQLOOM_DATA (or ../shared/data beside the repository). Times
are of this process alone (CPU seconds), best and worst of five passes; memory is RssAnon, what the
process holds besides mapped files.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path

from seqloom.data import (
    Bucketing,
    EncodedData,
    PrepareConfig,
    Ragged,
    Text,
    Windows,
    open_dataset,
    padding_waste,
    prepare,
)
from seqloom.text import TextConfig, Vocabulary, WordTokenizer, split_sentences

PASSES = 5


def seconds(action: Callable[[], object]) -> list[float]:
    times = []
    gc.collect()
    gc.freeze()  # what other measurements left behind is not this one's burden
    for _ in range(PASSES):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return times


def rate(texts: list[str], action: Callable[[], object]) -> str:
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    times = seconds(action)
    return f"{megabytes / min(times):.1f} MB/s ({megabytes / max(times):.1f} at worst)"


def tokenizing() -> Iterator[tuple[str, str]]:
    english = [example.text for example in islice(open_dataset("imdb", "train"), 6000)]
    chinese = [example.text for example in open_dataset("chnsenticorp", "train")]
    en, zh, auto = WordTokenizer("en"), WordTokenizer("zh"), WordTokenizer("auto")
    zh.words(chinese[0])  # loads the dictionary
    yield "English words (IMDb)", rate(english, lambda: [en.words(text) for text in english])
    yield "English words and offsets", rate(english, lambda: [en(text).spans for text in english])
    yield "Chinese words (ChnSentiCorp)", rate(chinese, lambda: [zh.words(t) for t in chinese])
    yield "Chinese words and offsets", rate(chinese, lambda: [zh(t).spans for t in chinese])
    yield (
        "Chinese words, language detected",
        rate(chinese, lambda: [auto.words(t) for t in chinese]),
    )
    yield "English sentences", rate(english, lambda: [split_sentences(t, "en") for t in english])


def vocabulary() -> Iterator[tuple[str, str]]:
    def build() -> Vocabulary:
        lines = (example.text.split() for example in open_dataset("wikitext-2", "train"))
        return Vocabulary.build(lines)

    times = seconds(build)
    size = len(build())
    yield (
        "vocabulary of WikiText-2, read and counted",
        (f"{min(times):.2f} s ({max(times):.2f} at worst), {size:,} ids"),
    )


def waste() -> Iterator[tuple[str, str]]:
    en, zh = WordTokenizer("en"), WordTokenizer("zh")
    sets: dict[str, Callable[[], Iterable[int]]] = {
        "SST-2": lambda: (len(e.text.split()) for e in open_dataset("sst", "train")),
        "IMDb": lambda: (len(en.words(e.text)) for e in open_dataset("imdb", "train")),
        "ChnSentiCorp": lambda: (
            len(zh.words(e.text)) for e in open_dataset("chnsenticorp", "train")
        ),
        "PTB": lambda: (len(e.text.split()) for e in open_dataset("ptb", "train")),
        "Tang poems, characters": lambda: (len(e.text) for e in open_dataset("tang-poems")),
        "THUCNews headlines, characters": lambda: (
            len(e.text) for e in open_dataset("thucnews-headlines-20k", "valid")
        ),
    }
    for name, lengths in sets.items():
        data = EncodedData({"ids": Ragged.of([[0] * length for length in lengths()])})
        yield f"padding, {name}", describe_waste(data)
    pairs = list(open_dataset("multi30k-en-de", "train"))
    data = EncodedData(
        {
            "source": Ragged.of([[0] * len(en.words(p.source)) for p in pairs]),
            "target": Ragged.of([[0] * len(en.words(p.target)) for p in pairs]),
        }
    )
    yield "padding, Multi30k pairs", describe_waste(data)


def describe_waste(data: EncodedData) -> str:
    plan = Bucketing(data)
    share = padding_waste(plan.batches(data, epoch=0))
    least = -(-len(data) // plan.config.batch_size)
    more = plan.num_batches(0) / least - 1
    return f"{share:.1%} of {len(data):,} examples in batches of 32, {more:.1%} more batches"


def anonymous_kib() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1])
    raise RuntimeError("this system does not report RssAnon")


def train_on(copies: int) -> int:
    """Prepare PTB `copies` times over, read an epoch each way, return the peak of RssAnon."""
    peak = 0

    def examples() -> Iterator[Text]:
        nonlocal peak
        for _ in range(copies):
            yield from open_dataset("ptb", "train")
            peak = max(peak, anonymous_kib())

    with tempfile.TemporaryDirectory() as folder:
        config = PrepareConfig(text=TextConfig(unit="space"))
        prepared = prepare(examples(), Path(folder) / "ptb", config)
        ids = prepared.data.sequences["ids"]
        for batch in Windows(ids.flat, batch_size=20, window=35).batches():
            peak = max(peak, anonymous_kib()) if batch.index[0] % 100 == 0 else peak
        for step, batch in enumerate(Bucketing(prepared.data).batches(prepared.data, epoch=0)):
            peak = max(peak, anonymous_kib()) if step % 100 == 0 and len(batch) else peak
    return peak


def memory() -> Iterator[tuple[str, str]]:
    peaks = {}
    for copies in (1, 10):
        command = [sys.executable, __file__, "--train-on", str(copies)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks[copies] = int(result.stdout)
    yield (
        "peak RssAnon, PTB and ten times PTB",
        (f"{peaks[1] / 1024:.1f} and {peaks[10] / 1024:.1f} MiB ({peaks[10] / peaks[1] - 1:+.1%})"),
    )


def starting() -> Iterator[tuple[str, str]]:
    def best(*command: str) -> float:
        times = []
        for _ in range(2 * PASSES):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    script = str(Path(sys.executable).with_name("seqloom"))
    bare = best(sys.executable, "-c", "pass")
    for name, command in {
        "import seqloom": (sys.executable, "-c", "import seqloom"),
        "seqloom --help": (script, "--help"),
    }.items():
        yield f"{name}, beyond a bare Python start", f"{best(*command) - bare:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="also write the report to this file")
    parser.add_argument("--train-on", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    os.environ.setdefault("SEQLOOM_DATA", str(beside))
    if options.train_on:
        print(train_on(options.train_on))
        return
    lines = [
        f"# Text and data, {date.today()}",
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores, one used. "
        "Command: `python benchmarks/text_and_data.py`.",
        "",
        "| what | measured |",
        "|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for part in (starting, tokenizing, vocabulary, waste, memory):
        for name, value in part():
            lines.append(f"| {name} | {value} |")
            print(lines[-1], flush=True)
    if options.save:
        options.save.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
