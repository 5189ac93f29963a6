"""What a reader knows of words, in a model directory, and in a smaller one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from seqloom.tasks.contextual import stored_context
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.reader_words import ReaderVocabulary
from seqloom.tasks.setting_checks import check_count
from seqloom.text import Vocabulary

STORED = ("cut_words", "max_words", "window", "piece", "overlap", "max_windows", "ranking", "rules")
CHANGED = ("overlap", "max_windows", "ranking")  # with `piece`
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


def stored_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a model directory as a reader takes them.

    One without `piece` was written when windows were cut after so many words and ranked by another
    score, one whose `ranking` is a number when they were ranked by common words alone: what it says
    of these does not fit today's windows, and the defaults count.

    Args:
        settings: Those of the directory.
    """
    known = STORED if "piece" in settings else [name for name in STORED if name not in CHANGED]
    found = {name: settings[name] for name in known if name in settings}
    if not isinstance(found.get("ranking"), Mapping):
        found.pop("ranking", None)
    return found


def keep_first_words(model: Any, known: ReaderVocabulary, count: int) -> None:
    """Forget all words of a reader but the first, the most frequent; in place.

    Args:
        model: The network.
        known: What it knows of words.
        count: How many are kept.
    """
    check_count("count", count)
    specials = known.words.specials
    before = len(specials.names())
    known.words = Vocabulary(known.words.words[before : before + count], specials=specials)
    weight = model.input.embedding.weight.detach()[: len(known.words)].clone()
    model.input.embedding = nn.Embedding.from_pretrained(weight, freeze=False)
    model.config = replace(model.config, vocab_size=len(known.words))
