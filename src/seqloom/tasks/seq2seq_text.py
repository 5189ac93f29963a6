"""Pairs of a source and a text to numbers, and numbers back to text."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.config import from_dict, to_dict
from seqloom.data.batches import EncodedData
from seqloom.data.examples import TextPair
from seqloom.data.inputs import read_input
from seqloom.data.prepare import subword_vocabulary
from seqloom.data.ragged import Ragged
from seqloom.errors import ConfigError, InputError
from seqloom.tasks.directory import StoredModel
from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline, Vocabulary
from seqloom.text.subword import Method
from seqloom.text.vocabulary import Specials

if TYPE_CHECKING:
    from seqloom.tasks.contextual import ContextReader

Source = str | NDArray[Any]
"""A text, or vectors of shape (S, D)."""


class Pair(NamedTuple):
    """A source and the text it becomes."""

    source: Source
    target: str


@dataclass(frozen=True, kw_only=True)
class PairVocabulary:
    """Which words are known.

    Args:
        min_count: How often a word must occur.
        max_size: How many to keep at most, a side, the most frequent ones.
        shared: Whether both sides have one vocabulary.
        pieces: How many pieces to learn where the unit is "subword", the specials among them.
        method: How they are learned, "bpe" or "unigram".
    """

    min_count: int = 1
    max_size: int | None = None
    shared: bool = False
    pieces: int = 8000
    method: Method = "bpe"

    def __post_init__(self) -> None:
        if self.min_count < 1 or (self.max_size is not None and self.max_size < 1):
            raise ConfigError(
                "vocabulary.min_count and max_size must be at least 1, got "
                f"{self.min_count} and {self.max_size}"
            )


@dataclass(frozen=True, kw_only=True)
class PairTextSettings:
    """How pairs are read.

    Args:
        source: How the text of a source becomes words.
        target: How that of a target does.
        vocabulary: Which words are known.
        max_source: How many items of a source are read; the rest is cut off.
        copying: Whether words of a source that the target's vocabulary lacks get ids of their own.
    """

    source: TextConfig
    target: TextConfig
    vocabulary: PairVocabulary
    max_source: int | None = None
    copying: bool = False

    def __post_init__(self) -> None:
        if self.max_source is not None and self.max_source < 1:
            raise ConfigError(f"max_source must be at least 1, got {self.max_source}")
        if self.vocabulary.shared and self.source != self.target:
            raise ConfigError(
                "a shared vocabulary needs the same text settings on both sides, got text and "
                "target_text that differ"
            )
        if self.copying and not self.vocabulary.shared:
            units = {self.source.unit, self.target.unit}
            if "subword" in units or len(units) > 1:
                raise ConfigError(
                    "a pointer copies words of the same unit, and pieces only of one vocabulary, "
                    f"got units {sorted(units)}; set vocabulary.shared=true"
                )


class ReadSource(NamedTuple):
    """A source as numbers.

    Args:
        words: Its words, the end of the text last; empty of vectors.
        items: Ids (S,), or vectors (S, D).
        copies: What each word is among the words that may be written (S,).
        extra: The words that have ids from the target's vocabulary on, in their order.
        cut: Whether it was longer than `max_source`.
    """

    words: tuple[str, ...]
    items: NDArray[Any]
    copies: NDArray[np.int32]
    extra: tuple[str, ...]
    cut: bool


class PairText:
    """Both sides of pairs: how they are read, and the words they know.

    Args:
        settings: How pairs are read.
        source: Of the source; None where it is vectors.
        target: Of the target.
        source_vocabulary: Its words; None where it is vectors.
        target_vocabulary: The words that may be written.
    """

    def __init__(
        self,
        settings: PairTextSettings,
        source: TextPipeline | None,
        target: TextPipeline,
        source_vocabulary: Vocabulary | None,
        target_vocabulary: Vocabulary,
    ) -> None:
        self.settings, self.source, self.target = settings, source, target
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        specials = target_vocabulary.specials
        self.begin, self.end = target_vocabulary[specials.bos], target_vocabulary[specials.eos]
        self.unknown = target_vocabulary[specials.unk]
        self.context: ContextReader | None = None

    # -- learning --------------------------------------------------------------------------------

    @classmethod
    def learn(cls, pairs: Sequence[Pair], settings: PairTextSettings) -> PairText:
        """Choose the words, or learn the pieces, of training pairs."""
        are_texts = isinstance(pairs[0].source, str)
        shared = settings.vocabulary.shared
        if shared and not are_texts:
            raise ConfigError("a shared vocabulary needs texts as sources, got vectors")
        sides = {"target": [pair.target for pair in pairs]}
        if are_texts:
            sides["source"] = [str(pair.source) for pair in pairs]
        pools = {"target": [*sides["target"], *(sides["source"] if shared else ())]}
        if are_texts and not shared:
            pools["source"] = sides["source"]
        learned = {
            name: _learn_side(
                texts, settings.target if name == "target" else settings.source, settings.vocabulary
            )
            for name, texts in pools.items()
        }
        target = learned["target"]
        source = learned.get("source", target if are_texts else (None, None))
        return cls(settings, source[0], target[0], source[1], target[1])

    # -- reading ---------------------------------------------------------------------------------

    def read(self, source: Source, number: int = 0) -> ReadSource:
        """A source as numbers.

        Args:
            source: A text or vectors, as it was fitted to.
            number: Which one it is, for the message of an error.
        """
        limit = self.settings.max_source
        nothing = np.zeros(0, np.int32)
        if self.source is None:
            items = _vectors(source, number)
            is_cut = limit is not None and len(items) > limit
            return ReadSource((), items[:limit], nothing, (), is_cut)
        if not isinstance(source, str):
            raise InputError(f"source {number} must be a text, got {type(source).__name__}")
        assert self.source_vocabulary is not None
        words = self.source.words(source)
        if not words:
            raise InputError(f"source {number} must hold a word, got {source[:40]!r}")
        is_cut = limit is not None and len(words) > limit
        words = [*words[:limit], self.source_vocabulary.specials.eos]
        copies, extra = (nothing, ()) if not self.settings.copying else self._copies(words)
        return ReadSource(tuple(words), self.source_vocabulary.encode(words), copies, extra, is_cut)

    def _copies(self, words: Sequence[str]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        known, extra = self.target_vocabulary, dict[str, int]()
        ids = [
            known[word] if word in known else len(known) + extra.setdefault(word, len(extra))
            for word in words
        ]
        return np.array(ids, np.int32), tuple(extra)

    def target_ids(self, text: str, read: ReadSource) -> NDArray[np.int32]:
        """A target as ids, between its beginning and its end; words of `read` count as known."""
        if not isinstance(text, str):
            raise InputError(f"a target must be a text, got {type(text).__name__}")
        known, words = self.target_vocabulary, self.target.words(text)
        own = {word: len(known) + place for place, word in enumerate(read.extra)}
        ids = [own.get(word, -1) if word not in known else known[word] for word in words]
        inside = [self.unknown if id_ < 0 else id_ for id_ in ids]
        return np.array([self.begin, *inside, self.end], np.int32)

    def prefix_ids(self, prefix: str, read: ReadSource) -> list[int]:
        """How a text of `read` must begin, as ids.

        Raises:
            InputError: If a word of it cannot be written.
        """
        ids: list[int] = self.target_ids(prefix, read)[1:-1].tolist()
        specials = self.target_vocabulary.specials.names()
        for word, id_ in zip(self.target.words(prefix), ids, strict=True):
            if id_ == self.unknown or word in specials:
                where = " or its source" if self.settings.copying else ""
                raise InputError(
                    f"prefix must hold words of the model's vocabulary{where}, got {word!r}; "
                    "leave it out or write it otherwise"
                )
        return ids

    def encode(self, pairs: Iterable[Pair]) -> EncodedData:
        """Pairs as columns."""
        reads, targets = [], []
        for number, pair in enumerate(pairs):
            read = self.read(pair.source, number)
            reads.append(read)
            targets.append(self.target_ids(pair.target, read))
        if not reads:
            raise InputError("there must be at least one pair, got none")
        columns = {
            "source": Ragged.of([read.items for read in reads]),
            "target": Ragged.of(targets),
        }
        if self.settings.copying:
            columns["copies"] = Ragged.of([read.copies for read in reads])
        if self.context is not None:
            columns["context"] = self.context([read.words for read in reads])
        return EncodedData(columns)

    def read_in_context(self, given: Any) -> None:
        """Have the words of sources read in context too, by a task's setting `contextual`.

        Raises:
            ConfigError: If sources are no words.
        """
        if given is None:
            return
        if self.source is None or self.source.config.unit == "subword":
            what = "vectors" if self.source is None else "pieces of words, text.unit='subword'"
            raise ConfigError(f"contextual is for sources of words, got {what}")
        from seqloom.tasks.contextual import context_reader

        assert self.source_vocabulary is not None
        self.context = context_reader(given, [self.source_vocabulary.specials.eos])

    def words(self, ids: Sequence[int], read: ReadSource) -> list[str]:
        """The words of ids that were written."""
        size = len(self.target_vocabulary)
        return [
            self.target_vocabulary.words[id_] if id_ < size else read.extra[id_ - size]
            for id_ in ids
        ]

    # -- saving ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The settings, for a model directory."""
        return {**to_dict(self.settings), "vectors": self.source is None}

    def files(self) -> dict[str, Any]:
        """The vocabularies and pieces, for a model directory."""
        found: dict[str, Any] = {}
        sides = {"target": (self.target, self.target_vocabulary)}
        if self.source is not None and not self.settings.vocabulary.shared:
            assert self.source_vocabulary is not None
            sides["source"] = (self.source, self.source_vocabulary)
        for name, (pipeline, vocabulary) in sides.items():
            found[f"{name}.vocabulary.json"] = vocabulary.to_dict()
            if pipeline.subword is not None:
                found[f"{name}.subword.json"] = pipeline.subword.to_bytes()
        return found

    @classmethod
    def load(cls, values: Mapping[str, Any], stored: StoredModel) -> PairText:
        """What `to_dict` and `files` wrote."""
        kept = dict(values)
        are_vectors = kept.pop("vectors")
        settings = from_dict(PairTextSettings, kept)

        def side(name: str, config: TextConfig) -> tuple[TextPipeline, Vocabulary]:
            subword = None
            if config.unit == "subword":
                subword = SubwordTokenizer.load(stored.place / f"{name}.subword.json")
            vocabulary = Vocabulary.load(stored.place / f"{name}.vocabulary.json")
            return TextPipeline(config, subword=subword), vocabulary

        target = side("target", settings.target)
        if are_vectors:
            return cls(settings, None, target[0], None, target[1])
        source = target if settings.vocabulary.shared else side("source", settings.source)
        return cls(settings, source[0], target[0], source[1], target[1])


def _vectors(source: Any, number: int) -> NDArray[np.float32]:
    """A source of vectors, or a refusal."""
    kind = type(source).__name__
    try:
        with np.errstate(over="ignore"):
            items = None if _is_odd(source) else np.asarray(source, np.float32)
    except (TypeError, ValueError):  # rows of several lengths, or no numbers
        items, kind = None, reprlib.repr(source)
    if items is None or items.ndim != 2 or not items.size:
        raise InputError(
            f"source {number} must be vectors of shape (S, D) with S at least 1, got "
            f"{kind if items is None else items.shape}"
        )
    if not np.isfinite(items).all():
        raise InputError(f"source {number} must hold numbers, got NaN or infinity")
    return items


def _is_odd(source: Any) -> bool:
    return isinstance(source, str) or np.iscomplexobj(source)


def _learn_side(
    texts: Sequence[str], config: TextConfig, wanted: PairVocabulary
) -> tuple[TextPipeline, Vocabulary]:
    if config.unit != "subword":
        pipeline = TextPipeline(config)
        vocabulary = Vocabulary.build(
            (pipeline.words(text) for text in texts),
            min_count=wanted.min_count,
            max_size=wanted.max_size,
        )
        return pipeline, vocabulary
    subword = SubwordTokenizer.train(
        (config.normalizer(text).text for text in texts),
        wanted.pieces,
        method=wanted.method,
        specials=Specials().names(),
        min_count=max(wanted.min_count, 2),
    )
    return TextPipeline(config, subword=subword), subword_vocabulary(subword)


def several(given: Any, rule: str) -> Iterator[Any]:
    """What is given one after the other.

    Raises:
        InputError: If it is nothing of the kind; its message begins with the rule.
    """
    try:
        return iter(given)
    except TypeError:
        raise InputError(f"{rule}, got {type(given).__name__}") from None


def read_pairs(data: Any) -> list[Pair]:
    """Pairs however they are given: a file, "NAME:SPLIT", `TextPair`s or tuples.

    Raises:
        InputError: If one is no pair or has an empty side.
    """
    if isinstance(data, (str, PathLike)):
        data = read_input(data, "pairs")
    pairs = list(_pairs(several(data, "pairs must be a file, the name of a data set or tuples")))
    if not pairs:
        raise InputError("there must be at least one pair, got none")
    return pairs


def _pairs(data: Iterable[Any]) -> Iterator[Pair]:
    for number, item in enumerate(data):
        if isinstance(item, TextPair):
            yield Pair(item.source, item.target)
            continue
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[1], str):
            raise InputError(
                f"pair {number} must be a TextPair or a tuple of a source and a text, got "
                f"{type(item).__name__}"
            )
        if not item[1].strip() or (isinstance(item[0], str) and not item[0].strip()):
            raise InputError(f"pair {number} must have two sides, got an empty one")
        yield Pair(*item)
