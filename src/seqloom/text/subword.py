"""Subword tokenizers: pieces learned from a text, on the `tokenizers` library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from seqloom.errors import ConfigError, DataError, InputError, one_of
from seqloom.text.tokens import Tokens

if TYPE_CHECKING:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as HFTokenizer

Method = Literal["bpe", "unigram"]

MAX_FILE_BYTES = 256 << 20
# Bytes stand as visible characters inside pieces, so that every text can be written with 256 of
# them. This is the table of Radford et al. (2019), undone for people by `SubwordTokenizer.shown`.
BYTE_ALPHABET = 256
_SURROGATE = re.compile("[\ud800-\udfff]")


class SubwordTokenizer:
    """Pieces of words, learned so that frequent words are whole and rare ones are spelled.

    Works on bytes, so no text has an unknown piece and `decode(encode(x)) == x` for every text, in
    any script. One piece may hold part of a character; its offsets then cover the whole character.

    Paper: Sennrich et al. (2016), "Neural Machine Translation of Rare Words with Subword Units"
    ("bpe"); Kudo (2018), "Subword Regularization" ("unigram").

    Args:
        backend: A trained tokenizer of the `tokenizers` library; use `train` or `load`.

    Examples:
        >>> pieces = SubwordTokenizer.train(["low lower lowest"] * 9, vocab_size=270)
        >>> pieces.decode(pieces.encode("slowest 低"))
        'slowest 低'
    """

    def __init__(self, backend: HFTokenizer) -> None:
        self._backend = backend

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        *,
        method: Method = "bpe",
        specials: Sequence[str] = (),
        min_count: int = 2,
    ) -> SubwordTokenizer:
        """Learn pieces from texts.

        Args:
            texts: The training text; iterated once.
            vocab_size: How many pieces, at least the 256 bytes and the specials, for "unigram" one
                more.
            method: "bpe" merges the most frequent pair again and again; "unigram" starts from many
                pieces and drops those a unigram model misses least.
            specials: Pieces that are never split and come first, in this order; ASCII text.
            min_count: How often a pair must occur to be merged ("bpe" only).

        Raises:
            InputError: If a text holds half a surrogate pair, which no bytes stand for.
        """
        from tokenizers import (
            Tokenizer,
            decoders,
            models,
            pre_tokenizers,
            trainers,
        )

        if method not in get_args(Method):
            raise ConfigError(one_of("subword method", method, get_args(Method)))
        # The library's unigram trainer keeps every piece when it may keep none but the bytes.
        least = BYTE_ALPHABET + len(specials) + (method == "unigram")
        if vocab_size < least:
            raise ConfigError(
                f"vocab_size must be at least {least} for {method!r} (256 bytes and the specials), "
                f"got {vocab_size}"
            )
        if len(set(specials)) != len(specials) or not all(s and s.isascii() for s in specials):
            raise ConfigError(
                f"specials must be ASCII text, not empty and differ, got {list(specials)}"
            )
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        shared: dict[str, Any] = {
            "vocab_size": vocab_size,
            "special_tokens": list(specials),
            "initial_alphabet": alphabet,
            "show_progress": False,
        }
        if method == "bpe":
            backend = Tokenizer(models.BPE())
            trainer: Any = trainers.BpeTrainer(min_frequency=min_count, **shared)
        else:
            backend = Tokenizer(models.Unigram())
            trainer = trainers.UnigramTrainer(**shared)
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        backend.train_from_iterator(_not_empty(texts), trainer=trainer)
        return cls(backend)

    def __len__(self) -> int:
        return int(self._backend.get_vocab_size())

    @property
    def pieces(self) -> list[str]:
        """All pieces in the order of their ids."""
        vocabulary: dict[str, int] = self._backend.get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    def _encoding(self, text: str) -> Encoding:
        return self._backend.encode(_checked(text), add_special_tokens=False)

    def encode(self, text: str) -> list[int]:
        """The ids of the pieces of `text`.

        Raises:
            InputError: If it holds half a surrogate pair, which no bytes stand for.
        """
        ids: list[int] = self._encoding(text).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids; ids of specials are written as they are spelled."""
        size = len(self)
        for id_ in ids:
            if not 0 <= id_ < size:
                raise DataError(f"ids must lie in 0..{size - 1}, got {id_}")
        text: str = self._backend.decode(list(ids), skip_special_tokens=False)
        return text

    def words(self, text: str) -> list[str]:
        """The pieces of `text` as the library spells them (bytes as visible characters)."""
        pieces: list[str] = self._encoding(text).tokens
        return pieces

    def __call__(self, text: str) -> Tokens:
        """The pieces of `text` with their offsets."""
        encoding = self._encoding(text)
        return Tokens(text, encoding.tokens, list(encoding.offsets))

    def detokenize(self, words: Sequence[str]) -> str:
        """The text of these pieces."""
        ids = []
        for word in words:
            id_ = self._backend.token_to_id(word)
            if id_ is None:
                raise DataError(f"{word!r} is not a piece of this tokenizer")
            ids.append(id_)
        return self.decode(ids)

    def shown(self, words: Sequence[str]) -> list[str]:
        """Pieces as people read them, blanks included; part of a character is "\ufffd"."""
        table = _bytes_by_character()
        return [
            bytes(table[c] for c in word).decode("utf-8", "replace")
            if all(c in table for c in word)
            else word
            for word in words
        ]

    def to_bytes(self) -> bytes:
        """The tokenizer as JSON in the form of the `tokenizers` library."""
        text: str = self._backend.to_str()
        return text.encode()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tokenizer as one JSON file."""
        try:
            Path(path).write_bytes(self.to_bytes())
        except OSError as error:
            raise DataError(f"cannot be written ({error.strerror})", path) from None

    @classmethod
    def load(cls, path: str | PathLike[str]) -> SubwordTokenizer:
        """Read a tokenizer that `save`, or the `tokenizers` library, wrote."""
        from tokenizers import Tokenizer

        file = Path(path)
        try:
            if file.stat().st_size > MAX_FILE_BYTES:
                raise DataError(f"is larger than {MAX_FILE_BYTES:,} bytes", path)
            text = file.read_text(encoding="utf-8")
            json.loads(text)
            return cls(Tokenizer.from_str(text))
        except FileNotFoundError:
            raise DataError("no such file; check the path", path) from None
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"is not a tokenizer file ({error})", path) from None
        except DataError:
            raise
        except Exception as error:  # the library raises bare Exception for a wrong content
            raise DataError(f"is not a tokenizer file ({error})", path) from None


@cache
def _bytes_by_character() -> dict[str, int]:
    """What byte each visible character stands for: itself, or the next one from 256 on."""
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(BYTE_ALPHABET) if byte not in itself]
    return {chr(b): b for b in itself} | {chr(256 + n): b for n, b in enumerate(others)}


def _checked(text: str) -> str:
    half = _SURROGATE.search(text)
    if half is not None:
        raise InputError(
            f"a text must be whole characters, got half a surrogate pair ({half[0]!r}) at place "
            f"{half.start()}; was it cut?"
        )
    return text


def _not_empty(texts: Iterable[str]) -> Iterable[str]:
    found = False
    for text in texts:
        found = found or bool(text)
        yield _checked(text)
    if not found:
        raise DataError("a subword tokenizer cannot be trained on no text at all")
