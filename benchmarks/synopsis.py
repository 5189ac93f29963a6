"""Package descriptions to one line: networks beside the first sentence and TextRank.

    seqloom reproduce debian-pointer --out runs                # trains, on a GPU if there is one
    python benchmarks/synopsis.py write runs/debian-pointer-0 --out pointer.jsonl [--split valid]
    python benchmarks/synopsis.py baselines --out DIR [--split valid]
    python benchmarks/synopsis.py score DIR/first.jsonl DIR/textrank.jsonl pointer.jsonl ...
    python benchmarks/synopsis.py examples pointer.jsonl

`write` needs no rouge-score, so that it runs where the model was trained; `score` needs it, and no
model. Every system is compared with the first file by a paired bootstrap of 1,000 samples. Names
are words of a synopsis that are nowhere in the training data, neither in a description nor in a
synopsis, and that its description has: `score` prints how many of them a system wrote. `examples`
shows ten outputs: in the order of the file, the first of each tenth part.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import seqloom
from seqloom.data.datasets import open_dataset

WORD = re.compile(r"[^\W_]+")


def words(text: str) -> set[str]:
    return set(WORD.findall(text.lower()))


def keep(path: Path, texts: list[str], split: str) -> None:
    with path.open("w", encoding="utf-8") as out:
        for pair, text in zip(open_dataset("debian-synopsis", split), texts, strict=True):
            row = {"source": pair.source, "target": pair.target, "text": text}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def write(args: argparse.Namespace) -> None:
    import torch

    model = seqloom.load(args.model)
    if torch.cuda.is_available():
        model.model_.cuda()
    sources = [pair.source for pair in open_dataset("debian-synopsis", args.split)]
    options = {"beam": args.beam, "length_penalty": args.length_penalty, "max_length": 30}
    began = time.perf_counter()
    texts = [each.text for each in model.summarize_all(sources, **options)]
    print(f"{len(texts) / (time.perf_counter() - began):.1f} texts a second")
    keep(Path(args.out), texts, args.split)


def baselines(args: argparse.Namespace) -> None:
    """The first sentence, and the best one by TextRank."""
    place = Path(args.out)
    place.mkdir(parents=True, exist_ok=True)
    sources = [pair.source for pair in open_dataset("debian-synopsis", args.split)]
    for name, arch in (("first", "lead"), ("textrank", "textrank")):
        model = seqloom.Summarizer(arch, reading={"language": "en"})
        texts = [summary.text for summary in model.summarize_all(sources, sentences=1)]
        keep(place / f"{name}.jsonl", texts, args.split)


def rows_of(path: str) -> list[dict[str, str]]:
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def score(args: argparse.Namespace) -> None:
    from seqloom.metrics.bootstrap import paired_bootstrap
    from seqloom.metrics.rouge import rouge

    seen: set[str] = set()
    for pair in open_dataset("debian-synopsis", "train"):
        seen |= words(pair.source) | words(pair.target)
    base: dict[str, np.ndarray] = {}
    for path in args.files:
        rows = rows_of(path)
        found = [rouge(row["text"], row["target"]) for row in rows]
        table = {
            name: np.array([100 * each[name].f1 for each in found])
            for name in ("rouge_1", "rouge_2", "rouge_l")
        }
        line = "  ".join(f"{name} {values.mean():.2f}" for name, values in table.items())
        names = [(words(r["target"]) & words(r["source"])) - seen for r in rows]
        wrote = sum(len(own & words(row["text"])) for own, row in zip(names, rows, strict=True))
        total = sum(map(len, names))
        print(f"{path}: {line}  names {wrote} of {total}")
        if not base:
            base = table
            continue
        ours, theirs = table["rouge_1"], base["rouge_1"]
        low, high = paired_bootstrap(ours, theirs, np.ones(len(ours)))
        above = (ours - theirs).mean()
        print(f"    rouge_1 above the first file by {above:.2f} ({low:.2f} to {high:.2f})")


def examples(args: argparse.Namespace) -> None:
    rows = rows_of(args.file)
    for number in range(10):
        row = rows[number * len(rows) // 10]
        print(f"| {row['source'][:120]} | {row['text']} | {row['target']} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(required=True)

    def verb(run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        own = verbs.add_parser(run.__name__)
        own.set_defaults(run=run)
        return own

    own = verb(write)
    own.add_argument("model")
    own.add_argument("--beam", type=int, default=5)
    own.add_argument("--length-penalty", type=float, default=1.0)
    for each in (own, verb(baselines)):
        each.add_argument("--out", required=True)
        each.add_argument("--split", default="test", choices=["valid", "test"])
    verb(score).add_argument("files", nargs="+")
    verb(examples).add_argument("file")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
