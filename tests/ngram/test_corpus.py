"""Text becomes word numbers as a plain split would have it, whatever way it comes in."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import ConfigError, DataError
from seqloom.ngram.corpus import read_corpus
from seqloom.ngram.counting import count_ngrams
from seqloom.ngram.words import Words
from seqloom.ngram.workspace import Workspace

WORDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r "), min_size=1),
    st.sampled_from(["a", "b", "exactly8", "ninebytes", "ninebytez", "中文", "abcdefgh" * 3]),
)
LINES = st.lists(st.lists(WORDS, max_size=6), min_size=1, max_size=20)


def slow_ids(lines: list[list[str]]) -> tuple[list[int], list[str]]:
    numbers = {"<unk>": 0, "<s>": 1, "</s>": 2}
    ids = []
    for line in lines:
        ids.append(1)
        for word in line:
            if word in ("<s>", "</s>"):
                continue
            ids.append(numbers.setdefault(word, len(numbers)))
        ids.append(2)
    return ids, list(numbers)


@pytest.fixture(params=[1 << 23, 7], ids=["one block", "many blocks"])
def block(request, monkeypatch):
    monkeypatch.setattr(Workspace, "block", request.param)


@pytest.mark.usefixtures("block")
class TestWays:
    @given(lines=LINES)
    def test_sentences_in_python(self, lines):
        found = read_corpus([" ".join(line) for line in lines], Workspace())
        ids, words = slow_ids(lines)
        assert (found.ids.tolist(), list(found.words), found.lines) == (ids, words, len(lines))

    @given(lines=LINES, blank=st.sampled_from([" ", "\t", "  ", " \t", "\0", "\r"]))
    def test_a_file(self, tmp_path_factory, lines, blank):
        path = tmp_path_factory.mktemp("text") / "text"
        path.write_bytes("\n".join(blank.join(line) for line in lines).encode() + b"\n")
        assert read_corpus(path, Workspace()).ids.tolist() == slow_ids(lines)[0]

    def test_no_line_end_at_the_end_of_files(self, tmp_path):
        (tmp_path / "1.txt").write_bytes(b"a b\nc")
        (tmp_path / "2.txt").write_bytes(b"c d")
        (tmp_path / "3.txt").write_bytes(b"")
        (tmp_path / "4.txt.gz").write_bytes(gzip.compress(b"e\r\n\n"))
        ids, words = slow_ids([["a", "b"], ["c"], ["c", "d"], ["e"], []])
        by_pattern = read_corpus(str(tmp_path / "*.txt*"), Workspace())
        by_path = read_corpus(sorted(tmp_path.iterdir()), Workspace())
        assert by_pattern.ids.tolist() == by_path.ids.tolist() == ids
        assert list(by_pattern.words) == words


def test_standard_input():
    code = (
        "from seqloom.ngram.corpus import read_corpus\n"
        "from seqloom.ngram.workspace import Workspace\n"
        "print(read_corpus('-', Workspace()).ids.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"a b\na", capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == str(slow_ids([["a", "b"], ["a"]])[0])


def test_bytes_that_are_no_utf8_stay_what_they_are(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\xff\xfe a\n")
    words = read_corpus(path, Workspace()).words
    assert words[3].encode("utf-8", "surrogateescape") == b"\xff\xfe"
    assert words.number("\udcff\udcfe") == 3


class TestSpecialWords:
    TEXT = ("a <unk> b", "<s> a </s>")

    def test_unk_counts_and_marks_are_skipped(self):
        found = read_corpus(self.TEXT, Workspace())
        assert found.ids.tolist() == [1, 3, 0, 4, 2, 1, 3, 2]
        assert found.seen == (1, 1, 1)

    def test_all_are_skipped(self):
        found = read_corpus(self.TEXT, Workspace(), symbols="skip")
        assert found.ids.tolist() == [1, 3, 4, 2, 1, 3, 2]

    def test_they_are_refused(self):
        with pytest.raises(DataError, match=r"must not hold '<unk>'.*line 1.*symbols='count'"):
            read_corpus(self.TEXT, Workspace(), symbols="error")

    def test_an_unknown_way_names_the_nearest(self):
        with pytest.raises(ConfigError, match=r"'skip'"):
            read_corpus(self.TEXT, Workspace(), symbols="skpi")  # type: ignore[arg-type]


class TestVocabulary:
    def test_a_given_one_does_not_grow(self):
        found = read_corpus(["a b c a"], Workspace(), words=Words.of(["c", "a"]))
        assert found.ids.tolist() == [1, 4, 0, 3, 4, 2]
        assert list(found.words)[3:] == ["c", "a"]

    def test_rare_words_become_unknown(self):
        found = read_corpus(["a b a c", "c d"], Workspace(), min_count=2)
        assert list(found.words)[3:] == ["a", "c"]
        assert found.ids.tolist() == [1, 3, 0, 3, 4, 2, 1, 4, 0, 2]

    @pytest.mark.parametrize("bad", ["", "a b", "a\n", "\t"])
    def test_words_with_blanks_are_refused(self, bad):
        with pytest.raises(DataError, match="holds no blank, got"):
            Words.of(["a", bad])

    @given(st.lists(WORDS, unique=True, max_size=60), st.lists(WORDS))
    def test_every_word_is_found_and_no_other(self, known, asked):
        words = Words.of(known)
        for word in [*known, *asked]:
            listed = list(words)
            assert words.number(word) == (listed.index(word) if word in listed else 0)
            assert (word in words) == (word in listed)


def test_nothing_to_count_is_said():
    with pytest.raises(DataError, match="no text to count"):
        read_corpus([], Workspace())
    with pytest.raises(DataError, match="no file matches"):
        read_corpus("nowhere/*.txt", Workspace())
    with pytest.raises(DataError, match="no such file"):
        read_corpus("nowhere.txt", Workspace())


@given(lines=LINES, order=st.integers(1, 5), spills=st.booleans())
def test_ngrams_are_those_of_a_dictionary(lines, order, spills):
    place = Workspace()
    found = read_corpus([" ".join(line) for line in lines], place)
    place.spilling = spills
    counts = count_ngrams(found.ids, found.words, order, place)
    names: list[tuple[int, ...]] = []
    for level_order, level in enumerate(counts.levels, 1):
        expected: dict[tuple[int, ...], int] = {}
        for line in slow_sentences(found.ids):
            for i in range(len(line) - level_order + 1):
                gram = tuple(line[i : i + level_order])
                expected[gram] = expected.get(gram, 0) + 1
        if level_order == 1:
            here = [(int(w),) for w in level.word]
            assert dict(zip(here, level.count.tolist(), strict=True)) == {
                (w,): expected.get((w,), 0) for w in range(len(found.words))
            }
        else:
            here = [(*names[c], int(w)) for c, w in zip(level.context, level.word, strict=True)]
            assert dict(zip(here, level.count.tolist(), strict=True)) == expected
            assert [g[1:] for g in here] == [names[s] for s in level.suffix]
        assert level.begins.tolist() == [gram[0] == 1 for gram in here]
        names = here


def slow_sentences(ids: np.ndarray) -> list[list[int]]:
    lines: list[list[int]] = []
    for i in ids.tolist():
        if i == 1:
            lines.append([])
        lines[-1].append(i)
    return lines


def test_a_long_line_is_one_sentence(tmp_path):
    path = Path(tmp_path / "long")
    stream = io.BytesIO()
    for i in range(300_000):
        stream.write(b"w%d " % (i % 1000))
    path.write_bytes(stream.getvalue())
    found = read_corpus(path, Workspace())
    assert (found.lines, len(found.ids), len(found.words)) == (1, 300_002, 1003)
