"""The table of words is a dictionary: checked against one, while it grows."""

from __future__ import annotations

import random

import numpy as np

from seqloom.extract.word_table import WordTable, apart, numbered


def test_it_is_a_dictionary_that_grows():
    drawn = random.Random(3)
    table, known = WordTable(size=16), {}
    for _ in range(60):
        text = " ".join("".join(drawn.choices("abc1", k=drawn.randint(1, 4))) for _ in range(9))
        cut = text.rindex(" ", 0, len(text) // 2)
        spans = np.array([(0, cut), (cut, len(text))])
        _, _, unknown = table.find(text.encode(), spans)
        words = [text[:cut].split(), text[cut:].split()]
        assert unknown == [w.encode() for some in words for w in some if w not in known]
        new = list(dict.fromkeys(unknown))
        numbers = [drawn.choice([-1, len(known) + i]) for i in range(len(new))]
        if new:
            table.add(new, numbers)
        known |= {word.decode(): number for word, number in zip(new, numbers, strict=True)}
        ids, offsets, unknown = table.find(text.encode(), spans)
        expected = [[known[w] for w in some if known[w] >= 0] for some in words]
        assert ids.tolist() == [*expected[0], *expected[1]]
        assert unknown == []
        assert offsets.tolist() == [0, len(expected[0]), len(ids)]


def test_numbers_in_the_order_of_their_first_occurrence():
    given = [7, 3, 7, 900_000, 3, 0]
    own, kinds = numbered(np.array(given, np.int32))
    first = list(dict.fromkeys(given))
    assert kinds.tolist() == first
    assert own.tolist() == [first.index(number) for number in given]


def test_headings_come_after_sentences():
    ids, offsets = np.array([1, 2, 3, 4, 5], np.int32), np.array([0, 1, 3, 3, 5])
    found, begins = apart(ids, offsets, np.array([True, False, False, True]))
    assert found.tolist() == [2, 3, 1, 4, 5]
    assert begins.tolist() == [0, 2, 2]
