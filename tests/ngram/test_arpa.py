"""ARPA files: what tools write is read, what is wrong is refused, what is written is read again."""

from __future__ import annotations

import gzip
import io
import lzma
import math
import os
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import ConfigError, DataError
from seqloom.ngram import arpa_lines
from seqloom.ngram.arpa import read_arpa, write_arpa
from seqloom.ngram.levels import Level, Ngrams
from seqloom.ngram.words import Words
from seqloom.ngram.workspace import Workspace

GOLDEN = [
    "tiny.o2.fallback",
    "tiny.o3.fallback",
    "shakespeare.o2",
    "shakespeare.o3",
    "shakespeare.o3.nounigraminterp",
    "shakespeare.o3.prune001",
    "shakespeare.o4",
    "shakespeare.o5",
]

SMALL = """\
\\data\\
ngram 1=5
ngram 2=3
ngram 3=1

\\1-grams:
-1.5\t<unk>\t0
0\t<s>\t-0.5
-0.9\t</s>\t0
-0.7\ta\t-0.25
-0.8\tb\t-0.125

\\2-grams:
-0.3\t<s> a\t-0.1
-0.4\ta b\t-0.2
-0.2\tb </s>\t0

\\3-grams:
-0.15\t<s> a b

\\end\\
"""

Plain = dict[tuple[str, ...], tuple[float, float]]


def plain_parse(text: bytes) -> list[Plain]:
    """The n-grams of a sound file by order, each with its two numbers: the simplest parser."""
    levels: list[Plain] = []
    for line in text.decode("utf-8", "surrogateescape").split("\n"):
        if re.match(r"[ \t]*\\\d+-grams:", line):
            levels.append({})
        elif levels and line.strip(" \t\r") and not line.lstrip(" \t\r").startswith("\\"):
            prob, *fields = re.split("[ \t\r]+", line.strip(" \t\r"))
            words, weight = fields[: len(levels)], fields[len(levels) :]
            levels[-1][tuple(words)] = float(prob), float(weight[0]) if weight else 0.0
    return levels


def plain(ngrams: Ngrams) -> list[Plain]:
    """A model's columns as the same dictionaries."""
    words = list(ngrams.words)
    below: list[tuple[str, ...]] = [()]
    levels: list[Plain] = []
    for order, level in enumerate(ngrams.levels, 1):
        contexts = level.context if order > 1 else np.zeros(len(level), np.uint32)
        here = [(*below[c], words[w]) for c, w in zip(contexts, level.word, strict=True)]
        weights = level.backoff if order < ngrams.order else np.zeros(len(level))
        values = zip(level.prob.tolist(), weights.tolist(), strict=True)
        levels.append(dict(zip(here, values, strict=True)))
        assert len(levels[-1]) == len(level)
        below = here
    assert ngrams.levels[0].word.tolist() == list(range(len(words)))
    assert len(ngrams.levels[0].context) == len(ngrams.levels[-1].backoff) == 0
    return levels


def score(levels: list[Plain], history: tuple[str, ...], word: str) -> float:
    """Back-off as the equation has it."""
    if len(history) >= len(levels):
        history = history[1 - len(levels) :] if len(levels) > 1 else ()
    found = levels[len(history)].get((*history, word))
    if found:
        return found[0]
    weight = levels[len(history) - 1].get(history, (0.0, 0.0))[1]
    return weight + score(levels, history[1:], word)


def sentence_score(levels: list[Plain], words: list[str]) -> float:
    known = [w if (w,) in levels[0] else "<unk>" for w in words]
    total, history = 0.0, ("<s>",)
    for word in [*known, "</s>"]:
        total += score(levels, history, word)
        history = (*history, word)
    return total


def read(text: str | bytes, tmp_path: Path) -> Ngrams:
    path = tmp_path / "model.arpa"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_arpa(path)


def close(left: list[Plain], right: list[Plain], by: float = 6e-8) -> None:
    assert [set(level) for level in left] == [set(level) for level in right]
    for one, other in zip(left, right, strict=True):
        for ngram, numbers in one.items():
            for a, b in zip(numbers, other[ngram], strict=True):
                assert a == b or abs(a - b) < by, ngram


@pytest.mark.parametrize("name", GOLDEN)
def test_what_lmplz_wrote_is_read_and_written_as_it_is(name, shared_data, tmp_path):
    packed = shared_data / "lmplz-golden" / f"{name}.arpa.xz"
    text = lzma.decompress(packed.read_bytes())
    ngrams = read_arpa(packed)
    assert plain(ngrams) == plain_parse(text)
    assert ngrams.suffixes
    assert ngrams.about["added_words"] == [] and ngrams.about["added_contexts"] == 0
    written = tmp_path / "written.arpa"
    write_arpa(ngrams, written)
    ours, theirs = written.read_bytes().split(b"\n"), text.split(b"\n")
    assert len(ours) == len(theirs)
    for line, golden in zip(ours, theirs, strict=True):  # the same but for digits
        fields, expected = line.split(b"\t"), golden.split(b"\t")
        assert fields[1:2] == expected[1:2] and len(fields) == len(expected)
        if len(fields) == 1:
            assert line == golden
        for i in range(0, len(fields) if len(fields) > 1 else 0, 2):
            assert abs(float(fields[i]) - float(expected[i])) < 6e-8
    again = read_arpa(written)
    close(plain(again), plain(ngrams))
    write_arpa(again, tmp_path / "again.arpa")
    assert (tmp_path / "again.arpa").read_bytes() == written.read_bytes()


@pytest.mark.parametrize("name", ["shakespeare.o3", "shakespeare.o5", "shakespeare.o3.prune001"])
def test_kenlm_gives_what_backing_off_over_our_columns_gives(name, shared_data, tmp_path):
    kenlm = pytest.importorskip("kenlm")
    ngrams = read_arpa(shared_data / "lmplz-golden" / f"{name}.arpa.xz")
    write_arpa(ngrams, tmp_path / "ours.arpa")
    model = kenlm.Model(str(tmp_path / "ours.arpa"))
    levels = plain(ngrams)
    text = lzma.decompress((shared_data / "lmplz-golden" / "shakespeare.txt.xz").read_bytes())
    lines = text.decode().splitlines()[:100]
    shuffled = random.Random(0).sample(" ".join(lines).split() + ["unseen"] * 20, 400)
    for line in [*lines, *(" ".join(shuffled[i : i + 8]) for i in range(0, 400, 8))]:
        assert sentence_score(levels, line.split()) == pytest.approx(model.score(line), abs=1e-4)


def test_a_small_file_gives_these_columns(tmp_path):
    ngrams = read(SMALL, tmp_path)
    assert list(ngrams.words) == ["<unk>", "<s>", "</s>", "a", "b"]
    assert ngrams.levels[1].context.tolist() == [1, 3, 4]
    assert ngrams.levels[1].word.tolist() == [3, 4, 2]
    assert ngrams.levels[1].backoff.tolist() == [-0.1, -0.2, 0.0]
    assert ngrams.levels[2].context.tolist() == [0] and ngrams.levels[2].word.tolist() == [4]
    assert [level.prob.dtype for level in ngrams.levels] == [np.float64] * 3
    assert ngrams.levels[2].context.dtype == np.uint32 == ngrams.levels[2].word.dtype


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("\t", "   "),
        lambda t: t.replace("\t", " \t ").replace(" b\n", "  \t b \n"),
        lambda t: "a title\n\nngram 1=7\n" + t,
        lambda t: "\ufeff" + t,
        lambda t: re.sub("\n+", "\n", t),
        lambda t: t.replace("\n", "\n\n  \n"),
        lambda t: t.rstrip("\n"),
        lambda t: t + "\n \n",
        lambda t: t.replace("ngram 1=5", "ngram  1 =      5"),
        lambda t: t.replace("<s> a b", "<s> a b\t-0.7"),
        lambda t: t.replace("\t0\n", "\n"),
        lambda t: t.replace("-0.3\t", "-3e-01\t").replace("-0.4\t", "-.4E+0\t"),
        lambda t: t.replace("-0.9\t", "-90000.00e-5\t").replace("-0.8\t", "  -0.8\t"),
        lambda t: t.replace("-0.7\t", "-0.70000000000000000000000000000\t"),
        lambda t: t.replace("0\t<s>", "1e-7\t<s>"),
        lambda t: t.replace("0\t<s>", "-0\t<s>"),
        lambda t: t.replace("<unk>", "<UNK>"),
    ],
)
def test_what_other_tools_write_differently_is_the_same_model(change, tmp_path):
    assert plain(read(change(SMALL), tmp_path)) == plain(read(SMALL, tmp_path))


def test_numbers_are_read_as_python_reads_them(tmp_path):
    rng = random.Random(1)
    numbers = ["-1e-30", "-98.99999", "-1e-400", "-5.", "-.5", "-000.5", "-1E-05", "-1.2E+00"]
    numbers += [
        f"-{rng.random() * 10 ** rng.randint(-12, 1):.{rng.randint(1, 25)}f}" for _ in "x" * 500
    ]
    numbers += [repr(-rng.random() * 10 ** rng.randint(-20, 1)) for _ in range(500)]
    numbers += [str(np.float32(-rng.random() * 7)) for _ in range(500)]
    lines = "".join(f"{number} w{i} {number}\n" for i, number in enumerate(numbers))
    text = f"\\data\\\nngram 1={len(numbers)}\nngram 2=0\n\\1-grams:\n{lines}\\2-grams:\n\\end\\\n"
    level = read(text, tmp_path).levels[0]
    expected = [float(number) for number in numbers]
    assert level.prob[3:] == pytest.approx(expected, rel=1e-15, abs=1e-300)
    assert level.backoff[3:] == pytest.approx(expected, rel=1e-15, abs=1e-300)
    exact = [i for i, number in enumerate(numbers) if len(number) < 15]
    assert [level.prob[3 + i] for i in exact] == [expected[i] for i in exact]


@pytest.mark.parametrize("never", ["-99", "-99.0", "-100", "-inf", "-INF", "-Infinity", "-1e400"])
def test_the_logarithm_of_nothing_has_many_spellings(never, tmp_path):
    text = SMALL.replace("-0.7\ta\t-0.25", f"{never}\ta\t{never}")
    ngrams = read(text, tmp_path)
    assert ngrams.levels[0].prob[3] == ngrams.levels[0].backoff[3] == -math.inf
    out = io.BytesIO()
    write_arpa(ngrams, out)
    assert b"\n-99\ta\t-99\n" in out.getvalue()


@pytest.mark.parametrize("missing", [["<unk>"], ["<s>"], ["</s>"], ["<unk>", "<s>", "</s>"]])
def test_special_words_that_are_missing_are_added_and_said_so(missing, tmp_path):
    lines = [line for line in SMALL.split("\n") if "-grams" not in line or "1" in line]
    lines = lines[: lines.index("-0.3\t<s> a\t-0.1")]
    for word in missing:
        lines = [line for line in lines if f"\t{word}\t" not in line]
    text = "\n".join([*lines, "\\end\\"]).replace("1=5", f"1={5 - len(missing)}")
    ngrams = read(re.sub("ngram [23].*\n", "", text), tmp_path)
    assert ngrams.about["added_words"] == missing
    assert list(ngrams.words) == ["<unk>", "<s>", "</s>", "a", "b"]
    for number, word in enumerate(["<unk>", "<s>", "</s>"]):
        assert (ngrams.levels[0].prob[number] == -math.inf) == (word in missing)
    assert ngrams.levels[0].prob[3:].tolist() == [-0.7, -0.8]


def test_capital_unk_is_a_word_where_the_small_one_is_there_too(tmp_path):
    text = SMALL.replace("1=5", "1=6").replace("\\2-grams:", "-3\t<UNK>\n\\2-grams:")
    assert list(read(text, tmp_path).words)[-1] == "<UNK>"
    capitals = SMALL.replace("<unk>", "<UNK>").replace("a b\t", "a <UNK>\t")
    ngrams = read(capitals.replace("-0.15\t<s> a b", "-0.15\t<s> a <UNK>"), tmp_path)
    assert ("a", "<unk>") in plain(ngrams)[1] and ("<s>", "a", "<unk>") in plain(ngrams)[2]
    assert "<UNK>" not in ngrams.words


def test_invalid_utf8_and_control_characters_are_bytes_of_words(tmp_path):
    text = SMALL.encode().replace(b"b", b"\xff\xfe\x0b\x01\xc3").replace(b"em\xff", b"b")
    text = text.replace(b"\xff\xfe\x0b\x01\xc3igram", b"bigram")
    ngrams = read(text, tmp_path)
    assert ngrams.words[4].encode("utf-8", "surrogateescape") == b"\xff\xfe\x0b\x01\xc3"
    out = io.BytesIO()
    write_arpa(ngrams, out)
    assert b"<s> a \xff\xfe\x0b\x01\xc3\n" in out.getvalue()
    assert plain(ngrams) == plain(read(out.getvalue(), tmp_path))


def test_words_of_every_length_are_told_apart(tmp_path):
    words = ["x" * n + end for n in range(0, 41) for end in "yz"] + ["長い単語です" * 5, "é" * 9]
    pairs = [(a, b) for a in words for b in random.Random(a).sample(words, 5)]
    unigrams = "".join(f"-1.{i:03}\t{word}\t0\n" for i, word in enumerate(words))
    bigrams = "".join(f"-2.{i:04}\t{a} {b}\n" for i, (a, b) in enumerate(pairs))
    text = f"\\data\\\nngram 1={len(words)}\nngram 2={len(pairs)}\n"
    text += f"\\1-grams:\n{unigrams}\\2-grams:\n{bigrams}\\end\\"
    levels = plain(read(text, tmp_path))
    assert {k: v for k, v in levels[0].items() if k[0] in words} == plain_parse(text.encode())[0]
    assert levels[1] == plain_parse(text.encode())[1]


def test_missing_contexts_are_added_and_no_probability_changes(tmp_path):
    text = """\\data\\
ngram 1=6
ngram 2=2
ngram 3=2
ngram 4=2
\\1-grams:
-1 <unk>
-99 <s> -0.1
-1.1 </s>
-0.8 a -0.2
-0.9 b -0.3
-0.7 c -0.4
\\2-grams:
-0.5 a b -0.05
-0.6 b c -0.06
\\3-grams:
-0.3 b a c -0.03
-0.2 a b c -0.02
\\4-grams:
-0.1 c c c c
-0.15 b a b c
\\end\\
"""
    ngrams, given_ = read(text, tmp_path), plain_parse(text.encode())
    levels = plain(ngrams)
    assert ngrams.about["added_contexts"] == 4
    added = [set(level) - set(old) for level, old in zip(levels, given_, strict=True)]
    assert added == [set(), {("b", "a"), ("c", "c")}, {("c", "c", "c"), ("b", "a", "b")}, set()]
    assert levels[2]["b", "a", "b"] == (pytest.approx(0.0 - 0.5), 0.0)  # b a has no weight
    assert levels[2]["c", "c", "c"] == (pytest.approx(-0.4 - 0.7), 0.0)
    given_[0]["<s>",] = (-math.inf, -0.1)
    words = [w for (w,) in given_[0]]
    histories = [()] + [(a,) for a in words] + [(a, b) for a in words for b in words]
    histories += [(a, b, c) for a in words for b in words for c in words]
    for history in histories:
        for word in words:
            assert score(levels, history, word) == pytest.approx(score(given_, history, word))
    assert not ngrams.suffixes  # b a c is there, a c is not
    again = io.BytesIO()
    write_arpa(ngrams, again)
    assert plain(read(again.getvalue(), tmp_path)) == levels


def test_suffixes_says_whether_each_is_there(tmp_path):
    assert not read(
        SMALL.replace("a b\t-0.2", "a a\t-0.2").replace("<s> a b", "<s> a </s>"), tmp_path
    ).suffixes
    assert read(SMALL, tmp_path).suffixes
    assert not read(SMALL.replace("a b\t-0.2", "b b\t-0.2"), tmp_path).suffixes


BAD = {
    "": "must have a line \\data\\, got none",
    "just some text\n": "must have a line \\data\\, got none",
    "\\data\\\n": ":1: the header must announce 1-grams",
    "\\data\\\nngram 1=0\n\\1-grams:\n\\end\\\n": ":3: the header must announce 1-grams",
    "\\data\\\nngram 1=2\n": ":2: the file must go on with \\1-grams:, got its end",
    "\\data\\\nngram 1=5\nngram 3=5\n": ":3: the header must go on with ngram 2=COUNT, got",
    "\\data\\\nngram 1=-5\n": ":2: the header must go on with ngram 1=COUNT, got 'ngram 1=-5'",
    "\\data\\\nngram 1=99999999999999999999\n": ":2: the header must go on with ngram 1=COUNT",
    "\\data\\\nngram 1=5\n\\2-grams:\n": ":3: here must stand \\1-grams:, got '\\\\2-grams:'",
    "\\data\\\n" + "".join(f"ngram {k}=1\n" for k in range(1, 10)): "at most 8, got 9",
    "qARPA\n\\data\\\n": ":1: must be an ARPA file, got an IRSTLM file with quantized numbers",
    "iARPA\n\\data\\\n": ":1: must be an ARPA file, got IRSTLM's own iARPA format",
    "blmt 3 5": ":1: must be an ARPA file, got an IRSTLM binary file",
    "mmap lm http://kheafield.com/code format version 5\n\0\0": "must be an ARPA file, got a KenLM",
    "\x7fELF\n\x02\x01\0\0\0": ":2: an ARPA file is text, got a byte 0",
    "x" * (10 << 20): ":1: a line may have 1048576 bytes",
}  # fmt: skip

CHANGES = {  # what is replaced, by what, and what is said
    ("\\end\\\n", ""): ":20: the file must end with \\end\\, got its end after 1 of the 1 3-grams",
    ("-0.2\tb </s>", "\\end\\\n"): ":16: the header announces 3 2-grams, got 2",
    ("ngram 2=3", "ngram 2=4"): ":18: the header announces 4 2-grams, got 3",
    ("ngram 2=3", "ngram 2=2"): ":18: the header announces 2 2-grams, got 3",
    ("ngram 3=1", "ngram 3=99999999999999"): "announces 99999999999999 3-grams, got 1",
    ("\\3-grams:", "\\4-grams:"): ":18: here must stand \\3-grams:, got '\\\\4-grams:'",
    ("\\end\\", "\\end"): ":21: here must stand \\end\\, got '\\\\end'",
    ("\\end\\", "\\end\\\nmore"): ":22: nothing may follow \\end\\, got 'more'",
    ("-0.4\ta b", "-0.4\t<s> a"): ":15: each n-gram may stand once, got '<s> a' again",
    ("-0.8\tb\t", "-0.8\ta\t"): "may stand once among the 1-grams, got 'a' here and in line 10",
    ("-0.8\tb\t", "-0.8\t</s>\t"): "once among the 1-grams, got '</s>' here and in line 9",
    ("-0.4\ta b", "0.4\ta b"): ":15: a log-probability must be at most 0, got '0.4'",
    ("-0.4\ta b", "1e-5\ta b"): ":15: a log-probability must be at most 0, got '1e-5'",
    ("-0.4\ta b", "nan\ta b"): ":15: a log-probability must be at most 0, got 'nan'",
    ("-0.4\ta b", "inf\ta b"): ":15: a log-probability must be at most 0, got 'inf'",
    ("-0.4\ta b", "1e999\ta b"): ":15: a log-probability must be at most 0, got '1e999'",
    ("-0.4\ta b", "x0.4\ta b"): ":15: a line must begin with a log-probability, got 'x0.4'",
    ("-0.4\ta b", "-0.4x\ta b"): ":15: a line must begin with a log-probability, got '-0.4x'",
    ("-0.4\ta b", "-0.4e\ta b"): ":15: a line must begin with a log-probability, got '-0.4e'",
    ("-0.4\ta b", "-.inf\ta b"): ":15: a line must begin with a log-probability, got '-.inf'",
    ("-0.4\ta b", "-.\ta b"): ":15: a line must begin with a log-probability, got '-.'",
    ("-0.4\ta b", "-\ta b"): ":15: a line must begin with a log-probability, got '-'",
    ("-0.4\ta b", "-infi\ta b"): ":15: a line must begin with a log-probability, got '-infi'",
    ("-0.4\ta b\t-0.2", "-0.4"): ":15: a 2-gram must have 2 words, got 0: '-0.4'",
    ("-0.4\ta b\t-0.2", "-0.4\ta"): ":15: a 2-gram must have 2 words, got 1: '-0.4\\ta'",
    ("-0.4\ta b\t-0.2", "-0.4\ta\t-0.2"): ":15: every word must be among the 1-grams, got '-0.2'",
    ("-0.4\ta b\t", "-0.4\ta b a\t"): "2 words and perhaps a back-off weight, got 'a b a -0.2'",
    ("a b\t-0.2", "a b\tx"): "2 words and perhaps a back-off weight, got 'a b x'",
    ("a b\t-0.2", "a b\t-0.2 1"): "2 words and perhaps a back-off weight, got 'a b -0.2 1'",
    ("a b\t-0.2", "a b\tnan"): ":15: a back-off weight must be at most 99, got 'nan'",
    ("a b\t-0.2", "a b\tinf"): ":15: a back-off weight must be at most 99, got 'inf'",
    ("a b\t-0.2", "a b\t1e5"): ":15: a back-off weight must be at most 99, got '1e5'",
    ("-0.4\ta b", "-0.4\ta zzz"): "be among the 1-grams, got 'zzz' in '-0.4\\ta zzz\\t-0.2'",
    ("-0.4\ta b", "-0.4\ta <UNK>"): ":15: every word must be among the 1-grams, got",
    ("-0.4\ta b", "-0.4\ta b\0"): ":15: an ARPA file is text, got a byte 0",
    ("-0.8\tb\t", "-0.8\t" + "b" * (10 << 20) + "\t"): ":11: a line may have 1048576 bytes",
    ("-0.8\tb\t", "-0.8\t" + "b" * (1 << 20) + "\t"): "may have 1048576 bytes, got 1048588",
    ("-0.4\ta b", " " * (10 << 20) + "-0.4\ta b"): ":15: a line may have 1048576 bytes",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *BAD.items(),
        *((SMALL.replace(*change), message) for change, message in CHANGES.items()),
        (
            SMALL.replace("<s> a\t-0.1", "<s> b\t-0.1").replace("0\t<s>\t-0.5", "0\t<s>\t50"),
            ":19: an n-gram whose context is not in the file needs one that backing off gives",
        ),
    ],
    ids=[f"bad{i}" for i in range(len(BAD) + len(CHANGES) + 1)],
)
def test_what_is_wrong_is_said_with_its_line(text, message, tmp_path):
    with pytest.raises(DataError) as caught:
        read(text, tmp_path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "model.arpa") + ":")


def test_files_that_cannot_be_read_are_data_errors(tmp_path):
    with pytest.raises(DataError, match="this is a directory"):
        read_arpa(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_arpa(tmp_path / "nothing")
    with pytest.raises(DataError, match="damaged or cut off"):
        read(gzip.compress(SMALL.encode() * 100)[:-30], tmp_path)


def test_every_cut_of_a_file_is_noticed(tmp_path):
    whole = SMALL.encode().rstrip()
    for size in range(len(whole)):
        with pytest.raises(DataError):
            read(whole[:size], tmp_path)


@pytest.mark.parametrize("block", [128, 131, 200, 257])
def test_blocks_may_end_anywhere(block, tmp_path, monkeypatch):
    expected = plain(read(SMALL, tmp_path))
    monkeypatch.setattr(arpa_lines, "_BLOCK", block)
    monkeypatch.setattr(arpa_lines, "MAX_LINE", 100)
    assert plain(read(SMALL, tmp_path)) == expected
    with pytest.raises(DataError, match=r":15: .* got 'zzz'"):
        read(SMALL.replace("a b\t", "a zzz\t"), tmp_path)
    with pytest.raises(DataError, match=":20: an ARPA file is text"):
        read(SMALL.replace("<s> a b\n", "<s> a b\n\0"), tmp_path)


def test_a_file_of_many_blocks_is_read_whole(tmp_path):
    rng = random.Random(2)
    words = [f"word{i}" * rng.randint(1, 3) for i in range(3000)]
    pairs = sorted({(rng.choice(words), rng.choice(words)) for _ in range(250_000)})
    triples = [(*pair, rng.choice(words)) for pair in pairs[::5]]
    rng.shuffle(pairs)
    rows = ["\\data\\", f"ngram 1={len(words)}", f"ngram 2={len(pairs)}", f"ngram 3={len(triples)}"]
    for k, ngrams in enumerate([[(w,) for w in words], pairs, triples], 1):
        rows += [f"\\{k}-grams:"] + [f"-{rng.random():.6f}\t{' '.join(n)}\t-0.5" for n in ngrams]
    text = "\n".join([*rows, "\\end\\", ""])
    assert len(text) > 2 * arpa_lines._BLOCK
    model = read(text, tmp_path)
    levels, expected = plain(model), plain_parse(text.encode())
    assert levels[1] == expected[1]
    assert {k: v[0] for k, v in levels[2].items()} == {k: v[0] for k, v in expected[2].items()}
    write_arpa(model, tmp_path / "again.arpa")
    close(plain(read_arpa(tmp_path / "again.arpa")), levels)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_written_files_are_compressed_as_their_names_say(suffix, tmp_path):
    ngrams = read(SMALL, tmp_path)
    path = tmp_path / f"out.arpa{suffix}"
    path.write_text("an older file")
    write_arpa(ngrams, path)
    assert plain(read_arpa(path)) == plain(ngrams)
    assert (
        path.read_bytes()[:2]
        == {"": b"\\d", ".gz": b"\x1f\x8b", ".xz": b"\xfd7", ".zst": b"(\xb5"}[suffix]
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.arpa", path.name]


def test_standard_streams_and_pipes_and_raw_files(tmp_path, capsysbinary, monkeypatch):
    ngrams = read(SMALL, tmp_path)
    write_arpa(ngrams, "-")
    assert capsysbinary.readouterr().out.decode() == SMALL
    with (tmp_path / "raw").open("wb", buffering=0) as raw:
        write_arpa(ngrams, raw)
        assert not raw.closed
    assert (tmp_path / "raw").read_text() == SMALL
    write_arpa(ngrams, os.devnull)
    assert not Path(os.devnull).is_file()
    with (tmp_path / "raw").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert plain(read_arpa("-")) == plain(ngrams)


def test_what_cannot_be_written_is_said_and_leaves_no_file(tmp_path):
    ngrams = read(SMALL, tmp_path)
    with pytest.raises(DataError, match="cannot be written"):
        write_arpa(ngrams, tmp_path / "no" / "folder.arpa")
    with pytest.raises(DataError, match="cannot be written"):
        write_arpa(ngrams, tmp_path)
    ngrams.levels[1].prob[1] = math.nan
    path = tmp_path / "out.arpa"
    path.write_text("older")
    with pytest.raises(DataError, match=r"at most 0 .* got nan and -0\.2 for 'a b'"):
        write_arpa(ngrams, path)
    ngrams.levels[1].prob[1] = 0.5
    with pytest.raises(DataError, match=r"got 0\.5 and -0\.2 for 'a b'"):
        write_arpa(ngrams, path)
    ngrams.levels[1].prob[1], ngrams.levels[1].backoff[1] = -1, math.inf
    with pytest.raises(DataError, match=r"got -1\.0 and inf for 'a b'"):
        write_arpa(ngrams, path)
    ngrams.levels[1].context[1] = 77
    with pytest.raises(DataError, match="the model is broken"):
        write_arpa(ngrams, path)
    assert path.read_text() == "older"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.arpa", "out.arpa"]


def test_numbers_are_written_with_seven_decimals_and_no_idle_zeros(tmp_path):
    values = [-1.23456789, -12.5, -0.1, -1e-7, -4e-8, 1e-7, -0.0, -98.99999999, -10.0, -2.0000001]
    expected = "-1.2345679 -12.5 -0.1 -0.0000001 0 0 0 -99 -10 -2.0000001".split()
    unigrams = "".join(f"-1 w{i}\n" for i in range(len(values)))
    text = (
        f"\\data\\\nngram 1={len(values)}\nngram 2=0\n\\1-grams:\n{unigrams}\\2-grams:\n\\end\\\n"
    )
    ngrams, out = read(text, tmp_path), io.BytesIO()
    ngrams.levels[0].prob[3:] = values
    ngrams.levels[0].backoff[3:] = [-value for value in values]
    write_arpa(ngrams, out)
    lines = [line.split("\t") for line in out.getvalue().decode().split("\n") if "\tw" in line]
    assert [line[0] for line in lines] == expected
    weights = "1.2345679 12.5 0.1 0.0000001 0 -0.0000001 0 99 10 2.0000001".split()
    assert [line[2] for line in lines] == weights


def test_stupid_back_off_is_refused_with_a_way_out(tmp_path):
    ngrams = read(SMALL, tmp_path)
    ngrams.missing_backoff = math.log10(0.4)
    with pytest.raises(ConfigError, match=r"weight 0, got -0\.39794 \(stupid back-off\); save"):
        write_arpa(ngrams, tmp_path / "out.arpa")


@pytest.mark.parametrize("word", ["", "two words", "tab\t", "line\n", "\0"])
def test_words_that_would_not_come_back_are_refused(word):
    pool, sizes = np.frombuffer(f"<unk><s></s>{word}".encode(), np.uint8), [0, 5, 3, 4, len(word)]
    words = Words(pool, np.cumsum(sizes), np.zeros(64, np.uint64))
    numbers, none = np.arange(4, dtype=np.uint32), np.empty(0)
    model = Ngrams(words, [Level(none.astype(np.uint32), numbers, np.full(4, -1.0), none)])
    with pytest.raises(DataError, match=f"got {re.escape(repr(word))}"):
        write_arpa(model, io.BytesIO())


def test_columns_in_files_are_written_as_those_in_memory(tmp_path):
    place = Workspace(memory=384 << 20, folder=str(tmp_path))
    place.spilling = True
    ngrams = read(SMALL, tmp_path)
    expected, out = io.BytesIO(), io.BytesIO()
    write_arpa(ngrams, expected)
    for level in ngrams.levels:
        for name in ("context", "word", "prob", "backoff"):
            column = getattr(level, name)
            moved = place.empty(max(len(column), 10_000), column.dtype)[: len(column)]
            moved[:] = column
            setattr(level, name, moved)
    write_arpa(ngrams, out, place=place)
    assert out.getvalue() == expected.getvalue()


LOGS = st.one_of(st.floats(-98.9, 0), st.just(-math.inf), st.just(0.0))
WEIGHTS = st.one_of(LOGS, st.floats(0, 98))
SPELLINGS = st.binary(min_size=1, max_size=20).map(lambda b: re.sub(rb"[\0\t\n\r ]", b"_", b))


@st.composite
def models(draw: st.DrawFn) -> Ngrams:
    words = Words.of(draw(st.lists(SPELLINGS, max_size=6)))
    levels, order = [], draw(st.integers(1, 4))
    below = 1
    for k in range(1, order + 1):
        pairs = st.tuples(st.integers(0, below - 1), st.integers(0, len(words) - 1))
        rows = draw(st.lists(pairs, unique=True, max_size=12)) if below else []
        if k == 1:
            rows = [(0, i) for i in range(len(words))]
        numbers = np.array(rows, np.uint32).reshape(-1, 2)
        size = len(rows)
        prob = np.array(draw(st.lists(LOGS, min_size=size, max_size=size)), np.float64)
        wanted = size if k < order else 0
        weights = np.array(draw(st.lists(WEIGHTS, min_size=wanted, max_size=wanted)), np.float64)
        context = numbers[:, 0].copy() if k > 1 else np.empty(0, np.uint32)
        levels.append(Level(context, numbers[:, 1].copy(), prob, weights))
        below = size
    return Ngrams(words, levels)


@given(models())
def test_any_model_comes_back_from_its_file(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("arpa") / "model.arpa"
    write_arpa(model, path)
    again = read_arpa(path)
    assert again.words.pool.tobytes() == model.words.pool.tobytes()
    for level, old in zip(again.levels, model.levels, strict=True):
        assert level.context.tolist() == old.context.tolist()
        assert level.word.tolist() == old.word.tolist()
        assert level.prob == pytest.approx(old.prob, abs=6e-8)
        assert level.backoff == pytest.approx(old.backoff, abs=6e-8)
