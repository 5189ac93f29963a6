"""Pruning against the paper's formula, in dictionaries of tuples."""

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

from seqloom.errors import ConfigError
from seqloom.ngram.entropy import prune_by_entropy
from seqloom.ngram.estimation import estimate
from seqloom.ngram.levels import Level, Ngrams
from seqloom.ngram.linked import starts_of
from seqloom.ngram.model import NgramModel
from seqloom.ngram.words import SPECIALS, Words
from seqloom.ngram.workspace import Workspace

Gram = tuple[str, ...]


class Model:
    """A back-off model as two dictionaries: probabilities, and back-offs of histories."""

    def __init__(self, prob: dict[Gram, float], backoff: dict[Gram, float]) -> None:
        self.prob, self.backoff = prob, backoff
        self.words = [gram[0] for gram in prob if len(gram) == 1 and gram != ("<s>",)]

    @classmethod
    def of(cls, ngrams: Ngrams) -> Model:
        grams = as_dict(ngrams)
        prob = {gram: 10**p for gram, (p, _) in grams.items()}
        return cls(
            prob, {gram: 10**b for gram, (_, b) in grams.items() if len(gram) < ngrams.order}
        )

    def p(self, word: str, history: Gram) -> float:
        if (*history, word) in self.prob:
            return self.prob[*history, word]
        if not history:
            return 0.0
        return self.backoff.get(history, 1.0) * self.p(word, history[1:])

    def after(self, history: Gram) -> list[str]:
        return [w for w in self.words if (*history, w) in self.prob]

    def normalize(self) -> None:
        for history in sorted(self.backoff, key=len):
            left = 1 - sum(self.prob[*history, w] for w in self.after(history))
            free = 1 - sum(self.p(w, history[1:]) for w in self.after(history))
            self.backoff[history] = left / free if free > 1e-12 else 0.0

    def to_ngrams(self, rng: np.random.Generator) -> Ngrams:
        """The rows of an order in any order, as they may be."""
        words = Words.of(gram[0] for gram in self.prob if len(gram) == 1)
        rows: dict[Gram, int] = {}
        levels: list[Level] = []
        order = max(map(len, self.prob))
        for n in range(1, order + 1):
            grams = [gram for gram in self.prob if len(gram) == n]
            grams = (
                [(w,) for w in words] if n == 1 else [grams[i] for i in rng.permutation(len(grams))]
            )
            context = [rows[gram[:-1]] for gram in grams] if n > 1 else []
            with np.errstate(divide="ignore"):
                prob = np.log10([self.prob[gram] for gram in grams])
                backoff = np.log10([self.backoff[gram] for gram in grams] if n < order else [])
            word = np.array([words.number(gram[-1]) for gram in grams], np.uint32)
            levels.append(Level(np.array(context, np.uint32), word, prob, backoff))
            rows |= {gram: i for i, gram in enumerate(grams)}
        return Ngrams(words, levels, suffixes=has_suffixes(self.prob))

    def total(self, history: Gram) -> float:
        return sum(self.p(word, history) for word in self.words)


def has_suffixes(prob: dict[Gram, float]) -> bool:
    return all(gram[1:] in prob for gram in prob if len(gram) > 1)


def random_model(rng: np.random.Generator, names: str, order: int) -> Model:
    """Any n-grams whose contexts are n-grams, any probabilities, back-offs that fit."""
    words = [*SPECIALS, *names]
    predicted = [w for w in words if w != "<s>"]
    prob = {
        (w,): float(p)
        for w, p in zip(predicted, rng.dirichlet(np.ones(len(predicted))), strict=True)
    }
    prob |= {("<s>",): 1.0}
    level: list[Gram] = [(w,) for w in words]
    for _ in range(order - 1):
        histories = [h for h in level if h[-1] != "</s>" and rng.random() < 0.7] or level[:1]
        level = []
        for h in histories:
            some = [w for w in predicted if rng.random() < 0.5] or predicted[-1:]
            shares = rng.dirichlet(np.ones(len(some))) * rng.uniform(0.2, 0.95)
            if len(some) == len(predicted):
                shares /= shares.sum()
            prob |= {(*h, w): float(p) for w, p in zip(some, shares, strict=True)}
            level += [(*h, w) for w in some]
    model = Model(prob, {gram: 1.0 for gram in prob if len(gram) < max(map(len, prob))})
    model.normalize()
    return model


def increase(model: Model, gram: Gram) -> float:
    """e^D - 1 for one n-gram, as the paper has it."""
    *h, w = gram
    history = tuple(h)
    first = ("</s>",) if history[0] == "<s>" else history[:1]
    p_h = model.prob[first] * math.prod(
        model.p(history[i], history[:i]) for i in range(1, len(history))
    )
    seen = model.after(history)
    p, shorter = model.p(w, history), model.p(w, history[1:])
    left = 1 - sum(model.p(v, history) for v in seen)
    free = 1 - sum(model.p(v, history[1:]) for v in seen)
    after = (left + p) / (free + shorter)
    change = p * (math.log(shorter) + math.log(after) - math.log(p))
    if len(seen) < len(model.words):
        change += left * (math.log(after) - math.log(model.backoff[history]))
    return math.exp(-p_h * change) - 1


def prune_slowly(model: Model, threshold: float) -> Model:
    kept = {gram for gram in model.prob if len(gram) == 1}
    for gram in sorted(model.prob, key=len, reverse=True):
        needed = any(longer[:-1] == gram for longer in kept)
        if len(gram) > 1 and (needed or increase(model, gram) >= threshold):
            kept.add(gram)
    order = max(map(len, kept))
    smaller = Model(
        {gram: p for gram, p in model.prob.items() if gram in kept},
        {gram: b for gram, b in model.backoff.items() if gram in kept and len(gram) < order},
    )
    smaller.normalize()
    return smaller


def assert_same(found: Model, expected: Model) -> None:
    assert found.prob.keys() == expected.prob.keys()
    assert found.backoff.keys() == expected.backoff.keys()
    for gram, p in expected.prob.items():
        assert math.isclose(found.prob[gram], p, rel_tol=1e-9, abs_tol=1e-15), gram
    for gram, b in expected.backoff.items():
        assert math.isclose(found.backoff[gram], b, rel_tol=1e-7, abs_tol=1e-12), gram


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    names=st.sampled_from(["a", "ab", "abcd"]),
    order=st.integers(1, 4),
    threshold=st.floats(-6, 0.5).map(lambda x: 10**x),
)
def test_prunes_any_model_as_the_formula_does(seed, names, order, threshold):
    rng = np.random.default_rng(seed)
    model = random_model(rng, names, order)
    found = prune_by_entropy(model.to_ngrams(rng), threshold)
    slow = Model.of(found)
    assert_same(slow, prune_slowly(model, threshold))
    assert found.suffixes == has_suffixes(slow.prob)
    for n in range(order):
        for history in product([*SPECIALS[:2], *names], repeat=n):
            assert abs(slow.total(history) - 1) < 1e-9


@pytest.mark.parametrize("smoothing", ["modified-kneser-ney", "good-turing", "witten-bell"])
@pytest.mark.parametrize("threshold", [1e-4, 1e-2])
def test_prunes_estimated_models_as_the_formula_does(smoothing, threshold):
    rng = np.random.default_rng(7)
    text = [
        [*rng.choice(list("abcde"), rng.integers(1, 9), p=[0.4, 0.3, 0.1, 0.1, 0.1])]
        for _ in range(40)
    ]
    ngrams = train(text, 3, smoothing)
    found = prune_by_entropy(ngrams, threshold)
    assert 0 < sum(found.sizes) < sum(ngrams.sizes)
    assert_same(Model.of(found), prune_slowly(Model.of(ngrams), threshold))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), order=st.integers(1, 4))
def test_nothing_goes_at_zero_and_all_but_words_at_a_huge_threshold(seed, order):
    rng = np.random.default_rng(seed)
    model = random_model(rng, "abc", order)
    ngrams = model.to_ngrams(rng)
    assert_same(Model.of(prune_by_entropy(ngrams, 0.0)), model)
    words = prune_by_entropy(ngrams, math.inf)
    assert words.sizes == ngrams.sizes[:1]
    assert words.order == 1 and words.suffixes and not len(words.levels[0].backoff)


def test_a_free_ngram_stays_at_zero_and_goes_at_any_threshold():
    backed_off = {("<unk>",): 0.1, ("<s>",): 1.0, ("</s>",): 0.2, ("a",): 0.7, ("a", "a"): 0.7}
    model = Model(backed_off, {gram: 1.0 for gram in backed_off if len(gram) == 1})
    ngrams = model.to_ngrams(np.random.default_rng(0))
    assert prune_by_entropy(ngrams, 0.0).sizes == [4, 1]
    assert prune_by_entropy(ngrams, 1e-12).sizes == [4]


def test_the_model_given_is_left_as_it_is():
    ngrams = random_model(np.random.default_rng(3), "abcd", 3).to_ngrams(np.random.default_rng(3))
    before = as_dict(ngrams)
    pruned = prune_by_entropy(ngrams, 0.01)
    assert as_dict(ngrams) == before
    assert pruned.about["entropy_threshold"] == 0.01


MANY = "abcdefghijklmnopqrstuvwxyzABCD"  # words enough for columns longer than a page


def spill_from_now_on(tmp_path, monkeypatch) -> Workspace:
    """Columns in files, and rows worked on in many pieces."""
    monkeypatch.setattr(Workspace, "step", 97)
    place = Workspace(folder=str(tmp_path))
    place.spilling = True
    return place


def test_temporary_files_and_pieces_change_nothing(tmp_path, monkeypatch):
    rng = np.random.default_rng(4)
    ngrams = random_model(rng, MANY, 3).to_ngrams(rng)
    whole = as_dict(prune_by_entropy(ngrams, 1e-3))
    place = spill_from_now_on(tmp_path, monkeypatch)
    assert as_dict(prune_by_entropy(ngrams, 1e-3, place)) == whole
    assert place._files and len(whole) < sum(ngrams.sizes)


def test_rounded_probabilities_make_no_word_impossible():
    prob = {("<unk>",): 0.1, ("<s>",): 1.0, ("</s>",): 0.2, ("a",): 0.7, ("a", "a"): 0.9999}
    prob["a", "</s>"] = 0.0001001
    ngrams = Model(prob, {gram: 1e-8 for gram in prob if len(gram) == 1}).to_ngrams(
        np.random.default_rng(0)
    )
    pruned = Model.of(prune_by_entropy(ngrams, 0.0))
    assert math.isclose(pruned.backoff["a",], 1e-8)
    assert math.isclose(pruned.p("<unk>", ("a",)), 1e-9)


def test_fewer_ngrams_cost_little_on_a_real_text(shared_data):
    with lzma.open(
        shared_data / "lmplz-golden" / "shakespeare.txt.xz", "rt", encoding="utf-8"
    ) as file:
        lines = file.read().split("\n")
    ngrams = estimate(lines[:3500], order=3)
    sizes, perplexities = [], []
    for threshold in (0.0, 1e-6, 1e-5, 1e-4):
        pruned = prune_by_entropy(ngrams, threshold)
        model = NgramModel.of(pruned)
        sizes.append(sum(pruned.sizes))
        perplexities.append(model.perplexity(lines[3500:]).perplexity)
        assert abs(np.exp(model.next("what say you")).sum() - 1) < 1e-9
    assert sizes == sorted(sizes, reverse=True) and perplexities == sorted(perplexities)
    assert sizes[1] < 0.7 * sizes[0] and perplexities[1] < 1.02 * perplexities[0]
    assert sizes[2] < 0.4 * sizes[0] and perplexities[2] < 1.1 * perplexities[0]


@pytest.mark.parametrize("threshold", [-0.5, math.nan])
def test_a_senseless_threshold_is_refused(threshold):
    ngrams = train([["a", "b"]], 2, "witten-bell")
    with pytest.raises(ConfigError, match=f"at least 0, got {threshold}"):
        prune_by_entropy(ngrams, threshold)


@pytest.mark.parametrize("backoff", [0.4, 1.0])
def test_stupid_backoff_is_refused(backoff):
    ngrams = train([["a", "b"]], 2, "stupid-backoff", backoff=backoff)
    with pytest.raises(ConfigError, match=r"prune_by_entropy needs .* got one of stupid-backoff"):
        prune_by_entropy(ngrams, 1e-8)


def test_too_many_ngrams_are_refused():
    assert starts_of([3, 4]) == [0, 3, 7]
    with pytest.raises(ConfigError, match=re.escape("got 4,294,967,295")):
        starts_of([5, 2**32 - 6])
