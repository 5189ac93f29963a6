"""Searches of translators: against every text there is, with every rule, and a language model."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from test_translator import PAIRS, QUICK, SENTENCES, SPACE, TARGETS, WORDS, small

from commands import call_command
from seqloom import LanguageModel, Translator
from seqloom.errors import ConfigError, DataError, InputError


@pytest.fixture(scope="module")
def rough():
    """A model that has learned little, so that its searches differ."""
    model = small("additive", training={"epochs": 12}).fit(PAIRS)
    model.model_.double()
    return model


def brute_force(model, source, length, alpha):
    """Every text of fewer than so many words with its score, each read whole."""
    known = [word.upper() for word in WORDS]
    texts = [t for size in range(length) for t in itertools.product(known, repeat=size)]
    found = []
    for words in texts:
        log_prob = model.score(source, " ".join(words))
        found.append((log_prob / ((6 + len(words)) / 6) ** alpha, words, log_prob))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_wide_beam_finds_the_best_text(rough, alpha):
    expected = brute_force(rough, "red blue", 3, alpha)
    found = rough.translate(
        "red blue", beam=6**3, n_best=6**3, length_penalty=alpha, max_length=3, batch_size=1
    )
    # Texts that were cut at the greatest length are none of those above.
    whole = [each for each in (found, *found.others) if each.ended]
    for each, (score, words, log_prob) in zip(whole, expected, strict=True):
        assert each.words == words
        assert each.score == pytest.approx(score)
        assert each.log_prob == pytest.approx(log_prob)


def test_results_are_free_of_batch_size_and_order(rough):
    sources = [*SENTENCES, "red", "green blue", "red " * 9]
    together = rough.translate(sources, beam=3, n_best=3)
    alone = [rough.translate(source, beam=3, n_best=3, batch_size=1) for source in sources]
    turned = rough.translate(sources[::-1], beam=3, n_best=3, batch_size=4)[::-1]
    for one, two, three in zip(together, alone, turned, strict=True):
        for a, b, c in zip(
            (one, *one.others), (two, *two.others), (three, *three.others), strict=True
        ):
            assert a.text == b.text == c.text
            assert a.score == pytest.approx(b.score) == pytest.approx(c.score)
        scores = [one.score, *(other.score for other in one.others)]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_a_batch_has_the_lengths_that_each_has_alone(rough, chance):
    """By hand: "red" has two items with its end, so that 24 words is its greatest length."""
    sources = ["red", "red green blue " * 10]
    for rules in ({"min_length": 40}, {"prefix": "PINK " * 30}, {"min_length": 40, "no_repeat": 1}):
        rules["temperature"] = chance
        together = rough.translate(sources, **rules)
        alone = [rough.translate(source, **rules, seed=i) for i, source in enumerate(sources)]
        words = [len(each.words) for each in together]
        assert words == [len(each.words) for each in alone]
        assert [each.text for each in together] == [each.text for each in alone]
        if "no_repeat" not in rules:
            assert words[0] >= rules.get("min_length", 30)
            assert words[1] >= rules.get("min_length", 30)
    cut = rough.translate(sources, min_length=1, max_length=1)
    assert [len(each.words) for each in cut] == [1, 1]
    ends = [len(each.words) for each in rough.translate(sources, min_length=23, beam=1)]
    assert 23 <= ends[0] <= 24


def test_rules_of_a_search(rough):
    source = "red green blue"
    assert len(rough.translate(source, min_length=6, max_length=9).words) >= 6
    assert len(rough.translate(source, min_length=4, max_length=4).words) == 4
    assert rough.translate(source, prefix="PINK GREY").words[:2] == ("PINK", "GREY")
    for word in ("yak", "<unk>", "</s>"):
        with pytest.raises(InputError, match=f"words of the model's vocabulary, got '{word}'"):
            rough.translate(source, prefix=f"PINK {word}")
    long = rough.translate(source, min_length=12, max_length=12, no_repeat=2).words
    assert len(set(itertools.pairwise(long))) == len(long) - 1
    drawn = [rough.translate([source] * 20, temperature=1.0, seed=s) for s in (1, 1, 2)]
    texts = [[each.text for each in line] for line in drawn]
    assert texts[0] == texts[1] != texts[2]
    assert len(set(texts[0])) > 1


def test_what_was_drawn_is_as_likely_as_the_model_says(rough):
    """Against the whole text read in one go."""
    source = "red green blue"
    for options in ({"temperature": 1.0}, {"temperature": 1.7, "top_k": 4}):
        found = rough.translate([source] * 10, **options)
        ended = [each for each in found if each.ended]
        assert ended
        for each in ended:
            assert each.log_prob == pytest.approx(rough.score(source, " ".join(each.words)))
            assert each.score == each.log_prob
    # Of five words none may come again, so that no text can have twenty.
    stuck = rough.translate(source, temperature=1.0, no_repeat=1, min_length=20, max_length=24)
    assert sorted(stuck.words) == sorted(word.upper() for word in WORDS)
    assert not stuck.ended
    assert json.loads(json.dumps(stuck.as_row(), allow_nan=False))["log_prob"] < 0


def test_coverage_ranks_what_looked_everywhere_first(rough):
    source = "red green blue grey"
    plain = rough.translate(source, beam=6, n_best=6, attention=True)
    covered = rough.translate(source, beam=6, n_best=6, attention=True, coverage_penalty=2.0)
    for each in (covered, *covered.others):
        assert each.ended
    scores = {each.words: each.score for each in (plain, *plain.others)}
    for each in (covered, *covered.others):
        if each.words not in scores:
            continue
        # The attention of the word that ends a text is not returned: ask for it by its score.
        assert each.score < scores[each.words]


def test_a_pointer_copies_names_it_never_saw():
    chance = np.random.default_rng(0)
    names = ["".join(chance.choice(list("abcdefgh"), 5)) for _ in range(60)]
    pairs = [(f"my name is {name} today", f"hello {name}") for name in names]
    model = Translator(
        "pointer",
        **SPACE,
        vocabulary={"min_count": 2},
        embed_size=16,
        hidden_size=32,
        training={**QUICK, "epochs": 12, "batch": {"batch_size": 8}},
    ).fit(pairs)
    assert len(model.text_.target_vocabulary) == 4 + 1  # no name is in it
    found = model.translate("my name is zebra today")
    assert (found.text, found.words) == ("hello zebra", ("hello", "zebra"))
    two = model.translate(["my name is xaver today", "my name is yuri today"])
    assert [each.text for each in two] == ["hello xaver", "hello yuri"]
    # A text may have to begin with such a word too; of another source it is none.
    begun = model.translate("my name is zebra today", prefix="zebra hello", max_length=4)
    assert begun.words[:2] == ("zebra", "hello")
    sources = ["zebra and xaver", "yuri and zebra"]
    found = model.translate(sources, prefix="zebra", temperature=1.0)
    assert [each.words[0] for each in found] == ["zebra", "zebra"]
    with pytest.raises(InputError, match="vocabulary or its source, got 'yak'; leave it out"):
        model.translate(sources, prefix="hello yak")
    with pytest.raises(InputError, match="got 'zebra'"):
        model.translate([*sources, "my name is yuri"], prefix="zebra")


def test_unknown_words_are_replaced_by_what_was_looked_at():
    pairs = [(f"word{i} x y", f"WORD{i} X") for i in range(30)]
    model = small("additive", vocabulary={"min_count": 2}, training={"epochs": 15}).fit(pairs)
    found = model.translate("zebra x y", replace_unknown=True, attention=True)
    place = int(found.attention[0, :3].argmax())
    assert found.words[0] == ("zebra", "x", "y")[place]
    assert "<unk>" not in found.text
    assert "<unk>" not in model.translate("zebra x y").text


# -- a language model fused in ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted():
    """A trigram model of the words that are written."""
    return LanguageModel("ngram", order=3, **SPACE).fit(TARGETS)


def test_a_language_model_is_fused_without_a_weight_of_ones_own(rough, counted, tmp_path):
    place = counted.save(tmp_path / "model")
    source = "red green blue"
    plain, weighed = (
        rough.translate(source, language_model=counted, lm_weight=w).score for w in (0.0, 0.2)
    )
    assert plain != weighed
    for given in (counted, place, str(place)):
        assert rough.translate(source, language_model=given).score == weighed
    text = tmp_path / "text.txt"
    text.write_text(source)
    verb = ("translate", rough.save(tmp_path / "rough"), text)
    found = call_command(*verb, "--language-model", place, "--json")
    assert json.loads(found.stdout)["score"] == pytest.approx(weighed, rel=1e-5)
    found = call_command(*verb, "--lm-weight", 0.3)
    assert found.returncode == 1
    assert "lm_weight=0.3 needs a language_model, got None" in found.stderr


def test_a_language_model_of_something_else_is_refused(rough, counted):
    def refused(model, message, translator=rough):
        with pytest.raises(ConfigError, match=message):
            translator.translate("red green", language_model=model)

    refused(rough, "must be a LanguageModel, its directory or the name.*got Translator")
    letters = LanguageModel("ngram", order=1, text={"unit": "character"}).fit(TARGETS)
    refused(letters, "at least 50% of the 5 words or pieces that are written, got 0;")
    # Of RED, GREEN, BLUE, GREY and PINK it knows two.
    few = LanguageModel("ngram", order=1, **SPACE).fit(["RED GREEN yellow"])
    refused(few, "at least 50% of the 5 words or pieces that are written, got 2")
    with pytest.raises(DataError, match="no-such-model"):
        rough.translate("red", language_model="no-such-model")
    pieces = small("transformer", text={"unit": "subword"}, vocabulary={"pieces": 300},
                   training={"epochs": 1}).fit(PAIRS)  # fmt: skip
    refused(LanguageModel("ngram", order=1).fit(TARGETS), "unit='subword', got one of unit='word'",
            pieces)  # fmt: skip
    known = {word for text in TARGETS for word in text.split()}
    number = len(known.intersection(pieces.text_.target_vocabulary.words))
    refused(counted, f"words or pieces that are written, got {number};", pieces)
    apart = [" ".join(pieces.text_.target.words(text)) for text in TARGETS]
    every = " ".join(pieces.text_.target_vocabulary.words[4:])
    own = LanguageModel("ngram", order=2, **SPACE).fit([*apart, every])
    assert pieces.translate("red green", language_model=own).words


def test_a_fused_language_model_counts_by_its_weight(rough):
    training = {"epochs": 3, "batch": {"batch_size": 2}, "device": "cpu"}
    model = LanguageModel("rnn", hidden_size=8, num_layers=1, training=training, **SPACE)
    model.fit(TARGETS)
    source, weight = "red green", 0.8
    options = {"beam": 6**3, "max_length": 3, "length_penalty": 0.0}
    plain = rough.translate(source, **options)
    same = rough.translate(source, **options, language_model=model, lm_weight=0.0)
    assert (same.text, same.score) == (plain.text, plain.score)
    options["n_best"] = 6**3
    found = rough.translate(source, **options, language_model=model, lm_weight=weight)
    expected = sorted(
        (log_prob + weight * model.score(" ".join(words)).total, words)
        for _, words, log_prob in brute_force(rough, source, 3, 0.0)
    )[::-1]
    whole = [each for each in (found, *found.others) if each.ended]
    for each, (score, words) in zip(whole, expected, strict=True):
        assert each.words == words
        assert each.score == pytest.approx(score, rel=1e-4)
