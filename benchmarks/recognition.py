"""Strips of handwritten digits read column by column, and the time of the loss over alignments.

python benchmarks/recognition.py --seeds 3

Images of the test strips are in no other strip. A language model's weight and bonus are chosen on
the validation strips. "squares" are strips that say square numbers: the language model is counted
on the squares of other numbers, the network was trained on any digits. "noise" adds random ink.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from seqloom import LanguageModel
from seqloom.data.digits import Strips, digit_strips
from seqloom.nn.ctc import ctc_loss
from seqloom.tasks.recipe import load_recipe

WEIGHTS = (0.25, 0.5, 1.0)
BONUSES = (0.0, 1.0, 2.0)
SHAPES = ((32, 48, 11, 6), (16, 400, 40, 60), (8, 1500, 30, 200))


def loss_times(seconds):
    """Milliseconds of the loss and its gradient, ours and torch's, one after the other."""
    print("| rows | steps | labels | target | ours ms | torch ms | torch / ours |")
    print("|---|---|---|---|---|---|---|")
    for rows, steps, labels, size in SHAPES:
        torch.manual_seed(0)
        scores = torch.randn(rows, steps, labels).log_softmax(-1).requires_grad_()
        targets = torch.randint(1, labels, (rows, size))
        given = (targets, torch.full((rows,), steps), torch.full((rows,), size))
        found = {"cpu": [], "torch": []}
        for backend in found:
            ctc_loss(scores, *given, backend=backend).sum().backward()  # compiles
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            for backend, times in found.items():
                start = time.perf_counter()
                ctc_loss(scores, *given, backend=backend).sum().backward()
                times.append(1000 * (time.perf_counter() - start))
        ours, theirs = (float(np.median(found[name])) for name in ("cpu", "torch"))
        print(
            f"| {rows} | {steps} | {labels} | {size} | {ours:.2f} | {theirs:.2f} | "
            f"{theirs / ours:.1f} |",
            flush=True,
        )


def squares():
    """Square numbers of 3 to 6 digits in three parts: for counting, choosing and testing."""
    numbers = np.random.default_rng(0).permutation(np.arange(10, 1000)) ** 2
    return [[str(n) for n in part] for part in np.split(numbers, [500, 700])]


def inked(strips, noise):
    """Strips with random ink on them."""
    draw = np.random.default_rng(1)
    columns = [
        (one + noise * draw.normal(size=one.shape)).astype(np.float32) for one in strips.columns
    ]
    return Strips(columns, strips.digits)


def spaced(numbers):
    return [" ".join(number) for number in numbers]


def read(model, language, valid, test):
    """Error rates of the test strips: best path, search, and with the language model."""
    tried = [
        (model.evaluate(*valid, language=language, weight=w, bonus=b)["error_rate"], w, b)
        for w in WEIGHTS
        for b in BONUSES
    ]
    _, weight, bonus = min(tried)
    with_language = {"language": language, "weight": weight, "bonus": bonus}
    return [model.evaluate(*test, **how) for how in ({}, {"beam": 16}, with_language)], (
        weight,
        bonus,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--noise", type=float, default=0.3)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each shape of the loss")
    arguments = parser.parse_args()
    loss_times(arguments.seconds)
    train, valid, test = (digit_strips(split) for split in ("train", "valid", "test"))
    counted, chosen_on, tested_on = squares()
    any_digits = LanguageModel("ngram", order=3).fit(spaced(train.digits))
    of_squares = LanguageModel("ngram", order=5, smoothing="witten-bell").fit(spaced(counted))
    square = [
        digit_strips(split, numbers=numbers)
        for split, numbers in (("valid", chosen_on), ("test", tested_on))
    ]
    cases = {
        "any digits": (any_digits, valid, test),
        "squares": (of_squares, *square),
        f"any digits, noise {arguments.noise}": (
            any_digits,
            *(inked(strips, arguments.noise) for strips in (valid, test)),
        ),
        f"squares, noise {arguments.noise}": (
            of_squares,
            *(inked(strips, arguments.noise) for strips in square),
        ),
    }
    print("\n| strips | seed | best path | search | with language model | weight, bonus | exact |")
    print("|---|---|---|---|---|---|---|")
    recipe = load_recipe("digit-strips")
    for seed in range(arguments.seeds):
        changed = {"seed": seed} | ({"epochs": arguments.epochs} if arguments.epochs else {})
        model = recipe.estimator(**changed)
        model.fit(*train, valid=valid)
        for name, (language, others, strips) in cases.items():
            found, how = read(model, language, others, strips)
            rates = " | ".join(f"{each['error_rate']:.2%}" for each in found)
            exact = ", ".join(f"{each['exact']:.1%}" for each in found)
            print(f"| {name} | {seed} | {rates} | {how[0]}, {how[1]} | {exact} |", flush=True)
        print(f"(epochs {model.provenance_['epochs']}, {model.provenance_['seconds']} s)")


if __name__ == "__main__":
    main()
