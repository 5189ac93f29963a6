"""Every smoothing against its slow definition, and what each refuses."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from bruteforce import Scorer, Slow, as_dict, count, train
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from seqloom.errors import ConfigError
from seqloom.ngram.levels import Counts
from seqloom.ngram.smoothing import SMOOTHINGS, smooth, smoothing
from seqloom.ngram.workspace import Workspace

TEXTS = st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "<unk>"]]).flatmap(
    lambda words: st.lists(st.lists(st.sampled_from(words), max_size=5), min_size=1, max_size=14)
)
PRUNE = st.sampled_from([(), (0, 1), (0, 0, 1), (1,), (0, 1, 2)])
CATS = [line.split() for line in ["the cat sat", "the cat ate the fish", "a dog sat on the cat"]]


def histories(words, order):
    """Every history of up to order - 1 words, seen or not."""
    for length in range(order):
        if length == 0:
            yield ()
        else:
            yield from product(["<s>", *words], *[words] * (length - 1))


def compare(sentences, order, name, *, prune=(), **options):
    model = Scorer(train(sentences, order, name, prune=prune[:order], **options))
    slow = Slow(sentences, order, name, prune=prune[:order], **options)
    words = sorted(slow.vocabulary | {w for s in sentences for w in s})
    for history in histories(words, order):
        probs = {w: 10 ** model.log(w, history) for w in slow.vocabulary}
        for word, p in probs.items():
            assert p == pytest.approx(slow.probability(word, history), rel=0, abs=1e-12)
        if name != "stupid-backoff":
            assert sum(probs.values()) == pytest.approx(1, rel=0, abs=1e-9)


OPTIONS = {
    "add-delta": {"delta": 0.3},
    "good-turing": {"cutoff": 2},
    "jelinek-mercer": {"weights": (0.9, 0.7, 0.2, 0.4)},
    "stupid-backoff": {"backoff": 0.25},
}


@pytest.mark.parametrize("name", SMOOTHINGS)
@given(sentences=TEXTS, order=st.integers(1, 4), prune=PRUNE)
def test_equals_its_definition_and_sums_to_one(name, sentences, order, prune):
    options = dict(OPTIONS.get(name, {}))
    if "weights" in options:
        options["weights"] = options["weights"][:order]
    compare(sentences, order, name, prune=prune, **options)


@given(sentences=TEXTS)
def test_add_one_is_add_delta_with_one(sentences):
    assert as_dict(train(sentences, 2, "add-one")) == as_dict(
        train(sentences, 2, "add-delta", delta=1.0)
    )


@pytest.mark.parametrize(
    "name", ["absolute-discounting", "witten-bell", "kneser-ney", "modified-kneser-ney"]
)
@given(sentences=TEXTS, order=st.integers(1, 3), prune=PRUNE)
def test_what_is_left_of_unigrams_may_go_to_unk_alone(name, sentences, order, prune):
    compare(sentences, order, name, prune=prune, interpolate_unigrams=False)


@given(sentences=TEXTS)
def test_discounts_given_and_fallback(sentences):
    given = ((0.1, 0.2, 0.3), None)
    compare(sentences, 3, "modified-kneser-ney", discounts=given, fallback=(0.4, 0.5, 0.6))


def test_textbook_values_by_hand():
    # "a b", "a a": after a come a once, b once, </s> once; V = a, b, </s>, <unk>.
    sentences = [["a", "b"], ["a", "a"]]
    likely = Scorer(train(sentences, 2, "maximum-likelihood"))
    assert 10 ** likely.log("b", ("a",)) == pytest.approx(1 / 3)
    assert likely.log("<unk>", ("a",)) == -math.inf
    assert likely.log("<unk>", ()) == -math.inf
    plus = Scorer(train(sentences, 2, "add-one"))
    assert 10 ** plus.log("b", ("a",)) == pytest.approx((1 + 1) / (3 + 4))
    assert 10 ** plus.log("b", ("<s>",)) == pytest.approx((0 + 1) / (2 + 4))
    assert 10 ** plus.log("b", ("<unk>",)) == pytest.approx(1 / 4)
    bell = Scorer(train(sentences, 1, "witten-bell"))
    assert 10 ** bell.log("a", ()) == pytest.approx(3 / (6 + 3) + 3 / (6 + 3) / 4)
    stupid = Scorer(train(sentences, 2, "stupid-backoff"))
    assert 10 ** stupid.log("b", ("b",)) == pytest.approx(0.4 * 1 / 6)


def test_stupid_backoff_says_that_it_is_no_distribution():
    ngrams = train(CATS, 3, "stupid-backoff")
    assert ngrams.about["distribution"] is False
    assert ngrams.missing_backoff == math.log10(0.4)
    for level in ngrams.levels[:-1]:
        assert set(level.backoff) == {math.log10(0.4)}
    assert train(CATS, 3, "witten-bell").about["distribution"] is True


def test_beginning_of_sentence_and_ends_follow_lmplz():
    ngrams = as_dict(train(CATS, 3, "witten-bell"))
    assert ngrams["<s>",][0] == 0
    assert ngrams["</s>",][1] == ngrams["cat", "</s>"][1] == 0


def test_a_text_without_words():
    for order in (1, 3):
        ngrams = train([[]], order, "modified-kneser-ney")
        found = Scorer(ngrams)
        assert sum(10 ** found.log(w, ("<s>",)) for w in ("</s>", "<unk>")) == pytest.approx(1)


def test_the_same_in_files_and_in_small_pieces(monkeypatch, tmp_path):
    numbers = np.random.default_rng(1).zipf(1.3, 9000) % 3000
    sentences = [[f"w{n}" for n in line] for line in numbers.reshape(-1, 9)]
    for name in ("modified-kneser-ney", "good-turing", "add-one"):
        for prune in ((), (1, 1, 2)):
            whole = train(sentences, 3, name, prune=prune)
            with monkeypatch.context() as patch:
                patch.setattr(Workspace, "step", 700)
                place = Workspace(folder=str(tmp_path))
                place.spilling = True
                pieces = train(sentences, 3, name, prune=prune, place=place)
            one, two = as_dict(whole), as_dict(pieces)
            assert one.keys() == two.keys()
            assert_allclose(list(one.values()), [two[ngram] for ngram in one], rtol=0, atol=1e-12)


def test_pruned_words_leave_the_vocabulary():
    ngrams = train(CATS, 2, "modified-kneser-ney", prune=(1,))
    assert list(ngrams.words) == ["<unk>", "<s>", "</s>", "the", "cat", "sat"]
    assert ngrams.words.number("cat") == 4
    assert ngrams.about["prune"] == [1, 1]
    assert ("the", "cat") in as_dict(ngrams)


def test_counts_are_used_up_but_columns_are_not():
    counts = count(CATS, 3)
    kept = Counts(counts.words, [*counts.levels], counts.tokens)
    first = smooth(counts, smoothing("witten-bell"), Workspace(), prune=(1,))
    assert counts.levels == []
    again = smooth(kept, smoothing("witten-bell"), Workspace(), prune=(1,))
    assert as_dict(first) == as_dict(again)


HELD_OUT = [line.split() for line in ["the cat sat on the fish", "a dog ate", "on the new cat"]]


def test_weights_found_make_held_out_text_most_probable():
    ngrams = train(CATS, 3, "jelinek-mercer", held_out=HELD_OUT)
    weights = ngrams.about["weights"]

    def likelihood(weights):
        slow = Slow(CATS, 3, "jelinek-mercer", weights=weights)
        total = 0.0
        for sentence in HELD_OUT:
            whole = ("<s>", *(w if w in slow.vocabulary else "<unk>" for w in sentence), "</s>")
            for i in range(1, len(whole)):
                total += math.log(slow.probability(whole[i], whole[max(0, i - 2) : i]))
        return total

    best = likelihood(weights)
    for o in range(3):
        for step in (-0.01, 0.01):
            moved = [min(max(w + step * (i == o), 0), 1) for i, w in enumerate(weights)]
            assert likelihood(moved) <= best + 1e-5


def test_undefined_discounts_are_explained_in_one_line():
    # Words by how many words come before them: six by 1, one by 2, two by 3; Y = 6 / 8.
    # Bigrams by occurrences: twelve with 1, one with 2, one with 3; Y = 12 / 14.
    said = []
    ngrams = train(CATS, 2, "modified-kneser-ney", say=said.append)
    assert ngrams.about["discounts"] == [[0.5, 1.0, 1.5], [0.5, 1.0, 1.5]]
    assert said == [
        "the discount of 1-grams with the adjusted count 2 would be -2.5, "
        "the discount of 2-grams with the count 2 would be -0.5714, so the modified-kneser-ney "
        "discounts of order 1, 2 are undefined (corpus: 14 tokens) and 0.5, 1, 1.5 took their "
        "place; use smoothing='witten-bell' or add text"
    ]


@pytest.mark.parametrize(
    ("sentences", "name", "why"),
    [
        ([["a"]] * 3, "kneser-ney", "no 1-gram has the count 1"),
        ([["a", "b"]], "modified-kneser-ney", "no 1-gram has the count 2"),
        ([["a", "b"]], "absolute-discounting", "no 1-gram has the count 2"),
        ([["a", "b"]], "good-turing", "discount of 1-grams with the count 1 would be 1"),
        ([["a"]] * 6 + [["b"]], "good-turing", "1-grams with the count 6 take no smaller part"),
    ],
)
def test_why_discounts_are_undefined(sentences, name, why):
    said = []
    train(sentences, 1, name, say=said.append)
    assert len(said) == 1
    assert why in said[0]


def test_nothing_is_said_when_all_is_well():
    said = []
    train(CATS, 3, "witten-bell", say=said.append)
    assert said == []


def test_without_a_listener_it_goes_to_standard_error(capsys):
    smooth(count(CATS, 2), smoothing("kneser-ney"), Workspace(), prune=())
    smooth(count([["a"]], 1), smoothing("kneser-ney"), Workspace())
    assert "seqloom: no 1-gram has the count 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("kneser-nay", {}, "unknown smoothing 'kneser-nay'; did you mean 'kneser-ney'"),
        ("add-delta", {"detla": 1}, "unknown option of add-delta 'detla'; did you mean 'delta'"),
        (
            "add-delta",
            {"delta": 0},
            "delta must be greater than 0 and .*, got 0; for no smoothing",
        ),
        ("good-turing", {"cutoff": 0}, "cutoff must be at least 1 and at most .*, got 0"),
        ("stupid-backoff", {"backoff": 1.5}, r"backoff must lie in \(0, 1\], got 1.5"),
        ("jelinek-mercer", {"weights": [0.5, 2]}, r"weights must lie in \[0, 1\], got \[0.5, 2\]"),
        ("kneser-ney", {"discounts": [1.5]}, "order 1 must be one number.*at most j, got 1.5"),
        ("kneser-ney-backoff", {"discounts": [1.0]}, "below j, got 1.0"),
        ("modified-kneser-ney", {"discounts": [None, (0.5, 1)]}, r"3 numbers.*got \(0.5, 1\)"),
        ("modified-kneser-ney", {"fallback": (0.5, 1, 4)}, r"fallback.*got \(0.5, 1, 4\)"),
    ],
)
def test_options_are_checked_when_given(name, options, message):
    with pytest.raises(ConfigError, match=message):
        smoothing(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "prune", "message"),
    [
        ("witten-bell", {}, (1, 0), r"do not decrease, got \[1, 0\]; what a longer"),
        ("witten-bell", {}, (-1,), r"counts from 0 on that do not decrease, got \[-1\]"),
        ("witten-bell", {}, (0, 0, 1), r"no more than the 2 orders there are, got \[0, 0, 1\]"),
        ("kneser-ney", {"discounts": [0.5] * 3}, (), "no more than the orders, 2, got 3"),
        (
            "jelinek-mercer",
            {"weights": [0.5]},
            (),
            "weights must be as many as the orders, 2, got 1",
        ),
        ("jelinek-mercer", {}, (), "got none; give `held_out` or `weights`"),
    ],
)
def test_settings_that_do_not_fit_the_order(name, options, prune, message):
    with pytest.raises(ConfigError, match=message):
        train(CATS, 2, name, prune=prune, **options)


def test_an_empty_held_out_text():
    with pytest.raises(ConfigError, match="got an empty one; give `held_out` or `weights`"):
        train(CATS, 2, "jelinek-mercer", held_out=[])
