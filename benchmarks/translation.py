r"""Translations: quality, quality by length, a language model fused in, and speed.

    seqloom reproduce multi30k-transformer --out runs        # trains, on a GPU if there is one
    python benchmarks/translation.py train multi30k-transformer --out transformer [--seed 1 \
        --set training.max_seconds=470]                      # trains and writes, for a report
    python benchmarks/translation.py tune runs/multi30k-transformer-0 multi30k-en-de:valid:en-de
    python benchmarks/translation.py write runs/multi30k-transformer-0 multi30k-en-de:test:en-de \
        --out transformer.jsonl [--beam 5 --length-penalty 0.6]
    python benchmarks/translation.py score transformer.jsonl ...     # pip install sacremoses
    python benchmarks/translation.py lengths none.jsonl additive.jsonl --figure lengths.png
    python benchmarks/translation.py examples transformer.jsonl
    python benchmarks/translation.py fuse runs/tatoeba-zh-en-0 \
        tatoeba-cmn-eng:train:zh-en tatoeba-cmn-eng:valid:zh-en tatoeba-cmn-eng:test:zh-en
    python benchmarks/translation.py speed runs/multi30k-transformer-0 multi30k-en-de:test:en-de
    python benchmarks/translation.py steps                           # on a GPU

`train` fits a recipe, or goes on with what was stopped, and leaves in --out what was reached, the
model as halves, and the validation and test texts at several length penalties, of which `score` of
the validation texts chooses one.
`write` needs neither sacrebleu nor sacremoses, so that it runs where the model was trained, and
`score` needs no model. Settings of the search are chosen by `tune` on validation data. `score`
prints BLEU of the texts as they are, with sacrebleu's signature, and of Moses-tokenized lowercased
text, as the tables of Multi30k have it; intervals are of 1,000 bootstrap samples. To `lengths` case
does not count. `examples` shows twenty translations: in the order of the file, the first of each
twentieth part. `steps` measures updates of a model with attention on our recurrent layers and on
torch's.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import seqloom
from seqloom.metrics.translation import bleu, chrf

EDGES = (0, 8, 12, 16, 20, 100)  # words of the source
LENGTH_PENALTIES = (0.0, 0.4, 0.8, 1.2)
TRAINED_PENALTIES = (1.0, 1.4, 1.8)
LM_WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3)
TURNS, UPDATES = 7, 20  # of `steps`


def on_gpu(model: Any) -> Any:
    import torch

    if torch.cuda.is_available():
        model.model_.cuda()
    return model


def pairs_of(name: str) -> list[Any]:
    from seqloom.tasks.seq2seq_text import read_pairs

    return read_pairs(name)


def train(args: argparse.Namespace) -> None:
    from seqloom.tasks.packing import pack_model
    from seqloom.tasks.recipe import load_recipe

    plan, out = load_recipe(args.recipe, args.set), Path(args.out)
    model = plan.estimator(seed=args.seed)
    started = (out / "full" / "training" / "last.safetensors").exists()
    model.fit(plan.data.train, valid=plan.data.valid, out=out / "full", resume=started)
    reached = {"set": args.set, "seed": args.seed, **model.metrics_, **model.provenance_}
    (out / "reached.json").write_text(json.dumps(reached, indent=1, default=str))
    on_gpu(model)
    for split, data in (("valid", plan.data.valid), ("test", plan.data.test)):
        for penalty in TRAINED_PENALTIES:
            translated(model, pairs_of(data), out / f"{split}-{penalty}.jsonl", 5, penalty)
    pack_model(out / "full", out / "half", "half")


def write(args: argparse.Namespace) -> None:
    model, pairs = on_gpu(seqloom.load(args.model)), pairs_of(args.data)
    began = time.perf_counter()
    translated(model, pairs, Path(args.out), args.beam, args.length_penalty)
    print(f"{len(pairs) / (time.perf_counter() - began):.1f} sentences a second")


def translated(model: Any, pairs: list[Any], out: Path, beam: int, length_penalty: float) -> None:
    """Write what a model makes of sources, with their targets, as JSON lines."""
    sources = [pair.source for pair in pairs]
    found = model.translate(sources, beam=beam, length_penalty=length_penalty)
    with out.open("w", encoding="utf-8") as stream:
        for pair, written in zip(pairs, found, strict=True):
            row = {"source": pair.source, "target": pair.target, "text": written.text}
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def rows_of(path: str) -> list[dict[str, str]]:
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def tune(args: argparse.Namespace) -> None:
    model, pairs = on_gpu(seqloom.load(args.model)), pairs_of(args.data)
    references = [pair.target for pair in pairs]
    for beam in (1, 5, 10):
        for penalty in LENGTH_PENALTIES if beam > 1 else (0.0,):
            found = model.translate([p.source for p in pairs], beam=beam, length_penalty=penalty)
            score = bleu([each.text for each in found], references, tokenize=tokenizer(references))
            print(f"beam {beam:2d}  length penalty {penalty:.1f}  BLEU {score.score:.2f}")


def tokenizer(references: list[str]) -> str:
    from seqloom.tasks.translator import bleu_tokenizer

    return bleu_tokenizer(references)


def moses(texts: list[str], language: str) -> list[str]:
    """Tokenized by Moses' rules, lowercased."""
    from sacremoses import MosesTokenizer

    split = MosesTokenizer(language).tokenize
    return [split(text.lower(), return_str=True, escape=False) for text in texts]


def score(args: argparse.Namespace) -> None:
    for path in args.files:
        rows = rows_of(path)
        texts, references = [row["text"] for row in rows], [row["target"] for row in rows]
        whole = bleu(texts, references, tokenize=tokenizer(references))
        chars = chrf(texts, references)
        print(f"{path}: BLEU {whole.score:.2f} {whole.signature}")
        print(f"{path}: chrF {chars.score:.2f} {chars.signature}")
        if tokenizer(references) == "13a":
            both = moses(texts, args.language), moses(references, args.language)
            lower = bleu(*both, tokenize="none")
            low, high = interval(*both)
            what = "Moses-tokenized lowercased BLEU"
            print(f"{path}: {what} {lower.score:.2f} ({low:.2f} to {high:.2f})")


def interval(texts: list[str], references: list[str], samples: int = 1000) -> tuple[float, float]:
    """The middle 95 of 100 scores of samples drawn with replacement."""
    from sacrebleu.metrics import BLEU

    metric = BLEU(tokenize="none")
    table = np.array(metric._extract_corpus_statistics(texts, [references]))
    chance = np.random.default_rng(0)
    found = []
    for _ in range(samples):
        drawn = table[chance.integers(0, len(table), len(table))].sum(axis=0)
        found.append(metric._compute_score_from_stats(drawn.tolist()).score)
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def lengths(args: argparse.Namespace) -> None:
    from seqloom.figures import curve, save

    lines: dict[str, tuple[list[float], list[float]]] = {}
    for path in args.files:
        rows = rows_of(path)
        sizes = np.array([len(row["source"].split()) for row in rows])
        places, values = [], []
        for low, high in pairwise(EDGES):
            own = [row for row, n in zip(rows, sizes, strict=True) if low < n <= high]
            if not own:
                continue
            texts, references = [row["text"] for row in own], [row["target"] for row in own]
            found = bleu(texts, references, lowercase=True).score
            places.append(float(sizes[(sizes > low) & (sizes <= high)].mean()))
            values.append(found)
            print(f"{path}: {low + 1} to {high} words, {len(own)} sentences, BLEU {found:.2f}")
        lines[Path(path).stem] = places, values
    if args.figure:
        save(curve(lines, xlabel="words of the source", ylabel="BLEU, lowercased"), args.figure)


def examples(args: argparse.Namespace) -> None:
    rows = rows_of(args.file)
    for number in range(20):
        row = rows[number * len(rows) // 20]
        print(f"| {row['source']} | {row['text']} | {row['target']} |")


def fuse(args: argparse.Namespace) -> None:
    """A trigram model of the targets' pieces; its weight is chosen on the validation data."""
    model = on_gpu(seqloom.load(args.model))
    text = model.text_.target
    train, valid, test = (pairs_of(name) for name in (args.train, args.valid, args.test))
    counted = seqloom.LanguageModel("ngram", order=3, text={"unit": "space"})
    # Pieces hold no blanks: bytes are written as visible characters.
    counted.fit([" ".join(text.words(pair.target)) for pair in train])
    scores = {}
    for weight in LM_WEIGHTS:
        scores[weight] = fused_bleu(model, counted, valid, weight)
        print(f"valid, weight {weight:.2f}: BLEU {scores[weight]:.2f}")
    best = max(scores, key=lambda weight: scores[weight])
    for weight in sorted({0.0, best}):
        print(f"test, weight {weight:.2f}: BLEU {fused_bleu(model, counted, test, weight):.2f}")


def fused_bleu(model: Any, counted: Any, pairs: list[Any], weight: float) -> float:
    options = {"language_model": counted, "lm_weight": weight} if weight else {}
    found = model.translate([pair.source for pair in pairs], **options)
    references = [pair.target for pair in pairs]
    texts = [each.text for each in found]
    return bleu(texts, references, tokenize=tokenizer(references)).score


# -- speed -----------------------------------------------------------------------------------------


def speed(args: argparse.Namespace) -> None:
    """Sentences a second on the cores there are: all, one at a time, and CTranslate2's."""
    import torch

    torch.set_num_threads(args.threads)
    model, pairs = seqloom.load(args.model), pairs_of(args.data)[: args.sentences]
    sources = [pair.source for pair in pairs]
    options = {"beam": 5, "length_penalty": 0.6, "max_length": 100}
    if args.exactly:
        options |= {"min_length": args.exactly, "max_length": args.exactly + 1}

    def ours() -> list[str]:
        return [each.text for each in model.translate(sources, **options)]

    def alone() -> list[str]:
        return [each.text for each in model.translate(sources, **options, batch_size=1)]

    def theirs() -> Callable[[], list[str]]:
        from ctranslate_peer import peer  # last: torch was slower in a process that had loaded it

        return peer(model, sources, threads=args.threads, exactly=args.exactly)

    systems = {"seqloom": lambda: ours, "seqloom, one at a time": lambda: alone}
    systems["CTranslate2"] = theirs
    texts = {}
    for name, begin in systems.items():
        try:
            run = begin()
        except ModuleNotFoundError as missing:
            print(f"{name} is left out: no module {missing.name}")
            continue
        run()
        times, busy = [], []
        for _ in range(args.repeats):
            began, worked = time.perf_counter(), time.process_time()
            texts[name] = run()
            times.append(time.perf_counter() - began)
            busy.append(time.process_time() - worked)
        n = len(sources)
        print(f"{name:24s} {n / min(times):8.1f} sentences a second,", end=" ")
        print(f"{n / min(busy):8.1f} a CPU second")
    if args.exactly:
        return  # what untrained weights write says nothing
    for name, found in texts.items():
        same = np.mean([a == b for a, b in zip(found, texts["seqloom"], strict=True)])
        print(f"{name:24s} {same:.1%} of the texts are the same")


def steps(args: argparse.Namespace) -> None:
    """Milliseconds an update of training, on our layers and on torch's."""
    import torch

    from seqloom.models.seq2seq import Seq2Seq, Seq2SeqConfig

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    sizes = {"vocab_size": 8000, "source_vocab_size": 8000, "input_size": 0, "shared": True}
    rows, items = args.rows, args.items
    source = torch.randint(4, 8000, (rows, items), device=device)
    target = torch.randint(4, 8000, (rows, items), device=device)
    full = torch.full((rows,), items, device=device)
    real = torch.ones_like(target, dtype=torch.bool)
    for attention in ("encoder", "none", "dot", "general", "additive"):
        updates = {}
        for backend in ("auto", "torch"):
            config = Seq2SeqConfig(
                **sizes, embed_size=256, hidden_size=args.hidden, cell=args.cell, backend=backend,
                attention="none" if attention == "encoder" else attention,
            )  # fmt: skip
            torch.manual_seed(0)
            model = Seq2Seq(config).to(device)

            def update(model: Seq2Seq = model, whole: bool = attention != "encoder") -> None:
                model.zero_grad(set_to_none=True)
                kind = torch.bfloat16 if device.type == "cuda" else torch.float32
                with torch.autocast(device.type, kind, enabled=device.type == "cuda"):
                    if not whole:
                        states, context = model.encoder(source, full)
                        loss = states.float().sum() + context.float().sum()
                    else:
                        memory = model.encode(source, full)
                        output = model.decode(target, memory, model.begin(memory))
                        loss = model.output.loss(output, memory, target, real)
                loss.backward()

            updates[backend] = update
        times = timed(updates, device)
        ours, theirs = (float(np.median(times[backend])) for backend in ("auto", "torch"))
        ratios = np.array(times["torch"]) / np.array(times["auto"])
        print(
            f"{attention:10s} ours {ours:.2f} ms, torch's layers {theirs:.2f} ms, "
            f"{theirs / ours:.2f}x ({ratios.min():.2f} to {ratios.max():.2f} in {TURNS} turns)"
        )


def timed(updates: dict[str, Callable[[], None]], device: Any) -> dict[str, list[float]]:
    """Milliseconds an update, by turns; nobody waits between those of a turn, as in training."""
    import torch

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    times: dict[str, list[float]] = {name: [] for name in updates}
    for turn in range(TURNS + 1):
        for name, update in updates.items():
            wait()
            began = time.perf_counter()
            for _ in range(UPDATES):
                update()
            wait()
            if turn:  # the first one compiles
                times[name].append(1000 * (time.perf_counter() - began) / UPDATES)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(required=True)

    def verb(run: Callable[[argparse.Namespace], None], *names: str) -> argparse.ArgumentParser:
        own = verbs.add_parser(run.__name__)
        own.set_defaults(run=run)
        for name in names:
            own.add_argument(name, **({"nargs": "+"} if name == "files" else {}))
        return own

    own = verb(train, "recipe")
    own.add_argument("--out", required=True)
    own.add_argument("--seed", type=int, default=0)
    own.add_argument("--set", nargs="*", default=[])
    own = verb(write, "model", "data")
    own.add_argument("--out", required=True)
    own.add_argument("--beam", type=int, default=5)
    own.add_argument("--length-penalty", type=float, default=0.6)
    verb(tune, "model", "data")
    verb(score, "files").add_argument("--language", default="de")
    verb(lengths, "files").add_argument("--figure")
    verb(examples, "file")
    verb(fuse, "model", "train", "valid", "test")
    own = verb(speed, "model", "data")
    own.add_argument("--sentences", type=int, default=1000)
    own.add_argument("--threads", type=int, default=2)
    own.add_argument("--repeats", type=int, default=3)
    own.add_argument("--exactly", type=int, help="write so many pieces: weights do not matter then")
    own = verb(steps)
    own.add_argument("--rows", type=int, default=64)
    own.add_argument("--items", type=int, default=32)
    own.add_argument("--hidden", type=int, default=512)
    own.add_argument("--cell", default="lstm")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
