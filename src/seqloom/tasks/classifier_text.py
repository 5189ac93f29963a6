"""The text side of a classifier: what its model directory keeps of it, and reading it back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from seqloom.config import from_dict, to_dict
from seqloom.data.features import Bags, Vectors
from seqloom.errors import DataError, InputError
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.labeled import Labeled
from seqloom.tasks.text_features import FeatureConfig, TextFeatures
from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline, Vocabulary

VOCABULARY, SUBWORD, FEATURES = "vocabulary.json", "subword.json", "features.json"


class TextSide(NamedTuple):
    """How a text becomes features: words first, then terms with weights."""

    pipeline: TextPipeline
    features: TextFeatures

    def settings(self) -> dict[str, Any]:
        """What the header of a model directory says of it."""
        return {
            "text": to_dict(self.pipeline.config),
            "features": to_dict(self.features.config),
        }

    def files(self) -> dict[str, Any]:
        """The files a model directory keeps of it."""
        files: dict[str, Any] = {
            VOCABULARY: self.features.vocabulary.to_dict(),
            FEATURES: self.features.to_dict(),
        }
        if self.pipeline.subword is not None:
            files[SUBWORD] = self.pipeline.subword.to_bytes()
        return files


def read_text_side(stored: StoredModel) -> TextSide:
    """Read what `TextSide.settings` and `TextSide.files` wrote."""
    header = stored.header
    text = from_dict(TextConfig, header.settings["text"])
    config = from_dict(FeatureConfig, header.settings["features"])
    subword = SubwordTokenizer.load(stored.place / SUBWORD) if text.unit == "subword" else None
    vocabulary = Vocabulary.load(stored.place / VOCABULARY)
    width = header.config["input_size"]
    if len(vocabulary) != width:
        raise DataError(
            f"must hold {width} terms, got {len(vocabulary)}", stored.place / VOCABULARY
        )
    features = TextFeatures.from_dict(stored.json(FEATURES), config, vocabulary)
    return TextSide(TextPipeline(text, subword=subword), features)


def features_like(read: Labeled, terms: TextFeatures | None) -> Vectors | Bags:
    """Return features of the kind the training data had: of text if there are terms."""
    if isinstance(read.x, np.ndarray):
        if terms is not None:
            raise InputError("X must be texts as in training, got a table of numbers")
        return Vectors(read.x)
    if terms is None:
        raise InputError("X must be a table of numbers as in training, got texts")
    return terms(read.x)
