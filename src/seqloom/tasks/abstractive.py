"""Summaries that are written, not chosen: what `Summarizer` does with an encoder-decoder."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.config import from_dict
from seqloom.errors import ConfigError, InputError
from seqloom.metrics.rouge import rouge
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.fitting import Callbacks
from seqloom.tasks.seq2seq_fitting import (
    TEXT,
    Data,
    FitOptions,
    fit_pairs,
    load_pairs,
    save_pairs,
    text_settings,
)
from seqloom.tasks.seq2seq_objective import PairGoal, measure_pairs
from seqloom.tasks.seq2seq_results import Written
from seqloom.tasks.seq2seq_search import Search, make_search
from seqloom.tasks.seq2seq_text import Pair, PairText
from seqloom.tasks.seq2seq_writing import write_texts
from seqloom.tasks.summary_examples import Documents
from seqloom.text import TextConfig
from seqloom.text.language import detect_language

AT_ONCE = 512  # texts of a stream read before their summaries are written
LENGTHS = ("sentences", "words", "characters", "ratio")
CHOOSING: dict[str, Any] = {  # options of choosing sentences, and what they are if not given
    **dict.fromkeys(LENGTHS),
    "threshold": None,
    "diversity": 0.0,
    "query": None,
    "query_weight": 0.5,
}
Examples = Iterable[tuple[Documents, list[str]]]

_log = logging.getLogger("seqloom")


class Writer:
    """A summarizer's network: fitted to texts with summaries, and writing them.

    Args:
        owner: The summarizer, which has the settings and keeps the network.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        for name in ("reading", "segmenter", "tagger"):
            if getattr(owner, name) is not None:
                raise ConfigError(
                    f"{name} belongs to summaries by sentences of the text, got it with "
                    f"arch={owner.arch!r}; leave it out"
                )

    def fit(
        self,
        examples: Examples,
        valid: Examples | None,
        names: tuple[Any, Any],
        out: str | PathLike[str] | None,
        *,
        resume: bool,
        callbacks: Callbacks,
    ) -> None:
        """Learn from texts and summaries."""
        owner = self.owner
        settings = text_settings(
            owner.text, None, owner.vocabulary, owner.max_source, copying=owner.arch == "pointer"
        )
        data = Data(_pairs(examples), None if valid is None else _pairs(valid), names)
        goal = from_dict(PairGoal, {"label_smoothing": owner.label_smoothing})
        owner.text_ = fit_pairs(owner, settings, goal, data, FitOptions(out, resume, callbacks))

    def _search(self, options: Mapping[str, Any]) -> Search:
        """How it writes; nothing is chosen, so nothing may be asked of the choice."""
        for name, usual in CHOOSING.items():
            value = options.get(name, usual)
            if value != usual:
                instead = "use max_length" if name in LENGTHS else "leave it out"
                raise ConfigError(
                    f"{name} chooses sentences, got {value!r} with arch={self.owner.arch!r}, "
                    f"which writes; {instead}"
                )
        return make_search({k: v for k, v in options.items() if k not in CHOOSING})

    def write(self, texts: Sequence[Documents], options: Mapping[str, Any]) -> list[Written]:
        """The summary of each text.

        Args:
            texts: The texts.
            options: As of `Summarizer.summarize`; those that choose sentences are refused.
        """
        self.owner.require_fitted()
        search = self._search(options)
        read: PairText = self.owner.text_
        reads = [read.read(_joined(text), number) for number, text in enumerate(texts)]
        return write_texts(self.owner.model_, read, reads, search)

    def stream(self, texts: Iterable[Documents], options: Mapping[str, Any]) -> Iterator[Written]:
        """The summaries of a stream of texts, in their order."""
        waiting: list[Documents] = []
        for text in texts:
            waiting.append(text)
            if len(waiting) == AT_ONCE:
                yield from self.write(waiting, options)
                waiting = []
        yield from self.write(waiting, options)

    def evaluate(self, examples: Examples, options: Mapping[str, Any]) -> dict[str, float]:
        """ROUGE of summaries, and the perplexity of the first reference of each.

        Where rouge-score is not installed, ROUGE is left out and the log says so.
        """
        given = list(examples)
        pairs = _pairs(given)
        found: dict[str, float] = {}
        if importlib.util.find_spec("rouge_score") is None:
            _log.warning(
                "ROUGE is left out, since rouge-score is not installed; "
                "pip install 'seqloom[summaries]'"
            )
        else:
            written = self.write([text for text, _ in given], options)
            found = mean_rouge([each.text for each in written], [refs for _, refs in given])
        data = self.owner.text_.encode(pairs)
        return {**found, **measure_pairs(self.owner.model_, data), "examples": float(len(given))}

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        return save_pairs(self.owner, directory, {"label_smoothing": self.owner.label_smoothing})

    @staticmethod
    def stored_settings(stored: StoredModel) -> dict[str, Any]:
        """The settings of the summarizer a directory describes."""
        pairs = stored.header.settings[TEXT]
        return {
            "text": from_dict(TextConfig, pairs["source"]),
            "vocabulary": pairs["vocabulary"],
            "max_source": pairs["max_source"],
            "label_smoothing": stored.header.settings["label_smoothing"],
        }

    def load(self, stored: StoredModel) -> None:
        """Take over the network of a model directory."""
        load_pairs(self.owner, stored)


def mean_rouge(texts: Sequence[str], references: Sequence[list[str]]) -> dict[str, float]:
    """The mean F1 of each measure of ROUGE over texts with their references."""
    rows = []
    for text, own in zip(texts, references, strict=True):
        language = "zh" if detect_language(own[0]) == "zh" else "en"
        rows.append({name: one.f1 for name, one in rouge(text, own, language=language).items()})
    if not rows:
        raise InputError("there must be an example to evaluate on, got none")
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _joined(text: Documents) -> str:
    return text if isinstance(text, str) else "\n".join(text)


def _pairs(examples: Examples) -> list[Pair]:
    """A pair a text, with its first summary."""
    pairs = []
    for number, (text, summaries) in enumerate(examples):
        if not summaries or not summaries[0].strip():
            raise InputError(f"text {number} must have a summary, got none")
        pairs.append(Pair(_joined(text), summaries[0]))
    if not pairs:
        raise InputError("there must be at least one text with a summary, got none")
    return pairs
