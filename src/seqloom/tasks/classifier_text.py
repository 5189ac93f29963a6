"""The text side of a classifier: what its model directory keeps of it, and reading it back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from seqloom.config import from_dict, to_dict
from seqloom.data.features import Bags, Vectors
from seqloom.errors import DataError, InputError
from seqloom.tasks.classifier_sequences import VectorSequences, WordSequences
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.labeled import Labeled
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.text_features import FeatureConfig, TextFeatures
from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline, Vocabulary

VOCABULARY, SUBWORD, FEATURES = "vocabulary.json", "subword.json", "features.json"


Terms = TextFeatures | WordSequences | VectorSequences
"""What makes features of examples; vectors need nothing."""


class TextSide(NamedTuple):
    """How a text becomes features: words first, then terms with weights, or ids."""

    pipeline: TextPipeline
    features: TextFeatures | WordSequences

    def settings(self) -> dict[str, Any]:
        """What the header of a model directory says of it."""
        found: dict[str, Any] = {"text": to_dict(self.pipeline.config)}
        if isinstance(self.features, TextFeatures):
            found["features"] = to_dict(self.features.config)
        return found

    def files(self) -> dict[str, Any]:
        """The files a model directory keeps of it."""
        files: dict[str, Any] = {VOCABULARY: self.features.vocabulary.to_dict()}
        if isinstance(self.features, TextFeatures):
            files[FEATURES] = self.features.to_dict()
        if self.pipeline.subword is not None:
            files[SUBWORD] = self.pipeline.subword.to_bytes()
        return files


def read_text_side(stored: StoredModel) -> TextSide:
    """Read what `TextSide.settings` and `TextSide.files` wrote."""
    header = stored.header
    text = from_dict(TextConfig, header.settings["text"])
    subword = SubwordTokenizer.load(stored.place / SUBWORD) if text.unit == "subword" else None
    vocabulary = Vocabulary.load(stored.place / VOCABULARY)
    is_bag = "features" in header.settings
    width = header.config["input_size" if is_bag else "vocab_size"]
    if len(vocabulary) != width:
        raise DataError(
            f"must hold {width} terms, got {len(vocabulary)}", stored.place / VOCABULARY
        )
    features: TextFeatures | WordSequences
    if is_bag:
        config = from_dict(FeatureConfig, header.settings["features"])
        features = TextFeatures.from_dict(stored.json(FEATURES), config, vocabulary)
    else:
        features = WordSequences(vocabulary, header.settings["max_length"])
    return TextSide(TextPipeline(text, subword=subword), features)


def features_like(read: Labeled, terms: Terms | None) -> Vectors | Bags | Sequences:
    """Return features of the kind the training data had.

    Raises:
        InputError: If the examples are of another kind.
    """
    wanted = _KINDS[type(terms)]
    kind = "a table of numbers" if isinstance(read.x, np.ndarray) else "sequences of vectors"
    kind = "texts" if read.is_text else kind
    if kind != wanted:
        raise InputError(f"X must be {wanted} as in training, got {kind}")
    if terms is None:
        assert isinstance(read.x, np.ndarray)
        return Vectors(read.x)
    found: Bags | Sequences = terms(read.x)  # type: ignore[arg-type]
    return found


_KINDS: dict[type, str] = {
    type(None): "a table of numbers",
    TextFeatures: "texts",
    WordSequences: "texts",
    VectorSequences: "sequences of vectors",
}
