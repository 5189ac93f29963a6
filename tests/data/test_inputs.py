"""Data named by a file or by a data set and its split."""

from __future__ import annotations

import pytest

from seqloom.data import FieldNames, LabeledText, TaggedTokens, Text, TextPair, read_input
from seqloom.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("name", "content", "kind", "names", "expected"),
    [
        ("a.txt", "one\ntwo\n", "text", {}, [Text("one"), Text("two")]),
        ("a.csv", "text\none\n", "text", {}, [Text("one")]),
        ("a.jsonl", '{"body": "one"}\n', "text", {"text": "body"}, [Text("one")]),
        ("a.tsv", "label\ttext\n1\tgood\n", "labeled", {}, [LabeledText("good", ("1",))]),
        ("a.csv", "source,target\nx,y\n", "pairs", {}, [TextPair("x", "y")]),
        ("a.conll", "a DT O\n", "tagged", {"tag": 1}, [TaggedTokens(("a",), ("DT",))]),
        (
            "a.conllu",
            "1\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_\n\n",
            "tagged",
            {},
            [TaggedTokens(("Hi",), ("INTJ",))],
        ),
    ],
)
def test_files_are_read_by_kind_and_name(tmp_path, name, content, kind, names, expected):
    (tmp_path / name).write_text(content)
    assert list(read_input(tmp_path / name, kind, names=FieldNames(**names))) == expected


def test_pairs_in_two_files(tmp_path):
    (tmp_path / "a.en").write_text("one\n")
    (tmp_path / "a.de").write_text("eins\n")
    pairs = read_input(tmp_path / "a.en", "pairs", target=tmp_path / "a.de")
    assert list(pairs) == [TextPair("one", "eins")]


def test_a_target_belongs_to_pairs(tmp_path):
    with pytest.raises(ConfigError, match="got kind 'text'"):
        read_input(tmp_path / "a", "text", target=tmp_path / "b")


def test_a_split_of_a_named_set(shared_data):
    assert sum(1 for _ in read_input("ptb:valid", "text")) == 3370
    assert sum(1 for _ in read_input("sst:valid:fine", "labeled")) == 1101


def test_too_many_parts_of_a_name():
    with pytest.raises(ConfigError, match="'sst:train:fine:x'"):
        read_input("sst:train:fine:x", "labeled")


def test_a_name_that_is_neither():
    with pytest.raises(DataError, match=r"nothing\.txt: no such file"):
        list(read_input("nothing.txt", "text"))
