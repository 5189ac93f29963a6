"""Mixing against sums over dictionaries, and its weights against EM in a few lines of Python."""

from __future__ import annotations

import lzma
import math
import re
from itertools import product

import numpy as np
import pytest
from bruteforce import as_dict, train
from hypothesis import given, settings
from hypothesis import strategies as st
from test_entropy import MANY, Model, assert_same, has_suffixes, random_model, spill_from_now_on

from seqloom.errors import ConfigError, DataError
from seqloom.ngram.entropy import prune_by_entropy
from seqloom.ngram.estimation import estimate
from seqloom.ngram.mixing import mix
from seqloom.ngram.model import NgramModel
from seqloom.ngram.words import SPECIALS

seeds = st.integers(0, 2**32 - 1)


def mix_slowly(models: list[Model], weights: list[float]) -> Model:
    """The n-grams of any model with the weighted sum; a word a model lacks has 0 by it."""
    prob = {}
    for gram in dict.fromkeys(gram for model in models for gram in model.prob):
        *history, word = gram
        said = [model.p(word, tuple(history)) for model in models]
        prob[gram] = sum(weight * p for weight, p in zip(weights, said, strict=True))
    order = max(map(len, prob))
    mixed = Model(prob, {gram: 1.0 for gram in prob if len(gram) < order})
    mixed.normalize()
    return mixed


def fit_slowly(models: list[Model], sentences: list[str], order: int) -> list[float]:
    known = {word for model in models for word in model.words}
    said = []
    for sentence in sentences:
        words = ["<s>", *(w if w in known else "<unk>" for w in sentence.split()), "</s>"]
        for i in range(1, len(words)):
            history = tuple(words[max(0, i - order + 1) : i])
            said.append([model.p(words[i], history) for model in models])
    said = [row for row in said if sum(row) > 0]
    weights = [1 / len(models)] * len(models)
    for _ in range(1000):
        sums = [0.0] * len(models)
        for row in said:
            total = sum(weight * p for weight, p in zip(weights, row, strict=True))
            for i, p in enumerate(row):
                sums[i] += weights[i] * p / total
        moved = [s / len(said) for s in sums]
        change = max(abs(new - old) for new, old in zip(moved, weights, strict=True))
        weights = moved
        if change < 1e-7:
            break
    return weights


@settings(max_examples=60)
@given(
    seed=seeds,
    names=st.lists(st.sampled_from(["a", "ab", "bcd", "dabc"]), min_size=1, max_size=3),
    orders=st.lists(st.integers(1, 4), min_size=3, max_size=3),
)
def test_mixes_any_models_as_the_sum_says(seed, names, orders):
    rng = np.random.default_rng(seed)
    models = [random_model(rng, own, order) for own, order in zip(names, orders, strict=False)]
    weights = rng.dirichlet(np.ones(len(models))).tolist()
    found, used = mix([model.to_ngrams(rng) for model in models], weights)
    assert used == pytest.approx(weights)
    slow = Model.of(found)
    assert_same(slow, mix_slowly(models, weights))
    assert found.suffixes == has_suffixes(slow.prob)
    assert found.order == max(len(gram) for model in models for gram in model.prob)
    for n in range(found.order):
        for history in product([*SPECIALS[:2], *dict.fromkeys("".join(names))], repeat=n):
            assert abs(slow.total(history) - 1) < 1e-9


@settings(max_examples=20)
@given(seed=seeds, order=st.integers(1, 4), weight=st.floats(0, 1))
def test_a_model_mixed_with_itself_is_itself(seed, order, weight):
    rng = np.random.default_rng(seed)
    model = random_model(rng, "abcd", order)
    found, _ = mix([model.to_ngrams(rng), model.to_ngrams(rng)], [weight, 1 - weight])
    assert_same(Model.of(found), model)


@settings(max_examples=20)
@given(seed=seeds, names=st.sampled_from([("abc", "abc"), ("ab", "bcd"), ("a", "b", "abcd")]))
def test_fitted_weights_are_those_of_plain_em(seed, names):
    rng = np.random.default_rng(seed)
    orders = rng.integers(1, 4, len(names)).tolist()
    models = [random_model(rng, own, order) for own, order in zip(names, orders, strict=True)]
    ngrams = [model.to_ngrams(rng) for model in models]
    text = [" ".join(rng.choice(list("abcdz"), rng.integers(0, 8))) for _ in range(12)]
    _, weights = mix(ngrams, held_out=text)
    expected = fit_slowly(models, text, max(model.order for model in ngrams))
    assert weights == pytest.approx(expected, abs=1e-6)
    assert sum(weights) == pytest.approx(1, abs=1e-12)


def test_pruned_models_of_several_smoothings_mix():
    rng = np.random.default_rng(11)
    texts = [[[*rng.choice(list(names), 6)] for _ in range(30)] for names in ("abcd", "cdefg")]
    first = prune_by_entropy(train(texts[0], 3, "modified-kneser-ney"), 2e-3)
    second = train(texts[1], 2, "good-turing")
    assert not first.suffixes
    found, weights = mix([first, second], [0.25, 0.75])
    assert_same(Model.of(found), mix_slowly([Model.of(first), Model.of(second)], [0.25, 0.75]))
    assert found.about["weights"] == weights == [0.25, 0.75]
    assert [about["smoothing"] for about in found.about["models"]] == [
        "modified-kneser-ney",
        "good-turing",
    ]


def test_a_model_of_weight_0_is_left_out_words_and_all():
    rng = np.random.default_rng(5)
    first, second = (random_model(rng, names, 2).to_ngrams(rng) for names in ("ab", "xyz"))
    found, weights = mix([first, second], [1, 0])
    assert weights == [1, 0]
    assert list(found.words) == list(first.words)
    assert_same(Model.of(found), Model.of(first))


def test_a_fitted_weight_of_0_leaves_a_model_out_too():
    sure = Model({("<unk>",): 0.5, ("<s>",): 1.0, ("</s>",): 0.5}, {})
    never = Model({("<unk>",): 0.5, ("<s>",): 1.0, ("</s>",): 0.0, ("x",): 0.5}, {})
    rng = np.random.default_rng(0)
    found, weights = mix([sure.to_ngrams(rng), never.to_ngrams(rng)], held_out=["", ""])
    assert weights == [1, 0]
    assert list(found.words) == list(SPECIALS)


def test_models_given_are_left_as_they_are_and_temporary_files_change_nothing(
    tmp_path, monkeypatch
):
    rng = np.random.default_rng(6)
    models = [random_model(rng, names, 3).to_ngrams(rng) for names in (MANY[:25], MANY[5:])]
    before = [as_dict(model) for model in models]
    text = ["a b c d", "e f g h i j k", "x y z A B"]
    found, weights = mix(models, held_out=text)
    place = spill_from_now_on(tmp_path, monkeypatch)
    spilled, same = mix(models, held_out=text, place=place)
    assert as_dict(found) == as_dict(spilled) and weights == same
    assert place._files
    assert [as_dict(model) for model in models] == before


def test_the_mixture_beats_its_parts_on_a_real_text(shared_data, tmp_path):
    with lzma.open(
        shared_data / "lmplz-golden" / "shakespeare.txt.xz", "rt", encoding="utf-8"
    ) as file:
        lines = file.read().split("\n")
    words = {word for line in lines[:3000] for word in line.split()}
    parts = [
        estimate(lines[:1500], order=3, vocabulary=words),
        estimate(lines[1500:3000], order=2, vocabulary=words),
    ]
    held_out = tmp_path / "held-out.txt"
    held_out.write_text("\n".join(lines[3000:]), encoding="utf-8")
    mixed, weights = mix(parts, held_out=str(held_out))
    singles = [NgramModel.of(part) for part in parts]
    best = min(model.perplexity(str(held_out)).perplexity for model in singles)
    said = [
        [score.log_prob for line in lines[3000:-1] for score in model.score_words(line)]
        for model in singles
    ]
    dynamic = np.exp(-np.log(weights @ np.exp(said)).mean())
    static = NgramModel.of(mixed).perplexity(str(held_out)).perplexity
    assert dynamic <= best
    assert static < best and abs(static / dynamic - 1) < 0.03
    model = NgramModel.of(mixed)
    for context in ("", "what say you", "the zzz of"):
        assert abs(np.exp(model.next(context)).sum() - 1) < 1e-9


AB = [["a", "b"], ["b"]]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5], "one a model, 2, got 1: [0.5]"),
        ([0.5, 0.4], "got [0.5, 0.4], which sum to 0.9"),
        ([1.5, -0.5], "got [1.5, -0.5], which sum to 1"),
        ([math.nan, 1.0], "got [nan, 1.0]"),
    ],
)
def test_senseless_weights_are_refused(weights, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        mix([train(AB, 2, "witten-bell")] * 2, weights)


def test_weights_that_sum_to_1_but_for_rounding_are_taken():
    found, weights = mix([train(AB, 2, "witten-bell")] * 2, [0.3333333, 0.6666666])
    assert sum(weights) == pytest.approx(1, abs=1e-15)
    assert Model.of(found).total(("a",)) == pytest.approx(1, abs=1e-12)


def test_weights_or_a_text_must_be_given_but_not_both():
    models = [train(AB, 2, "witten-bell")] * 2
    with pytest.raises(ConfigError, match="either weights or held_out, got neither"):
        mix(models)
    with pytest.raises(ConfigError, match="either weights or held_out, got both"):
        mix(models, [0.5, 0.5], held_out=["a"])


@pytest.mark.parametrize("weights", [["x", "y"], "01", 0.5, [None, 1]])
def test_weights_that_are_no_numbers_are_refused(weights):
    with pytest.raises(ConfigError, match="weights must be a list of numbers, one a model, got"):
        mix([train(AB, 2, "witten-bell")] * 2, weights)


def test_no_model_is_refused():
    with pytest.raises(ConfigError, match="at least one model, got none"):
        mix([], [])


def test_stupid_backoff_is_refused():
    models = [train(AB, 2, "witten-bell"), train(AB, 2, "stupid-backoff")]
    with pytest.raises(ConfigError, match=r"mix needs .* got one of stupid-backoff"):
        mix(models, [0.5, 0.5])


def test_a_text_of_no_use_is_refused():
    never = Model({("<unk>",): 0.0, ("<s>",): 1.0, ("</s>",): 0.0, ("x",): 1.0}, {})
    ngrams = never.to_ngrams(np.random.default_rng(0))
    with pytest.raises(DataError, match="a probability, got none in 3 words and marks"):
        mix([ngrams, ngrams], held_out=["y"])
    with pytest.raises(DataError, match="there is no text"):
        mix([ngrams, ngrams], held_out=[])
