"""Models that are made of other models: what they have in common, and how they are saved."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.config import to_dict
from seqloom.errors import ConfigError
from seqloom.tasks.language_engine import HoldsModels

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel


@contextmanager
def saved_parts(engine: Any) -> Iterator[dict[str, Path]]:
    """The directories of the models an engine is made of, there while the block runs."""
    if not isinstance(engine, HoldsModels):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="seqloom-") as folder:
        yield {name: part.save(Path(folder) / name) for name, part in engine.parts().items()}


def check_alike(models: Sequence[LanguageModel], *, reverse: bool = True) -> None:
    """Refuse models that do not read text into the same ids.

    Args:
        models: The models.
        reverse: Whether they must read in the same direction too.

    Raises:
        ConfigError: If they differ, with the first difference.
    """
    for model in models:
        model.require_fitted()
    first = models[0]
    for number, other in enumerate(models[1:], 2):
        found = _difference(first, other, reverse=reverse)
        if found:
            raise ConfigError(
                f"models must read text into the same words, got {found} of model 1 and model "
                f"{number}; fit them to the same prepared text"
            )


def _difference(one: LanguageModel, other: LanguageModel, *, reverse: bool) -> str | None:
    texts = to_dict(one.pipeline_.config), to_dict(other.pipeline_.config)
    for name, value in texts[0].items():
        if value != texts[1][name]:
            return f"text.{name} {value!r} and {texts[1][name]!r}"
    if reverse and one.reverse_ != other.reverse_:
        return f"reverse={one.reverse_} and reverse={other.reverse_}"
    pieces = [m.pipeline_.subword and m.pipeline_.subword.to_bytes() for m in (one, other)]
    if pieces[0] != pieces[1]:
        return "different subword pieces"
    if one.vocabulary_ != other.vocabulary_:
        ours, theirs = one.vocabulary_.words, other.vocabulary_.words
        odd = next(
            (
                word
                for word in (*ours, *theirs)
                if (word in one.vocabulary_) != (word in other.vocabulary_)
            ),
            None,
        )
        sizes = f"vocabularies of {len(ours):,} and {len(theirs):,} words"
        return (
            f"{sizes} ({odd!r} is in one alone)" if odd is not None else f"{sizes} in another order"
        )
    return None
