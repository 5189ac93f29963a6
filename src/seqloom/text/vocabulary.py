"""Words to numbers and back."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.config import from_dict, to_dict
from seqloom.errors import ConfigError, DataError, one_of

OutOfVocabulary = Literal["unk", "error", "hash"]

FORMAT = 1
MAX_FILE_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Specials:
    """The words that mean something to a model, in the order of their ids, the first being 0.

    Set one to "" to leave it out. A special that occurs in the text is the special: text in which
    rare words are written `<unk>` already needs nothing else.
    """

    pad: str = "<pad>"
    unk: str = "<unk>"
    bos: str = "<s>"
    eos: str = "</s>"
    more: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = self.names()
        if len(set(names)) != len(names):
            raise ConfigError(f"special words must differ from each other, got {names}")

    def names(self) -> list[str]:
        """Those in use, in order."""
        return [word for word in (self.pad, self.unk, self.bos, self.eos, *self.more) if word]


class _Index(dict[str, int]):
    """Word to id; what a word that is not there becomes is the vocabulary's policy."""

    def __init__(self, words: Iterable[str], policy: OutOfVocabulary, unk: int, buckets: int):
        super().__init__((word, i) for i, word in enumerate(words))
        self._policy, self._unk, self._buckets, self._first_bucket = policy, unk, buckets, len(self)

    def __missing__(self, word: str) -> int:
        if self._policy == "unk":
            return self._unk
        if self._policy == "hash":
            digest = hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=8).digest()
            return self._first_bucket + int.from_bytes(digest, "little") % self._buckets
        raise DataError(
            f"{word!r} is not in the vocabulary of {len(self):,} words and out_of_vocabulary is "
            "'error'"
        )


class Vocabulary:
    """A fixed list of words, each with an id: first the specials, then words by falling count.

    Words of equal count are ordered by their spelling, so the same text always gives the same ids.

    Args:
        words: The words after the specials, in the order of their ids.
        counts: How often each occurred, if it is known.
        specials: The special words.
        out_of_vocabulary: What becomes of other words: "unk" maps them to the unknown word,
            "error" raises `DataError`, "hash" spreads them over `buckets` ids after the last word.
        buckets: How many of those.

    Examples:
        >>> vocabulary = Vocabulary.build([["a", "rose", "is", "a", "rose"]], min_count=2)
        >>> vocabulary.encode(["a", "thorn"]).tolist(), vocabulary.decode([5])
        ([4, 1], ['rose'])
    """

    def __init__(
        self,
        words: Sequence[str],
        counts: Sequence[int] | None = None,
        *,
        specials: Specials | None = None,
        out_of_vocabulary: OutOfVocabulary = "unk",
        buckets: int = 0,
    ) -> None:
        self.specials = specials or Specials()
        if out_of_vocabulary not in get_args(OutOfVocabulary):
            known = get_args(OutOfVocabulary)
            raise ConfigError(one_of("out_of_vocabulary policy", out_of_vocabulary, known))
        if (out_of_vocabulary == "hash") != (buckets > 0):
            raise ConfigError(
                "buckets must be positive with out_of_vocabulary='hash' and 0 otherwise, "
                f"got {buckets} with {out_of_vocabulary!r}"
            )
        if out_of_vocabulary == "unk" and not self.specials.unk:
            raise ConfigError("out_of_vocabulary='unk' needs a special word unk, got unk=''")
        if counts is not None and len(counts) != len(words):
            raise ConfigError(f"{len(words)} words need as many counts, got {len(counts)}")
        names = self.specials.names()
        self.words: tuple[str, ...] = (*names, *words)
        self.counts = None if counts is None else tuple(counts)
        self.out_of_vocabulary, self.buckets = out_of_vocabulary, buckets
        unk = names.index(self.specials.unk) if self.specials.unk else -1
        self._index = _Index(self.words, out_of_vocabulary, unk, buckets)
        if len(self._index) != len(self.words):
            twice = next(word for word, n in Counter(self.words).items() if n > 1)
            raise ConfigError(f"words must differ from each other and the specials, got {twice!r}")

    @classmethod
    def build(
        cls,
        sentences: Iterable[Iterable[str]] | Mapping[str, int],
        *,
        min_count: int = 1,
        max_size: int | None = None,
        specials: Specials | None = None,
        out_of_vocabulary: OutOfVocabulary = "unk",
        buckets: int = 0,
    ) -> Vocabulary:
        """Count words and keep the frequent ones.

        Args:
            sentences: Tokenized sentences, or counts ready made.
            min_count: How often a word must occur to be kept.
            max_size: How many words to keep at most, the specials not counted.
            specials: The special words.
            out_of_vocabulary: As for the class.
            buckets: As for the class.
        """
        if min_count < 1 or (max_size is not None and max_size < 0):
            raise ConfigError(
                f"min_count must be at least 1 and max_size not negative, got {min_count} and "
                f"{max_size}"
            )
        counts: Counter[str] = Counter()
        if isinstance(sentences, Mapping):
            counts.update(sentences)
        else:
            for sentence in sentences:
                counts.update(sentence)
        for name in (specials or Specials()).names():
            counts.pop(name, None)
        kept = [(word, n) for word, n in counts.items() if n >= min_count]
        kept.sort(key=lambda pair: (-pair[1], pair[0]))
        kept = kept[:max_size]
        return cls(
            [word for word, _ in kept],
            [n for _, n in kept],
            specials=specials,
            out_of_vocabulary=out_of_vocabulary,
            buckets=buckets,
        )

    def __len__(self) -> int:
        """How many ids there are, specials and buckets included."""
        return len(self.words) + self.buckets

    def __contains__(self, word: object) -> bool:
        return dict.__contains__(self._index, word)

    def __getitem__(self, word: str) -> int:
        """The id of a word."""
        return self._index[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} ids, hash {self.hash[:8]})"

    def encode(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The ids of words, one each."""
        return np.array([*map(self._index.__getitem__, words)], dtype=np.int32)

    def decode(self, ids: ArrayLike) -> list[str]:
        """The words of ids; an id of a bucket is written `<bucket:3>`."""
        array = np.asarray(ids).reshape(-1)
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise DataError(f"ids must be whole numbers, got {array[0]!r}")
        if array.size and (array.min() < 0 or array.max() >= len(self)):
            wrong = array[(array < 0) | (array >= len(self))][0]
            raise DataError(f"ids must lie in 0..{len(self) - 1}, got {wrong}")
        known = len(self.words)
        return [self.words[i] if i < known else f"<bucket:{i - known}>" for i in array.tolist()]

    @property
    def hash(self) -> str:
        """A digest of everything that decides which id a word gets."""
        state = self.to_dict()
        state.pop("counts")
        text = json.dumps(state, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The vocabulary as plain values for JSON."""
        return {
            "format": FORMAT,
            "specials": to_dict(self.specials),
            "out_of_vocabulary": self.out_of_vocabulary,
            "buckets": self.buckets,
            "words": list(self.words[len(self.specials.names()) :]),
            "counts": None if self.counts is None else list(self.counts),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Vocabulary:
        """The vocabulary that `to_dict` wrote; anything else is a `ConfigError`."""
        if not isinstance(values, Mapping) or values.get("format") != FORMAT:
            raise ConfigError(f"a vocabulary must be a table with format {FORMAT}")
        state = from_dict(_Stored, values)
        return cls(
            state.words,
            state.counts,
            specials=state.specials,
            out_of_vocabulary=state.out_of_vocabulary,
            buckets=state.buckets,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the vocabulary as one JSON file.

        Raises:
            DataError: If it cannot be written there.
        """
        text = json.dumps(self.to_dict(), ensure_ascii=True)
        try:
            Path(path).write_text(text, encoding="ascii")
        except OSError as error:
            raise DataError(f"cannot be written ({error.strerror})", path) from None

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Vocabulary:
        """Read a vocabulary that `save` wrote."""
        try:
            if Path(path).stat().st_size > MAX_FILE_BYTES:
                raise DataError(f"is larger than {MAX_FILE_BYTES:,} bytes", path)
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise DataError("no such file; check the path", path) from None
        except (OSError, ValueError, RecursionError, ConfigError) as error:
            raise DataError(f"is not a vocabulary ({error})", path) from None


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """What a vocabulary file holds."""

    format: int
    specials: Specials
    out_of_vocabulary: OutOfVocabulary
    buckets: int
    words: list[str]
    counts: list[int] | None = None
