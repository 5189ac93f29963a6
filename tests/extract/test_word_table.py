"""Terms of words against a dictionary of what the reference says, while the table grows."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from seqloom.extract import ReadingConfig, reference
from seqloom.extract.arrangement import apart, arranged, numbered
from seqloom.extract.characters import CLASSES, SMALL, codes_of
from seqloom.extract.stop_words import CHINESE, ENGLISH
from seqloom.extract.terms import Terms
from seqloom.extract.word_table import WordTable, number_words


@pytest.mark.parametrize(
    "options", [{}, {"numbers": True, "stem": False}, {"stop_words": False}], ids=str
)
def test_terms_are_those_of_the_reference(options):
    drawn = random.Random(3)
    config = ReadingConfig(**options, more_stop_words=("abba", "Upper"))
    left_out = {*config.more_stop_words, *(ENGLISH | CHINESE if config.stop_words else ())}

    def expected(words: list[str]) -> list[str]:
        found = (
            reference.term(w, left_out, numbers=config.numbers, stems=config.stem) for w in words
        )
        return [term for term in found if term is not None]

    terms = Terms(config)
    for _ in range(60):
        words = ["".join(drawn.choices("abÉéIs1²K", k=drawn.randint(1, 5))) for _ in range(9)]
        words += [*drawn.sample(sorted(ENGLISH), 2), "Running", "upper", "U" * drawn.randint(1, 99)]
        first, second = " - ".join(words[:5]), "_".join(words[5:])
        text = f"{first} {second}"
        units = np.array([[0, len(first), 0], [len(first), len(text), 0]])
        ids, offsets = terms.of_text(codes_of(text)[0], units)
        assert terms.names(ids.tolist()) == expected(words)
        assert offsets.tolist() == [0, 5, len(words)]
        assert terms.names(ids[:5].tolist()) == expected(words[:5])
        # Cut into words, some of which only Python can put into small letters.
        given = [[*words, "--", "ΟΔΟΣ", "İx"], ["", "Don't"]]
        ids, offsets = terms.of_words(given)
        assert terms.names(ids.tolist()) == [*expected(given[0]), *expected(given[1])]
        assert offsets.tolist() == [0, len(given[0]), len(given[0]) + 2]


def test_a_table_without_room_says_so_and_forgets_nothing_when_it_grows():
    table = WordTable(size=16)
    words = [a + b for a in "bcdfgh" for b in "klmnp"]
    text = " ".join(words)
    codes, _ = codes_of(text)
    spans = np.array([[match.start(), match.end()] for match in re.finditer(r"\w+", text)])
    grown = 0
    while True:
        ids, done = number_words(codes, spans, CLASSES, SMALL, table.arrays, False, False)
        if done:
            break
        table.grow()
        grown += 1
    assert grown > 1
    assert ids.tolist() == list(range(len(words)))
    assert table.terms_from(0) == words


def test_numbers_in_the_order_of_their_first_occurrence():
    given = [7, 3, 7, 900_000, 3, 0]
    own, kinds = numbered(np.array(given, np.int32))
    first = list(dict.fromkeys(given))
    assert kinds.tolist() == first
    assert own.tolist() == [first.index(number) for number in given]


def test_headings_come_after_sentences():
    ids, offsets = np.array([1, 2, -1, 3, 4, 5, -1], np.int32), np.array([0, 1, 4, 4, 7])
    found, begins = apart(ids, offsets, np.array([True, False, False, True]))
    assert found.tolist() == [2, 3, 1, 4, 5]
    assert begins.tolist() == [0, 2, 2]


def test_headings_are_sentences_if_wanted_or_if_there_is_nothing_else():
    ids, offsets = np.array([8, 9, 8], np.int32), np.array([0, 1, 3])
    one, all_of_them = np.array([[0, 1, 1], [1, 2, 0]]), np.array([[0, 1, 1], [1, 2, 1]])
    own, begins, kinds, kept = arranged(ids, offsets, one, False)
    assert (own.tolist(), begins.tolist(), kinds.tolist()) == ([0, 1, 1], [0, 2], [9, 8])
    assert kept.tolist() == [1]
    for units, wanted in ((one, True), (all_of_them, False)):
        own, begins, kinds, kept = arranged(ids, offsets, units, wanted)
        assert (own.tolist(), begins.tolist(), kinds.tolist()) == ([0, 1, 0], [0, 1, 3], [8, 9])
        assert kept.tolist() == [0, 1]
