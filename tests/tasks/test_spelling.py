"""Words as counted models hold them: no blanks, and nothing lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqloom.errors import DataError
from seqloom.tasks import spelling as module
from seqloom.tasks.spelling import MARKS, Spelling, spell, unspell
from seqloom.text import Vocabulary
from texts import any_text


@given(any_text | st.text(st.sampled_from(" \0\t\n\r␣␛;0a\ud800\udcff<s>/unk")))
@example("<s>")
@example("␛20;")
@example("▁the")
def test_every_word_can_be_spelled_and_read_back(word):
    spelled = spell(word)
    assert unspell(spelled) == word
    assert not set(spelled) & set(" \0\t\n\r")
    assert spelled not in MARKS
    spelled.encode()


def test_plain_words_stay_as_they_are():
    for word in ("rose", "中国", "don't", "▁the", "Ġthe", "<b>", "\u3000", "\xa0"):
        assert spell(word) == word


def test_lines_of_ids(monkeypatch):
    vocabulary = Vocabulary(["a", " ", "b c"])
    spelling = Spelling(vocabulary)
    words = ["a", " ", "</s>", "</s>", "b c", "zebra", "<s>", "<pad>", "<unk>", "</s>"]
    ids = vocabulary.encode(words)
    expected = [["a", "␣"], [], ["b␣c", *["<unk>"] * 4]]
    for block in (1, 2, 3, 100):
        monkeypatch.setattr(module, "BLOCK", block)
        assert [line.split(" ") for line in map(str.strip, spelling.lines(ids))] == [
            line or [""] for line in expected
        ]
    assert list(spelling.lines(np.zeros(0, np.int32))) == []
    with pytest.raises(DataError, match=r"each closed by the end-of-sentence word.*ends=true"):
        list(spelling.lines(ids[:-1]))
