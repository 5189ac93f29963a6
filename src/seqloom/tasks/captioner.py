"""Captioners: one vector or image to a sequence of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from seqloom.config import from_dict
from seqloom.errors import InputError
from seqloom.tasks.captioner_data import caption_pairs, flat_vector
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.estimator import Estimator, tensor_shapes
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
from seqloom.tasks.seq2seq_search import make_search
from seqloom.tasks.seq2seq_text import PairText, several
from seqloom.tasks.seq2seq_writing import write_texts
from seqloom.text import TextConfig

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


class Captioner(Estimator):
    """Learns to describe vectors or images in words.

    Args:
        arch: "recurrent". Its option `feeding` says what goes into the steps after the first:
            "output" the last word, "first" nothing.
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` and `max_size`, as `PairVocabulary` has it.
        training: Settings of the loop.
        options: Settings of the architecture, such as `hidden_size` or `cell`.

    Examples:
        >>> pairs = [([0.0, 1.0], "up"), ([1.0, 0.0], "right")] * 8
        >>> model = Captioner(hidden_size=8, training={"epochs": 30, "optimizer": {"rate": 0.05}})
        >>> model.fit(pairs).caption([[0.0, 1.0]])[0].text
        'up'
    """

    task: ClassVar[str] = "caption"
    settings: ClassVar[tuple[str, ...]] = ("text", "vocabulary", "training")
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    text_: PairText

    def __init__(
        self,
        arch: str = "recurrent",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(arch, options, text=text, vocabulary=vocabulary, training=training)

    def fit(
        self,
        train: Any,
        valid: Any = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Callbacks = (),
    ) -> Self:
        """Learn from pairs. Progress is shown where there is an `out`.

        Args:
            train: Pairs of a vector or an image and a text; or "digits:SPLIT:LANGUAGE",
                scikit-learn's digits spelled out in "en" or "zh".
            valid: As `train`; what decides which weights are best, and when to stop.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        settings = text_settings(self.text, None, self.vocabulary, None, copying=False)
        held = None if valid is None else caption_pairs(valid)
        data = Data(caption_pairs(train), held, (train, valid))
        self.text_ = fit_pairs(self, settings, PairGoal(), data, FitOptions(out, resume, callbacks))
        return self

    def caption(self, inputs: Sequence[Any], **search: Any) -> list[Written]:
        """Describe each of several vectors or images.

        Args:
            inputs: Vectors (D,), or images of as many numbers.
            search: As `seqloom.tasks.seq2seq_search.Search` has it: `beam`, `n_best`, ...
        """
        self.require_fitted()
        width = self.model_.config.input_size
        reads = []
        given = several(inputs, "inputs must be several vectors or images")
        for number, item in enumerate(given):
            vector = flat_vector(item, number)
            if vector.shape[1] != width:
                raise InputError(
                    f"input {number} must hold {width} numbers as in training, got "
                    f"{vector.shape[1]}"
                )
            reads.append(self.text_.read(vector, number))
        return write_texts(self.model_, self.text_, reads, make_search(search))

    def evaluate(self, data: Any, **search: Any) -> dict[str, float]:
        """Describe vectors and compare with their texts.

        Args:
            data: As `train` of `fit`.
            search: As of `caption`.

        Returns:
            `exact`, the share of texts that are the same word for word; `perplexity` and
            `accuracy` of the words, each given those before it; `examples`.
        """
        self.require_fitted()
        pairs = caption_pairs(data)
        found = self.caption([pair.source for pair in pairs], **search)
        words = [self.text_.target.words(pair.target) for pair in pairs]
        same = [list(each.words) == own for each, own in zip(found, words, strict=True)]
        return {
            "exact": float(np.mean(same)),
            **measure_pairs(self.model_, self.text_.encode(pairs)),
            "examples": float(len(pairs)),
        }

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        return save_pairs(self, directory, {})

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the captioner a directory describes."""
        pairs = stored.header.settings[TEXT]
        model = cls(
            stored.header.architecture,
            text=from_dict(TextConfig, pairs["target"]),
            vocabulary=pairs["vocabulary"],
        )
        load_pairs(model, stored)
        return model
