"""A counted language model ready to be asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError
from seqloom.files import Source
from seqloom.ngram import hashed, stores, trie
from seqloom.ngram.arpa import read_arpa
from seqloom.ngram.batch import BatchScorer, LineScores
from seqloom.ngram.corpus import TextSource, read_blocks
from seqloom.ngram.known import PADDING
from seqloom.ngram.levels import Ngrams
from seqloom.ngram.scoring import (
    LONGEST,
    WORK_BYTES,
    advance,
    score_text,
    score_text_exactly,
    spread,
)
from seqloom.ngram.store_file import is_store
from seqloom.ngram.words import BOS, EOS, NONE, UNK, Words, encoded, split_words
from seqloom.ngram.workspace import Workspace

_LN10 = math.log(10)
PART = 1 << 16  # sentences of a list that are scored at a time


class WordScore(NamedTuple):
    """What a model says of one word.

    The word as the model knows it (`<unk>` if it does not), the natural logarithm of its
    probability, and the length of the n-gram that gave it.
    """

    word: str
    log_prob: float
    order: int


@dataclass(frozen=True)
class Perplexity:
    """How well a model predicts a text, each line's end included.

    Args:
        log_prob: The natural log-probability of the whole text.
        words: How many words were predicted, line ends among them.
        lines: How many lines there are.
        unknown: How many of the words the model does not know.
        known_log_prob: The log-probability of the others.
    """

    log_prob: float
    words: int
    lines: int
    unknown: int
    known_log_prob: float

    @property
    def perplexity(self) -> float:
        """With unknown words counted at the probability of `<unk>`."""
        return _perplexity(self.log_prob, self.words)

    @property
    def known_perplexity(self) -> float:
        """With unknown words left out."""
        return _perplexity(self.known_log_prob, self.words - self.unknown)


def _perplexity(log_prob: float, words: int) -> float:
    if not words:
        return math.nan
    return math.exp(-log_prob / words) if log_prob > -700.0 * words else math.inf


class NgramModel:
    """A back-off n-gram model over a vocabulary of blank-separated words.

    Log-probabilities are natural. A sentence is a string; `<s>` before it and `</s>` after it are
    understood, and `</s>` is predicted.

    Examples:
        >>> model = NgramModel.load("model.arpa")  # doctest: +SKIP
        >>> model.score("the cat sat on the mat")  # doctest: +SKIP
        -31.4
    """

    def __init__(
        self,
        words: Words,
        tables: hashed.Hashed | trie.Packed,
        *,
        order: int,
        missing_backoff: float = 0.0,
        suffixes: bool = True,
        about: dict[str, Any] | None = None,
    ) -> None:
        self.words, self.order, self.about = words, order, dict(about or {})
        self._tables, self._missing, self._suffixes = tables, float(missing_backoff), suffixes
        self._batch = BatchScorer(words, tables, order, suffixes=suffixes, missing=self._missing)
        self._fast, self._handle = self._make_handle()
        self._address = 0 if self._handle is None else self._handle.ctypes.data

    @classmethod
    def of(cls, ngrams: Ngrams, place: Workspace | None = None) -> NgramModel:
        """A model in memory from plain columns."""
        return cls._opened(stores.pack(ngrams, place or Workspace()))

    @classmethod
    def load(cls, path: Source, *, verify: bool = True) -> NgramModel:
        """Open a store, or read an ARPA file (compressed or not, "-" for standard input).

        Args:
            path: The file.
            verify: Compare a store's checksums, which reads it once.

        Raises:
            DataError: If the file is neither, or damaged.
        """
        if is_store(path):
            return cls._opened(stores.open_packed(path, verify=verify))
        return cls.of(read_arpa(path))

    @classmethod
    def _opened(cls, packed: stores.PackedModel) -> NgramModel:
        return cls(
            packed.words,
            packed.tables,
            order=packed.order,
            missing_backoff=packed.missing_backoff,
            suffixes=packed.suffixes,
            about=packed.about,
        )

    def __reduce__(self) -> str:
        raise TypeError(
            "an NgramModel holds addresses of its memory and cannot be copied or pickled; "
            "write it with write_store and load it where it is needed"
        )

    def _make_handle(self) -> tuple[Any, NDArray[np.int64] | None]:
        """The quick way for one sentence: every address in one array, kept alive with it."""
        tables, words = self._tables, self.words
        if not isinstance(tables, hashed.Hashed):
            return None, None
        addresses = [tables.cells, tables.starts, tables.homes]
        cells, starts, homes = (array.ctypes.data for array in addresses)
        vocabulary = [
            number
            for array in (words.table, words.pool, words.offsets)
            for number in (array.ctypes.data, len(array))
        ]
        head = [cells, len(tables.cells), starts, homes, self.order]
        self._work = np.empty(WORK_BYTES, np.uint8)
        tail = [int(self._suffixes), self._work.ctypes.data]
        handle = np.array([*head, *vocabulary, *tail], np.int64)
        exact = tables.values.dtype == np.float64
        return (score_text_exactly if exact else score_text), handle

    @property
    def sizes(self) -> list[int]:
        """How many n-grams there are of each order."""
        return list(self.about["sizes"])

    @property
    def is_distribution(self) -> bool:
        """Whether probabilities sum to 1; those of stupid back-off do not."""
        return bool(self.about.get("distribution", True))

    @overload
    def score(self, text: str) -> float: ...
    @overload
    def score(self, text: list[str] | tuple[str, ...]) -> NDArray[np.float64]: ...
    def score(self, text: str | list[str] | tuple[str, ...]) -> float | NDArray[np.float64]:
        """The natural log-probability of a sentence, or of each of a list."""
        if isinstance(text, str):
            data = encoded(text) + PADDING
            if self._fast is None or len(data) > LONGEST:
                return float(self.score([text])[0])
            return self._fast(self._address, self._missing, data)  # type: ignore[no-any-return]
        found = [self._batch.lines(_joined(part)).totals for part in _parts(text)]
        return np.concatenate([np.empty(0), *found])

    def score_words(self, text: str) -> list[WordScore]:
        """What the model says of each word of a sentence and of its end."""
        found = self.score_lines(_joined([text]), by_word=True)
        return [
            WordScore(self.words[int(i)], float(v), int(o))
            for i, v, o in zip(found.ids[1:], found.values[1:], found.orders[1:], strict=True)
        ]

    def score_lines(self, text: bytes, *, by_word: bool = False) -> LineScores:
        """What the model says of whole lines of text, on every core.

        Args:
            text: Lines, each with its end.
            by_word: Whether to say it of every word too.
        """
        return self._batch.lines(text, by_word=by_word)

    def perplexity(self, source: TextSource) -> Perplexity:
        """How well the model predicts a text: a path, "-", a glob, or an iterable of sentences."""
        total = np.zeros(2)
        counts = np.zeros(3, np.int64)
        for block in _whole_lines(read_blocks(source)):
            scored = self.score_lines(block)
            total += scored.totals.sum(), scored.known_totals.sum()
            counts += scored.counts.sum(), len(scored.counts), scored.unknown.sum()
        words, lines, unknown = map(int, counts)
        return Perplexity(float(total[0]), words, lines, unknown, float(total[1]))

    def empty(self) -> NDArray[np.uint32]:
        """The state in which nothing is known of what comes before."""
        state = np.full(self.order, NONE, np.uint32)
        state[-1] = 0
        return state

    def start(self) -> NDArray[np.uint32]:
        """The state at the beginning of a sentence."""
        return self.step(self.empty(), "<s>")[1]

    def step(self, state: NDArray[np.uint32], word: str) -> tuple[float, NDArray[np.uint32]]:
        """The natural log-probability of a word after a state, and the state after it.

        States with the same future are equal, byte for byte, so a beam search can join them.
        """
        after = np.empty_like(state)
        number = np.uint32(self.words.number(word))
        value, _ = advance(self._tables, self.order, self._missing, state, number, after)
        return value * _LN10, after

    def next(
        self, context: str = "", state: NDArray[np.uint32] | None = None
    ) -> NDArray[np.float64]:
        """The natural log-probability of every word of the vocabulary, by number, after a text.

        Args:
            context: The words so far, from the beginning of a sentence.
            state: A state to go on from instead of a beginning.

        Returns:
            One value a word; that of `<s>`, which is never predicted, is minus infinity.
        """
        state = self.start() if state is None else state
        for word in split_words(context):
            _, state = self.step(state, word)
        values = np.empty(len(self.words))
        spread(self._tables, self.order, self._missing, state, values)
        values[BOS] = -np.inf
        return values * _LN10

    def likely(self, context: str = "", count: int = 10) -> list[tuple[str, float]]:
        """The most probable next words with their probabilities, best first."""
        _check_whole("count", count)
        values = self.next(context)
        best = np.argsort(-values, kind="stable")[:count]
        return [(self.words[int(i)], math.exp(values[i])) for i in best]

    def generate(
        self, context: str = "", *, words: int = 100, temperature: float = 1.0, seed: int = 0
    ) -> str:
        """Words drawn one by one after a context, until the sentence ends or there are enough.

        Args:
            context: How the sentence begins.
            words: How many to draw at most.
            temperature: Below 1 the likely words become likelier still.
            seed: The same seed draws the same words.
        """
        _check_whole("words", words)
        _check_whole("seed", seed)
        if not isinstance(temperature, int | float) or not 0 < temperature < math.inf:
            raise ConfigError(f"temperature must be above 0, got {temperature!r}; give a number")
        draw = np.random.default_rng(seed)
        state, drawn = self.start(), split_words(context)
        for word in drawn:
            _, state = self.step(state, word)
        for _ in range(words):
            values = self.next(state=state) / temperature
            values[UNK] = -np.inf
            weights = np.exp(values - values.max())
            number = int(draw.choice(len(weights), p=weights / weights.sum()))
            if number == EOS:
                break
            drawn.append(self.words[number])
            _, state = self.step(state, drawn[-1])
        return " ".join(drawn)


def _check_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ConfigError(f"{name} must be a whole number not below 0, got {value!r}")


def _parts(sentences: list[str] | tuple[str, ...]) -> Iterator[list[str] | tuple[str, ...]]:
    """A list in parts, so that a long one is not held in memory twice."""
    for first in range(0, len(sentences), PART):
        yield sentences[first : first + PART]


def _joined(sentences: list[str] | tuple[str, ...]) -> bytes:
    """Sentences as lines; a line's end inside one is a blank."""
    text = "\n".join(sentences)
    if text.count("\n") != len(sentences) - 1:
        text = "\n".join(sentence.replace("\n", " ") for sentence in sentences)
    return encoded(text + "\n")


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks that end with a line's end."""
    rest = b""
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest:
        yield rest + b"\n"
