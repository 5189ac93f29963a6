"""Words and their numbers, and text as numbers: the tokenizer of the counted models.

Words are runs of bytes between blanks, as every n-gram tool has them. Blanks are the space, the
tab, the carriage return and the byte 0; a line is a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, inner
from seqloom.errors import DataError

UNK, BOS, EOS = 0, 1, 2  # the numbers of <unk>, <s> and </s> in every vocabulary
SPECIALS = ("<unk>", "<s>", "</s>")
NONE = 0xFFFFFFFF  # no word, no n-gram
BOM = b"\xef\xbb\xbf"  # before the first word of some files, and no part of it

_WORD = re.compile("[^ \t\r\n\0]+")
_WORD_BYTES = re.compile(rb"[^ \t\r\n\0]+")
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # half a character that stands for no byte

_U = np.uint64
_MIX = _U(0xD6E8FEB86659FD93)
_1, _2, _8, _32, _64 = _U(1), _U(2), _U(8), _U(32), _U(64)
_LOW, _LONG = _U(0xFFFFFFFF), _U(1 << 63)


def encoded(text: str) -> bytes:
    r"""A text as bytes: bytes that were no UTF-8 as they were, half a character as U+FFFD.

    >>> encoded("a\udcff \ud800")
    b'a\xff \xef\xbf\xbd'
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _LONE.sub("\ufffd", text).encode("utf-8", "surrogateescape")


def split_words(text: str) -> list[str]:
    r"""The words of a text, between the blanks of this tokenizer alone.

    >>> split_words("New\u00a0York\tis")
    ['New\xa0York', 'is']
    """
    return _WORD.findall(text)


def split_bytes(text: bytes) -> list[bytes]:
    """As `split_words`, of bytes."""
    return _WORD_BYTES.findall(text)


@inner
def mix(x):  # type: ignore[no-untyped-def]
    """Scatter the bits of a 64-bit number; a bijection."""
    x ^= x >> _32
    x *= _MIX
    x ^= x >> _32
    x *= _MIX
    x ^= x >> _32
    return x


@inner
def is_blank(byte):  # type: ignore[no-untyped-def]
    """Whether a byte ends a word."""
    return byte <= 32 and (byte == 32 or byte == 10 or byte == 9 or byte == 13 or byte == 0)


@inner
def scan_word(text, at):  # type: ignore[no-untyped-def]
    """The end of the word that begins at `at`, its key, and whether it is long.

    The key of a word of up to eight bytes is those bytes themselves, so that equal keys are equal
    words; that of a longer one is a hash.
    """
    h, block, shift, start, size = _U(0), _U(0), _U(0), at, len(text)
    byte = text[at]
    while True:
        if shift == _64:
            h, block, shift = mix(h ^ block), _U(0), _U(0)
        block |= _U(byte) << shift
        shift += _8
        at += 1
        if at == size:
            break
        byte = text[at]
        if is_blank(byte):
            break
    is_long = at - start > 8
    return at, (mix(h ^ block) if is_long else block), is_long


@inner
def find_word(text, start, end, key, is_long, table, pool, offsets):  # type: ignore[no-untyped-def]
    """The slot of the table that holds a word, or the free one where it would be.

    A slot is two numbers: the key, and the word's number plus one with a mark for long words (0 if
    free). Long words are compared byte by byte, so two words with one hash are still two words.
    """
    slot = first_slot(key, table)
    return look_from(text, start, end, slot, key, is_long, table, pool, offsets)


@inner
def first_slot(key, table):  # type: ignore[no-untyped-def]
    """Where to begin to look for a key."""
    return (mix(key) << _1) & _U(len(table) - 2)


@inner
def look_from(text, start, end, slot, key, is_long, table, pool, offsets):  # type: ignore[no-untyped-def]
    """The same from a slot on."""
    mask = _U(len(table) - 2)
    mark = _LONG if is_long else _U(0)
    while True:
        entry = table[slot + _1]
        if entry == 0:
            return slot
        if table[slot] == key and entry & _LONG == mark:
            if not is_long:
                return slot
            at = offsets[np.int64(entry & _LOW) - 1]
            if offsets[np.int64(entry & _LOW)] - at == end - start:
                i = 0
                while i < end - start and pool[at + i] == text[start + i]:
                    i += 1
                if i == end - start:
                    return slot
        slot = (slot + _2) & mask


# What a tokenizer carries from one piece of text to the next, in an int64 array.
FRESH_WORDS, FRESH_BYTES, IN_LINE, LINES, SEEN = 0, 1, 2, 3, 4  # SEEN: counters of special words
DONE, TABLE_FULL, IDS_FULL, SYMBOL = range(4)  # what stopped a tokenizer
COUNT, SKIP, REFUSE = range(3)  # what to do with special words in a text
FRESH = np.uint32(1 << 31)  # marks the number of a word that is new in its block


@compiled
def tokenize(  # type: ignore[no-untyped-def]
    text, at, ids, n, table, pool, offsets,
    fresh_table, fresh_pool, fresh_offsets, state, grows, symbols,
):  # fmt: skip
    """Turn text into word numbers, each line between BOS and EOS, from byte `at` on.

    Words of the vocabulary (`table`, `pool`, `offsets`) get their numbers; others that of `<unk>`
    or, where the vocabulary grows, a number among the fresh words with the mark FRESH. Returns
    what stopped it, the byte it came to and how many ids there are; it goes on from there when
    called again. The text must end at a blank, a line's end or the text's own end.
    """
    size = len(text)
    in_line = state[IN_LINE]
    stopped = DONE
    while at < size:
        if n + 2 > len(ids):
            stopped = IDS_FULL
            break
        if not in_line:
            ids[n] = BOS
            n += 1
            in_line = 1
        byte = text[at]
        if is_blank(byte):
            at += 1
            if byte == 10:
                ids[n] = EOS
                n += 1
                in_line = 0
                state[LINES] += 1
            continue
        end, key, is_long = scan_word(text, at)
        entry = table[find_word(text, at, end, key, is_long, table, pool, offsets) + _1]
        if entry != 0:
            number = np.uint32((entry & _LOW) - _1)
            if number <= EOS:
                state[SEEN + number] += 1
                if symbols == REFUSE:
                    stopped = SYMBOL
                    break
                if symbols == COUNT and number == UNK:
                    ids[n] = UNK
                    n += 1
            else:
                ids[n] = number
                n += 1
        elif not grows:
            ids[n] = UNK
            n += 1
        else:
            slot = find_word(text, at, end, key, is_long, fresh_table, fresh_pool, fresh_offsets)
            entry = fresh_table[slot + _1]
            if entry == 0:
                count, used = state[FRESH_WORDS], state[FRESH_BYTES]
                if 3 * count >= len(fresh_table):
                    stopped = TABLE_FULL
                    break
                for i in range(at, end):
                    fresh_pool[used + i - at] = text[i]
                fresh_offsets[count + 1] = used + end - at
                entry = _U(count + 1) | (_LONG if is_long else _U(0))
                fresh_table[slot] = key
                fresh_table[slot + _1] = entry
                state[FRESH_WORDS] = count + 1
                state[FRESH_BYTES] = used + end - at
            ids[n] = np.uint32((entry & _LOW) - _1) | FRESH
            n += 1
        at = end
    state[IN_LINE] = in_line
    return stopped, at, n


@compiled
def add_words(count, pool, offsets, table, words, all_pool, all_offsets, numbers):  # type: ignore[no-untyped-def]
    """Add words to a vocabulary of `words` with room enough; `numbers` gets their numbers."""
    for i in range(count):
        start, end = offsets[i], offsets[i + 1]
        _, key, is_long = scan_word(pool[:end], start)
        slot = find_word(pool, start, end, key, is_long, table, all_pool, all_offsets)
        if table[slot + _1] == 0:
            used = all_offsets[words]
            for j in range(start, end):
                all_pool[used + j - start] = pool[j]
            words += 1
            all_offsets[words] = used + end - start
            table[slot] = key
            table[slot + _1] = _U(words) | (_LONG if is_long else _U(0))
        numbers[i] = np.uint32((table[slot + _1] & _LOW) - _1)
    return words


@compiled
def settle(ids, numbers):  # type: ignore[no-untyped-def]
    """Give fresh words their numbers in the vocabulary."""
    for i in range(len(ids)):
        if ids[i] & FRESH:
            ids[i] = numbers[ids[i] ^ FRESH]


@compiled
def fill_table(table, pool, offsets, words):  # type: ignore[no-untyped-def]
    """Enter every word; returns the first that is empty or was there already, or -1."""
    for number in range(words):
        start, end = offsets[number], offsets[number + 1]
        if start == end:
            return number
        _, key, is_long = scan_word(pool[:end], start)
        slot = find_word(pool, start, end, key, is_long, table, pool, offsets)
        if table[slot + _1] != 0:
            return number
        table[slot] = key
        table[slot + _1] = _U(number + 1) | (_LONG if is_long else _U(0))
    return -1


class Words:
    """Words and their numbers, `<unk>`, `<s>` and `</s>` first.

    Args:
        pool: The words' bytes, one after another.
        offsets: Where each begins, and the end of the last.
        table: Hash table from words to numbers; built if not given.
    """

    def __init__(
        self,
        pool: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        table: NDArray[np.uint64] | None = None,
    ) -> None:
        self.pool, self.offsets = pool, offsets
        if table is None:
            table = np.zeros(table_size(len(offsets) - 1), np.uint64)
            twice = fill_table(table, pool, offsets, len(offsets) - 1)
            if twice >= 0:
                raise DataError(f"a vocabulary holds each word once, got {self[twice]!r} again")
        self.table = table

    @classmethod
    def of(cls, words: Iterable[str | bytes]) -> Words:
        """A vocabulary of these words, after the special ones; words given twice count once."""
        given = (encoded(w) if isinstance(w, str) else w for w in words)
        distinct = dict.fromkeys([*(s.encode() for s in SPECIALS), *given])
        for word in distinct:
            if not word or any(blank in word for blank in (b" ", b"\n", b"\t", b"\r", b"\0")):
                raise DataError(f"a word is not empty and holds no blank, got {word!r}")
        lengths = np.fromiter(map(len, distinct), np.int64, len(distinct))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return cls(np.frombuffer(b"".join(distinct), np.uint8), offsets)

    def only(self, keep: NDArray[np.bool_]) -> Words:
        """The vocabulary without the words for which `keep` is false; the order stays."""
        lengths = np.diff(self.offsets)
        pool = self.pool[: self.offsets[-1]][np.repeat(keep, lengths)]
        return Words(pool, np.concatenate([[0], np.cumsum(lengths[keep])]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:
        start, end = self.offsets[number], self.offsets[number + 1]
        return self.pool[start:end].tobytes().decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        pool = self.pool.tobytes()
        offsets = self.offsets.tolist()
        for start, end in pairwise(offsets):
            yield pool[start:end].decode("utf-8", "surrogateescape")

    def number(self, word: str) -> int:
        """The number of a word; that of `<unk>` if it is not known."""
        found = self.numbers(encoded(word))
        return int(found[0]) if len(found) else UNK

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and (word == SPECIALS[UNK] or self.number(word) != UNK)

    def numbers(self, words: bytes) -> NDArray[np.uint32]:
        """The numbers of blank-separated words, special ones as themselves; no sentence marks."""
        text = np.frombuffer(words, np.uint8)
        ids = np.empty(len(text) // 2 + 1, np.uint32)
        return ids[: _look_up(text, ids, self.table, self.pool, self.offsets)]


@compiled
def _look_up(text, ids, table, pool, offsets):  # type: ignore[no-untyped-def]
    n, at, size = 0, 0, len(text)
    while at < size:
        if is_blank(text[at]):
            at += 1
            continue
        end, key, is_long = scan_word(text, at)
        entry = table[find_word(text, at, end, key, is_long, table, pool, offsets) + _1]
        ids[n] = np.uint32((entry & _LOW) - _1) if entry != 0 else np.uint32(UNK)
        n += 1
        at = end
    return n


def table_size(words: int) -> int:
    """The length of a table for so many words, two numbers a slot, at most two thirds full."""
    return 1 << max(11, (3 * words).bit_length())
