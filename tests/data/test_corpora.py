"""The readers of files that only one data set writes that way."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from seqloom.data.datasets import corpora
from seqloom.data.examples import LabeledText, TaggedTokens, Text, TextPair
from seqloom.errors import DataError


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes, name: str = "f") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def tar(tmp_path):
    def tar(members: dict[str, str]) -> Path:
        with tarfile.open(tmp_path / "a.tar", "w") as archive:
            for name, text in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))
        return tmp_path / "a.tar"

    return tar


def test_every_line_counts(write):
    assert list(corpora.read_every_text(write("a\n\n b \n"))) == [
        Text("a"),
        Text(""),
        Text(" b "),
    ]


def test_label_first(write):
    assert list(corpora.read_label_first(write("1 good film\n"))) == [
        LabeledText("good film", ("1",))
    ]
    with pytest.raises(DataError, match="f:1: must be a label, a blank and a text, got '1'"):
        list(corpora.read_label_first(write("1\n")))


def test_label_by_file_reads_old_encodings(write):
    files = write("clich\xe9\n".encode("cp1252"), "neg"), write(b"good\n\n", "pos")
    records = corpora.read_label_by_file(*files, labels=["n", "p"], encoding="cp1252")
    assert list(records) == [LabeledText("cliché", ("n",)), LabeledText("good", ("p",))]
    with pytest.raises(DataError, match="neg:1: is not utf-8"):
        list(corpora.read_label_by_file(*files, labels=["n", "p"]))


def test_label_lines(write):
    records = corpora.read_label_lines(write("a b\nc\n", "x"), write("l1\nl2\n", "y"))
    assert list(records) == [LabeledText("a b", ("l1",)), LabeledText("c", ("l2",))]


def test_numbered_labels(write):
    names = write("art\nsport", "names")
    records = corpora.read_numbered_labels(write("a match\t1\n"), names)
    assert list(records) == [LabeledText("a match", ("sport",))]
    with pytest.raises(DataError, match="f:1: must be a text, a tab and a number below 2"):
        list(corpora.read_numbered_labels(write("a match\t2\n"), names))


def test_first_target(write):
    line = '{"source": ["A.", "B."], "target": ["s", "t"]}\n'
    assert list(corpora.read_first_target(write(line))) == [TextPair("A. B.", "s")]
    bad = corpora.read_first_target(write(line + '{"source": [], "target": 3}\n'), on_error="skip")
    assert (len(list(bad)), bad.skipped) == (1, 1)


def test_poems(write):
    line = '{"paragraphs": ["床前明月光，", "疑是地上霜。"]}\n'
    assert list(corpora.read_poems(write(line))) == [Text("床前明月光，\n疑是地上霜。")]


def test_brown(tar):
    archive = tar(
        {"brown/README": "no", "brown/ca01": "\n\n\tThe/at 1/2/cd ./.\n", "brown/cats.txt": "x"}
    )
    assert list(corpora.read_brown(archive)) == [
        TaggedTokens(("The", "1/2", "."), ("at", "cd", "."))
    ]
    with pytest.raises(DataError, match=r"a.tar/ca01:1: must be word/tag, got 'The'"):
        list(corpora.read_brown(tar({"brown/ca01": "The\n"})))


def test_pku_brackets(write):
    line = "[中央/n  电视台/n]nt  ，/w  [/w  a/b/nx\n\n"
    assert list(corpora.read_pku(write(line))) == [
        TaggedTokens(("中央", "电视台", "，", "[", "a/b"), ("n", "n", "w", "w", "nx"))
    ]


def test_members_are_labels(tar):
    archive = tar({"n/Dutch.txt": "Aalst\nBakker\n", "n/Greek.txt": "Adamou\n"})
    lines = list(corpora.read_lines_by_member(archive))
    assert [(example.text, example.label) for example in lines] == [
        ("Aalst", "Dutch"),
        ("Bakker", "Dutch"),
        ("Adamou", "Greek"),
    ]
    texts = list(corpora.read_text_by_member(archive))
    assert texts[0] == LabeledText("Aalst\nBakker", ("Dutch",))


def test_analogies(write):
    (row,) = corpora.read_analogies(write(": family\nboy girl king queen\n"))
    assert row.fields == {
        "section": "family",
        "a": "boy",
        "b": "girl",
        "c": "king",
        "d": "queen",
    }
    with pytest.raises(DataError, match="must be four words, got 'boy girl'"):
        list(corpora.read_analogies(write("boy girl\n")))


def test_scored_pairs(write):
    (row,) = corpora.read_scored_pairs(write("# head\nold\tnew\t1.58\n"))
    assert row.fields == {"first": "old", "second": "new", "score": 1.58}
    with pytest.raises(DataError, match="two words and a number, got 'old new'"):
        list(corpora.read_scored_pairs(write("old new\n")))


def test_sentences_of_wikitext_without_unknown_words(tmp_path):
    path = tmp_path / "wiki.txt"
    path.write_text(" = Head = \n\n A state @-@ run bank . He <unk> it . It rained .\n")
    found = [text.text for text in corpora.read_wikitext(path, known=True)]
    assert found == ["= Head =", "A state-run bank .", "It rained ."]
