"""What a reader knows of words, in a model directory, and in a smaller one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any

from torch import nn

from seqloom.errors import ConfigError
from seqloom.tasks.contextual import stored_context
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.reader_words import ReaderVocabulary
from seqloom.tasks.setting_checks import check_count
from seqloom.tasks.unseen_words import extend_words
from seqloom.text import Vocabulary
from seqloom.text.vectors import WordVectors

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
    score, one whose `ranking` is a number when they were ranked by common words alone, and fewer
    were read, one whose `ranking` has a `length` when it was no logarithm: what it says of these
    does not fit today's windows, and the defaults count.

    Args:
        settings: Those of the directory.
    """
    known = STORED if "piece" in settings else [name for name in STORED if name not in CHANGED]
    found = {name: settings[name] for name in known if name in settings}
    ranking = found.get("ranking")
    if not isinstance(ranking, Mapping):
        for name in ("ranking", "max_windows"):
            found.pop(name, None)
    elif "length" in ranking:
        del found["ranking"]
    return found


def keep_some_words(
    model: Any, known: ReaderVocabulary, count: int, vectors: WordVectors | None
) -> None:
    """Forget all words of a reader but the most frequent; in place.

    Args:
        model: The network.
        known: What it knows of words, frequent ones first.
        count: How many are kept.
        vectors: Word vectors whose order counts in turn with that of the words known, which may add
            words.
    """
    check_count("count", count)
    if vectors is not None:
        if vectors.size != model.input.embedding.embedding_dim:
            raise ConfigError(
                f"vectors must be as wide as this reader's, {model.input.embedding.embedding_dim}, "
                f"got {vectors.size}"
            )
        known.words = extend_words(model, known.words, vectors)
    specials = known.words.specials
    before = len(specials.names())
    words = known.words.words[before:]
    turns = words if vectors is None else _in_turn(words, vectors.words)
    kept = set(islice(turns, count))
    rows = [*range(before), *(i for i, word in enumerate(words, before) if word in kept)]
    known.words = Vocabulary([known.words.words[i] for i in rows[before:]], specials=specials)
    weight = model.input.embedding.weight.detach()[rows].clone()
    model.input.embedding = nn.Embedding.from_pretrained(weight, freeze=False)
    model.config = replace(model.config, vocab_size=len(known.words))


def _in_turn(*lists: Iterable[str]) -> Iterator[str]:
    """The different words of several lists: the first of each, then the second of each."""
    rows = zip_longest(*lists)
    yield from dict.fromkeys(word for row in rows for word in row if word is not None)
