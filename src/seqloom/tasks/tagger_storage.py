"""What a tagger knows of words in a model directory."""

from __future__ import annotations

from typing import Any

from seqloom.tasks.contextual import stored_context
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.tagger_words import TokenReader
from seqloom.text import Vocabulary

VOCABULARY, CHARACTERS = "vocabulary.json", "characters.json"


def reader_files(reader: TokenReader) -> dict[str, Any]:
    """Return the files of a reader: its words, the values of each feature, its characters."""
    files = {VOCABULARY: reader.words.to_dict()}
    files |= {f"{name}.json": known.to_dict() for name, known in reader.features.items()}
    if reader.characters is not None:
        files[CHARACTERS] = reader.characters.to_dict()
    return files


def stored_reader(stored: StoredModel) -> TokenReader | None:
    """Return the reader of a model directory, None if the model reads vectors."""
    place, settings = stored.place, stored.header.settings
    if not (place / VOCABULARY).exists():
        return None
    has_characters = (place / CHARACTERS).exists()
    return TokenReader(
        Vocabulary.load(place / VOCABULARY),
        folds=settings["fold"],
        features={name: Vocabulary.load(place / f"{name}.json") for name in settings["features"]},
        characters=Vocabulary.load(place / CHARACTERS) if has_characters else None,
        context=stored_context(stored),
    )
