"""Perplexity of every smoothing at orders 1 to 5 on the Penn Treebank, as a table and a picture.

    python benchmarks/ngram_smoothing.py [--valid] [--save]

Models of the training text, `<unk>` counted as a word, on the test text (`--valid`: the validation
text). Jelinek-Mercer's weights are fitted on the validation text. With `--save` the documentation's
table and picture are written.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from seqloom.data.datasets import open_dataset
from seqloom.figures import curve, save
from seqloom.ngram import SMOOTHINGS, NgramModel, estimate

ORDERS = range(1, 6)
HIGHEST = 700  # a line that goes above it would flatten the others
FIGURES = Path(__file__).parent.parent / "docs" / "figures"


def texts(split: str) -> list[str]:
    return [example.text for example in open_dataset("ptb", split)]


def measure(split: str) -> dict[str, list[float | str]]:
    train, valid, test = texts("train"), texts("valid"), texts(split)
    found: dict[str, list[float | str]] = {}
    for name in SMOOTHINGS:
        row: list[float | str] = []
        for order in ORDERS:
            held_out = valid if name == "jelinek-mercer" else None
            ngrams = estimate(train, order=order, smoothing=name, held_out=held_out)
            model = NgramModel.of(ngrams)
            row.append(_perplexity(model, test))
        found[name] = row
        print(f"{name:30}", *(f"{v:10.2f}" if isinstance(v, float) else f"{v:>10}" for v in row))
    return found


def _perplexity(model: NgramModel, test: list[str]) -> float | str:
    if not model.is_distribution:
        return "none: no distribution"
    found = model.perplexity(test)
    return found.perplexity if math.isfinite(found.log_prob) else "infinite"


def draw(found: dict[str, list[float | str]]) -> None:
    """One line a smoothing that stays low, from order 2 on: at order 1 all are alike."""
    lines = {
        name: (list(ORDERS)[1:], [float(v) for v in row[1:]])
        for name, row in found.items()
        if all(isinstance(v, float) and v < HIGHEST for v in row)
    }
    FIGURES.mkdir(exist_ok=True)
    figure = curve(lines, xlabel="order", ylabel="test perplexity")
    save(figure, FIGURES / "ptb-smoothing.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--valid", action="store_true")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    found = measure("valid" if given.valid else "test")
    if given.save:
        draw(found)
        (FIGURES / "ptb-smoothing.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
