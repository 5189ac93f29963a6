"""What a reader knows of words, in a model directory, and in a smaller one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from seqloom.errors import ConfigError
from seqloom.tasks.contextual import stored_context
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.reader_words import ReaderVocabulary
from seqloom.text import Vocabulary

VOCABULARY, CHARACTERS = "vocabulary.json", "characters.json"


def word_files(known: ReaderVocabulary) -> dict[str, Any]:
    """Return the files of what a reader knows of words."""
    files = {VOCABULARY: known.words.to_dict()}
    if known.characters is not None:
        files[CHARACTERS] = known.characters.to_dict()
    return files


def stored_words(stored: StoredModel) -> ReaderVocabulary:
    """Return what the reader of a model directory knows of words."""
    characters = stored.place / CHARACTERS
    return ReaderVocabulary(
        Vocabulary.load(stored.place / VOCABULARY),
        Vocabulary.load(characters) if characters.exists() else None,
        stored_context(stored),
    )


def keep_first_words(model: Any, known: ReaderVocabulary, count: int) -> None:
    """Forget all words of a reader but the first, the most frequent; in place.

    Args:
        model: The network.
        known: What it knows of words.
        count: How many are kept.
    """
    if count < 1:
        raise ConfigError(f"count must be at least 1, got {count}")
    specials = known.words.specials
    before = len(specials.names())
    known.words = Vocabulary(known.words.words[before : before + count], specials=specials)
    weight = model.input.embedding.weight.detach()[: len(known.words)].clone()
    model.input.embedding = nn.Embedding.from_pretrained(weight, freeze=False)
    model.config = replace(model.config, vocab_size=len(known.words))
