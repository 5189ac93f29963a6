"""Malformed word vectors: each is refused in words that name the place and the value."""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import zipfile

import numpy as np
import pytest

from seqloom.errors import ConfigError, DataError, ShapeError
from seqloom.text.vectors import WordVectors, read_vectors, write_vectors


def binary(header: str, *rows: tuple[bytes, list[float]]) -> bytes:
    packed = [word + b" " + struct.pack(f"<{len(row)}f", *row) for word, row in rows]
    return header.encode() + b"\n" + b"".join(packed)


GOOD = b"a 1 2 3\nb 4 5 6\n"
A, B = (b"a", [1.0, 2.0, -3.5]), (b"b", [4.0, 5.0, -6.5])
MANY = b"".join(b"w%d 1 2 3\n" % i for i in range(500))

BAD_TEXT = {  # name: (bytes, format, line, what the message says)
    "short row": (GOOD + b"c 7 8\n", "glove", 3, "3 numbers, got 2 numbers after 'c'"),
    "short first row": (b"c 7 8\n" + MANY, "glove", 1, "3 numbers, got 2 numbers after 'c'"),
    "long row": (GOOD + b"c 7 8 9 10 11\n", "glove", 3, "3 numbers, got 5 numbers after 'c'"),
    "word alone": (GOOD + b"c\n", "glove", 3, "got 0 numbers after 'c'"),
    "numbers alone": (GOOD + b" 7 8 9\n", "glove", 3, "got 2 numbers after '7'"),
    "no numbers": (b"hello\nworld\n", "glove", 1, "got 'hello'"),
    "far row": (MANY + b"x 1 2\n", "glove", 501, "got 2 numbers after 'x'"),
    "NaN": (GOOD + b"c 7 nan 9\n", "glove", 3, "got 'nan'"),
    "infinity": (GOOD + b"c 7 -inf 9\n", "glove", 3, "got '-inf'"),
    "too large for float32": (GOOD + b"c 7 1e39 9\n", "glove", 3, "got '1e39'"),
    "no number": (GOOD + b"c 7 oops 9\n", "glove", 3, "got 'oops'"),
    "two points": (GOOD + b"c 7 1.2.3 9\n", "glove", 3, "got '1.2.3'"),
    "decimal comma": (GOOD + b"c 7 1,5 9\n", "glove", 3, "got '1,5'"),
    "underscore": (GOOD + b"c 7 1_5 9\n", "glove", 3, "got '1_5'"),
    "hexadecimal": (GOOD + b"c 7 0x1p3 9\n", "glove", 3, "got '0x1p3'"),
    "empty line": (GOOD + b"\nc 7 8 9\n", "glove", 3, "got an empty line"),
    "bad UTF-8": (GOOD + b"caf\xe9 7 8 9\n", "glove", 3, "byte 0xe9 in b'caf\\xe9'"),
    "empty": (b"", "glove", 1, "is empty"),
    "blank": (b"\n \n", "glove", 1, "is empty"),
    "no header": (GOOD, "word2vec", 1, "got 'a 1 2 3'"),
    "empty word2vec": (b"", "word2vec", 1, "is empty"),
    "too few rows": (b"3 3\n" + GOOD, "word2vec", None, "says 3 words"),
    "too few rows in a long file": (b"501 3\n" + MANY, "word2vec", 501, "501 words, got 500"),
    "too many rows": (b"1 3\n" + GOOD, "word2vec", 3, "says 1 words, got one more"),
    "size too large": (b"2 4\n" + GOOD, "word2vec", 2, "4 numbers, got 3 numbers after 'a'"),
    "size too small": (b"2 2\n" + GOOD, "word2vec", 2, "2 numbers, got 3 numbers after 'a'"),
    "absurd rows": (b"1000000000000 3\n" + GOOD, "word2vec", 1, "says 1000000000000 words"),
    "absurd size": (b"2 1000000000000\n" + GOOD, "word2vec", 1, "2 words of 1000000000000"),
    "endless digits": (b"9" * 5000 + b" 3\n" + GOOD, "word2vec", 1, "must begin with"),
    "no words": (b"0 3\n", "word2vec", 1, "got 0 words of 3"),
    "negative": (b"-2 3\n" + GOOD, "word2vec", 1, "got '-2 3'"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_text(tmp_path, case):
    data, format, line, message = BAD_TEXT[case]
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_vectors(path, format=format)
    assert caught.value.path == str(path)
    assert line is None or caught.value.line == line


@pytest.mark.parametrize("case", ["NaN", "too many rows", "empty", "long row", "no number"])
def test_bad_text_is_found_by_auto_and_when_compressed(tmp_path, case):
    data, _, line, message = BAD_TEXT[case]
    path = tmp_path / "bad.gz"
    path.write_bytes(gzip.compress(data))
    with pytest.raises(DataError, match=re.escape(f"{path}:{line}: ")) as caught:
        read_vectors(path)
    assert message in str(caught.value)


BAD_BINARY = {
    "no header": (b"\x00\x01\x02", "must begin with"),
    "empty": (b"", "must begin with"),
    "cut in a vector": (binary("2 3", A, B)[:-1] + b"", "row 2 of 2 must hold"),
    "cut after a row": (binary("2 3", A, (b"w" * 40, [1, 2, 3]))[:-20], "row 2 of 2 must hold"),
    "too many rows": (binary("1 3", A, B), "says 1 words, got more: b'b "),
    "too few rows": (binary("9 3", A, B), "says 9 words of 3 dimensions, got a file of 32 bytes"),
    "absurd rows": (binary("1000000000000 3", A, B), "says 1000000000000 words"),
    "absurd size": (binary("2 1000000000000", A, B), "2 words of 1000000000000"),
    "NaN": (binary("2 3", A, (b"b", [1, float("nan"), 3])), "row 2: a vector must hold finite"),
    "infinity": (binary("2 3", (b"b", [1, 3, float("inf")]), A), "got inf in column 3"),
    "bad UTF-8": (binary("2 3", A, (b"caf\xe9", [1, 2, 3])), "row 2: the word is not UTF-8"),
    "no word": (binary("2 3", A, (b"", [1, 2, 3])) + b"x", "row 2: a word must have 1 to"),
}


@pytest.mark.parametrize("case", BAD_BINARY)
def test_bad_binary(tmp_path, case):
    data, message = BAD_BINARY[case]
    path = tmp_path / "bad.bin"
    path.write_bytes(data)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_vectors(path, format="word2vec-binary")
    assert caught.value.path == str(path)


def test_an_absurd_header_in_a_compressed_file_allocates_nothing(tmp_path):
    path = tmp_path / "bad.gz"
    path.write_bytes(gzip.compress(binary("1000000000000 1000000", A)))
    with pytest.raises(DataError, match="row 1 of 1000000000000 must hold"):
        read_vectors(path)


def archive(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(value) for name, value in arrays.items()})
    return buffer.getvalue()


def lying_archive() -> bytes:
    buffer, header = io.BytesIO(), io.BytesIO()
    description = {"descr": "<f4", "fortran_order": False, "shape": (10**12, 3)}
    np.lib.format.write_array_header_1_0(header, description)
    words = io.BytesIO()
    np.save(words, np.array(["a"]))
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr("words.npy", words.getvalue())
        out.writestr("vectors.npy", header.getvalue() + b"\0" * 12)
    return buffer.getvalue()


ONES = np.ones((2, 3), np.float32)
BAD_ARCHIVES = {
    "no arrays": (archive(), "got none"),
    "no words": (archive(vectors=ONES), "'words' and 'vectors', got vectors"),
    "other names": (archive(keys=["a"], data=ONES), "got data, keys"),
    "objects": (archive(words=np.array(["a", "b"], object), vectors=ONES), "'words' must hold str"),
    "object vectors": (
        archive(words=["a", "b"], vectors=ONES.astype(object)),
        "'vectors' must hold strings or numbers, got Python objects",
    ),
    "numbers as words": (archive(words=[1, 2], vectors=ONES), "got int64 and float32"),
    "words as vectors": (archive(words=["a", "b"], vectors=[["x"], ["y"]]), "got <U1 and <U1"),
    "mismatched": (archive(words=["a", "b", "c"], vectors=ONES), "got (3,) and (2, 3)"),
    "flat": (archive(words=["a", "b"], vectors=ONES[0]), "got (2,) and (3,)"),
    "empty": (archive(words=np.array([], "U1"), vectors=ONES[:0]), "got (0,) and (0, 3)"),
    "NaN": (archive(words=["a", "b"], vectors=ONES * np.nan), "row 1: a vector must hold finite"),
    "too large": (archive(words=["a", "b"], vectors=ONES.astype("f8") * 1e39), "got inf"),
    "bad UTF-8": (archive(words=np.array([b"a", b"\xe9"]), vectors=ONES), "row 2: the word is not"),
    "lying": (lying_archive(), "'vectors' says (1000000000000, 3) of float32"),
    "cut off": (archive(words=["a", "b"], vectors=ONES)[:-30], "no readable .npz"),
    "no zip": (b"PK\x03\x04 but nothing more", "no readable .npz"),
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_bad_archive(tmp_path, case):
    data, message = BAD_ARCHIVES[case]
    path = tmp_path / "bad.npz"
    path.write_bytes(data)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_vectors(path)
    assert caught.value.path == str(path)


def test_a_compressed_archive_says_what_to_do(tmp_path):
    path = tmp_path / "v.npz.gz"
    path.write_bytes(gzip.compress(archive(words=["a", "b"], vectors=ONES)))
    with pytest.raises(DataError, match="decompress it first"):
        read_vectors(path)


@pytest.fixture
def store(tmp_path):
    write_vectors(WordVectors(["a", "b"], ONES), tmp_path / "store")
    return tmp_path / "store"


def altered(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


BAD_STORES = {
    "no meta": (lambda s: (s / "meta.json").unlink(), "meta.json is missing"),
    "meta no JSON": (lambda s: (s / "meta.json").write_text("{"), "cannot be read"),
    "foreign": (lambda s: (s / "meta.json").write_text("[]"), "no store of vectors"),
    "newer": (lambda s: altered(s / "meta.json", version=99), "must be of version 1, got 99"),
    "no words": (lambda s: (s / "words.json").unlink(), "incomplete or damaged"),
    "other words": (lambda s: (s / "words.json").write_text('["a", "c"]'), "was altered"),
    "no vectors": (lambda s: (s / "vectors.npy").unlink(), "incomplete or damaged"),
    "cut vectors": (
        lambda s: (s / "vectors.npy").write_bytes((s / "vectors.npy").read_bytes()[:-4]),
        "incomplete or damaged",
    ),
    "other shape": (lambda s: np.save(s / "vectors.npy", np.ones((2, 4), np.float32)), "(2, 4, "),
    "objects": (
        lambda s: np.save(s / "vectors.npy", np.array([[{}]]), allow_pickle=True),
        "incomplete or damaged",
    ),
}


@pytest.mark.parametrize("case", BAD_STORES)
def test_bad_store(store, case):
    damage, message = BAD_STORES[case]
    damage(store)
    with pytest.raises(DataError, match=re.escape(message)):
        WordVectors.open(store)


def test_a_failed_conversion_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.text.vectors.LARGE_BYTES", 10)
    path = tmp_path / "v.txt"
    path.write_bytes(MANY + b"x 1 oops 3\n")
    with pytest.raises(DataError, match="oops"):
        read_vectors(path, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_missing_and_unknown(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_vectors(tmp_path / "none.txt")
    with pytest.raises(ConfigError, match="unknown format 'word2vek'; did you mean 'word2vec'"):
        read_vectors(tmp_path / "none.txt", format="word2vek")
    with pytest.raises(ConfigError, match=r"standard input .* got 'auto'"):
        read_vectors("-")


@pytest.mark.parametrize(
    ("word", "format"),
    [
        ("", "glove"),
        ("a\nb", "word2vec"),
        ("a  b", "glove"),
        (" a", "glove"),
        ("in 2012", "word2vec"),
        ("New York", "word2vec-binary"),
        ("\ufeff", "glove"),
        ("\ud800", "glove"),
        ("a\0", "npz"),
    ],
)
def test_words_that_would_not_come_back_are_not_written(tmp_path, word, format):
    vectors = WordVectors([word], ONES[:1])
    with pytest.raises(ConfigError, match=re.escape(repr(word))):
        write_vectors(vectors, tmp_path / "v", format=format)
    assert list(tmp_path.iterdir()) == []
    write_vectors(vectors, tmp_path / "v", format="seqloom")
    assert read_vectors(tmp_path / "v").words == [word]


def test_bad_writing(tmp_path):
    vectors = WordVectors(["a", "b"], ONES)
    with pytest.raises(ConfigError, match=r"got 'v\.doc'"):
        write_vectors(vectors, tmp_path / "v.doc")
    with pytest.raises(ConfigError, match="unknown format 'npy'"):
        write_vectors(vectors, tmp_path / "v", format="npy")
    with pytest.raises(ConfigError, match=r"cannot be compressed, got 'v\.npz\.gz'"):
        write_vectors(vectors, tmp_path / "v.npz.gz")
    with pytest.raises(ConfigError, match="at least one word to write, got 0"):
        write_vectors(vectors.restrict([]), tmp_path / "v.txt")
    with pytest.raises(DataError, match="cannot be written"):
        write_vectors(vectors, tmp_path / "no folder" / "v.txt")


def test_bad_construction_and_questions():
    with pytest.raises(ShapeError, match=r"V = 1 words, got \(2, 3\)"):
        WordVectors(["a"], ONES)
    with pytest.raises(ConfigError, match="float32 or float16, got int64"):
        WordVectors(["a", "b"], ONES.astype(np.int64))
    with pytest.raises(ConfigError, match="got 'a' again"):
        WordVectors(["a", "a"], ONES)
    vectors = WordVectors(["a", "zero"], np.float32([[1, 2, 3], [0, 0, 0]]))
    with pytest.raises(DataError, match="got 'A'; 'a' has one"):
        vectors.vector("A")
    with pytest.raises(DataError, match="got 'nope'"):
        vectors.nearest("nope")
    with pytest.raises(ConfigError, match="not zero, got 'zero'"):
        vectors.similarity("a", "zero")
    with pytest.raises(ConfigError, match="got the vector given"):
        vectors.nearest([np.nan, 0, 0])
    with pytest.raises(ShapeError, match=r"\(3,\), got \(2,\)"):
        vectors.nearest([1, 2])
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        vectors.nearest("a", 0)
    assert vectors.nearest("a") == []
