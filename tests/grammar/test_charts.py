"""Inside and prefix probabilities and best trees against lists of all trees."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from grammars import (
    WORDS,
    Toy,
    all_sentences,
    all_trees,
    finite,
    recursive,
    slow_inside,
)

from seqloom.errors import ConfigError
from seqloom.grammar.rules import Rules
from seqloom.grammar.tables import make_tables
from seqloom.grammar.viterbi import as_tree, best_derivation

SEEDS = range(12)


def read(toy, words):
    chart = toy.chart()
    for word in words:
        chart.advance(toy.emission(word))
    return chart


def sentence_prob(toy, words):
    chart = read(toy, words)
    return math.exp(chart.log_prob) * chart.end


@pytest.mark.parametrize("seed", SEEDS)
def test_inside_is_the_sum_over_all_trees(seed):
    toy = finite(seed)
    listed = all_sentences(toy)
    assert sum(listed.values()) == pytest.approx(1)
    for words, chance in itertools.islice(listed.items(), 60):
        assert sentence_prob(toy, words) == pytest.approx(chance, rel=1e-10)
    assert sentence_prob(toy, "x" * 30) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_prefix_is_the_sum_over_all_sentences_that_begin_so(seed):
    toy = finite(seed)
    listed = all_sentences(toy)
    prefixes = {words[:k] for words in itertools.islice(listed, 40) for k in range(len(words) + 1)}
    for prefix in prefixes:
        expected = sum(p for words, p in listed.items() if words[: len(prefix)] == prefix)
        assert math.exp(read(toy, prefix).log_prob) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_inside_with_recursion_and_circles_of_unary_rules(seed):
    toy = recursive(seed)
    for words in ["x", "xy", "zyx", "xxyz"]:
        # The grammar is made tight first; the equation holds for the probabilities it then has.
        tight = toy.built().tight()
        assert tight.termination().min() == pytest.approx(1, abs=1e-9)
        rules = {name: {} for name in toy.rules}
        for a, b, p in zip(tight.unary_parent, tight.unary_child, tight.unary_prob, strict=True):
            rules[tight.names[a]][tight.names[b],] = p
        for a, b, c, p in zip(tight.parent, tight.left, tight.right, tight.prob, strict=True):
            rules[tight.names[a]][tight.names[b], tight.names[c]] = p
        expected = slow_inside(Toy(rules, toy.words), words)
        assert sentence_prob(toy, words) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("make", [finite, recursive])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_prefix_is_the_sum_of_its_continuations_and_its_end(make, seed):
    """prefix(w) = sum over x of prefix(wx) + P(w ends), as absolute probabilities."""
    toy = make(seed)
    rng = np.random.default_rng(seed)
    for length in [0, 1, 2, 5, 9]:
        words = "".join(rng.choice(list(WORDS), length))
        here = read(toy, words)
        parts = [math.exp(read(toy, words + word).log_prob) for word in WORDS]
        ends = math.exp(here.log_prob) * here.end
        assert sum(parts) + ends == pytest.approx(math.exp(here.log_prob), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("p", [0.1, 0.4, 0.49])
def test_left_recursion_with_ambiguity_against_catalan_numbers(p):
    """S -> S S | a has C(n-1) trees over n words; P(n) = C(n-1) p^(n-1) (1-p)^n."""
    toy = Toy({"S": {("S", "S"): p, ("a",): 1 - p}}, {"a": {"x": 1.0}})
    chance = [math.comb(2 * k, k) / (k + 1) * p**k * (1 - p) ** (k + 1) for k in range(12)]
    chart = toy.chart()
    for n, expected in enumerate(chance, 1):
        longer = 1 - sum(chance[: n - 1])
        chart.advance(toy.emission("x"))
        assert math.exp(chart.log_prob) == pytest.approx(longer, rel=1e-9)
        assert math.exp(chart.log_prob) * chart.end == pytest.approx(expected, rel=1e-9)


def test_a_grammar_that_loses_trees_is_made_tight():
    """S -> S S (0.7) | a (0.3) ends with probability 3/7; given that, it is 0.3 and 0.7."""
    toy = Toy({"S": {("S", "S"): 0.7, ("a",): 0.3}}, {"a": {"x": 1.0}})
    rules = toy.built()
    assert not rules.is_subcritical()
    assert rules.termination()[rules.root] == pytest.approx(3 / 7)
    assert rules.tight().prob == pytest.approx([0.3])
    assert rules.tight().unary_prob == pytest.approx([0.7])
    assert toy.chart().advance(toy.emission("x")) == pytest.approx(0)


def test_long_sentences_do_not_fade_away():
    """A chain of words at 1/1000 each: far below what a double holds."""
    toy = Toy({"S": {("a", "S"): 0.5, ("a",): 0.5}}, {"a": {"x": 0.001, "y": 0.999}})
    chart = read(toy, "x" * 400)
    assert chart.log_prob == pytest.approx(399 * math.log(0.5) + 400 * math.log(0.001), rel=1e-12)
    assert chart.end == pytest.approx(0.5)
    copied = chart.copy()
    copied.advance(toy.emission("y"))
    assert (chart.length, copied.length) == (400, 401)
    assert chart.end == pytest.approx(0.5)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_tree_is_the_best_of_all(seed):
    toy = finite(seed)
    rules = toy.built()
    tables = make_tables(rules)
    trees = all_trees(toy)
    for words in itertools.islice(all_sentences(toy), 25):
        own = sorted((t for t in trees if t[0] == words), key=lambda t: -t[1])
        found = best_derivation(tables, np.stack([toy.emission(word) for word in words]))
        assert found.prob == pytest.approx(own[0][1], rel=1e-12)
        tree = as_tree(found, rules, list(words))
        assert as_tuple(tree) in [t[2] for t in own if t[1] == pytest.approx(own[0][1])]


def as_tuple(tree):
    if tree.word is not None:
        return tree.label, tree.word
    return tree.label, *(as_tuple(child) for child in tree.children)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_tree_under_recursion_has_the_probability_it_says(seed):
    toy = recursive(seed)
    rules = toy.built()
    tables = make_tables(rules)
    for words in ["x", "zy", "xyzzy"]:
        found = best_derivation(tables, np.stack([toy.emission(word) for word in words]))
        tree = as_tree(found, rules, list(words))
        assert tree.leaves() == list(words)
        assert found.prob == pytest.approx(tree_prob(toy, tree), rel=1e-12)
        assert found.prob <= slow_inside(toy, words) * (1 + 1e-9)


def tree_prob(toy, tree):
    if tree.word is not None:
        return toy.words[tree.label][tree.word]
    own = toy.rules[tree.label][tuple(child.label for child in tree.children)]
    return own * math.prod(tree_prob(toy, child) for child in tree.children)


def test_no_tree_for_what_the_grammar_lacks():
    toy = Toy({"S": {("a", "a"): 1.0}}, {"a": {"x": 1.0}})
    assert best_derivation(make_tables(toy.built()), np.ones((3, 1))) is None
    chart = read(toy, "xxx")
    assert chart.is_dead
    assert chart.advance(toy.emission("x")) == -math.inf
    assert not chart.expected.any()


BAD = [
    ({"S": {("a",): 0.7}}, "sum to 1, got 0.7 for 'S'"),
    ({"S": {("a",): 1.5, ("a", "a"): -0.5}}, r"must lie in \(0, 1\], got -0.5"),
    ({"S": {("a", "a", "a"): 1.0}}, "one or two symbols on its right"),
    ({"S": {("T",): 1.0}}, "'T', in a rule of 'S', has no rules"),
    ({"R": {("a",): 1.0}}, "the root must be a symbol with rules, got 'S'"),
    ({"S": {("a",): 1.0}, "a": {("a",): 1.0}}, "both a preterminal and have rules"),
]


@pytest.mark.parametrize(("rules", "message"), BAD, ids=lambda v: str(v)[:30])
def test_impossible_grammars_are_refused(rules, message):
    with pytest.raises(ConfigError, match=message):
        Rules.build(rules, ["a"], "S")


def test_a_symbol_that_never_ends_is_refused():
    rules = Rules.build({"S": {("S", "a"): 0.5, ("a", "T"): 0.5}, "T": {("T",): 1.0}}, ["a"], "S")
    with pytest.raises(ConfigError, match=r"must end in words, got '[ST]', which never does"):
        rules.tight()
