"""Training ELMo and what is compared with it: on a card for so many seconds, and its speed.

    python benchmarks/elmo.py prepare english-elmo --out gpu-data/elmo
    python benchmarks/elmo.py train english-elmo --data gpu-data/elmo --out DIR --seconds 480
    python benchmarks/elmo.py train wikitext2-elmo --word-lstm --data gpu-data/elmo --out DIR
    python benchmarks/elmo.py throughput --data gpu-data/elmo

`prepare` makes numbers of a recipe's texts, so that a machine without them can train. `train` makes
a few updates to see how long one takes, then as many as fit into the seconds, by the recipe's
schedule; a run that was stopped goes on with --resume. What it leaves in --out are small files: the
layers without the output layer, as halves and as 8 bits, and what was reached. `throughput` trains
the same network by our kernels and by torch's own LSTM.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src")]

import torch  # noqa: E402

from seqloom import Embedder, LanguageModel  # noqa: E402
from seqloom.config import from_dict  # noqa: E402
from seqloom.data.prepare import prepare  # noqa: E402
from seqloom.data.prepared import PrepareConfig  # noqa: E402
from seqloom.tasks.corpus import text_examples  # noqa: E402
from seqloom.tasks.packing import pack_model  # noqa: E402
from seqloom.tasks.recipe import Recipe, load_recipe  # noqa: E402

PROBE = 60  # updates that are timed; the first of them compile
TRANSFORMER = {
    "hidden_size": 192,
    "num_layers": 4,
    "num_heads": 4,
    "context_size": 128,
    "dropout": 0.1,
    "tied": True,
    "objective": "masked",
    "softmax": "sampled",
    "samples": 8192,
}
LAYERS = {"embed_size": 256, "hidden_size": 512, "projection_size": 256, "num_layers": 2}


class Clock:
    """Times updates, and says when the time is over."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, float]] = []

    def __call__(self, report: Any) -> None:
        """Take the time of a report."""
        self.seen.append((report.step, time.monotonic()))

    def rate(self) -> float:
        """Updates a second, of the second half."""
        half = self.seen[len(self.seen) // 2 :]
        return (half[-1][0] - half[0][0]) / max(half[-1][1] - half[0][1], 1e-9)


def prepare_recipe(options: argparse.Namespace) -> None:
    """Number the texts of a recipe."""
    plan = load_recipe(options.recipe, options.set)
    words = from_dict(
        PrepareConfig,
        {**plan.settings.get("vocabulary", {}), "text": plan.settings.get("text", {})},
    )
    place = options.out / options.recipe
    train = prepare(text_examples(plan.data.open("lm", plan.data.train)[0]), place / "train", words)
    assert plan.data.valid is not None
    valid = text_examples(plan.data.open("lm", plan.data.valid)[0])
    prepare(valid, place / "valid", like=train)
    tokens = len(train.data.sequences["ids"].flat)
    print(f"{place}: {tokens:,} words, {len(train.vocabularies['words']):,} different ones")


def estimator(plan: Recipe, options: argparse.Namespace, **training: Any) -> LanguageModel:
    """The model of the recipe, or the word LSTM or masked transformer beside it."""
    model: LanguageModel = plan.estimator(**training)
    own = {"softmax": "sampled", "samples": plan.model["samples"], "dropout": plan.model["dropout"]}
    settings = {name: getattr(model, name) for name in ("text", "vocabulary", "window", "training")}
    if options.word_lstm:
        more = {**own, **LAYERS, "clip": 3.0}
        return LanguageModel("lstm", reverse=options.reverse, **settings, **more)
    if options.transformer:
        settings["window"] = 128
        return LanguageModel("transformer", **settings, **TRANSFORMER)
    if options.torch:
        model.set_params(backend="torch", clip=None)
    return model


def train(options: argparse.Namespace) -> None:
    """Train for so many seconds and leave small files."""
    plan = load_recipe(options.recipe, options.set)
    data = options.data / options.recipe
    sources = {"train": data / "train", "valid": data / "valid"}
    began = time.monotonic()
    limits: dict[str, Any] = {}
    if options.seconds and not options.resume:
        clock = Clock()
        probe = estimator(plan, options, max_steps=PROBE, log_every=5)
        probe.fit(sources["train"], callbacks=[clock])
        left = options.seconds - (time.monotonic() - began)
        limits["max_steps"] = max(1, int(left * options.share * clock.rate()))
        print(f"{clock.rate():.2f} updates/s; {limits['max_steps']} updates", flush=True)
        (options.work.parent).mkdir(parents=True, exist_ok=True)
        options.work.with_suffix(".limits").write_text(json.dumps(limits))
    elif options.resume and options.work.with_suffix(".limits").exists():
        limits = json.loads(options.work.with_suffix(".limits").read_text())
    model = estimator(plan, options, save_every=500, **limits)
    model.fit(sources["train"], sources["valid"], out=options.work, resume=options.resume)
    options.out.mkdir(parents=True, exist_ok=True)
    found = {**model.metrics_, **model.provenance_, "total_seconds": time.monotonic() - began}
    if not options.transformer:  # of a masked one it takes a pass a word
        found |= {"evaluated": model.evaluate(sources["valid"])}
    (options.out / "reached.json").write_text(json.dumps(found, indent=1, default=str))
    print(json.dumps(found.get("evaluated", model.metrics_)), flush=True)
    shutil.copy(options.work / "training" / "metrics.jsonl", options.out / "metrics.jsonl")
    if options.word_lstm:
        return
    embedder = Embedder.from_language_model(model)
    folder = options.work.with_name(options.work.name + "-layers")
    shutil.rmtree(folder, ignore_errors=True)
    embedder.save(folder)
    for kind in ("half", "int8"):
        place = pack_model(folder, options.out / kind, kind)
        size = sum(file.stat().st_size for file in place.iterdir())
        print(f"{place}: {size:,} bytes", flush=True)


def throughput(options: argparse.Namespace) -> None:
    """Train one network by our kernels and by torch's own LSTM, in turn."""
    plan = load_recipe("english-elmo", options.set)
    data = options.data / "english-elmo" / "train"
    rates: dict[str, list[float]] = {"auto": [], "torch": []}
    for _ in range(options.rounds):
        for backend, found in rates.items():
            clock = Clock()
            model = plan.estimator(max_steps=options.steps, log_every=10)
            model.set_params(backend=backend, clip=None)  # torch's layer does not clip
            model.fit(data, callbacks=[clock])
            found.append(clock.rate() * plan.training["batch"]["batch_size"] * model.window)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
    print("| layers | words/s of each direction, by round |\n|---|---|")
    for backend, found in rates.items():
        print(f"| {backend} | {', '.join(f'{each:,.0f}' for each in found)} |")
    print(f"ratio of the best: {max(rates['auto']) / max(rates['torch']):.2f}")


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    for name, run in (("prepare", prepare_recipe), ("train", train), ("throughput", throughput)):
        verb = verbs.add_parser(name)
        verb.set_defaults(run=run)
        verb.add_argument("--set", action="append", default=[])
        if name != "throughput":
            verb.add_argument("recipe")
            verb.add_argument("--out", type=Path, required=True)
        if name != "prepare":
            verb.add_argument("--data", type=Path, required=True)
    chosen = verbs.choices["train"]
    chosen.add_argument("--work", type=Path, default=Path("runs/elmo"), help="checkpoints")
    chosen.add_argument("--seconds", type=float, default=None)
    chosen.add_argument("--share", type=float, default=0.92, help="of the seconds, for updates")
    chosen.add_argument("--resume", action="store_true")
    chosen.add_argument("--word-lstm", action="store_true", help="a word LSTM in its place")
    chosen.add_argument("--reverse", action="store_true", help="which reads from right to left")
    chosen.add_argument("--torch", action="store_true", help="by torch's LSTM, without clipping")
    chosen.add_argument("--transformer", action="store_true", help="a masked one in its place")
    chosen = verbs.choices["throughput"]
    chosen.add_argument("--steps", type=int, default=150)
    chosen.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
