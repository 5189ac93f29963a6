"""Tiny models of every task, fitted to the texts that come with the package."""

from __future__ import annotations

from pathlib import Path

from seqloom import (
    Classifier,
    LanguageModel,
    Reader,
    RelationClassifier,
    Summarizer,
    Tagger,
    Translator,
)
from seqloom.data.examples import Answer, Question, TextPair
from seqloom.resources import ENGLISH, NAMES, read_embedded

TRAINING = {"epochs": 1, "device": "cpu"}
QUICK = {**TRAINING, "epochs": 30, "optimizer": {"rate": 0.02}}
MARKED = [
    ("The <e1>{a}</e1> caused a <e2>{b}</e2> .", "Cause-Effect(e1,e2)"),
    ("The <e1>{a}</e1> was caused by a <e2>{b}</e2> .", "Cause-Effect(e2,e1)"),
    ("The <e1>{a}</e1> is part of the <e2>{b}</e2> .", "Component-Whole(e1,e2)"),
]
NOUNS = ["storm", "flood", "engine", "car", "valley", "fire"]
TAGGED = [
    (["Marie", "Curie", "was", "born", "in", "Warsaw", "."], "B-PER I-PER O O O B-LOC O"),
    (["She", "worked", "in", "Paris", "."], "O O O B-LOC O"),
    (["Max", "Planck", "lived", "in", "Berlin", "."], "B-PER I-PER O O B-LOC O"),
]
BORN = {"Ada": "London", "Max": "Rome"}
PASSAGE = "Ada was born in London. Max was born in Rome."
PAIRS = [
    ("I like tea", "我 喜欢 茶"),
    ("I like rice", "我 喜欢 米饭"),
    ("you like tea", "你 喜欢 茶"),
    ("I drink tea", "我 喝 茶"),
]


def embedded_lines(name: str, most: int) -> list[str]:
    """The first lines of an embedded text that are not empty."""
    return [line for line in read_embedded(name).splitlines() if line.strip()][:most]


def fit_models(folder: Path) -> list[str]:
    """Fit one small model a task into a folder; return what `seqloom serve` is given."""
    english = embedded_lines(ENGLISH, 60)
    LanguageModel("ngram", order=3).fit(english, out=folder / "trigram")
    for arch in ("lstm", "rnn"):
        training = {**TRAINING, "epochs": 3, "batch": {"batch_size": 4}, "log_every": 1}
        model = LanguageModel(arch, hidden_size=16, num_layers=1, window=10, training=training)
        model.fit(english, valid=english[:5], out=folder / arch)
    names = [line.split("\t") for line in embedded_lines(NAMES, 100_000)[1::60]]
    texts, labels = [row[0] for row in names], [row[1] for row in names]
    Classifier("softmax", text={"unit": "character"}).fit(texts, labels, out=folder / "names")
    pairs = [(m.format(a=a, b=b), label) for m, label in MARKED for a in NOUNS[:3] for b in NOUNS]
    RelationClassifier("att-blstm", hidden_size=8, embed_size=8, training=TRAINING).fit(
        [text for text, _ in pairs], [label for _, label in pairs], out=folder / "relations"
    )
    Tagger("cnn", embed_size=8, hidden_size=8, training=QUICK).fit(
        [words for words, _ in TAGGED * 5],
        [tags.split() for _, tags in TAGGED * 5],
        out=folder / "entities",
    )
    Translator("seq2seq", hidden_size=16, embed_size=16, training=QUICK).fit(
        PAIRS * 10, out=folder / "tea"
    )
    questions = [
        Question(str(i), PASSAGE, f"Where was {name} born?", (Answer(place, PASSAGE.find(place)),))
        for i, (name, place) in enumerate(BORN.items())
    ]
    training = {**QUICK, "epochs": 12, "averaging": "none", "schedule": {"warmup": 0}}
    options = {"hidden_size": 16, "valid_share": 0, "min_count": 1, "dropout": 0.0}
    Reader("bidaf", training=training, **options).fit(questions, out=folder / "reader")
    shorter = [TextPair(line, " ".join(line.split()[:3])) for line in english[:12]]
    Summarizer("seq2seq", hidden_size=8, embed_size=8, training=QUICK).fit(
        shorter, out=folder / "writer"
    )
    fitted = "trigram lstm rnn names relations entities tea reader writer".split()
    return [*(str(folder / name) for name in fitted), "textrank"]
