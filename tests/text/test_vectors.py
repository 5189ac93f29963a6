"""Word vectors against hand computation, NumPy and files and figures made by gensim 4.4."""

from __future__ import annotations

import gzip
import json
import lzma
import math
import struct

import numpy as np
import pytest
import zstandard

from seqloom.errors import ConfigError, DataError
from seqloom.text import vectors as vectors_module
from seqloom.text.joined_vectors import join_vectors
from seqloom.text.vector_files import detect_format
from seqloom.text.vectors import WordVectors, read_vectors, write_vectors

WORDS = ["king", "queen", "man", "woman", "北京", "café"]
MATRIX = np.array(
    [
        [0.5, 0.25, -1.0],
        [0.5, 0.75, -1.0],
        [0.1, 0.2, 0.3],
        [0.125, 0.7, 0.3],
        [-1.5, 2.0, 1e-7],
        [3.0, -0.1, 0.2],
    ],
    dtype=np.float32,
)
# gensim.models.KeyedVectors.save_word2vec_format of the above, gensim 4.4.0
GENSIM_BINARY = (
    b"6 3\nking \x00\x00\x00?\x00\x00\x80>\x00\x00\x80\xbfqueen \x00\x00\x00?\x00\x00@?\x00\x00\x80"
    b"\xbfman \xcd\xcc\xcc=\xcd\xccL>\x9a\x99\x99>woman \x00\x00\x00>333?\x9a\x99\x99>"
    b"\xe5\x8c\x97\xe4\xba\xac \x00\x00\xc0\xbf\x00\x00\x00@\x95\xbf\xd63caf\xc3\xa9 \x00\x00@@"
    b"\xcd\xcc\xcc\xbd\xcd\xccL>"
)
GENSIM_TEXT = (
    b"6 3\nking 0.5 0.25 -1.0\nqueen 0.5 0.75 -1.0\nman 0.1 0.2 0.3\nwoman 0.125 0.7 0.3\n"
    b"\xe5\x8c\x97\xe4\xba\xac -1.5 2.0 1e-07\ncaf\xc3\xa9 3.0 -0.1 0.2\n"
)
GLOVE_TEXT = GENSIM_TEXT.partition(b"\n")[2]


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, MATRIX)


def assert_same(found: WordVectors, words=WORDS, matrix=MATRIX) -> None:
    assert list(found.words) == list(words)
    assert found.matrix.dtype == matrix.dtype
    assert np.array_equal(found.matrix, matrix)


@pytest.mark.parametrize(
    ("data", "format"),
    [(GENSIM_BINARY, "word2vec-binary"), (GENSIM_TEXT, "word2vec"), (GLOVE_TEXT, "glove")],
)
@pytest.mark.parametrize("name", ["auto", "named"])
def test_reads_what_gensim_and_glove_write(tmp_path, data, format, name):
    path = tmp_path / "vectors"
    path.write_bytes(data)
    assert detect_format(path) == format
    assert_same(read_vectors(path, format="auto" if name == "auto" else format))


@pytest.mark.parametrize("data", [GENSIM_BINARY, GENSIM_TEXT, GLOVE_TEXT])
@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress]
)
def test_reads_compressed_files(tmp_path, data, pack):
    path = tmp_path / "vectors.packed"
    path.write_bytes(pack(data))
    assert_same(read_vectors(path))


def test_reads_binary_rows_ended_by_newlines(tmp_path):
    rows = [
        word.encode() + b" " + struct.pack("<3f", *row.tolist()) + b"\n"
        for word, row in zip(WORDS, MATRIX, strict=True)
    ]
    path = tmp_path / "c.bin"
    path.write_bytes(b"6 3\n" + b"".join(rows))
    assert_same(read_vectors(path))


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf2 2\r\na 1 2\r\nb 3 4\r\n",
        b"2 2\na 1 2 \nb 3 4 \n\n\n",
        b"a\t1\t2\nb\t3\t4\n",
        b"a  1  2\nb 3 4",
        b"2 2\na 1.0e0 +2\nb 3. 4",
    ],
    ids=["mark-crlf", "trailing-space", "tabs", "double-space", "spellings"],
)
def test_reads_the_text_people_have(tmp_path, data):
    path = tmp_path / "v.txt"
    path.write_bytes(data)
    assert_same(read_vectors(path), ["a", "b"], np.array([[1, 2], [3, 4]], np.float32))


def test_words_with_spaces_are_split_from_the_right(tmp_path):
    path = tmp_path / "840B.txt"
    path.write_text("the 1 2\n. . . 3 4\nat name@domain.com 5 6\n2012 7 8\n\u00a0 9 10\n")
    found = read_vectors(path)
    assert found.words == ["the", ". . .", "at name@domain.com", "2012", "\u00a0"]
    assert found.vector(". . .").tolist() == [3, 4]


def test_the_first_of_repeated_words_wins_and_the_rest_are_counted(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("a 1 2\nb 3 4\na 5 6\na 7 8\n")
    found = read_vectors(path)
    assert found.vector("a").tolist() == [1, 2]
    assert (len(found), found.duplicates) == (2, 2)


@pytest.mark.parametrize("data", [GENSIM_BINARY, GENSIM_TEXT, GLOVE_TEXT])
def test_only_keeps_the_words_asked_for(tmp_path, data):
    path = tmp_path / "v"
    path.write_bytes(data)
    assert_same(read_vectors(path, only=["北京", "king", "no"]), ["king", "北京"], MATRIX[[0, 4]])
    nothing = read_vectors(path, only=[])
    assert (len(nothing), nothing.size) == (0, 3)


def test_small_blocks_make_no_difference(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.text.vector_files.BLOCK_BYTES", 7)
    for data in (GENSIM_BINARY, GENSIM_TEXT, GLOVE_TEXT):
        path = tmp_path / "v"
        path.write_bytes(data)
        assert_same(read_vectors(path))


NAMES = ["v.txt", "v.vec", "v.bin", "v.npz", "store", "v.txt.gz", "v.vec.xz", "v.bin.zst"]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_keeps_every_float32(tmp_path, name):
    bits = np.random.default_rng(0).integers(0, 2**32, (60, 11), dtype=np.uint32)
    matrix = np.where(np.isfinite(bits.view(np.float32)), bits.view(np.float32), np.float32(0.1))
    matrix[0, :4] = [np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal, -0.0, 1 / 3]
    words = [f"词{i}" for i in range(60)]
    write_vectors(WordVectors(words, matrix), tmp_path / name)
    found = read_vectors(tmp_path / name)
    assert_same(found, words, matrix)
    assert np.array_equal(np.signbit(found.matrix), np.signbit(matrix))
    assert [p.name for p in tmp_path.iterdir()] == [name]  # nothing is left beside it


@pytest.mark.parametrize("name", NAMES)
def test_float16_keeps_its_values(tmp_path, name):
    half = MATRIX.astype(np.float16)
    write_vectors(WordVectors(WORDS, half), tmp_path / name)
    found = read_vectors(tmp_path / name)
    assert np.array_equal(found.matrix.astype(np.float32), half.astype(np.float32))
    assert found.matrix.dtype == (np.float16 if name in ("v.npz", "store") else np.float32)


def test_text_has_the_fewest_digits(tmp_path):
    path = tmp_path / "v.txt"
    write_vectors(WordVectors(["a"], np.array([[0.1, 1 / 3, 2.0]], np.float32)), path)
    assert path.read_text() == "a 0.1 0.33333334 2.0\n"


@pytest.mark.parametrize("order", ["C", "F"])
def test_reads_archives_of_either_order_and_byte_order(tmp_path, order):
    path = tmp_path / "v.npz"
    np.savez(path, words=np.array(WORDS), vectors=np.asarray(MATRIX.astype(">f8"), order=order))
    assert_same(read_vectors(path))
    assert_same(read_vectors(path, only={"man"}), ["man"], MATRIX[2:3])


def test_reads_archives_of_byte_strings(tmp_path):
    path = tmp_path / "v.npz"
    np.savez(path, words=np.array([word.encode() for word in WORDS]), vectors=MATRIX)
    assert_same(read_vectors(path))


def test_a_store_is_mapped_and_replaced_whole(tmp_path, vectors):
    write_vectors(vectors, tmp_path / "store")
    opened = WordVectors.open(tmp_path / "store")
    assert isinstance(opened.matrix, np.memmap)
    assert opened.vector("北京").tolist() == MATRIX[4].tolist()
    write_vectors(WordVectors(["new"], MATRIX[:1]), tmp_path / "store")
    assert WordVectors.open(tmp_path / "store").words == ["new"]
    assert opened.vector("café").tolist() == MATRIX[5].tolist()  # the old map lives on
    with pytest.raises(DataError, match=r"tmp_|no store of vectors"):
        write_vectors(vectors, tmp_path, format="seqloom")


def test_a_large_file_is_converted_once_and_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_module, "LARGE_BYTES", 10)
    path, cache = tmp_path / "v.txt", tmp_path / "cache"
    path.write_bytes(GLOVE_TEXT + b"king 9 9 9\n")
    assert not isinstance(read_vectors(path, cache=None).matrix, np.memmap)
    assert_same(read_vectors(path, only={"man"}, cache=cache), ["man"], MATRIX[2:3])
    assert not cache.exists()  # a part is not worth a conversion
    first = read_vectors(path, cache=cache)
    assert isinstance(first.matrix, np.memmap)
    assert_same(first)
    assert first.duplicates == 1
    with monkeypatch.context() as patch:
        patch.setattr(vectors_module, "read_blocks", None)  # now it must not be parsed again
        assert_same(read_vectors(path, cache=cache))
        assert_same(read_vectors(path, only={"man"}, cache=cache), ["man"], MATRIX[2:3])
    path.write_text("only 1 2 3 4\n")
    assert read_vectors(path, cache=cache).words == ["only"]
    assert len(list(cache.iterdir())) == 1


def test_the_default_cache_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_module, "LARGE_BYTES", 10)
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "here"))
    path = tmp_path / "v.txt"
    path.write_bytes(GLOVE_TEXT)
    assert_same(read_vectors(path))
    (store,) = (tmp_path / "here" / "vectors").iterdir()
    assert json.loads((store / "meta.json").read_text())["words"] == 6


def test_cosine_by_hand():
    vectors = WordVectors(["a", "b"], np.array([[3, 4], [4, 3]], np.float16))
    assert vectors.similarity("a", "b") == pytest.approx(24 / 25)
    assert vectors.similarity("a", "a") == pytest.approx(1)


def test_neighbours_are_gensims(vectors):
    # as most_similar and similar_by_vector of gensim 4.4.0 rank the same rows
    expected = [("queen", 0.9320070743560791), ("café", 0.3699442148208618)]
    expected.append(("woman", -0.07068772614002228))
    found = vectors.nearest("king", 3)
    assert [word for word, _ in found] == [word for word, _ in expected]
    assert [score for _, score in found] == pytest.approx([s for _, s in expected], abs=1e-6)
    (man, one), (woman, cosine) = vectors.nearest([1, 2, 3], 2)
    assert (man, woman) == ("man", "woman")
    assert (one, cosine) == pytest.approx((1, 0.8397716879844666), abs=1e-6)
    assert vectors.similarity("king", "北京") == pytest.approx(-0.087287195, abs=1e-6)


def test_analogy_is_gensims(vectors):
    # as most_similar of gensim 4.4.0 with positive queen and man, negative king
    found = vectors.analogy("king", "queen", "man", 3)
    assert [word for word, _ in found] == ["woman", "北京", "café"]
    expected = [0.9180783629417419, 0.4465128481388092, 0.18140777945518494]
    assert [score for _, score in found] == pytest.approx(expected, abs=1e-6)


def test_ranking_equals_a_full_sort_over_many_blocks(monkeypatch):
    monkeypatch.setattr(vectors_module, "_BLOCK_ROWS", 7)
    matrix = np.random.default_rng(1).standard_normal((100, 5)).astype(np.float32)
    matrix[50] = 0  # has no direction: never a neighbour
    words = [str(i) for i in range(100)]
    unit = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    order = [i for i in np.argsort(-(unit @ unit[3])) if i not in (3, 50)]
    found = WordVectors(words, matrix).nearest("3", 1000)
    assert [int(word) for word, _ in found] == order
    assert all(math.isfinite(score) for _, score in found)


def test_select_builds_an_embedding_table(vectors):
    words = ["<pad>", "King", "man", "北京"]
    table, found = vectors.select(words)
    assert found.tolist() == [False, False, True, True]
    assert np.array_equal(table, np.stack([0 * MATRIX[0], 0 * MATRIX[0], MATRIX[2], MATRIX[4]]))
    table, found = vectors.select(words, lowercase=True)
    assert found.tolist() == [False, True, True, True]
    assert np.array_equal(table[1], MATRIX[0])
    table[:] = 1  # a copy: the vectors stay as they are
    assert np.array_equal(vectors.matrix, MATRIX)
    assert vectors.select([])[0].shape == (0, 3)


def test_looks_like_a_container(vectors):
    assert (len(vectors), vectors.size, vectors.index["man"]) == (6, 3, 2)
    assert "man" in vectors
    assert "Man" not in vectors
    assert repr(vectors) == "WordVectors(6 words x 3, float32)"
    with pytest.raises(ValueError, match="read-only"):
        vectors.matrix[0, 0] = 1


def test_joined_vectors_are_side_by_side_and_what_is_missing_is_predicted():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    left = rng.normal(size=(40, 3)).astype(np.float32)
    turn = rng.normal(size=(3, 2)).astype(np.float32)
    right = 7 * left @ turn  # exactly linear in the other, and far wider spread
    first, second = WordVectors(words[:30], left[:30]), WordVectors(words[5:], right[5:])
    found = join_vectors(first, second)
    assert list(found.words) == words and found.size == 5
    scale = left[:30].std() / right[5:].std()
    np.testing.assert_array_equal(found.matrix[:30, :3], left[:30])
    np.testing.assert_allclose(found.matrix[5:, 3:], scale * right[5:], rtol=1e-5)
    np.testing.assert_allclose(found.matrix[:5, 3:], scale * right[:5], rtol=1e-3, atol=1e-4)
    # The first has a number more than the second can tell: the nearest by least squares.
    guess = np.linalg.lstsq(right[5:30], left[5:30], rcond=None)[0]
    np.testing.assert_allclose(found.matrix[30:, :3], right[30:] @ guess, rtol=1e-3, atol=1e-4)
    fewer = join_vectors(first, second, pairs=10)
    guess = np.linalg.lstsq(right[5:15], left[5:15], rcond=None)[0]
    np.testing.assert_allclose(fewer.matrix[30:, :3], right[30:] @ guess, rtol=1e-3, atol=1e-4)


def test_tables_with_nothing_in_common_are_not_joined():
    one = WordVectors(["a"], np.ones((1, 2), np.float32))
    other = WordVectors(["b"], np.ones((1, 2), np.float32))
    with pytest.raises(ConfigError, match="must have words in common, got none of 1 words and 1"):
        join_vectors(one, other)
    with pytest.raises(ConfigError, match="pairs must be at least 1, got 0"):
        join_vectors(one, one, pairs=0)
