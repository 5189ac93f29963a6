"""`seqloom demo`: what there is, on the texts that come with the package."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from seqloom.architectures import Architecture
from seqloom.cli.output import JsonOption, note, print_rows
from seqloom.resources import CHINESE, ENGLISH, NAMES, SHAKESPEARE, TANG, read_embedded

Row = dict[str, Any]

TRAINING = {
    "optimizer": {"rate": 0.01},
    "schedule": {"name": "cosine"},
    "batch": {"batch_size": 16},
    "clip_norm": 1.0,
    "log_every": 10_000,
}
LANGUAGES = ("Arabic", "Chinese", "English", "Italian", "Japanese", "Polish", "Russian")


def run(as_json: JsonOption = False) -> None:
    """Read, fit and compare: every kind of model there is, on the embedded texts."""
    parts = {
        "Reading: the Universal Declaration of Human Rights": read_both,
        "Language models: lines of Shakespeare": compare_language_models,
        "A language model of characters: Tang quatrains": write_poems,
        "Classifiers: the language of a surname": compare_classifiers,
        "A regressor: words in a sentence from its characters": predict_words,
        "Models that come with the package": use_shipped,
    }
    for number, (title, part) in enumerate(parts.items(), start=1):
        note(f"[{number}/{len(parts)}] {title}")
        began = time.monotonic()
        rows = part()
        print_rows(rows, as_json=as_json, title=title)
        note(f"    {time.monotonic() - began:.1f} s")
    note("")
    command = Path(sys.argv[0])
    note(f"`{command} studio` opens these models in your browser; nothing leaves the machine.")


def read_both() -> list[Row]:
    """Detect, split, tokenize and count the English and the Chinese text."""
    found = {
        "English": describe(read_embedded(ENGLISH)),
        "Chinese": describe(read_embedded(CHINESE)),
    }
    return [
        {"what": what, **{name: facts[what] for name, facts in found.items()}}
        for what in found["English"]
    ]


def describe(text: str) -> Row:
    """Return what reading a text finds in it."""
    from seqloom.text import Vocabulary, WordTokenizer, detect_language, split_sentences

    language = detect_language(text)
    sentences = [s for line in text.splitlines() for s in split_sentences(line, language)]
    tokenizer = WordTokenizer("zh" if language == "zh" else "en")
    tokenized = [tokenizer.words(sentence.text) for sentence in sentences]
    vocabulary = Vocabulary.build(tokenized)
    counts = Counter(word for words in tokenized for word in words if len(word) > 1)
    return {
        "detected language": language,
        "characters": len(text),
        "sentences": len(sentences),
        "words": sum(map(len, tokenized)),
        "different words": len(vocabulary) - len(vocabulary.specials.names()),
        "longest sentence": max(map(len, tokenized)),
        "most frequent": [f"{word} {n}" for word, n in counts.most_common(6)],
    }


def compare_language_models() -> list[Row]:
    """Fit each language model to the same lines and let it write one."""
    from seqloom import LanguageModel
    from seqloom.architectures import architectures

    lines = read_embedded(SHAKESPEARE).splitlines()
    train, test = lines[:-600], lines[-600:]
    rows = []
    for entry in architectures("lm"):
        if entry.reads != "text":
            continue
        began = time.monotonic()
        model = LanguageModel(
            entry.name,
            **language_options(entry),
            text={"normalizer": {"lowercase": True}},
            vocabulary={"min_count": 3},
        ).fit(train)
        seconds = time.monotonic() - began
        rows.append(
            {
                "model": entry.name,
                "test perplexity": model.evaluate(test)["perplexity"],
                "parameters": sum(math.prod(shape) for shape in model.shapes().values()),
                "seconds": seconds,
                "goes on from 'my lord ,'": model.generate(
                    "my lord ,", temperature=0.7, max_words=12, seed=1
                ),
            }
        )
    return sorted(rows, key=lambda row: float(str(row["test perplexity"])))


def language_options(entry: Architecture) -> Row:
    """What a language model is to be: n-grams of four words, or a network of 100 units."""
    if entry.is_counted:
        return {"order": 4}
    options: Row = {"hidden_size": 100, "dropout": 0.1, "window": 20}
    if entry.name != "nnlm":
        options["num_layers"] = 1
    if entry.name == "recurrent":
        options["cell"] = "coupled"  # the others have names of their own
    if entry.name == "elmo":
        options |= {"projection_size": 64, "filters": ((1, 16), (2, 16), (3, 32))}
    return options | {"training": {**TRAINING, "epochs": 4}}


def write_poems() -> list[Row]:
    """Fit an LSTM to the characters of quatrains, score two lines and write two."""
    from seqloom import LanguageModel

    poems = read_embedded(TANG).splitlines()
    model = LanguageModel(
        "lstm",
        hidden_size=128,
        num_layers=1,
        text={"unit": "character"},
        vocabulary={"min_count": 3},
        window=24,
        training={**TRAINING, "epochs": 5},
    ).fit(poems[:-200])
    rows: list[Row] = [
        {"what": "perplexity a character", "value": model.evaluate(poems[-200:])["perplexity"]}
    ]
    for text in ("春眠不覺曉，", "曉覺不眠春，"):
        rows.append({"what": f"log-probability of {text}", "value": model.score(text).total})
    for seed in (1, 2):
        poem = model.generate("明月", temperature=0.6, max_words=22, seed=seed)
        rows.append({"what": "goes on from 明月", "value": poem})
    return rows


def compare_classifiers() -> list[Row]:
    """Fit each classifier to runs of characters of surnames."""
    from seqloom import Classifier
    from seqloom.architectures import architectures

    pairs = [line.split("\t") for line in read_embedded(NAMES).splitlines()[1:]]
    pairs = [pair for pair in pairs if pair[1] in LANGUAGES]
    train, test = [pair for i, pair in enumerate(pairs) if i % 5], pairs[::5]
    rows = []
    for entry in architectures("classify"):
        began = time.monotonic()
        in_order = entry.name not in ("softmax", "logistic", "perceptron", "mlp")
        if in_order and entry.name != "cnn":  # one of those that read characters in order
            continue
        own: dict[str, Any] = {"features": "ngrams", "max_n": 3}
        if in_order:
            own = {"embed_size": 32, "training": {"epochs": 8, "optimizer": {"rate": 2e-3}}}
        model = Classifier(
            entry.name,
            text={"unit": "character", "normalizer": {"lowercase": True}},
            vocabulary={"min_count": 2},
            **own,
        )
        fit_quietly(model, [name for name, _ in train], [label for _, label in train])
        predicted = model.predict([name for name, _ in test])
        right = sum(p == label for p, (_, label) in zip(predicted, test, strict=True))
        rows.append(
            {
                "model": entry.name,
                "test accuracy": right / len(test),
                "seconds": time.monotonic() - began,
                "Nakamura": model.classify("Nakamura").label,
                "Kowalczyk": model.classify("Kowalczyk").label,
            }
        )
    return sorted(rows, key=lambda row: -float(str(row["test accuracy"])))


def fit_quietly(model: Any, texts: list[str], labels: list[str]) -> None:
    """Fit, and let pass that a perceptron did not separate the names."""
    import warnings

    from seqloom.errors import NotSeparableWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotSeparableWarning)
        model.fit(texts, labels)


def predict_words() -> list[Row]:
    """Fit a line: how many words a sentence of so many characters has."""
    import numpy as np

    from seqloom import Regressor
    from seqloom.text import WordTokenizer

    lines = read_embedded(SHAKESPEARE).splitlines()
    words = WordTokenizer("en")
    x = np.array([[len(line)] for line in lines], float)
    y = np.array([len(words.words(line)) for line in lines], float)
    model = Regressor("linear").fit(x[:-600], y[:-600])
    line = lines[-1]
    return [
        {"what": "R2 on test lines", "value": float(model.score(x[-600:], y[-600:]))},
        {"what": f"words in {line!r}", "value": len(words.words(line))},
        {"what": "predicted from its length", "value": float(model.predict(x[-1:])[0])},
    ]


def use_shipped() -> list[Row]:
    """Ask, tag, translate and write with models that nobody here has trained."""
    from seqloom import load

    asked = "At what stages shall education be free?"
    answer = load("english-reader").answer(read_embedded(ENGLISH), asked)
    words = "The fox jumps over it .".split()
    (tagged,) = load("english-pos").tag([words])
    said = {
        "english-reader": (asked, answer.text),
        "english-pos": (" ".join(words), " ".join(tagged.tags)),
        "tatoeba-zh-en": ("我想上大学。", load("tatoeba-zh-en").translate("我想上大学。").text),
        "tang-lstm": ("明月", load("tang-lstm").generate("明月", max_words=22)),
    }
    return [
        {"model": name, "given": given, "says": says.replace("\n", " ")}
        for name, (given, says) in said.items()
    ]
