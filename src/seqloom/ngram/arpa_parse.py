"""From the lines of an ARPA file to numbers: the compiled part of reading one."""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled, inner, prefetch
from seqloom.ngram.arpa_write import LARGEST, NEVER, SLACK
from seqloom.ngram.eights import count_digits, find_number, load8, read_digits, scan_word_fast
from seqloom.ngram.words import NONE, is_blank, mix

MAX_ORDER = 8  # as in estimation
MAX_LINE = 1 << 20  # bytes
WAITING = 16  # n-grams between asking for memory and using it

# What ends the parsing: the end of the text, a line that begins with a backslash, a wrong line.
MORE, SECTION, NO_PROB, BAD_PROB, FEW, UNKNOWN, NO_BACKOFF, BAD_BACKOFF, LONG = range(9)

_POWERS = 10.0 ** np.arange(23)  # those that float64 holds exactly
_TENS = 10 ** np.arange(9)
_FULL, _SPARE = 10**17, 10**9
_U = np.uint64
_1, _NONE = _U(1), np.uint32(NONE)


@inner
def _skip(text, at):  # type: ignore[no-untyped-def]
    """The next byte that is no blank, at most the line's end."""
    while text[at] == 32 or text[at] == 9 or text[at] == 13:
        at += 1
    return at


@inner
def _spells(text, at, letters):  # type: ignore[no-untyped-def]
    """How many of these letters follow, in either case."""
    n = 0
    while n < len(letters) and text[at + n] | 32 == letters[n]:
        n += 1
    return n


_INFINITY, _NAN = np.frombuffer(b"infinity", np.uint8), np.frombuffer(b"nan", np.uint8)


@inner
def parse_number(text, at):  # type: ignore[no-untyped-def]
    """The number that begins at `at`, and its end; the end is `at` if there is no number.

    The text must end with a line's end, which is where no number goes on.
    """
    start = at
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    unsigned = at
    mantissa = scale = digits = 0
    while 48 <= text[at] <= 57:
        if mantissa < _FULL:
            mantissa = 10 * mantissa + (text[at] - 48)
        else:
            scale += 1
        digits += 1
        at += 1
    if text[at] == 46:
        at += 1
        size = 8
        while size == 8 and mantissa < _SPARE:
            eight = load8(text, at)
            size = count_digits(eight)
            if size:
                mantissa = mantissa * _TENS[size] + read_digits(eight, size)
            scale -= size
            digits += size
            at += size
        while 48 <= text[at] <= 57:
            if mantissa < _FULL:
                mantissa = 10 * mantissa + (text[at] - 48)
                scale -= 1
            digits += 1
            at += 1
    value = float(mantissa)
    if digits == 0:
        letters = _spells(text, at, _INFINITY)
        value = np.inf
        if letters != 3 and letters != 8:
            letters = _spells(text, at, _NAN)
            value = np.nan
        if (letters != 3 and letters != 8) or at != unsigned:
            return 0.0, start
        at += letters
    elif text[at] | 32 == 101:
        at += 1
        below = text[at] == 45
        if below or text[at] == 43:
            at += 1
        exponent = digits = 0
        while 48 <= text[at] <= 57:
            exponent = min(10 * exponent + (text[at] - 48), 1 << 30)
            digits += 1
            at += 1
        if digits == 0:
            return 0.0, start
        scale += -exponent if below else exponent
    if not is_blank(text[at]):
        return 0.0, start
    if mantissa != 0 and scale != 0:
        if -23 < scale < 0:
            value /= _POWERS[-scale]
        elif scale > 0:
            value *= 10.0 ** min(scale, 400)
        else:
            value = value / _POWERS[18] * 10.0 ** max(scale + 18, -400)
    return (-value if negative else value), at


@inner
def _began(spans, row):  # type: ignore[no-untyped-def]
    """Where the line of an n-gram that waits begins."""
    return np.int64(spans[row % WAITING, MAX_ORDER, 0])


@inner
def _resolve(text, row, order, spans, words, table, pool, offsets):  # type: ignore[no-untyped-def]
    """Turn the words of an n-gram into numbers; False if one is not known."""
    for k in range(order):
        waiting = row % WAITING
        start, end = np.int64(spans[waiting, k, 0]), np.int64(spans[waiting, k, 1])
        number = find_number(text, start, end, spans[waiting, k, 2], table, pool, offsets)
        if number == _NONE:
            return False
        words[k, row] = number
    return True


@compiled
def parse_lines(  # type: ignore[no-untyped-def]
    text, at, size, line, order, words, prob, backoff, lines, spelled, spans, table, pool, offsets
):
    """Parse the n-grams from byte `at` to `size`, or to a line that begins with a backslash.

    `words` gets their word numbers, a row a place in the n-gram; for unigrams it gets the words'
    lengths and `spelled` their bytes. The text must have a line's end before `size`, at least eight
    bytes after it and hold no byte 0. Words wait in `spans` until the table's memory has come.
    Returns what stopped it, where, in which line, and how many n-grams there are.
    """
    n, done, spelling = 0, 0, 0
    mask = _U(len(table) - 2)
    stopped = MORE
    start = at
    while at < size and stopped == MORE:
        start = at
        at = _skip(text, at)
        if text[at] == 92:
            stopped = SECTION
            break
        if text[at] != 10:
            value, end = parse_number(text, at)
            if end == at or not value <= SLACK:
                stopped = NO_PROB if end == at else BAD_PROB
                break
            prob[n] = min(value, 0.0) if value > NEVER else -np.inf
            at = _skip(text, end)
            for k in range(order):
                if text[at] == 10:
                    stopped = FEW
                    break
                end, key, _ = scan_word_fast(text, at)
                if order == 1:
                    words[0, n] = end - at
                    for i in range(at, end):
                        spelled[spelling] = text[i]
                        spelling += 1
                else:
                    prefetch(table, (mix(key) << _1) & mask)
                    waiting = n % WAITING
                    spans[waiting, k, 0], spans[waiting, k, 1], spans[waiting, k, 2] = at, end, key
                at = _skip(text, end)
            if stopped != MORE:
                break
            value = 0.0
            if text[at] != 10:
                value, end = parse_number(text, at)
                at = _skip(text, end)
                if text[at] != 10 or not value <= LARGEST:
                    stopped = NO_BACKOFF if text[at] != 10 else BAD_BACKOFF
                    break
            backoff[n] = value if value > NEVER else -np.inf
            lines[n], spans[n % WAITING, MAX_ORDER, 0] = line, start
            n += 1
            if order > 1 and n - done == WAITING:
                if not _resolve(text, done, order, spans, words, table, pool, offsets):
                    return UNKNOWN, _began(spans, done), lines[done], done
                done += 1
        if at - start >= MAX_LINE:
            stopped = LONG
            break
        at += 1
        line += 1
    while order > 1 and done < n:
        if not _resolve(text, done, order, spans, words, table, pool, offsets):
            return UNKNOWN, _began(spans, done), lines[done], done
        done += 1
    return stopped, (at if stopped == MORE else start), line, n
