"""Rules and words against their equations, written once more over plain dictionaries."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from trees import treebank

from seqloom.data.trees import parse_trees
from seqloom.grammar.lexicon import estimate_lexicon
from seqloom.grammar.markov import MarkovGrammar, discount
from seqloom.grammar.shapes import SHAPES, shape, shape_name
from seqloom.grammar.tables import make_tables
from seqloom.grammar.treebank import plain_tree
from seqloom.grammar.viterbi import as_tree, best_derivation
from seqloom.text.vocabulary import Vocabulary

PLAIN = [plain_tree(tree) for tree in treebank(60)]


class Equations:
    """p(B | A, P, sisters) by the equations of `markov`; contexts are tuples of strings."""

    def __init__(self, trees, h, v):
        self.h, self.v = h, v
        self.n = defaultdict(Counter)
        for tree in trees:
            self.walk(tree, None, self.count)
        self.pairs = defaultdict(Counter)  # order -> how often counts occurred
        for context, found in self.n.items():
            self.pairs[self.order(context)].update(found.values())

    def order(self, context):
        return context[1] is not None, len(context[2])

    def count(self, context, child):
        while context is not None:
            self.n[context][child] += 1
            context = self.less(context)

    def less(self, context):
        label, parent, sisters, first = context
        if parent is not None:
            return label, None, sisters, first
        return (label, None, sisters[1:], first) if len(sisters) > 1 else None

    def walk(self, node, parent, see):
        """Call `see` with each child of each node and what it depends on."""
        context = node.label, parent if self.v == 2 else None, ("^",) * self.h, True
        for child in [*(c.label for c in node.children), "stop"]:
            see(context, child)
            label, above, sisters, _ = context
            sisters = (*sisters, child)[len(sisters) + 1 - self.h :] if self.h else ()
            context = label, above, sisters, False
        for child in node.children:
            if child.word is None:
                self.walk(child, node.label, see)

    def p(self, child, context):
        counts, less = self.n[context], self.less(context)
        total = sum(counts.values())
        if less is None:
            return counts[child] / total
        ones, twos = (self.pairs[self.order(context)][k] for k in (1, 2))
        taken = (ones + 1) / (ones + 2 * twos + 2)
        lower = taken * len(counts) / total * self.p(child, less)
        return max(counts[child] - taken, 0) / total + lower

    def tree_prob(self, tree):
        """Of the tree's rules; every full context of it must have been seen."""
        found = []
        self.walk(tree, None, lambda context, child: found.append(self.p(child, context)))
        return math.prod(found)


@pytest.mark.parametrize("v", [1, 2])
@pytest.mark.parametrize("h", [0, 1, 2, 3])
def test_trees_have_the_probability_of_the_equations(h, v):
    """Each tag stands for itself, so the best derivation over tags is a product of rules."""
    grammar = MarkovGrammar(PLAIN, horizontal=h, vertical=v, split_tags=False)
    rules, equations = grammar.rules(), Equations(PLAIN, h, v)
    tables, compared = make_tables(rules), 0
    tags = [rules.labels[i] for i in range(rules.preterminals)]
    for sentence in PLAIN:
        words = [leaf.label for leaf in sentence.nodes() if leaf.word is not None]
        found = best_derivation(
            tables, np.array([[tag == w for tag in tags] for w in words], float)
        )
        tree = as_tree(found, rules, words)
        seen = []
        equations.walk(tree, None, lambda context, _, seen=seen: seen.append(context))
        if all(context in equations.n for context in seen):
            compared += 1
            assert found.prob == pytest.approx(equations.tree_prob(tree), rel=1e-9)
    assert compared > 40


@pytest.mark.parametrize(("h", "is_found"), [(0, True), (1, False), (3, False)])
def test_which_children_a_node_may_have(h, is_found):
    """C B were never neighbours, which matters unless h = 0; B A B C each is a pair that was."""
    tree = "(S (A a) (B b) (C c)) (S (B b) (A a))"
    plain = [plain_tree(each) for each in parse_trees(tree)]
    rules = MarkovGrammar(plain, horizontal=h, vertical=2, split_tags=True).rules()
    tables = make_tables(rules)
    tags = [rules.labels[i] for i in range(rules.preterminals)]

    def found(words):
        return best_derivation(tables, np.array([[tag == w for tag in tags] for w in words], float))

    assert found("BABC") is not None
    assert (found("ABCB") is not None) == is_found


def test_rules_of_each_symbol_sum_to_one_and_every_tree_ends():
    rules = MarkovGrammar(PLAIN, horizontal=2, vertical=2, split_tags=True).rules()
    assert rules.is_subcritical()
    assert rules.termination() == pytest.approx(np.ones(len(rules.names)), abs=1e-9)
    assert rules.names[rules.root] == "TOP"
    assert {label for label in rules.labels if label is not None} >= {"S", "NP", "DT", "TOP"}


def test_discounts_by_hand():
    assert discount([1, 1, 1, 2, 5]) == pytest.approx((3 + 1) / (3 + 2 + 2))
    assert discount([]) == 0.5
    assert 0 < discount([7, 8]) < 1
    assert 0 < discount([1] * 50) < 1


# -- words ---------------------------------------------------------------------------------------

COUNTS = {
    "/ N ^ NP": Counter({"cat": 3, "dog": 2, "Zebra": 1}),
    "/ N ^ X": Counter({"cat": 1}),
    "/ V ^ VP": Counter({"sees": 4, "dog": 1, "walked": 1}),
}
TAGS = {name: name.split(" ")[1] for name in COUNTS}
ALL = Counter()
for _found in COUNTS.values():
    ALL.update(_found)


@pytest.mark.parametrize("min_count", [1, 2, 100])
def test_words_and_unknown_words_of_a_tag_sum_to_one(min_count):
    vocabulary = Vocabulary.build(ALL, min_count=min_count)
    lexicon = estimate_lexicon(COUNTS, TAGS, vocabulary)
    total = lexicon.unknown()
    for id_ in range(4, len(vocabulary)):
        assert (lexicon.known(id_) > 0).all()
        total = total + lexicon.known(id_)
    assert total == pytest.approx(np.ones(3))
    assert (lexicon.unknown(shape("Whatsit")) > 0).all()
    by_shape = sum(lexicon.unknown(s) for s in range(SHAPES))
    assert by_shape == pytest.approx(lexicon.unknown())


def test_words_by_hand():
    """p(dog | N under NP) and p(sees | N under X), every figure counted by eye."""
    vocabulary = Vocabulary.build(ALL)
    lexicon = estimate_lexicon(COUNTS, TAGS, vocabulary)
    # Pairs seen once: Zebra, cat under X, dog and walked under VP; twice: dog under NP.
    fine = (4 + 1) / (4 + 2 * 1 + 2)
    # By tag: Zebra, dog, walked once; dog twice (cat is 4 times N).
    coarse = (3 + 1) / (3 + 2 * 1 + 2)
    # N was seen with cat 4, dog 2, Zebra 1. Once: Zebra, which is nowhere else.
    rate = (2 + 1) / (3 + 2)  # Zebra and walked, of Zebra, dog under V and walked
    new = (1 + rate) / (1 + 1)
    unigram = {word: n / 13 for word, n in ALL.items()}
    n_tag = {
        word: max(n - coarse, 0) / 7 + coarse * 3 / 7 * (1 - new) * unigram[word]
        for word, n in {"cat": 4, "dog": 2, "Zebra": 1, "sees": 0, "walked": 0}.items()
    }
    dog = (2 - fine) / 6 + fine * 3 / 6 * n_tag["dog"]
    assert lexicon.known(vocabulary["dog"])[0] == pytest.approx(dog)
    sees = fine * 1 / 1 * n_tag["sees"]
    assert lexicon.known(vocabulary["sees"])[1] == pytest.approx(sees)
    unknown = fine * 3 / 6 * coarse * 3 / 7 * new
    assert lexicon.unknown()[0] == pytest.approx(unknown)
    weights = np.array([0.2, 0.3, 0.5])
    words = lexicon.words(weights)
    for id_ in range(4, len(vocabulary)):
        assert words[id_] == pytest.approx(weights @ lexicon.known(id_))
    assert not words[:4].any()


def test_rare_words_say_which_shapes_a_tag_has():
    lexicon = estimate_lexicon(COUNTS, TAGS, Vocabulary.build(ALL))
    names, verbs = 0, 2
    assert lexicon.unknown(shape("Giraffe"))[names] > lexicon.unknown(shape("jumped"))[names]
    assert lexicon.unknown(shape("jumped"))[verbs] > lexicon.unknown(shape("Giraffe"))[verbs]


def test_shapes():
    assert len({shape_name(number) for number in range(SHAPES)}) == SHAPES
    expected = {
        "walking": "lower-ing",
        "Walking": "initial-ing",
        "IBM": "upper",
        "McDonald": "mixed",
        "1,000": "none-digit",
        "1980s": "lower-digit-s",
        "so-called": "lower-hyphen-ed",
        "glass": "lower",
        "%": "none",
        "北京": "mixed",
        "": "none",
    }
    assert {word: shape_name(shape(word)) for word in expected} == expected
    assert all(0 <= shape(word) < SHAPES for word in expected)


# -- trees ---------------------------------------------------------------------------------------

WITH_ALL = r"""
( (S (NP-SBJ-1 (NP (-LRB- -LRB-) (NNP Ann) (-RRB- -RRB-)) (PP=2 (-NONE- *T*-1)))
     (VP (VBD paid) (NP (NP (CD 1\/2)) ) (ADVP|PRT (-NONE- *)) (S (-NONE- *T*))) (. .)) )
"""


def test_plain_trees():
    from seqloom.grammar import bracketed, sentences

    (tree,) = parse_trees(WITH_ALL)
    plain = plain_tree(tree)
    assert bracketed(plain) == (
        "(TOP (S (NP (-LRB- -LRB-) (NNP Ann) (-RRB- -RRB-)) (VP (VBD paid) (NP (CD 1/2))) (. .)))"
    )
    assert plain.leaves() == ["(", "Ann", ")", "paid", "1/2", "."]
    assert parse_trees(bracketed(plain))[0].label == "TOP"
    assert plain_tree(parse_trees("(S (NP (-NONE- *)))")[0]) is None
    assert sentences(parse_trees("(S (NP (-NONE- *))) (X (Y z))")) == [["z"]]
    assert bracketed(plain_tree(plain)) == bracketed(plain)
    assert plain_tree(tree, str.upper).leaves()[1] == "ANN"
    several = plain_tree(parse_trees("( (X a) (Y b) )")[0])
    assert bracketed(several) == "(TOP (X a) (Y b))"
