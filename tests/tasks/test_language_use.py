"""What a fitted language model is used for: next words, writing, filling, rescoring, measuring."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import seqloom
from seqloom import LanguageModel
from seqloom.data import PrepareConfig, Text, prepare
from seqloom.decoding.steps import as_array
from seqloom.errors import ConfigError, DataError
from seqloom.tasks.directory import _digest
from seqloom.tasks.reversal import turn
from seqloom.text import SubwordTokenizer, TextConfig
from seqloom.text.vocabulary import Specials

TEXTS = ["the cat sat on the mat", "a dog ran", "the bird saw a fish", "a cat ate the fish"] * 4
QUICK = {"epochs": 4, "batch": {"batch_size": 2}, "device": "cpu", "optimizer": {"rate": 0.02}}
SPACE = {"text": {"unit": "space"}}


def small(arch="rnn", **options):
    if arch == "ngram":
        return LanguageModel(arch, **({"order": 3, "smoothing": "witten-bell"} | options))
    sizes = {"hidden_size": 6, "window": 5, "training": QUICK}
    if arch in ("rnn", "lstm", "transformer"):
        sizes["num_layers"] = 1
    if arch == "transformer":
        sizes |= {"hidden_size": 8, "num_heads": 2, "context_size": 64}
    return LanguageModel(arch, **(sizes | options))


@pytest.fixture(scope="module")
def models():
    return {arch: small(arch, **SPACE).fit(TEXTS) for arch in ARCHS}


ARCHS = ("ngram", "nnlm", "rnn", "lstm", "transformer")


def stream_of(model, texts):
    return np.concatenate([[*model.reader.encode(text), model.reader.end] for text in texts])


# -- state carried along --------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHS)
def test_a_text_in_pieces_scores_as_the_whole(arch, models, monkeypatch):
    engine, ids = models[arch].engine_, stream_of(models[arch], [*TEXTS[:4], "zebra"])
    whole, end = engine.stream(ids)
    loss, items = engine.loss(ids)
    assert items == len(whole) == len(ids)
    assert -whole.sum() == pytest.approx(loss, rel=1e-5)
    monkeypatch.setattr("seqloom.tasks.neural_language.EVALUATION_WINDOW", 4)
    for cuts in ([3], [7], [1, 2], [5, 6, 13], [0], [len(ids)]):
        found, reading = [], None
        for piece in np.split(ids, cuts):
            logs, reading = engine.stream(piece, reading)
            found.extend(logs)
        np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-6)
        after, expected = engine.step(*reading)[0], engine.step(*end)[0]
        np.testing.assert_allclose(as_array(after), as_array(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_text_step_by_step_scores_as_the_whole(arch, models):
    engine, ids = models[arch].engine_, stream_of(models[arch], TEXTS[:3])
    last, state = engine.read(np.array([[models[arch].reader.end]]))
    found = []
    for id_ in ids:
        logs, state = engine.step(last, state)
        assert np.exp(as_array(logs)).sum() == pytest.approx(1, abs=1e-5)
        found.append(float(logs[0, id_]))
        last = np.array([id_])
    np.testing.assert_allclose(found, engine.stream(ids)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("arch", ARCHS)
def test_texts_are_read_side_by_side_as_alone(arch, models):
    engine = models[arch].engine_
    ids = np.array([[3, 5, 6, 7], [3, 8, 5, 4], [6, 3, 3, 9]])
    together = as_array(engine.step(*engine.read(ids))[0])
    for row, expected in zip(ids, together, strict=True):
        alone = as_array(engine.step(*engine.read(row[None]))[0])
        np.testing.assert_allclose(alone[0], expected, rtol=1e-5, atol=1e-6)


class Calls:
    """Counts how often a network is run, and over how many steps."""

    def __init__(self, model):
        self.steps = []
        self.hook = model.model_.register_forward_pre_hook(
            lambda _, inputs: self.steps.append(tuple(inputs[0].shape))
        )

    def taken(self):
        taken, self.steps = self.steps, []
        return taken


@pytest.mark.parametrize("arch", ARCHS[1:])
def test_a_generated_word_costs_one_step(arch, models):
    model = models[arch]
    calls = Calls(model)
    try:
        model.generate("the cat sat", max_words=7, min_words=7, seed=1)
        # The prompt is read in one go; its last word goes into the first step.
        assert calls.taken() == [(1, 3)] + [(1, 1)] * 7
        model.generate("the cat sat", max_words=5, min_words=5, beam=3)
        assert calls.taken() == [(1, 3), (1, 1)] + [(3, 1)] * 4
        model.generate(max_words=4, min_words=4, temperature=0)
        assert calls.taken() == [(1, 1)] * 4
        model.next("the cat")
        assert calls.taken() == [(1, 2), (1, 1)]
    finally:
        calls.hook.remove()


# -- next words ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHS)
def test_next_is_the_distribution(arch, models):
    model = models[arch]
    for prompt in ("", "the", "zebra yak", "the cat sat on the mat a dog"):
        found = model.next(prompt)
        chances = [chance for _, chance in found]
        assert math.fsum(chances) == pytest.approx(1, abs=1e-5)
        assert chances == sorted(chances, reverse=True)
        assert model.next(prompt, k=3) == found[:3]
        scored = model.score(f"{prompt} fish").log_probs[-2]
        assert dict(found)["fish"] == pytest.approx(math.exp(scored), rel=1e-4)
    with pytest.raises(ConfigError, match="k must be a whole number of at least 1, got 0"):
        model.next("the", k=0)


@pytest.mark.parametrize("arch", ["ngram", "nnlm"])
def test_of_a_long_prompt_the_last_words_count(arch):
    model = small(arch, order=3, **SPACE).fit(TEXTS)
    long = " ".join(["the bird saw a fish"] * 30)
    assert dict(model.next(f"{long} the cat")) == pytest.approx(dict(model.next("zebra the cat")))
    assert model.generate(f"{long} the", seed=3).startswith(long)


@pytest.mark.parametrize("arch", ARCHS)
def test_perplexity_of_one_text(arch, models):
    score = models[arch].score("the cat ran")
    expected = math.exp(-sum(score.log_probs) / 4)
    assert models[arch].perplexity("the cat ran") == pytest.approx(expected)


@pytest.mark.parametrize("arch", ARCHS)
def test_text_of_unknown_words_alone(arch, models):
    model = models[arch]
    score = model.score("zebra yak emu")
    assert score.unknown == (True, True, True, False)
    assert score.log_probs == model.score("<unk> <unk> <unk>").log_probs
    assert math.isfinite(model.perplexity("zebra"))
    assert model.generate("zebra yak", seed=1).startswith("zebra yak")
    assert model.next("zebra") == model.next("yak")
    assert model.evaluate(["zebra yak"])["unknown"] == pytest.approx(2 / 3)


# -- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHS)
def test_a_wide_beam_finds_the_likeliest_sentence(arch):
    model = small(arch, **SPACE).fit(["a b", "b a a", "a a b", "b"] * 3)
    candidates = []
    for length in range(3):
        for words in itertools.product("ab", repeat=length):
            candidates.append((model.score(" ".join(words)).total, " ".join(words)))
    for words in itertools.product("ab", repeat=3):  # as long as allowed, the end not counted
        candidates.append((sum(model.score(" ".join(words)).log_probs[:3]), " ".join(words)))
    assert model.generate(max_words=3, beam=30) == max(candidates)[1]
    longest = max(
        (total / ((5 + min(len(text.split()) + 1, 3)) / 6) ** 3.0, text)
        for total, text in candidates
    )
    assert model.generate(max_words=3, beam=30, length_penalty=3.0) == longest[1]


@pytest.mark.parametrize("arch", ARCHS)
def test_ways_to_take_the_likeliest_word(arch, models):
    model = models[arch]
    likeliest = model.generate("the", temperature=0)
    for options in ({"top_k": 1}, {"top_p": 1e-6}, {"beam": 1}, {"beam": 1, "length_penalty": 2}):
        assert model.generate("the", **options) == likeliest


@pytest.mark.parametrize("arch", ARCHS)
def test_same_seed_same_text(arch, models):
    for options in ({}, {"top_p": 0.9}, {"top_k": 4, "temperature": 1.5}, {"no_repeat": 2}):
        drawn = [models[arch].generate("the", seed=seed, **options) for seed in range(8)]
        assert drawn == [models[arch].generate("the", seed=seed, **options) for seed in range(8)]
        assert len(set(drawn)) > 1


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("options", [{"seed": 5}, {"beam": 3}])
def test_limits_of_writing(arch, options, models):
    text = models[arch].generate("the cat", max_words=6, min_words=6, no_repeat=2, **options)
    words = text.split()
    assert len(words) == 8
    pairs = list(itertools.pairwise(words))
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam must be a whole number of at least 1, got 0"),
        ({"beam": -3}, "got -3"),
        ({"top_p": 0.0}, "top_p must lie above 0 and not above 1, got 0"),
        ({"top_p": 1.01}, r"got 1\.01"),
        ({"temperature": -1.0}, r"temperature must be a number not below 0, got -1\.0"),
        ({"min_words": 60}, "between 0 and max_words=50, got 60"),
        ({"length_penalty": 1.0}, r"got 1\.0 without beam; give beam"),
        ({"beam": 2, "length_penalty": -1.0}, r"length_penalty must be a number not below.*-1\.0"),
        ({"beam": 2, "temperature": 0.5}, r"temperature is of drawing.*0\.5 with beam=2"),
        ({"beam": 2, "top_p": 0.5}, "top_p is of drawing"),
        ({"no_repeat": -1}, "no_repeat must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_ways_to_write(options, message, models):
    for model in (models["ngram"], models["rnn"]):
        with pytest.raises(ConfigError, match=message):
            model.generate(**options)


# -- from right to left --------------------------------------------------------------------------


def test_sentences_are_turned_around():
    assert turn(np.array([5, 6, 7, 1, 1, 8, 9, 1], np.int32), 1).tolist() == [
        7,
        6,
        5,
        1,
        1,
        9,
        8,
        1,
    ]
    assert turn(np.array([5, 6, 1, 7, 8], np.int32), 1).tolist() == [6, 5, 1, 8, 7]
    assert turn(np.array([], np.int32), 1).tolist() == []


def backwards(texts):
    return [" ".join(text.split()[::-1]) for text in texts]


@pytest.mark.parametrize("arch", ["ngram", "rnn"])
def test_a_reversed_model_is_a_model_of_reversed_sentences(arch, tmp_path):
    model = small(arch, reverse=True, **SPACE).fit(TEXTS, valid=TEXTS[:2])
    other = small(arch, **SPACE).fit(backwards(TEXTS), valid=backwards(TEXTS[:2]))
    assert model.metrics_ == other.metrics_
    for text, turned in zip(TEXTS[:4], backwards(TEXTS[:4]), strict=True):
        ours, theirs = model.score(text), other.score(turned)
        assert ours.words == (*text.split(), "</s>")
        assert ours.log_probs[:-1] == theirs.log_probs[-2::-1]
        assert ours.log_probs[-1] == theirs.log_probs[-1]
    assert model.score("zebra the").unknown == (True, False, False)
    assert model.next("the mat") == other.next("mat the")
    assert model.evaluate(TEXTS) == other.evaluate(backwards(TEXTS))
    for options in ({"seed": 3}, {"beam": 3}):
        written = model.generate("the mat", **options)
        assert backwards([written])[0] == other.generate("mat the", **options)
        assert written.endswith("the mat")
    loaded = seqloom.load(model.save(tmp_path / "m"))
    assert loaded.reverse and loaded.score(TEXTS) == model.score(TEXTS)
    assert loaded.get_params()["reverse"] is True


@pytest.mark.parametrize("arch", ["ngram", "rnn"])
def test_prepared_text_is_read_backwards_too(arch, tmp_path):
    config = PrepareConfig(text=TextConfig(unit="space"))
    data = prepare((Text(text) for text in TEXTS), tmp_path / "data", config)
    plain = data.data.sequences["ids"].flat.copy()
    model = small(arch, reverse=True).fit(data)
    assert (data.data.sequences["ids"].flat == plain).all()  # the data itself is left alone
    expected = small(arch, reverse=True, **SPACE).fit(TEXTS)
    assert model.score(TEXTS) == expected.score(TEXTS)
    assert model.evaluate(data)["perplexity"] == expected.evaluate(TEXTS)["perplexity"]


def test_a_directory_from_before_reads_forwards(models, tmp_path):
    place = models["ngram"].save(tmp_path / "m")
    values = json.loads((place / "seqloom.json").read_text())
    del values["settings"]["reverse"]
    values["digest"] = _digest(values)
    (place / "seqloom.json").write_text(json.dumps(values))
    assert seqloom.load(place).reverse is False


def test_reverse_is_a_claim():
    with pytest.raises(ConfigError, match="reverse must be True or False, got 'yes'"):
        small("ngram", reverse="yes").fit(TEXTS)


# -- filling -------------------------------------------------------------------------------------


def every_filling(model, right, left, rest):
    """Softmax over all words of what the sentences score."""
    words = model.vocabulary_.words[4:]
    texts = [f"{left} {word} {rest}" for word in words]
    scores = np.array([model.score(text).total for text in texts])
    if right is not None:
        scores = (scores + [right.score(text).total for text in texts]) / 2
    chances = np.exp(scores - scores.max())
    return dict(zip(words, chances / chances.sum(), strict=True))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("both", [False, True])
def test_filling_equals_every_sentence_scored(arch, both, models):
    model = models[arch]
    right = small(arch, reverse=True, **SPACE).fit(TEXTS) if both else None
    for left, rest in (("the", "sat on the mat"), ("", "dog ran"), ("a cat ate the", "")):
        expected = every_filling(model, right, left, rest)
        found = model.fill(f"{left} ___ {rest}", k=4, right=right)
        best = sorted(expected, key=expected.get, reverse=True)[:4]
        assert [each.word for each in found] == best
        for each in found:
            assert each.probability == pytest.approx(expected[each.word], rel=1e-4)
            assert each.text == " ".join(f"{left} {each.word} {rest}".split())
    assert sum(each.probability for each in model.fill("a ___ ran", k=99)) == pytest.approx(1)


def test_both_sides_say_more_than_one():
    """What comes after the blank decides, further away than the model on the left can see."""
    pairs = [("x", "one"), ("y", "two"), ("z", "three")]
    texts = [f"say {a} then {b}" for a, b in pairs] * 5
    left = small("ngram", order=2, **SPACE).fit(texts)
    right = small("ngram", order=3, reverse=True, **SPACE).fit(texts)
    for word, number in pairs:
        found = left.fill(f"say ___ then {number}", k=1, right=right)
        assert found[0].word == word
    alone = {each.word: each.probability for each in left.fill("say ___ then one", k=3)}
    assert alone["x"] == pytest.approx(alone["y"], rel=1e-6)


CHINESE = [
    "我高考考了700分，我想上大学学习。",
    "我想上大学学习，我喜欢这座城市。",
    "他想上大学学习文科。",
    "我喜欢天津这座城市，我想学文科。",
    "他考了600分，他想上中学学习。",
    "我们喜欢北京。",
] * 5
BLANKS = [
    "我高考考了700分，我想上___学习。",
    "我高考考了700分，我想上___学习，我喜欢天津这座城市。",
    "我高考考了700分，我想上___学习，我喜欢天津这座城市，我想学文科。",
]


@pytest.mark.parametrize("arch", ["ngram", "lstm"])
def test_the_blanks_of_the_course(arch):
    settings = {"text": {"language": "zh"}}
    if arch == "lstm":
        settings |= {"hidden_size": 16, "training": QUICK | {"epochs": 15}}
    left = small(arch, **settings).fit(CHINESE)
    right = small(arch, reverse=True, **settings).fit(CHINESE)
    for text in BLANKS:
        for other in (None, right):
            found = left.fill(text, k=3, right=other)
            assert found[0].word == "大学", found
            assert found[0].text == text.replace("___", "大学")
            assert found[0].probability > found[1].probability > 0


def test_filling_with_characters_and_few_candidates():
    model = small("ngram", text={"unit": "character"}).fit(["我爱北京", "我爱你"] * 4)
    assert model.fill("我___北京", k=1)[0].word == "爱"
    # Of a few candidates the probabilities sum to 1 over these few.
    found = model.fill("我___北京", k=2, candidates=2)
    assert sum(each.probability for each in found) == pytest.approx(1)


@pytest.fixture(scope="module")
def pieces_data(tmp_path_factory):
    pieces = SubwordTokenizer.train(TEXTS, vocab_size=300, specials=Specials().names())
    config = PrepareConfig(text=TextConfig(unit="subword"))
    place = tmp_path_factory.mktemp("pieces") / "data"
    return prepare((Text(t) for t in TEXTS), place, config, subword=pieces)


@pytest.mark.parametrize("arch", ["ngram", "lstm"])
@pytest.mark.parametrize("both", [False, True])
def test_pieces_that_fill_make_the_sentence_that_is_scored(arch, both, pieces_data):
    model = small(arch).fit(pieces_data)
    right = small(arch, reverse=True).fit(pieces_data) if both else None
    for left, rest in (("the ", " sat on the mat"), ("", " dog ran"), ("the c", " sat on the mat")):
        found = model.fill(f"{left}___{rest}", k=5, candidates=500, right=right)
        words = [each.word for each in found]
        assert all(word == word.strip() and word.isascii() for word in words)
        assert [each.text for each in found] == [f"{left}{word}{rest}" for word in words]
        scores = np.array([model.score(each.text).total for each in found])
        if right is not None:
            scores = (scores + [right.score(each.text).total for each in found]) / 2
        chances = np.array([each.probability for each in found])
        np.testing.assert_allclose(np.log(chances / chances[0]), scores - scores[0], atol=1e-4)
        assert (np.diff(scores) <= 1e-4).all()
    if arch == "ngram":
        assert model.fill("the ___ sat on the mat", k=1, right=right)[0].word == "cat"


def test_a_masked_model_fills_with_pieces_that_stay_whole(pieces_data):
    model = small("transformer", objective="masked").fit(pieces_data)
    for each in model.fill("the ___ sat on the mat", k=5):
        assert each.text == f"the {each.word} sat on the mat"
        ids = model.reader.encode(each.text).tolist()
        left = model.reader.encode("the").tolist()
        rest = model.reader.encode(" sat on the mat").tolist()
        assert ids == [*left, *ids[len(left) : len(left) + 1], *rest]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_words": 2.5}, "max_words must be a whole number of at least 1, got 2.5"),
        ({"top_k": "3"}, "top_k must be a whole number of at least 0, got '3'"),
        ({"seed": 0.5}, "seed must be a whole number, got 0.5"),
        ({"seed": "one"}, "seed must be a whole number, got 'one'"),
        ({"beam": "2"}, "beam must be a whole number of at least 1, got '2'"),
        ({"temperature": "hot"}, "temperature must be a number not below 0, got 'hot'"),
        ({"temperature": math.nan}, "temperature must be a number not below 0, got nan"),
        ({"beam": 2, "length_penalty": 1e6}, "a finite number, got 1e\\+06"),
    ],
)
def test_settings_of_writing_that_are_no_numbers_are_refused(settings, message, models):
    with pytest.raises(ConfigError, match=message):
        models["ngram"].generate("the", **settings)


def test_other_settings_that_are_no_numbers_are_refused(models):
    model = models["lstm"]
    for k in ("3", 2.5, True):
        with pytest.raises(ConfigError, match="k must be a whole number of at least 1"):
            model.next("the", k)
        with pytest.raises(ConfigError, match="k must be a whole number of at least 1"):
            model.fill("the ___", k=k)
    with pytest.raises(ConfigError, match="size must be a whole number of at least 1, got '9'"):
        seqloom.with_cache(model, size="9", theta=0.1, share=0.1)
    with pytest.raises(ConfigError, match="weight 2 must be a number not below 0, got 'x'"):
        seqloom.mix([model, model], weights=[0.5, "x"])
    with pytest.raises(ConfigError, match="weights must be a list of numbers, one a model, got 1"):
        seqloom.mix([model], weights=1)


def test_bad_ways_to_fill(models):
    model = models["ngram"]
    turned = small("ngram", reverse=True, **SPACE).fit(TEXTS)
    with pytest.raises(DataError, match="must hold one blank, written ___, got 0 in 'the cat'"):
        model.fill("the cat")
    with pytest.raises(DataError, match="got 2 in"):
        model.fill("___ the ___")
    with pytest.raises(ConfigError, match="k must be a whole number of at least 1, got 0"):
        model.fill("a ___", k=0)
    with pytest.raises(ConfigError, match="candidates must be a whole number of at least 5, got 3"):
        model.fill("a ___", k=5, candidates=3)
    with pytest.raises(ConfigError, match="must read from left to right, got one with reverse"):
        turned.fill("a ___")
    with pytest.raises(ConfigError, match="right must read from right to left"):
        model.fill("a ___", right=models["rnn"])
    other = small("ngram", reverse=True, **SPACE).fit(["quite other words"])
    with pytest.raises(ConfigError, match=r"vocabularies of \d+ and \d+ words"):
        model.fill("a ___", right=other)


# -- rescoring -----------------------------------------------------------------------------------


def test_rescoring_by_hand(models):
    model = models["ngram"]
    lists = [
        [("a dog ran", -5.0), ("a dog sat", -4.0), ("the mat ran", -4.5)],
        [("the fish", -1.0)],
        [],
    ]
    found = model.rescore(lists, weight=0.7, length_bonus=0.3)
    assert [len(each) for each in found] == [3, 1, 0]
    for candidates, ranked in zip(lists, found, strict=True):
        expected = sorted(
            (s + 0.7 * model.score(t).total + 0.3 * len(t.split()), t) for t, s in candidates
        )[::-1]
        assert [each.text for each in ranked] == [text for _, text in expected]
        np.testing.assert_allclose([e.total for e in ranked], [total for total, _ in expected])
    as_before = model.rescore(lists, weight=0.0)[0]
    assert [each.score for each in as_before] == [-4.0, -4.5, -5.0]
    # A bonus high enough favours the longer text, whatever it is.
    longer = [[("a", 0.0), ("mat mat mat mat", 0.0)]]
    assert model.rescore(longer)[0][0].text == "a"
    assert model.rescore(longer, length_bonus=50.0)[0][0].text == "mat mat mat mat"


def test_bad_ways_to_rescore(models):
    with pytest.raises(ConfigError, match="weight must be finite, got nan"):
        models["ngram"].rescore([], weight=math.nan)
    with pytest.raises(DataError, match="scores must be numbers, got nan for 'a' of list 1"):
        models["ngram"].rescore([[("a", 1.0)], [("a", math.nan)]])


# -- measuring -----------------------------------------------------------------------------------

MEASURED = ["the cat  sat", "A dog", ""]  # two blanks, a capital, nothing


@pytest.mark.parametrize("unit", ["word", "space", "character"])
def test_bits_a_character_and_perplexity_a_word_by_hand(unit):
    model = small("ngram", text={"unit": unit}).fit(TEXTS)
    loss = -sum(model.score(text).total for text in MEASURED)
    found = model.evaluate(MEASURED)
    # Characters: 12 + 5 + 0, and three ends. Words: 3 + 2 + 0, and three ends.
    assert found["bits_per_character"] == pytest.approx(loss / math.log(2) / 20)
    assert found["word_perplexity"] == pytest.approx(math.exp(loss / 8))
    if unit == "character":
        assert found["tokens"] == 20
        assert found["bits_per_character"] == pytest.approx(math.log2(found["perplexity"]))
    else:
        assert found["word_perplexity"] == pytest.approx(found["perplexity"])


def test_units_of_words_can_be_chosen():
    model = small("ngram", text={"unit": "character"}).fit(TEXTS)
    texts = ["don't stop, cat."]
    loss = -model.score(texts[0]).total
    # do n't stop , cat . | don't stop, cat. - and an end each.
    assert model.evaluate(texts)["word_perplexity"] == pytest.approx(math.exp(loss / 7))
    by_space = model.evaluate(texts, words="space")["word_perplexity"]
    assert by_space == pytest.approx(math.exp(loss / 4))


def test_subwords_compare_with_words(tmp_path):
    pieces = SubwordTokenizer.train(TEXTS, vocab_size=270, specials=Specials().names())
    config = PrepareConfig(text=TextConfig(unit="subword"))
    data = prepare((Text(t) for t in TEXTS), tmp_path / "data", config, subword=pieces)
    model = small("ngram").fit(data)
    found = model.evaluate(["the catfish ran"])
    loss = -model.score("the catfish ran").total
    assert found["tokens"] > 4
    assert found["word_perplexity"] == pytest.approx(math.exp(loss / 4))
    assert found["bits_per_character"] == pytest.approx(loss / math.log(2) / 16)


def test_only_a_network_moves_to_a_device(models):
    moved = models["rnn"].to("cpu")
    assert moved is models["rnn"]
    with pytest.raises(ConfigError, match="'ngram' has no network to move to 'cuda'"):
        models["ngram"].to("cuda")
