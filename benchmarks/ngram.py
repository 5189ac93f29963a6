"""Counted language models against KenLM: estimation, size, memory, start and query.

    python benchmarks/ngram.py [--lmplz FOLDER] [--parts estimate,query,...] [--save FILE]

The text is `english-14m`: WikiText-2 and IMDb from the shared data folder, 13.6 million words. A
unit is `np.sort` of 20 million random 64-bit numbers in the same run. With `--lmplz`, a folder that
holds KenLM's `lmplz` and `build_binary`, these are timed in the same run too; the query part needs
the `kenlm` package. Times of whole commands are wall-clock, in turn, repeated; what is printed is
the median with the range.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

SHA256 = "e9a66050537a3fceafa6a294f53e015591813ec74ca755c412da6ec6884af240"
ORDER = 5
SEQLOOM = [sys.executable, "-m", "seqloom"]


def make_text(folder: Path) -> Path:
    """WikiText-2's training text and every review of IMDb, one line each."""
    data = Path(os.environ.get("SEQLOOM_DATA", "../shared/data"))
    path = folder / "english-14m"
    with path.open("wb") as out:
        with lzma.open(data / "wikitext-2/wiki.train.tokens.xz", "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    out.write((" ".join(line.split()).replace("<unk>", "UNK") + "\n").encode())
        for name in ("train", "test"):
            with lzma.open(data / f"imdb/{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
                for line in lines:
                    out.write((" ".join(json.loads(line)["text"].split()) + "\n").encode())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256, "the text is another one"
    return path


def held_out() -> list[str]:
    data = Path(os.environ.get("SEQLOOM_DATA", "../shared/data"))
    with lzma.open(data / "wikitext-2/wiki.valid.tokens.xz", "rt", encoding="utf-8") as lines:
        return [" ".join(x.split()).replace("<unk>", "UNK") for x in lines if x.strip()]


def unit() -> float:
    """Seconds to sort 20 million random numbers, the fastest of three."""
    numbers = np.random.default_rng(0).integers(0, 1 << 63, 20_000_000, dtype=np.uint64)
    times = []
    for _ in range(3):
        copy = numbers.copy()
        began = time.perf_counter()
        copy.sort()
        times.append(time.perf_counter() - began)
    return min(times)


def run(command: list[str], source: Path | None = None, target: Path | None = None) -> Any:
    """Wall-clock seconds and peak memory in GB of a command."""
    with (
        (source or Path(os.devnull)).open("rb") as stdin,
        (target or Path(os.devnull)).open("wb") as stdout,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True
        )
        peak = 0
        while process.poll() is None:  # what wait tells counts the memory of this process too
            peak = max(peak, high_water(process.pid))
            time.sleep(0.01)
        seconds = time.perf_counter() - began
        said = process.communicate()[1]
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return seconds, peak / 1e9


def high_water(pid: int) -> int:
    """The most memory a process held so far, in bytes."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 if "VmHWM:" in status else 0


def spread(values: list[float], digits: int = 1) -> str:
    middle = statistics.median(values)
    return f"{middle:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def estimation(text: Path, folder: Path, kenlm: Path | None, repeats: int) -> list[str]:
    """Text to a store and to an ARPA file, against lmplz and build_binary."""
    store, arpa = folder / "e14.ngram", folder / "e14.arpa"
    estimate = [*SEQLOOM, "ngram", "estimate", "--order", str(ORDER)]
    jobs: dict[str, Callable[[], Any]] = {
        "seqloom, text to store": lambda: run([*estimate, "--store", str(store)], text),
        "seqloom, text to ARPA": lambda: run(estimate, text, arpa),
        "seqloom, text to store, --memory 1G": lambda: run(
            [*estimate, "--memory", "1G", "--store", str(store)], text
        ),
        "seqloom, text to ARPA, --memory 1G": lambda: run(
            [*estimate, "--memory", "1G"], text, arpa
        ),
    }
    if kenlm:
        lmplz = [str(kenlm / "lmplz"), "-o", str(ORDER), "-T", str(folder)]
        binary = [str(kenlm / "build_binary"), "-T", str(folder / "t"), "probing", str(arpa)]
        jobs |= {
            "lmplz, text to ARPA": lambda: run(lmplz, text, arpa),
            "lmplz -S 1G, text to ARPA": lambda: run([*lmplz, "-S", "1G"], text, arpa),
            "build_binary, ARPA to probing file": lambda: run(
                [*binary, str(folder / "e14.probing")]
            ),
        }
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in jobs}
    jobs["seqloom, text to store"]()  # compiles, fills the page cache
    for _ in range(repeats):
        for name, job in jobs.items():
            one = unit()
            seconds, peak = job()
            found[name].append((seconds, seconds / one, peak))
    lines = ["| job | seconds | units of np.sort | peak GB |", "|---|---|---|---|"]
    for name, rows in found.items():
        seconds, units, peaks = (list(column) for column in zip(*rows, strict=True))
        lines.append(f"| {name} | {spread(seconds)} | {spread(units)} | {max(peaks):.2f} |")
    if kenlm:
        middle = {name: statistics.median(r[0] for r in rows) for name, rows in found.items()}
        both = middle["lmplz, text to ARPA"] + middle["build_binary, ARPA to probing file"]
        lines += [
            "",
            f"lmplz and build_binary together take {both / middle['seqloom, text to store']:.1f} "
            "times as long as text to store; lmplz takes "
            f"{middle['lmplz, text to ARPA'] / middle['seqloom, text to ARPA']:.1f} times as long "
            "as text to ARPA.",
        ]
    return lines


def scaling(text: Path, folder: Path, repeats: int) -> list[str]:
    """Time over an eighth, a half and all of the text, the best of several."""
    whole = text.read_bytes().splitlines(keepends=True)
    rows = []
    for name, share in (("1/8", 8), ("1/2", 2), ("all", 1)):
        part = folder / "part"
        part.write_bytes(b"".join(whole[::share]))
        words = sum(len(line.split()) for line in whole[::share])
        command = [
            *SEQLOOM,
            "ngram",
            "estimate",
            "--order",
            str(ORDER),
            "--store",
            str(folder / "p"),
        ]
        rows.append((name, words, min(run(command, part)[0] for _ in range(repeats + 1))))
    lines = [
        "| part of the text | words | seconds | exponent from the row above |",
        "|---|---|---|---|",
    ]
    before = None
    for name, words, seconds in rows:
        power = (
            ""
            if before is None
            else f"{np.log(seconds / before[1]) / np.log(words / before[0]):.2f}"
        )
        lines.append(f"| {name} | {words:,} | {seconds:.1f} | {power} |")
        before = (words, seconds)
    return lines


def larger_than_memory(text: Path, folder: Path) -> list[str]:
    """A text three times the cap: the shared text with its words renamed, copy by copy."""
    cap, copies = 384 << 20, 16
    part = folder / "large"
    whole = text.read_bytes()
    with part.open("wb") as out:
        for copy in range(copies):
            mark = str(copy).encode()
            out.write(whole.replace(b"e ", b"e" + mark + b" ") if copy else whole)
    size = part.stat().st_size
    command = [*SEQLOOM, "ngram", "estimate", "--order", "3", "--memory", "384M"]
    seconds, peak = run([*command, "--store", str(folder / "l")], part)
    part.unlink()
    return [
        f"A text of {size / 1e6:.0f} MB, {size / cap:.1f} times a cap of 384M, order 3, to a store:"
        f" "
        f"{seconds:.0f} s, peak {peak:.3f} GB (the cap is {cap / 1e9:.3f} GB)."
    ]


def queries(folder: Path, kenlm_file: Path | None, repeats: int) -> list[str]:
    """Scoring from Python against the kenlm package, and the small store."""
    from seqloom.ngram import NgramModel

    fast, text = NgramModel.load(folder / "e14.ngram"), held_out()
    lines = []
    words = sum(len(line.split()) + 1 for line in text)
    sentences = [" ".join(line.split()[:20]) for line in text if len(line.split()) >= 20]
    ours = {"list": lambda: fast.score(text), "one": lambda: [fast.score(s) for s in sentences]}
    same = {"seqloom": lambda: [fast.score(sentences[0]) for _ in range(2000)]}
    peer = {}
    if kenlm_file:
        import kenlm

        model = kenlm.Model(str(kenlm_file))
        peer = {
            "list": lambda: [model.score(s) for s in text],
            "one": lambda: [model.score(s) for s in sentences],
        }
        same["kenlm"] = lambda: [model.score(sentences[0]) for _ in range(2000)]
        gap = np.abs(fast.score(text) / np.log(10) - np.array(peer["list"]())).max()
        lines.append(f"Largest difference of a line's log10 probability from kenlm's: {gap:.1e}.\n")

    def timed(job: Callable[[], Any]) -> float:
        began = time.perf_counter()
        job()
        return time.perf_counter() - began

    for job in (*ours.values(), *peer.values(), *same.values()):
        job()
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, job in ours.items():
            mine = timed(job)
            found.setdefault(f"seqloom {name}", []).append(mine)
            if peer:
                theirs = timed(peer[name])
                found.setdefault(f"kenlm {name}", []).append(theirs)
                found.setdefault(f"ratio {name}", []).append(theirs / mine)
        repeated = {name: timed(job) for name, job in same.items()}
        for name, seconds in repeated.items():
            found.setdefault(f"{name} same", []).append(seconds)
        if peer:
            found.setdefault("ratio same", []).append(repeated["kenlm"] / repeated["seqloom"])
    speed = {k: [words / s / 1e6 for s in v] for k, v in found.items() if k.endswith("list")}
    each = {k: [s / len(sentences) * 1e6 for s in v] for k, v in found.items() if k.endswith("one")}
    again = {k: [s / 2000 * 1e6 for s in v] for k, v in found.items() if k.endswith("same")}
    lines += ["| what | seqloom | kenlm | kenlm's time over ours |", "|---|---|---|---|"]
    for title, kind, table in (
        ("a list of lines, million words a second", "list", speed),
        ("a sentence of 20 words, another each time, microseconds", "one", each),
        ("the same sentence of 20 words again and again, microseconds", "same", again),
    ):
        theirs = spread(table[f"kenlm {kind}"], 2) if peer else ""
        ratio = spread(found[f"ratio {kind}"], 2) if peer else ""
        lines.append(f"| {title} | {spread(table[f'seqloom {kind}'], 2)} | {theirs} | {ratio} |")
    return lines


def small_store(folder: Path) -> list[str]:
    """Bytes an n-gram, and what quantization costs."""
    from seqloom.ngram import NgramModel

    small = folder / "e14.trie"
    run([*SEQLOOM, "ngram", "convert", str(folder / "e14.ngram"), str(small), "--kind", "trie"])
    text = held_out()
    fast, packed = NgramModel.load(folder / "e14.ngram"), NgramModel.load(small)
    ngrams = sum(fast.sizes)
    exact, quantized = (m.perplexity(text).perplexity for m in (fast, packed))
    lines = ["| store | MB | bytes an n-gram | perplexity | against the fast one |"]
    lines += ["|---|---|---|---|---|"]
    for name, path, value in (("hashed", "e14.ngram", exact), ("trie", "e14.trie", quantized)):
        size = (folder / path).stat().st_size
        change = f"{(value / exact - 1) * 100:+.3f}%"
        lines.append(
            f"| {name} | {size / 1e6:.0f} | {size / ngrams:.2f} | {value:.3f} | {change} |"
        )
    return lines


def start(folder: Path, repeats: int) -> list[str]:
    """The whole command `seqloom ngram query` on 1,000 sentences, first run and later."""
    sentences = folder / "sentences"
    sentences.write_text("\n".join(held_out()[:1000]) + "\n", encoding="utf-8")
    command = [*SEQLOOM, "ngram", "query", str(folder / "e14.ngram"), str(sentences)]
    warm = [run(command)[0] for _ in range(repeats + 2)][1:]
    fresh = {**os.environ, "SEQLOOM_CACHE": str(folder / "fresh")}
    began = time.perf_counter()
    subprocess.run(command, env=fresh, check=True, capture_output=True)
    first = time.perf_counter() - began
    return [
        f"1,000 sentences, whole command: {spread(warm, 2)} s with a warm compile cache; "
        f"{first:.1f} s the first time on a machine."
    ]


PARTS = ("estimate", "scaling", "larger", "query", "small", "start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lmplz", type=Path, help="a folder with KenLM's lmplz and build_binary")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        report = measure(given, folder)
    print(report)
    if given.save:
        given.save.write_text(report, encoding="utf-8")


def measure(given: argparse.Namespace, folder: Path) -> str:
    text = folder / "english-14m"
    if not text.exists():
        make_text(folder)
    probing = folder / "e14.probing"
    jobs: dict[str, tuple[str, Callable[[], list[str]]]] = {
        "estimate": (
            "Estimation, order 5",
            lambda: estimation(text, folder, given.lmplz, given.repeats),
        ),
        "scaling": ("Scaling", lambda: scaling(text, folder, given.repeats)),
        "larger": ("Larger than memory", lambda: larger_than_memory(text, folder)),
        "query": (
            "Queries",
            lambda: queries(folder, probing if probing.exists() else None, 4 * given.repeats),
        ),
        "small": ("The small store", lambda: small_store(folder)),
        "start": ("Start", lambda: start(folder, given.repeats)),
    }
    cores = len(os.sched_getaffinity(0))
    lines = [
        "# Counted language models",
        "",
        "    python benchmarks/ngram.py --save FILE",
        "",
        f"{date.today()}, {platform.machine()}, {cores} cores, Python {platform.python_version()}, "
        f"numpy {np.__version__}. english-14m, 13,608,740 words; a unit is np.sort of 20 million "
        f"random uint64 ({unit():.2f} s here, {_vectorized()}). {given.repeats} repetitions, "
        "in turn; median (range).",
    ]
    for part in given.parts.split(","):
        title, job = jobs[part]
        print(f"... {title}", file=sys.stderr)
        lines += ["", f"## {title}", "", *job()]
    return "\n".join(lines) + "\n"


def _vectorized() -> str:
    return "numpy's sort uses AVX-512" if _has_avx512() else "numpy's sort without AVX-512"


def _has_avx512() -> bool:
    info = Path("/proc/cpuinfo")
    return info.exists() and "avx512f" in info.read_text()


if __name__ == "__main__":
    main()
