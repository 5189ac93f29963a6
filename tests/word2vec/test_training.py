"""One update by hand, its gradient, a whole piece against plain Python, and what is learned."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from seqloom.errors import ConfigError, DataError, ShapeError, TrainingError
from seqloom.word2vec import model as module
from seqloom.word2vec import reference
from seqloom.word2vec.config import Word2VecConfig
from seqloom.word2vec.model import Word2Vec, count_ids, first_vectors, piece_order, piece_state
from seqloom.word2vec.tables import (
    WHOLE,
    Paths,
    alias_table,
    draw_chances,
    huffman_paths,
    keep_chances,
)
from seqloom.word2vec.updates import train_piece

KINDS = [(m, x) for m in ("skip-gram", "cbow") for x in ("negative", "hierarchical")]
each = pytest.mark.parametrize(("model", "loss"), KINDS)


def compiled_piece(sentences, counts, vectors, output, config, rate, state):
    """The compiled training on sentences of rows; returns the tables and the updates."""
    ids = np.array([row for sentence in sentences for row in sentence], np.int32)
    bounds = np.cumsum([0, *map(len, sentences)])
    size, width = vectors.shape[1], 16 * math.ceil(vectors.shape[1] / 16)
    tables = []
    for given in (vectors, output):
        table = np.zeros((len(given), width), np.float32)
        table[:, :size] = given
        tables.append(table)
    keep = (keep_chances(counts, config.sample) * WHOLE).astype(np.uint64)
    table, paths = lookups(counts, config)
    room = [np.empty(100, np.float32) for _ in range(2)]
    updates = train_piece(
        ids, bounds, np.arange(len(counts), dtype=np.int32), keep, *tables, table, *paths,
        np.empty(len(ids), np.int32), np.empty(2 * config.window, np.int32),
        np.empty(100, np.int32), *room, np.empty((1, width), np.float32),
        np.empty(width, np.float32), config.window, config.negatives, config.is_cbow,
        config.mean_gradient, np.float32(rate), np.uint64(state),
    )  # fmt: skip
    assert not any(t[:, size:].any() for t in tables), "what is beyond a vector stays zero"
    return *(t[:, :size] for t in tables), updates


def lookups(counts, config):
    if config.is_hierarchical:
        return np.zeros(0, np.uint32), huffman_paths(counts)
    return alias_table(draw_chances(counts, config.exponent)), Paths.none()


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


# A sentence of two words predicts each from the other once, whatever the window; with one negative
# and two words, the negative is the other word or, when the word itself is drawn, none.


@each
def test_one_update_by_hand(model, loss):
    config = Word2VecConfig(model=model, loss=loss, sample=0, window=1, negatives=1, vector_size=2)
    v = np.array([[0.5, -1.0], [0.25, 2.0]])
    u = np.array([[1.0, 0.5], [-0.5, 0.75]])[: 1 if loss == "hierarchical" else 2]
    counts = np.array([2, 1])
    found = compiled_piece([[0, 1]], counts, v, u, config, 0.1, 3)
    assert found[2] == 2
    _, paths = lookups(counts, config)
    bits = reference.random_bits(3)
    next(bits), next(bits)  # both words are kept
    v, u = v.tolist(), u.tolist()
    for word, near in ((0, 1), (1, 0)):
        next(bits)  # the window is 1
        if loss == "hierarchical":
            targets = [(0, float(paths.labels[word]))]
        else:
            drawn = reference.draw(alias_table(draw_chances(counts, 0.75)), next(bits))
            targets = [(word, 1.0)] + ([(drawn, 0.0)] if drawn != word else [])
        h = list(v[near])
        slopes = [(t, sigmoid(u[t][0] * h[0] + u[t][1] * h[1]) - y) for t, y in targets]
        for k in range(2):
            v[near][k] -= 0.1 * sum(g * u[t][k] for t, g in slopes)
        for t, g in slopes:
            for k in range(2):
                u[t][k] -= 0.1 * g * h[k]
    np.testing.assert_allclose(found[0], v, rtol=1e-6)
    np.testing.assert_allclose(found[1], u, rtol=1e-6)


@pytest.mark.parametrize("inputs", [[1], [0, 2, 2, 3]], ids=["skip-gram", "cbow"])
@pytest.mark.parametrize("targets", [[4, 0, 2], [1, 3]], ids=["negative", "hierarchical"])
def test_an_update_is_a_step_along_the_gradient(inputs, targets):
    chance = np.random.default_rng(2)
    v, u = chance.normal(size=(5, 4)), chance.normal(size=(5, 4))
    labels = [1.0, 0.0, 0.0][: len(targets)]
    after = v.copy(), u.copy()
    reference.update(*after, inputs, targets, labels, 1.0)
    for which, table in enumerate((v, u)):
        for place in np.ndindex(table.shape):
            losses = []
            for step in (1e-6, -1e-6):
                tables = [v.copy(), u.copy()]
                tables[which][place] += step
                losses.append(reference.loss(*tables, inputs, targets, labels))
            slope = (losses[0] - losses[1]) / 2e-6
            assert table[place] - after[which][place] == pytest.approx(slope, abs=1e-8)


@each
@pytest.mark.parametrize("mean_gradient", [False, True])
def test_a_piece_equals_plain_python(model, loss, mean_gradient):
    mean_gradient = mean_gradient and model == "cbow"
    config = Word2VecConfig(
        model=model, loss=loss, sample=0.02, window=3, negatives=4, mean_gradient=mean_gradient
    )
    chance = np.random.default_rng(4)
    text = [np.minimum(chance.zipf(1.4, n), 30) - 1 for n in (40, 1, 0, 2, 17)]
    counts = np.sort(np.bincount(np.concatenate(text), minlength=30) + 1)[::-1].copy()
    nodes = 29 if loss == "hierarchical" else 30
    v, u = chance.normal(0, 0.3, (30, 20)), chance.normal(0, 0.3, (nodes, 20))
    fast = compiled_piece(text, counts, v, u, config, 0.05, 11)
    table, paths = lookups(counts, config)
    updates = reference.train_piece(
        [sentence.tolist() for sentence in text],
        v,
        u,
        keep=keep_chances(counts, config.sample),
        table=table,
        paths=paths,
        window=3,
        negatives=4,
        is_cbow=config.is_cbow,
        mean_gradient=mean_gradient,
        rate=0.05,
        state=11,
    )
    assert fast[2] == updates > 20
    np.testing.assert_allclose(fast[0], v, rtol=2e-4, atol=2e-6)
    np.testing.assert_allclose(fast[1], u, rtol=2e-4, atol=2e-6)


# -- whole runs ----------------------------------------------------------------------------------


def toy(sentences=3000, seed=0):
    """Ten pairs of words, each pair with a neighbourhood of five words of its own, as ids."""
    chance = np.random.default_rng(seed)
    text = []
    for _ in range(sentences):
        topic = chance.integers(10)
        around = 20 + 5 * topic + chance.integers(0, 5, 6)
        around[chance.integers(6)] = 2 * topic + chance.integers(2)
        text.append(around)
    ids = np.concatenate(text).astype(np.int32)
    offsets = np.arange(0, len(ids) + 1, 6)
    counts = count_ids(ids, 70)
    order = np.argsort(-counts, kind="stable")
    rows = np.empty(70, np.int32)
    rows[order] = np.arange(70)
    return ids, offsets, rows, counts[order]


@each
def test_words_of_one_neighbourhood_come_out_nearest(model, loss):
    config = Word2VecConfig(
        model=model, loss=loss, vector_size=24, window=5, epochs=10, sample=0, rate=0.1
    )
    ids, offsets, rows, counts = toy()
    vectors = Word2Vec.fit(config, ids, offsets, rows, counts).vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T - 2 * np.eye(70)
    for word in range(20):  # words 0 and 1, 2 and 3, ... have one neighbourhood
        assert np.argmax(cosines[rows[word]][rows[:20]]) == word ^ 1


@each
def test_one_thread_gives_the_same_bits(model, loss, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 1000)
    config = Word2VecConfig(model=model, loss=loss, vector_size=10, epochs=2, threads=1, seed=5)
    one, two = (Word2Vec.fit(config, *toy(400)) for _ in range(2))
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert one.output.tobytes() == two.output.tobytes()
    other = Word2Vec.fit(
        Word2VecConfig(model=model, loss=loss, vector_size=10, epochs=2, threads=1), *toy(400)
    )
    assert one.vectors.tobytes() != other.vectors.tobytes()


def test_a_run_is_its_pieces_one_after_another(monkeypatch):
    monkeypatch.setattr(module, "PIECE", 500)
    config = Word2VecConfig(vector_size=8, epochs=2, threads=1, sample=0.05, seed=9)
    ids, offsets, rows, counts = toy(150)  # 900 tokens: two pieces, the second one shorter
    told = []
    found = Word2Vec.fit(config, ids, offsets, rows, counts, told.append)
    v, u = (t[:, :8].astype(np.float64) for t in first_vectors(config, 70))
    sentences = [rows[ids[a:b]].tolist() for a, b in pairwise(offsets)]
    cut = [*sentences[:83], sentences[83][:2]], [sentences[83][2:], *sentences[84:]]  # 83 * 6 + 2
    table, paths = lookups(counts, config)
    for step in range(4):
        reference.train_piece(
            cut[piece_order(9, step // 2, 2)[step % 2]],
            v,
            u,
            keep=keep_chances(counts, 0.05),
            table=table,
            paths=paths,
            window=5,
            negatives=5,
            is_cbow=False,
            mean_gradient=False,
            rate=0.025 - (0.025 - 1e-4) * step / 4,
            state=piece_state(9, step),
        )
    np.testing.assert_allclose(found.vectors, v, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(found.output, u, rtol=1e-4, atol=1e-7)
    assert [(p.epoch, p.share) for p in told] == [(1, 0.25), (1, 0.5), (2, 0.75), (2, 1.0)]
    assert told[2].rate == pytest.approx(0.01255)


def test_several_threads_learn_the_same_neighbourhoods(monkeypatch):
    monkeypatch.setattr(module, "PIECE", 1000)
    config = Word2VecConfig(vector_size=24, epochs=10, sample=0, rate=0.1, threads=4)
    ids, offsets, rows, counts = toy()
    vectors = Word2Vec.fit(config, ids, offsets, rows, counts).vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = [float(unit[rows[2 * t]] @ unit[rows[2 * t + 1]]) for t in range(10)]
    apart = [float(unit[rows[2 * t]] @ unit[rows[(2 * t + 2) % 20]]) for t in range(10)]
    assert min(pairs) > 0.8 > 0.5 > max(apart)


def test_every_epoch_takes_every_piece_in_its_own_order():
    orders = [piece_order(3, epoch, 40).tolist() for epoch in range(3)]
    assert all(sorted(order) == list(range(40)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert orders[1] == piece_order(3, 1, 40).tolist() != piece_order(4, 1, 40).tolist()


def test_counting_in_blocks(monkeypatch):
    monkeypatch.setattr(module, "COUNTED", 3)
    ids = np.array([0, 3, 3, 1, 0, 3, 0, 0], np.int32)
    assert count_ids(ids, 5).tolist() == [4, 1, 0, 3, 0]


@each
def test_vectors_that_are_no_numbers_any_more_are_refused(model, loss):
    config = Word2VecConfig(
        model=model, loss=loss, vector_size=8, epochs=5, sample=0, rate=100.0, threads=1
    )
    with pytest.raises(TrainingError, match=r"stay finite, got .* after epoch \d .*rate 100"):
        Word2Vec.fit(config, *toy(2000))


def test_too_little_to_learn_from():
    ids, offsets = np.array([0, 1, 0], np.int32), np.arange(4)
    rows, counts = np.array([0, 1], np.int32), np.array([2, 1])
    with pytest.raises(DataError, match="sentences of at least 2 known words, got none in 3"):
        Word2Vec.fit(Word2VecConfig(), ids, offsets, rows, counts)
    with pytest.raises(DataError, match="at least 2 words that occur often enough, got 1"):
        Word2Vec.fit(Word2VecConfig(), ids, offsets, rows, counts[:1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "skipgram"}, r"unknown model 'skipgram'; did you mean 'skip-gram'"),
        ({"loss": "softmax"}, r"unknown loss 'softmax'"),
        ({"vector_size": 0}, "vector_size must be at least 1, got 0"),
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"negatives": -1}, "negatives must be at least 1, got -1"),
        ({"negatives": 10**9}, "negatives must be at most 1000, got 1000000000"),
        ({"exponent": 1e3}, "exponent must lie between -4 and 4, got 1000.0"),
        ({"exponent": math.nan}, "exponent must lie between -4 and 4, got nan"),
        ({"sample": -0.1}, "sample must not be negative, got -0.1"),
        ({"sample": math.nan}, "sample must not be negative, got nan"),
        ({"threads": -2}, "threads must not be negative, got -2"),
        ({"rate": 1e-5}, r"end_rate must lie in \(0, 1e-05\]"),
        ({"mean_gradient": True}, "belongs to model='cbow', got model='skip-gram'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ConfigError, match=message):
        Word2VecConfig(**settings)


def test_tables_are_checked():
    table = np.zeros((3, 4), np.float32)
    with pytest.raises(ShapeError, match=r"vectors must be \(3, 100\), got \(3, 4\)"):
        Word2Vec(Word2VecConfig(), table, table)
    with pytest.raises(ShapeError, match=r"output must be \(2, 4\), got \(3, 4\)"):
        Word2Vec(Word2VecConfig(vector_size=4, loss="hierarchical"), table, table)
