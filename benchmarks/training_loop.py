"""What the training loop costs: `seqloom.training.train` against a loop written by hand.

    python benchmarks/training_loop.py [--save FILE]

Both train the same LSTM language model on the same windows with the same optimizer and clipping,
one thread, and end with the same weights. One repetition times a run of each, in turn, the order
changing from one to the next. Times are CPU seconds of this process, which has one thread, and the
ratio is taken within a repetition: a machine that is busy or slow for a while is so for both.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.data.examples import Text
from seqloom.data.prepare import prepare
from seqloom.data.prepared import PreparedData
from seqloom.data.windows import Windows
from seqloom.models.recurrent_lm import RecurrentLM, RecurrentLMConfig
from seqloom.tasks.language_objective import LanguageModelObjective
from seqloom.training import OptimizerConfig, TrainConfig, train
from seqloom.training.report import Silent

WORDS, LANES, WINDOW = 2000, 16, 20
LIMIT = 1.05


def make_text(folder: Path, tokens: int) -> PreparedData:
    rng = np.random.default_rng(0)
    words = rng.zipf(1.3, tokens) % WORDS
    lines = (" ".join(f"w{word}" for word in row) for row in words.reshape(-1, 20))
    return prepare((Text(line) for line in lines), folder / "text")


def make_model(data: PreparedData, hidden_size: int) -> RecurrentLM:
    torch.manual_seed(0)
    size = len(data.vocabularies["words"])
    return RecurrentLM(RecurrentLMConfig(vocab_size=size, hidden_size=hidden_size, num_layers=1))


def by_hand(data: PreparedData, hidden_size: int) -> tuple[float, RecurrentLM]:
    """Train for an epoch as one would without a library; return the seconds and the model."""
    model = make_model(data, hidden_size)
    vocabulary = data.vocabularies["words"]
    ids = data.data.sequences["ids"].flat
    windows = Windows(ids, batch_size=LANES, window=WINDOW, before=vocabulary["</s>"])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.train()

    def update(tokens: Tensor, state: Any) -> Any:
        # A function, so that an update's tensors are gone before the next begins, as in the loop.
        optimizer.zero_grad(set_to_none=True)
        output = model(tokens[:, :-1], None, state)
        logits = functional.linear(output.features, model.output.weight, model.output.bias)
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        return type(output.state)(*(part.detach() for part in output.state))

    state = None
    begin = time.process_time()
    for batch in windows.batches():
        state = update(torch.from_numpy(batch["ids"].values.astype(np.int64)), state)
    return time.process_time() - begin, model


def by_the_loop(data: PreparedData, hidden_size: int) -> tuple[float, RecurrentLM]:
    model = make_model(data, hidden_size)
    objective = LanguageModelObjective(model, data, None, lanes=LANES, window=WINDOW)
    config = TrainConfig(
        epochs=1,
        optimizer=OptimizerConfig(name="sgd", rate=1.0),
        clip_norm=5.0,
        device="cpu",
    )
    begin = time.process_time()
    train(model, objective, config, display=Silent())
    return time.process_time() - begin, model


def compare(folder: Path, hidden_size: int, tokens: int, repetitions: int) -> list[str]:
    data = make_text(folder / str(hidden_size), tokens)
    updates = -(-len(data.data.sequences["ids"].flat) // (LANES * WINDOW))
    _, hand_model = by_hand(data, hidden_size)  # these two also warm up
    _, loop_model = by_the_loop(data, hidden_size)
    pairs = zip(hand_model.parameters(), loop_model.parameters(), strict=True)
    furthest = max(float((a - b).abs().max().detach()) for a, b in pairs)
    assert furthest < 1e-3, f"the two did not do the same: weights differ by {furthest}"
    hands, loops = [], []
    for repetition in range(repetitions):
        for run, times in sorted(
            [(by_hand, hands), (by_the_loop, loops)],
            key=lambda pair: pair[0] is by_hand,
            reverse=repetition % 2 == 0,
        ):
            times.append(run(data, hidden_size)[0])
    ratios = [loop / hand for loop, hand in zip(loops, hands, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    milliseconds = [1000 * statistics.median(times) / updates for times in (hands, loops)]
    return [
        f"{hidden_size}",
        f"{updates:,}",
        f"{milliseconds[0]:.2f}",
        f"{milliseconds[1]:.2f}",
        f"{middle:.3f}",
        f"{low:.3f} to {high:.3f}",
        f"{min(ratios):.3f} to {max(ratios):.3f}",
        f"{min(loops) / min(hands):.3f}",
        "yes" if middle <= LIMIT else "NO",
    ]


def report(repetitions: int) -> Iterator[str]:
    yield "# The cost of the training loop"
    yield ""
    yield "    python benchmarks/training_loop.py --save FILE"
    yield ""
    yield (
        f"{date.today()}, {platform.machine()}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, one thread. An LSTM language model over {WORDS:,} words, {LANES} "
        f"lanes, windows of {WINDOW}, SGD, clipped norms; {repetitions} repetitions, each loop in "
        "turn. The ratio is the loop's time over that of a loop written by hand."
    )
    yield ""
    yield (
        "| hidden size | updates | by hand, CPU ms an update | loop, CPU ms an update | "
        f"median ratio | quartiles | range | fastest over fastest | at most {LIMIT} |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for hidden_size, tokens in ((64, 40_000), (200, 16_000)):
            row = compare(Path(folder), hidden_size, tokens, repetitions)
            yield f"| {' | '.join(row)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--save", type=Path, help="also write the report to this file")
    parser.add_argument("--repetitions", type=int, default=31)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for line in report(options.repetitions):
        print(line, flush=True)
        lines.append(line)
    if options.save:
        options.save.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
