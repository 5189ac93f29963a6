"""How well a language model foresees a text, a token, a word and a character at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from seqloom.data.examples import Text
from seqloom.errors import BackendError, DataError
from seqloom.metrics import bits_per, perplexity
from seqloom.tasks.corpus import TextSource, already_prepared, text_examples
from seqloom.tasks.language_engine import FillsBlanks, Ids, LanguageEngine, ReadsBack
from seqloom.tasks.reversal import turn
from seqloom.text.pipeline import TextConfig, TextPipeline, Unit
from seqloom.text.vocabulary import Vocabulary

WORDS: tuple[Unit, ...] = ("word", "space")  # the units that are words


class MeasuredText(NamedTuple):
    """A text as a model reads it, and its size by other measures, sentence by sentence.

    Args:
        ids: The tokens, each sentence closed by its end.
        tokens: How many each sentence has, its end included.
        words: How many words each sentence has, its end included.
        characters: How many characters each sentence has, one more for its end.
    """

    ids: Ids
    tokens: Ids
    words: Ids
    characters: Ids


class TextReader(NamedTuple):
    """How a model reads text into ids."""

    pipeline: TextPipeline
    vocabulary: Vocabulary
    reverse: bool = False

    def words(self, text: str) -> list[str]:
        """The words of a text, in the order in which the model reads them."""
        words = self.pipeline.words(text)
        return words[::-1] if self.reverse else words

    def encode(self, text: str) -> Ids:
        """The ids of a text that may go on."""
        return self.vocabulary.encode(self.words(text))

    @property
    def end(self) -> int:
        """The id that ends a sentence."""
        return self.vocabulary[self.vocabulary.specials.eos]


def measured(examples: Iterable[Text], reader: TextReader, unit: Unit | None) -> MeasuredText:
    """Read a text and count its words and characters.

    Characters are those of the text as it was given. Words are cut by `unit`; without one, they
    are the model's own tokens if these are words, else those of the "word" unit.
    """
    own = reader.pipeline.config
    unit = unit or (own.unit if own.unit in WORDS else "word")
    cut = TextPipeline(TextConfig(unit=unit, language=own.language)) if unit != own.unit else None
    ids, words, characters = [], [], []
    for example in examples:
        tokens = reader.pipeline.words(example.text)
        ids.append(reader.vocabulary.encode([*tokens, reader.vocabulary.specials.eos]))
        words.append(1 + len(tokens if cut is None else cut.words(example.text)))
        characters.append(1 + len(example.text))
    if not ids:
        raise DataError("there must be a text to evaluate, got none")
    flat = np.concatenate(ids)
    return MeasuredText(
        turn(flat, reader.end) if reader.reverse else flat,
        np.array([len(each) for each in ids], np.int32),
        np.array(words, np.int32),
        np.array(characters, np.int32),
    )


def evaluated(
    engine: LanguageEngine, reader: TextReader, data: TextSource, unit: Unit | None
) -> dict[str, float]:
    """The figures of `LanguageModel.evaluate`, which says what they are."""
    prepared = already_prepared(data, reader.vocabulary)
    sizes: dict[str, float] = {}
    if prepared is not None:
        ids: Ids = prepared.data.sequences["ids"].flat
        ids = turn(ids, reader.end) if reader.reverse else ids
        loss, items = engine.loss(ids)
    else:
        examples, own = list(text_examples(data)), reader.pipeline.config.unit
        try:
            text = measured(examples, reader, unit)
        except BackendError:  # nothing here cuts these words: the other figures stand without
            if unit is not None or own in WORDS:
                raise
            text, unit = measured(examples, reader, own), own
        ids = text.ids
        loss, items = engine.loss(ids)
        if unit is None or unit in WORDS:
            sizes["word_perplexity"] = perplexity(loss, float(text.words.sum()))
        sizes["bits_per_character"] = bits_per(loss, float(text.characters.sum()))
    unk = reader.vocabulary[reader.vocabulary.specials.unk]
    name = "perplexity"
    if isinstance(engine, FillsBlanks):
        name, sizes = "pseudo_perplexity", {}
    if isinstance(engine, ReadsBack):
        sizes["backward_perplexity"] = perplexity(*engine.backward_loss(turn(ids, reader.end)))
    return {
        name: perplexity(loss, items),
        "loss": loss / items,
        "tokens": float(items),
        "unknown": float((ids == unk).mean()),
        **sizes,
    }
