"""A model says of every sentence what backing off by hand says, in every store and every way."""

from __future__ import annotations

import concurrent.futures
import copy
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from bruteforce import Scorer, train
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.errors import ConfigError, DataError
from seqloom.ngram import NgramModel, estimate, prune_by_entropy, write_store
from seqloom.ngram.corpus import read_blocks
from seqloom.ngram.estimation import read_vocabulary
from seqloom.ngram.methods import SMOOTHINGS
from seqloom.ngram.workspace import Workspace

LN10 = math.log(10)
SENTENCES = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=6), min_size=1, max_size=12
)
CATS = ["the cat sat on the mat", "the cat ate the fish", "a dog sat on the cat", "a dog ate"] * 2


def by_hand(scorer: Scorer, sentence: list[str]) -> list[float]:
    history: tuple[str, ...] = ("<s>",)
    found = []
    for word in [*sentence, "</s>"]:
        found.append(scorer.log(word, history) * LN10)
        history = (*history, word if (word,) in scorer.ngrams else "<unk>")
    return found


@pytest.mark.parametrize("name", sorted(set(SMOOTHINGS) - {"maximum-likelihood"}))
@given(texts=SENTENCES, asked=SENTENCES, order=st.integers(1, 5))
@settings(max_examples=15)
def test_scores_are_those_of_backing_off_by_hand(name, texts, asked, order):
    weights = {"weights": [0.5] * order} if name == "jelinek-mercer" else {}
    ngrams = train(texts, order, name, **weights)
    scorer, model = Scorer(ngrams), NgramModel.of(ngrams)
    asked = [[*line, "never"] if i % 3 == 1 else line for i, line in enumerate(asked)]
    expected = [by_hand(scorer, line) for line in asked]
    lines = [" ".join(line) for line in asked]
    np.testing.assert_allclose(model.score(lines), [sum(e) for e in expected], atol=1e-9)
    for line, values in zip(lines, expected, strict=True):
        assert model.score(line) == pytest.approx(sum(values), abs=1e-9)
        assert [w.log_prob for w in model.score_words(line)] == pytest.approx(values, abs=1e-9)
        state, total = model.start(), 0.0
        for word in [*line.split(), "</s>"]:
            value, state = model.step(state, word)
            total += value
        assert total == pytest.approx(sum(values), abs=1e-9)


@given(
    texts=SENTENCES, order=st.integers(1, 4), history=st.lists(st.sampled_from("abx"), max_size=5)
)
@settings(max_examples=30)
def test_the_next_word_is_a_distribution(texts, order, history):
    model = NgramModel.of(train(texts, order, "witten-bell"))
    values = model.next(" ".join(history))
    assert np.exp(values).sum() == pytest.approx(1, abs=1e-9)
    state = model.start()
    for word in history:
        _, state = model.step(state, word)
    for number, word in enumerate(model.words):
        if word != "<s>":
            assert values[number] == pytest.approx(model.step(state, word)[0], abs=1e-12)


@pytest.mark.parametrize("name", sorted(set(SMOOTHINGS) - {"maximum-likelihood", "stupid-backoff"}))
def test_a_closed_vocabulary_shares_all_among_its_words(name):
    options = {"weights": [0.4, 0.6]} if name == "jelinek-mercer" else {}
    vocabulary = {word for line in CATS for word in line.split()} | {"mouse", "tree"}
    ngrams = estimate(
        CATS, order=2, smoothing=name, vocabulary=vocabulary, closed=True, say=[].append, **options
    )
    model = NgramModel.of(ngrams)
    for history in ("", "the", "the mouse", "a"):
        values = np.exp(model.next(history))
        assert values.sum() == pytest.approx(1, abs=1e-9)
        assert values[model.words.number("<unk>")] == 0
        assert values[model.words.number("tree")] > 0
    found = model.perplexity(["the zebra sat"])
    assert found.perplexity == math.inf
    assert 1 < found.known_perplexity < math.inf


def test_a_closed_vocabulary_must_be_complete():
    with pytest.raises(DataError, match="every word of the text, got 2 others"):
        estimate(["a b c d"], order=2, vocabulary=["a", "b"], closed=True)
    with pytest.raises(ConfigError, match="interpolate_unigrams=False"):
        estimate(CATS, order=2, closed=True, interpolate_unigrams=False)


def test_the_order_used_is_that_of_the_longest_ngram():
    model = NgramModel.of(estimate(["a b c d"], order=3, smoothing="witten-bell"))
    assert [w.order for w in model.score_words("a b d x c")] == [2, 3, 1, 1, 1, 1]
    assert [w.word for w in model.score_words("a zebra")] == ["a", "<unk>", "</s>"]


def test_states_with_one_future_are_equal():
    model = NgramModel.of(estimate(CATS, order=4))
    one, other = model.start(), model.empty()
    for word in "never seen the cat".split():
        _, one = model.step(one, word)
    for word in "the cat".split():
        _, other = model.step(other, word)
    assert one.tobytes() == other.tobytes()


def test_perplexity_with_and_without_unknown_words(tmp_path):
    model = NgramModel.of(estimate(CATS, order=2))
    lines = ["the zebra sat", "a cat"]
    scores = [w for line in lines for w in model.score_words(line)]
    found = model.perplexity(lines)
    assert (found.words, found.lines, found.unknown) == (7, 2, 1)
    assert found.perplexity == pytest.approx(math.exp(-sum(w.log_prob for w in scores) / 7))
    known = [w.log_prob for w in scores if w.word != "<unk>"]
    assert found.known_perplexity == pytest.approx(math.exp(-sum(known) / 6))
    (tmp_path / "text").write_text("the zebra sat\na cat", encoding="utf-8")
    assert model.perplexity(tmp_path / "text") == found


def test_generation_repeats_with_a_seed_and_stops_at_the_end():
    model = NgramModel.of(estimate(CATS, order=3))
    assert model.generate("the", seed=3) == model.generate("the", seed=3)
    assert len({model.generate(seed=s) for s in range(8)}) > 1
    assert "<unk>" not in " ".join(model.generate(seed=s) for s in range(20))
    assert len(model.generate("the", words=2, seed=1).split()) <= 3
    with pytest.raises(ConfigError, match="temperature must be above 0, got 0"):
        model.generate(temperature=0)


def test_long_and_odd_sentences():
    model = NgramModel.of(estimate(CATS, order=3))
    long = "the cat sat on the mat " * 2000
    words = model.score_words(long)
    assert model.score(long) == pytest.approx(sum(w.log_prob for w in words), rel=1e-12)
    assert model.score("") == model.score("  \t ") == model.score_words("")[0].log_prob
    assert model.score("the\ncat") == model.score("the cat") == model.score(["the\ncat"])[0]
    assert model.score("<s> the cat </s>") == model.score("the cat")
    assert len(model.score([])) == 0


class TestStores:
    @pytest.fixture(params=["hashed", "trie"])
    def stored(self, request, tmp_path):
        ngrams = estimate(CATS, order=4)
        path = tmp_path / "model.ngram"
        write_store(ngrams, path, request.param, Workspace())
        return ngrams, path

    def test_says_what_the_model_in_memory_says(self, stored):
        ngrams, path = stored
        model, opened = NgramModel.of(ngrams), NgramModel.load(path)
        lines = [*CATS, "a zebra ate the mat", ""]
        np.testing.assert_allclose(opened.score(lines), model.score(lines), atol=1e-5)
        assert opened.sizes == ngrams.sizes
        assert list(opened.words) == list(ngrams.words)

    def test_a_pruned_model_without_all_suffixes(self, stored, tmp_path):
        ngrams, path = stored
        kind = NgramModel.load(path).about["kind"]
        pruned = prune_by_entropy(ngrams, 0.01)
        write_store(pruned, tmp_path / "pruned", kind, Workspace())
        scorer, model = Scorer(pruned), NgramModel.load(tmp_path / "pruned")
        for line in CATS:
            assert model.score(line) == pytest.approx(sum(by_hand(scorer, line.split())), abs=1e-5)

    def test_every_cut_is_noticed(self, stored):
        _, path = stored
        whole = path.read_bytes()
        for size in [*range(0, 200, 7), *range(200, len(whole), max(1, len(whole) // 60))]:
            path.write_bytes(whole[:size])
            if size < 8:
                continue  # then it does not even look like a store
            with pytest.raises(DataError, match="store"):
                NgramModel.load(path)

    def test_every_altered_byte_that_matters_is_noticed(self, stored):
        _, path = stored
        whole = path.read_bytes()
        expected = NgramModel.load(path).score(CATS)
        draw = np.random.default_rng(0)
        for at in draw.integers(0, len(whole), 400):
            changed = bytearray(whole)
            changed[at] ^= 1 << int(draw.integers(8))
            path.write_bytes(changed)
            try:
                model = NgramModel.load(path)
            except DataError:
                continue
            assert at > 8, "the magic itself"
            # Only the filling between two arrays may change unnoticed.
            np.testing.assert_array_equal(model.score(CATS), expected)

    def test_another_version_is_named(self, stored):
        _, path = stored
        data = bytearray(path.read_bytes())
        data[8] = 99
        path.write_bytes(data)
        with pytest.raises(DataError, match="has format 99, this Seqloom reads 2"):
            NgramModel.load(path)

    def test_a_kind_that_does_not_exist(self, stored, tmp_path):
        with pytest.raises(ConfigError, match="'hashed'"):
            write_store(stored[0], tmp_path / "x", "hash", Workspace())  # type: ignore[arg-type]

    def test_a_device_is_never_replaced(self, stored, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DataError, match="not a plain file"):
            write_store(stored[0], tmp_path / "pipe", "hashed", Workspace())


def test_arrays_with_right_checksums_that_do_not_fit_together(tmp_path):
    """Whatever a store holds, looking words up in it stays inside: it is refused before."""
    from seqloom.ngram import hashed, store_file, stores

    ngrams = estimate(CATS, order=3)
    packed = stores.pack(ngrams, Workspace())
    tables = packed.tables
    assert isinstance(tables, hashed.Hashed)
    good = {
        "pool": packed.words.pool, "offsets": packed.words.offsets, "table": packed.words.table,
        "cells": tables.cells, "starts": tables.starts, "homes": tables.homes,
    }  # fmt: skip
    about = {
        "kind": "hashed", "order": 3, "sizes": ngrams.sizes, "missing_backoff": 0.0,
        "suffixes": True, "about": {},
    }  # fmt: skip

    def write(arrays, header):
        path = tmp_path / "store"
        with path.open("w+b") as file:
            shapes = {name: (a.dtype, a.shape) for name, a in arrays.items()}
            sink = store_file.StoreWriter(file, header, shapes)
            for name, array in arrays.items():
                sink.write(name, array)
            sink.finish()
        return path

    assert NgramModel.load(write(good, about)).score(CATS[0]) < 0
    full = tables.cells.copy()
    full[:] = 7
    far = tables.homes * 100
    bad = [
        {"cells": full}, {"cells": tables.cells[:-3]}, {"homes": far}, {"homes": tables.homes * 0},
        {"starts": tables.starts[::-1].copy()}, {"starts": tables.starts + 5},
        {"offsets": packed.words.offsets[::-1].copy()}, {"pool": packed.words.pool[:-1]},
        {"table": packed.words.table | np.uint64(1 << 20)}, {"table": packed.words.table[:-2]},
    ]  # fmt: skip
    for change in bad:
        with pytest.raises(DataError, match=r"fit together|build it again"):
            NgramModel.load(write(good | change, about))
    for change in ({"order": 5}, {"kind": "other"}, {"sizes": [1]}, {"sizes": "x"}):
        with pytest.raises(DataError):
            NgramModel.load(write(good, about | change))
    with pytest.raises(DataError, match="lacks"):
        NgramModel.load(write({k: v for k, v in good.items() if k != "homes"}, about))


def test_it_cannot_be_copied_with_its_addresses():
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        copy.deepcopy(NgramModel.of(estimate(CATS, order=2)))


def test_two_threads_and_a_fork_do_not_bring_it_down():
    code = """
import os, threading
from seqloom.ngram import NgramModel, estimate

lines = ["a b c d e f"] * 2000
model = NgramModel.of(estimate(lines, order=4))
expected = model.score(lines).sum()
def work():
    for _ in range(5):
        assert model.score(lines).sum() == expected
        assert model.score(lines[0]) < 0
        estimate(lines, order=3)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
pid = os.fork()
if pid == 0:
    assert model.score(lines).sum() == expected
    estimate(lines, order=3)
    os._exit(7)
_, status = os.waitpid(pid, 0)
for thread in threads:
    thread.join()
assert os.waitstatus_to_exitcode(status) == 7
print("fine")
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "fine", done.stderr


def test_one_sentence_from_many_threads():
    model = NgramModel.of(estimate(CATS, order=3))
    expected = {line: model.score(line) for line in CATS}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(model.score, CATS * 500))
    assert found == [expected[line] for line in CATS * 500]


# -- blanks, broken text, wrong settings -----------------------------------------------------------

ODD = ["New\u00a0York is big", "a\u3000b is small", "x\u2028y is odd", "New York is New"] * 3


@pytest.mark.parametrize("context", ["New\u00a0York", "a\u3000b", "x\u2028y is", "New\tYork\0 is"])
def test_what_comes_next_is_read_as_what_is_scored(context):
    model = NgramModel.of(estimate(ODD, order=3, smoothing="witten-bell"))
    values = model.next(context)
    for word in ("is", "big", "small", "New\u00a0York"):
        said = model.score_words(f"{context} {word}")[-2]
        assert said.word == word
        assert values[model.words.number(word)] == pytest.approx(said.log_prob, abs=1e-9)
    assert model.likely(context, 1)[0][0] == model.words[int(values.argmax())]
    assert model.generate(context, words=0).split(" ") == context.replace("\t", " ").replace(
        "\0", ""
    ).split(" ")


def test_a_vocabulary_is_read_between_the_same_blanks(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"\xef\xbb\xbfa\x0bb New\xc2\xa0York\r\nis\0big\n")
    words = list(read_vocabulary(path))
    assert words[3:] == ["a\x0bb", "New\u00a0York", "is", "big"]


def test_half_a_character_is_the_sign_of_what_is_broken():
    broken, replaced = [["the \ud800 sat", "a \udfff"], ["the \ufffd sat", "a \ufffd"]]
    model = NgramModel.of(estimate(broken, order=2, smoothing="witten-bell"))
    expected = NgramModel.of(estimate(replaced, order=2, smoothing="witten-bell"))
    assert list(model.words) == list(expected.words)
    assert model.score("the \ud800") == expected.score("the \ufffd")
    assert model.score(broken).tolist() == expected.score(replaced).tolist()
    assert model.score_words("\ud800")[0].word == "\ufffd" and "\ud800" in model.words
    np.testing.assert_array_equal(model.next("a \ud800"), expected.next("a \ufffd"))
    assert model.generate("\ud800 a", words=0) == "\ud800 a"
    escaped = b"a \xff".decode("utf-8", "surrogateescape")  # bytes that are no text stay themselves
    assert (
        list(NgramModel.of(estimate([escaped], order=1, smoothing="witten-bell")).words)[4]
        == "\udcff"
    )


def test_a_mark_before_the_first_word_is_no_part_of_it(tmp_path):
    plain, marked = tmp_path / "plain.txt", tmp_path / "marked.txt"
    text = "\n".join(CATS) + "\n"
    plain.write_text(text, encoding="utf-8")
    marked.write_text(text, encoding="utf-8-sig")
    words = [list(estimate(path, order=2).words) for path in (plain, marked)]
    assert words[0] == words[1]
    model = NgramModel.of(estimate(plain, order=2, say=lambda _: None))
    assert model.perplexity(marked) == model.perplexity(plain)
    for content in (b"\xef\xbb\xbf", b"a", b"a\n", b"\xef\xbb\xbfa"):
        plain.write_bytes(content)
        blocks = b"".join(read_blocks(plain))
        bare = content.removeprefix(b"\xef\xbb\xbf")
        assert blocks == (bare if bare.endswith(b"\n") or not bare else bare + b"\n")


@pytest.mark.parametrize("size", [1, 128, 5000])
def test_a_store_with_something_after_its_end_is_refused(tmp_path, size):
    path = tmp_path / "model.store"
    for kind in ("hashed", "trie"):
        write_store(estimate(CATS, order=3, say=lambda _: None), path, kind, Workspace())
        whole = NgramModel.load(path).score(CATS[0])
        content = path.read_bytes()
        path.write_bytes(content + bytes(size))
        with pytest.raises(DataError, match=f"{size:,} bytes after its end"):
            NgramModel.load(path, verify=False)
        path.write_bytes(content)
        assert NgramModel.load(path).score(CATS[0]) == whole


def test_settings_that_are_no_numbers_are_refused():
    model = NgramModel.of(estimate(CATS, order=2, say=lambda _: None))
    for temperature in (math.nan, math.inf, 0, -1.0, "1"):
        with pytest.raises(ConfigError, match=r"temperature must be above 0, got .*a number"):
            model.generate(temperature=temperature)
    for name, value in (("words", 2.5), ("words", "3"), ("seed", "x"), ("seed", -1), ("seed", 0.5)):
        with pytest.raises(ConfigError, match=f"{name} must be a whole number not below 0, got"):
            model.generate(**{name: value})
    with pytest.raises(ConfigError, match="count must be a whole number not below 0, got '3'"):
        model.likely(count="3")


def test_amounts_that_no_memory_or_number_holds_are_refused():
    for cutoff in (10**12, 10**9, 2.5):
        with pytest.raises(ConfigError, match="cutoff must be at least 1 and at most 65,535"):
            estimate(CATS, order=2, smoothing="good-turing", cutoff=cutoff)
    with pytest.raises(ConfigError, match=r"at most 1e\+100, got 1e\+308"):
        estimate(CATS, order=2, smoothing="add-delta", delta=1e308)
    most = NgramModel.of(estimate(CATS, order=2, smoothing="add-delta", delta=1e100))
    values = np.exp(most.next("the"))
    assert values.sum() == pytest.approx(1) and values[1] == 0
    np.testing.assert_allclose(np.delete(values, 1), 1 / (len(values) - 1))
