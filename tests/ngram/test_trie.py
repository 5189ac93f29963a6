"""The small store against dictionaries of n-grams."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.errors import DataError
from seqloom.ngram import trie
from seqloom.ngram.bits import fill_ranks, find_member, hints_for, is_member, members_before
from seqloom.ngram.levels import Level, Ngrams
from seqloom.ngram.quantized import NEVER, ZERO, quantize
from seqloom.ngram.store_file import StoreWriter, open_store
from seqloom.ngram.trie_tables import BOUNDS, HINTS, OTHERS, RECORDS, SIZE, USUAL
from seqloom.ngram.words import NONE, Words
from seqloom.ngram.workspace import Workspace

PLACE = Workspace()
NOTHING = np.empty(0, np.uint32)


class Memory:
    """A sink that keeps the arrays; what is never written stays poisoned."""

    def __init__(self, shapes):
        self.arrays = {}
        for name, (kind, shape) in shapes.items():
            self.arrays[name] = np.full(shape, 0xA5, np.uint8).astype(kind)

    def write(self, name, values, start=0):
        assert values.dtype == self.arrays[name].dtype
        assert start + len(values) <= len(self.arrays[name])
        self.arrays[name][start : start + len(values)] = values


def pack(ngrams):
    plan = trie.TriePlan(ngrams, PLACE)
    memory = Memory(plan.shapes)
    plan.write(memory)
    tables = trie.Packed(**memory.arrays)
    trie.check(tables, len(ngrams.words))
    return tables


@numba.njit
def find_all(tables, order, contexts, words, rows):
    for i in range(len(rows)):
        rows[i] = trie.find_packed(tables, order, contexts[i], words[i])


@numba.njit
def values_of(tables, order, rows, probs, backoffs, extends):
    for i in range(len(rows)):
        probs[i] = trie.packed_prob(tables, order, rows[i])
        extends[i] = trie.packed_extends(tables, order, rows[i])
        if len(backoffs):
            backoffs[i] = trie.packed_backoff(tables, order, rows[i])


def find(tables, order, contexts, words):
    rows = np.empty(len(words), np.uint32)
    find_all(tables, order, np.asarray(contexts, np.uint32), np.asarray(words, np.uint32), rows)
    return rows


def values(tables, order, rows):
    top = order + 2 == len(tables.layout)
    probs, backoffs = np.empty(len(rows)), np.empty(0 if top else len(rows))
    extends = np.empty(len(rows), np.bool_)
    values_of(tables, order, np.asarray(rows, np.uint32), probs, backoffs, extends)
    return probs, backoffs, extends


def vocabulary(size):
    return Words.of(f"w{i}" for i in range(3, size))


def model(rng, size, sizes, draw):
    """Random n-grams, closed under contexts, their rows in no order."""
    words = np.arange(size, dtype=np.uint32)
    levels = [Level(NOTHING, words, draw(size), draw(size))]
    for wanted in sizes:
        pairs = len(levels[-1]) * size
        keys = rng.permutation(pairs)[: min(wanted, pairs)]
        context, word = (keys // size).astype(np.uint32), (keys % size).astype(np.uint32)
        levels.append(Level(context, word, draw(len(keys)), draw(len(keys))))
    levels[-1].backoff = np.empty(0)
    return Ngrams(vocabulary(size), levels)


def listed(levels):
    """By order, from the words of an n-gram to its row."""
    found = [{(int(w),): i for i, w in enumerate(levels[0].word)}]
    for level in levels[1:]:
        names = list(found[-1])
        found.append(
            {
                (*names[c], int(w)): i
                for i, (c, w) in enumerate(zip(level.context, level.word, strict=True))
            }
        )
    return found


def few(rng):
    """Values of which there are at most 250, zero and minus infinity among them."""
    known = np.concatenate([[0.0, -np.inf], -rng.exponential(2.0, 248)])
    return lambda n: rng.choice(known, n)


def many(rng):
    return lambda n: -rng.exponential(2.0, n)


models = st.builds(
    lambda seed, size, sizes, draw: model(
        rng := np.random.default_rng(seed), size, sizes, draw(rng)
    ),
    st.integers(0, 2**32),
    st.integers(3, 40),
    st.lists(st.sampled_from([0, 1, 5, 40, 700]), max_size=4),
    st.sampled_from([few, many]),
)


@settings(max_examples=60)
@given(models)
def test_finds_what_is_there_and_nothing_else(ngrams):
    tables = pack(ngrams)
    wanted, size = listed(ngrams.levels), len(ngrams.words)
    rows = {gram: gram[0] for gram in wanted[0]}
    for order in range(1, ngrams.order):
        pairs = list(itertools.product(rows, range(size)))
        found = find(tables, order, [rows[c] for c, _ in pairs], [w for _, w in pairs])
        named = {(*c, w): r for (c, w), r in zip(pairs, found.tolist(), strict=True)}
        there = {gram: row for gram, row in named.items() if row != NONE}
        assert there.keys() == wanted[order].keys()
        assert sorted(there.values()) == list(range(len(there)))
        rows = there


@settings(max_examples=60)
@given(models)
def test_unpacks_to_the_same_model(ngrams):
    levels = trie.unpack(pack(ngrams))
    assert [len(level) for level in levels] == ngrams.sizes
    for order, (old, new) in enumerate(zip(listed(ngrams.levels), listed(levels), strict=True)):
        assert old.keys() == new.keys()
        given, got = ngrams.levels[order], levels[order]
        at = np.array([old[gram] for gram in new], np.int64)
        assert len(got.backoff) == len(given.backoff)
        for column, kept in [(given.prob, got.prob), (given.backoff, got.backoff)]:
            if not len(kept):
                continue
            single = column[at].astype(np.float32)
            if len(np.unique(column.astype(np.float32))) <= 250 or order == 0:
                assert np.array_equal(kept.astype(np.float32), single)
            else:
                assert np.abs(kept - single).max() < np.ptp(column) / 20


@settings(max_examples=40)
@given(models)
def test_values_by_row_are_those_of_the_columns(ngrams):
    tables = pack(ngrams)
    levels = trie.unpack(tables)
    for order, level in enumerate(levels):
        probs, backoffs, extends = values(tables, order, np.arange(len(level)))
        assert np.array_equal(probs, level.prob)
        assert np.array_equal(backoffs, level.backoff)
        goes_on = np.zeros(len(level), np.bool_)
        if order + 1 < len(levels):
            goes_on[levels[order + 1].context] = True
        assert np.array_equal(extends, goes_on)


@given(models)
@settings(max_examples=10)
def test_the_same_from_a_file(tmp_path_factory, ngrams):
    path = tmp_path_factory.mktemp("store") / "model"
    plan = trie.TriePlan(ngrams, PLACE)
    with path.open("w+b") as file:
        sink = StoreWriter(file, {"kind": trie.KIND}, plan.shapes)
        plan.write(sink)
        sink.finish()
    about, arrays = open_store(path)
    assert about == {"kind": "trie"}
    tables = trie.Packed(**arrays)
    trie.check(tables, len(ngrams.words))
    for read, packed in zip(tables, pack(ngrams), strict=True):
        assert np.array_equal(read, packed)


def test_a_context_with_a_million_words():
    """Bounds far apart: most contexts have no words at all, one has nearly all."""
    size = (1 << 20) + 5000
    context = np.full(size, 7, np.uint32)
    context[:3] = 0, 9, size - 1
    word = np.random.default_rng(1).permutation(size).astype(np.uint32)
    levels = [
        Level(NOTHING, np.arange(size, dtype=np.uint32), np.full(size, -1.0), np.zeros(size)),
        Level(context, word, np.full(size, -2.5), np.empty(0)),
    ]
    tables = pack(Ngrams(vocabulary(size), levels))
    rows = find(tables, 1, context, word)
    assert np.array_equal(np.sort(rows), np.arange(size))
    assert (
        find(tables, 1, [0, 7, 8, size - 1], [word[1], word[0], word[5], word[5]]).tolist()
        == [NONE] * 4
    )
    assert values(tables, 0, [0, 6, 7, 8, 9, size - 1])[2].tolist() == [
        True, False, True, False, True, True,
    ]  # fmt: skip


def test_only_words():
    levels = [Level(NOTHING, np.arange(4, dtype=np.uint32), np.array([-1.0, -9, -2, -3]), NOTHING)]
    tables = pack(Ngrams(vocabulary(4), levels))
    assert values(tables, 0, range(4))[0].tolist() == [-1, -9, -2, -3]
    assert not values(tables, 0, range(4))[2].any()
    assert len(trie.unpack(tables)) == 1


def test_a_context_that_is_no_row_has_nothing_after_it():
    rng = np.random.default_rng(2)
    tables = pack(model(rng, 5, [9, 9], many(rng)))
    assert find(tables, 2, [9, 1000, NONE], [1, 1, 1]).tolist() == [NONE] * 3


def test_an_ngram_given_twice_is_refused():
    rng = np.random.default_rng(3)
    ngrams = model(rng, 6, [5], many(rng))
    ngrams.levels[1].context[4], ngrams.levels[1].word[4] = 2, 5
    ngrams.levels[1].context[1], ngrams.levels[1].word[1] = 2, 5
    with pytest.raises(DataError, match="each 2-gram once, got one with 'w5'"):
        pack(ngrams)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_logarithm_is_refused(value):
    rng = np.random.default_rng(4)
    ngrams = model(rng, 6, [5, 5], many(rng))
    ngrams.levels[1].backoff[3] = value
    with pytest.raises(DataError, match=f"back-offs must be numbers below infinity, got {value}"):
        pack(ngrams)


def test_quantized_values_are_near_and_zero_and_never_exact():
    rng = np.random.default_rng(5)
    column = np.concatenate([-rng.exponential(1.5, 50_000), np.zeros(99), np.full(7, -np.inf)])
    coded = quantize(column, PLACE, "numbers")
    near = coded.book[coded.codes]
    assert (near[-106:-7] == 0).all() and (near[-7:] == -np.inf).all()
    assert (coded.codes[-106:-7] == ZERO).all() and (coded.codes[-7:] == NEVER).all()
    error = near[:50_000] - column[:50_000]
    assert abs(error.mean()) < 1e-4
    assert np.sqrt((error**2).mean()) < 0.01  # a uniform grid over the same range has 0.018
    assert np.array_equal(coded.counts, np.bincount(coded.codes, minlength=256))


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 5000), st.sampled_from([0.001, 0.1, 0.5, 1.0]))
def test_sets_count_and_find_their_members(seed, size, density):
    members = np.flatnonzero(np.random.default_rng(seed).random(size) < density)
    bits = np.zeros(-(-size // 512) * 8, np.uint64)
    for at in members.tolist():
        bits[at >> 6] |= np.uint64(1 << (at & 63))
    ranks, hints = np.empty(len(bits) // 8, np.uint32), np.empty(hints_for(len(members)), np.uint32)
    assert fill_ranks(bits, ranks, hints) == len(members)
    found = [find_member(bits, ranks, hints, 0, 0, i) for i in range(len(members))]
    assert found == members.tolist()
    before = [members_before(bits, ranks, 0, at) for at in range(0, size, 7)]
    assert before == np.searchsorted(members, np.arange(0, size, 7)).tolist()
    assert [at for at in range(size) if is_member(bits, 0, at)] == members.tolist()


def altered(tables, name):
    """The same tables, one array a copy that may be written to."""
    array = getattr(tables, name).copy()
    return tables._replace(**{name: array}), array


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(6)
    return pack(model(rng, 40, [900, 3000, 2000], many(rng)))


@pytest.mark.parametrize("column", [SIZE, USUAL, RECORDS, BOUNDS, HINTS, OTHERS])
@pytest.mark.parametrize("value", [-1, 1 << 40, np.iinfo(np.int64).min])
def test_a_layout_that_was_altered_is_refused(tables, column, value):
    for order in range(len(tables.layout) - 1):
        bad, layout = altered(tables, "layout")
        layout[order, column] = value
        with pytest.raises(DataError, match="do not fit together"):
            trie.check(bad, 40)


@pytest.mark.parametrize("name", ["bits", "ranks", "hints"])
def test_a_directory_that_was_altered_is_refused(tables, name):
    for at in range(0, len(getattr(tables, name)), 3):
        bad, array = altered(tables, name)
        array[at] ^= array.dtype.type(1 << at % 31)
        with pytest.raises(DataError, match="do not fit together"):
            trie.check(bad, 40)


@pytest.mark.parametrize("name", trie.Packed._fields)
def test_an_array_of_another_size_or_type_is_refused(tables, name):
    good = getattr(tables, name)
    for array in (good[:-1], np.zeros(good.shape, np.uint16)):
        with pytest.raises(DataError, match="do not fit together"):
            trie.check(tables._replace(**{name: array}), 40)
    with pytest.raises(DataError, match="do not fit together"):
        trie.check(tables, 41)


def test_words_out_of_order_are_not_unpacked(tables):
    bad, records = altered(tables, "records")
    records[:] = 0
    trie.check(bad, 40)
    with pytest.raises(DataError, match="out of order"):
        trie.unpack(bad)


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_what_passes_the_check_can_be_asked(tables, seed):
    """However the arrays were altered: refused, or every question has an answer in range."""
    rng = np.random.default_rng(seed)
    bad = tables
    for name in rng.choice(["records", "lows", "others", "probs", "unigrams"], 3):
        bad, array = altered(bad, name)
        raw = array.reshape(-1).view(np.uint8)
        raw[rng.integers(0, len(raw), 20)] = rng.integers(0, 256, 20)
    trie.check(bad, 40)
    for order in (1, 2, 3):
        below, size = bad.layout[order - 1, SIZE], bad.layout[order, SIZE]
        rows = find(bad, order, rng.integers(0, below, 500), rng.integers(0, 40, 500))
        assert (rows[rows != NONE] < size).all()
        values(bad, order, np.arange(size))
