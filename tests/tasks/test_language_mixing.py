"""Mixtures of language models, and the cache over a network."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest
import torch

import seqloom
from seqloom import LanguageModel, mix, with_cache
from seqloom.errors import ConfigError, DataError, NotFittedError
from seqloom.tasks.mixing import best_shares
from seqloom.tasks.neural_cache import THETAS

TEXTS = [
    "the cat sat on the mat",
    "a dog ran to the cat",
    "the bird saw a fish",
    "a cat ate the fish",
    "the old dog sat",
] * 4
HELD = ["the dog sat on a fish", "a bird ran", "the cat saw the old mat", "a dog sat on the mat"]
QUICK = {"epochs": 6, "batch": {"batch_size": 2}, "device": "cpu", "optimizer": {"rate": 0.02}}
UNIFIED = {"text": {"unit": "space"}}


def counted(order=2, **options):
    return LanguageModel("ngram", order=order, smoothing="witten-bell", **(UNIFIED | options))


def network(arch="lstm", **options):
    sizes = {"hidden_size": 8, "window": 6, "training": QUICK}
    return LanguageModel(arch, **(UNIFIED | sizes | options))


@pytest.fixture(scope="module")
def parts():
    return [counted(1).fit(TEXTS), counted(3).fit(TEXTS), network(num_layers=1).fit(TEXTS)]


@pytest.fixture(scope="module")
def mixed(parts):
    return mix(parts, HELD)


def words_of(model, texts):
    """Log-probabilities of a stream as the model reads it, by its own `score` or word by word."""
    engine, end = model.engine_, model.reader.end
    ids = np.concatenate([[*model.reader.encode(text), end] for text in texts])
    if model.arch == "ngram":
        return np.concatenate([model.score(text).log_probs for text in texts])
    last, state = engine.read(np.array([[end]]))
    found = []
    for id_ in ids:
        logs, state = engine.step(last, state)
        found.append(float(logs[0, id_]))
        last = np.array([id_])
    return np.array(found)


# -- weights -------------------------------------------------------------------------------------


def brute_force(logs, steps=200):
    """The best weights of two or three models on a grid."""
    grid = np.linspace(0, 1, steps + 1)
    points = (
        [(a, 1 - a) for a in grid]
        if len(logs) == 2
        else [(a, b, 1 - a - b) for a in grid for b in grid if a + b <= 1 + 1e-12]
    )
    weights = np.clip(np.array(points), 0, 1)
    with np.errstate(divide="ignore"):
        totals = np.log(weights @ np.exp(logs)).sum(axis=1)
    return weights[totals.argmax()], totals.max()


@pytest.mark.parametrize("models", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_em_finds_what_a_grid_finds(models, seed):
    chance = np.random.default_rng(seed)
    logs = np.log(chance.dirichlet(np.ones(6), size=(models, 80))[:, :, 0] + 1e-6)
    found = best_shares(logs)
    expected, best = brute_force(logs)
    assert math.fsum(found) == pytest.approx(1)
    np.testing.assert_allclose(found, expected, atol=0.011)
    assert np.log(np.array(found) @ np.exp(logs)).sum() >= best - 1e-9


def test_em_agrees_with_an_optimizer():
    optimize = pytest.importorskip("scipy.optimize")
    chance = np.random.default_rng(7)
    logs = np.log(chance.beta(1, 5, size=(4, 300)))

    def loss(x):
        weights = np.exp(x - x.max())
        return -np.log(weights / weights.sum() @ np.exp(logs)).sum()

    expected = optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    shares = np.exp(expected - expected.max())
    np.testing.assert_allclose(best_shares(logs), shares / shares.sum(), atol=2e-4)


def test_a_model_that_is_better_everywhere_gets_all():
    logs = np.log(np.array([[0.5] * 50, [0.4] * 50]))
    assert best_shares(logs) == [1, 0]
    impossible = np.array([[-np.inf] * 3, [-np.inf] * 3])
    with pytest.raises(DataError, match="a word that a model gives a probability, got none"):
        best_shares(impossible)


def test_a_mixture_is_the_weighted_mean(parts, mixed):
    weights = np.array(mixed.engine_.config()["weights"])
    logs = np.stack([words_of(part, HELD) for part in parts])
    expected = np.log(weights @ np.exp(logs))
    found = mixed.evaluate(HELD)
    assert found["loss"] == pytest.approx(-expected.mean(), rel=1e-6)
    assert mixed.metrics_["heldout_perplexity"] == pytest.approx(math.exp(-expected.mean()))
    expected_weights, _ = brute_force(logs)
    np.testing.assert_allclose(weights, expected_weights, atol=0.011)


def test_on_the_heldout_text_no_part_is_better(parts, mixed):
    found = mixed.evaluate(HELD)["perplexity"]
    assert found <= min(part.evaluate(HELD)["perplexity"] for part in parts) * (1 + 1e-9)
    for pair in ((parts[0], parts[1]), (parts[1], parts[2]), (parts[1], parts[1])):
        both = mix(pair, HELD).evaluate(HELD)["perplexity"]
        assert both <= min(part.evaluate(HELD)["perplexity"] for part in pair) * (1 + 1e-9)


# -- use -----------------------------------------------------------------------------------------


def test_scores_are_mixed_word_by_word(parts, mixed):
    weights = mixed.engine_.config()["weights"]
    for text in ("the cat ran", "zebra", ""):
        each = np.exp([part.score(text).log_probs for part in parts])
        np.testing.assert_allclose(mixed.score(text).log_probs, np.log(weights @ each), rtol=1e-6)


def test_the_next_words_are_a_distribution_that_scores_agree_with(mixed):
    for prompt in ("", "the", "a zebra"):
        chances = dict(mixed.next(prompt))
        assert math.fsum(chances.values()) == pytest.approx(1, abs=1e-6)
        for word in ("cat", "mat"):
            scored = mixed.score(f"{prompt} {word}").log_probs[-2]
            assert chances[word] == pytest.approx(math.exp(scored), rel=1e-5)


def test_a_mixture_writes_and_fills(mixed):
    assert mixed.generate("the", seed=3) == mixed.generate("the", seed=3)
    assert mixed.generate("the", beam=1) == mixed.generate("the", temperature=0)
    found = mixed.fill("the ___ sat on the mat", k=3)
    assert len(found) == 3 and sum(each.probability for each in found) <= 1


def test_weights_can_be_given(parts):
    half = mix(parts[:2], weights=[0.25, 0.75])
    expected = np.log(0.25 * np.exp(parts[0].score("a cat").log_probs)
                      + 0.75 * np.exp(parts[1].score("a cat").log_probs))  # fmt: skip
    np.testing.assert_allclose(half.score("a cat").log_probs, expected)
    alone = mix(parts[:2], weights=[0, 1])
    assert alone.score("a cat").total == pytest.approx(parts[1].score("a cat").total)


def test_a_text_in_pieces_is_the_text(mixed):
    ids = np.concatenate([[*mixed.reader.encode(text), mixed.reader.end] for text in HELD])
    whole, end = mixed.engine_.stream(ids)
    for cut in (1, 3, 8, 12):
        first, reading = mixed.engine_.stream(ids[:cut])
        rest, reached = mixed.engine_.stream(ids[cut:], reading)
        np.testing.assert_allclose([*first, *rest], whole, rtol=1e-5, atol=1e-6)
        assert reached.last.tolist() == end.last.tolist()


# -- directories ---------------------------------------------------------------------------------


def test_a_mixture_holds_its_parts(mixed, tmp_path):
    place = mixed.save(tmp_path / "m")
    assert {"part-1", "part-2", "part-3"} <= {path.name for path in place.iterdir()}
    for loaded in (seqloom.load(place), LanguageModel.load(place)):
        assert loaded.score(HELD) == mixed.score(HELD)
        assert loaded.evaluate(HELD) == mixed.evaluate(HELD)
        assert loaded.generate("the", seed=1) == mixed.generate("the", seed=1)
        assert loaded.metrics_ == mixed.metrics_
    part = seqloom.load(place / "part-2")
    assert part.score(HELD) == mixed.model_[1].score(HELD)
    again = seqloom.load(place).save(tmp_path / "again")
    assert (again / "seqloom.json").read_bytes() == (place / "seqloom.json").read_bytes()


def test_a_part_that_was_exchanged_is_refused(mixed, tmp_path):
    place = mixed.save(tmp_path / "m")
    other = counted(1).fit([*TEXTS, "quite other words"])
    shutil.rmtree(place / "part-1")
    other.save(place / "part-1")
    with pytest.raises(DataError, match="part-1: is not the model this one was saved with"):
        seqloom.load(place)


def test_a_mixture_of_mixtures(parts, mixed, tmp_path):
    outer = mix([mixed, parts[0]], weights=[0.5, 0.5])
    loaded = seqloom.load(outer.save(tmp_path / "m"))
    assert loaded.score("the cat") == outer.score("the cat")
    assert loaded.shapes().keys() == outer.shapes().keys()


# -- what does not go together -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            lambda: counted(vocabulary={"min_count": 5}),
            r"vocabularies of 18 and 10 words \('\w+' is",
        ),
        (lambda: counted(text={"unit": "character"}), "text.unit 'space' and 'character'"),
        (
            lambda: counted(text={"unit": "space", "normalizer": {"lowercase": True}}),
            "text.normalizer .* of model 1 and model 2; fit them to the same prepared text",
        ),
        (lambda: counted(reverse=True), "reverse=False and reverse=True"),
    ],
)
def test_models_that_read_differently_are_refused(other, message, parts):
    with pytest.raises(ConfigError, match=message):
        mix([parts[1], other().fit(TEXTS)], HELD)


def test_other_refusals(parts, tmp_path):
    with pytest.raises(ConfigError, match="at least one model, got none"):
        mix([], HELD)
    with pytest.raises(ConfigError, match="either heldout or weights, got neither"):
        mix(parts)
    with pytest.raises(ConfigError, match="either heldout or weights, got both"):
        mix(parts, HELD, weights=[1, 0, 0])
    with pytest.raises(ConfigError, match="weights must be one a model, 3, got 2"):
        mix(parts, weights=[0.5, 0.5])
    with pytest.raises(ConfigError, match=r"sum to 1, got .* which sum to 1.5"):
        mix(parts[:2], weights=[1, 0.5])
    with pytest.raises(DataError, match="there must be a text"):
        mix(parts, [])
    stupid = LanguageModel("ngram", order=2, smoothing="stupid-backoff", **UNIFIED).fit(TEXTS)
    for how in ({"heldout": HELD}, {"weights": [0.5, 0.5]}):
        with pytest.raises(ConfigError, match="whose scores do not sum to 1"):
            mix([parts[1], stupid], **how)
    with pytest.raises(ConfigError, match=r"use seqloom.mix\(models, heldout\)"):
        LanguageModel("mix").fit(TEXTS)
    with pytest.raises(ConfigError, match=r"use seqloom.with_cache\(model, heldout\)"):
        LanguageModel("cache").fit(TEXTS)
    with pytest.raises(NotFittedError):
        mix([counted(1), parts[0]], HELD)


# -- the cache -----------------------------------------------------------------------------------


def by_hand(model, texts, size, theta, share):
    """The equations with numpy and visible loops, from the features of the network alone."""
    net, end = model.model_, model.reader.end
    ids = [id_ for text in texts for id_ in (*model.reader.encode(text), end)]
    inputs = torch.tensor([[end, *ids[:-1]]])
    with torch.no_grad():
        features = net(inputs).features[0]
        logs = net.output.log_probs(features).double().numpy()
    h = features.double().numpy()
    found = []
    for t, id_ in enumerate(ids):
        p = math.exp(logs[t, id_])
        keys = range(max(0, t - size), t)
        if keys:
            weights = [math.exp(theta * float(h[t] @ h[i])) for i in keys]
            right = sum(w for i, w in zip(keys, weights, strict=True) if ids[i] == id_)
            p = (1 - share) * p + share * right / sum(weights)
        found.append(math.log(p))
    return np.array(found)


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("arch", ["lstm", "nnlm"])
def test_the_cache_equals_a_hand_computation(arch, size, monkeypatch):
    model = network(arch).fit(TEXTS)
    cached = with_cache(model, size=size, theta=0.7, share=0.3)
    expected = by_hand(model, HELD, size, 0.7, 0.3)
    ids = np.concatenate([[*model.reader.encode(text), model.reader.end] for text in HELD])
    np.testing.assert_allclose(cached.engine_.stream(ids)[0], expected, rtol=1e-4)
    monkeypatch.setattr("seqloom.tasks.neural_cache.PIECE", 3)
    np.testing.assert_allclose(cached.engine_.stream(ids)[0], expected, rtol=1e-4)
    np.testing.assert_allclose(words_of(cached, HELD), expected, rtol=1e-4)
    found = cached.evaluate(HELD)["loss"]
    assert found == pytest.approx(-expected.mean(), rel=1e-4)
    # A prompt read in one go.
    for length in (1, 2, 3, 9):
        prompt = np.array([[model.reader.end, *ids[: length - 1]]])
        logs = cached.engine_.step(*cached.engine_.read(prompt))[0]
        assert float(logs[0, ids[length - 1]]) == pytest.approx(expected[length - 1], rel=1e-4)
    # In pieces.
    for cut in (1, 2, 9):
        first, reading = cached.engine_.stream(ids[:cut])
        rest, _ = cached.engine_.stream(ids[cut:], reading)
        np.testing.assert_allclose([*first, *rest], expected, rtol=1e-4)


def test_theta_and_share_are_the_best_of_the_heldout_text(parts):
    model = parts[2]
    repeated = ["fish fish bird bird", "fish bird fish bird", "mat mat mat fish"] * 3
    cached = with_cache(model, repeated, size=20)
    config = cached.engine_.config()
    found = cached.metrics_["heldout_perplexity"]
    best = min(
        -by_hand(model, repeated, 20, theta, share).mean()
        for theta in THETAS
        for share in np.linspace(0, 0.98, 50)
    )
    assert math.log(found) <= best + 1e-4
    assert 0.05 < config["share"] < 1 and config["theta"] in THETAS
    assert found < model.evaluate(repeated)["perplexity"] * 0.8
    assert cached.evaluate(repeated)["perplexity"] == pytest.approx(found, rel=1e-4)


def test_the_cache_is_a_distribution_and_a_language_model(parts, tmp_path):
    cached = with_cache(parts[2], size=6, theta=0.5, share=0.4)
    for prompt in ("", "the cat sat on the"):
        chances = dict(cached.next(prompt))
        assert math.fsum(chances.values()) == pytest.approx(1, abs=1e-5)
    assert dict(cached.next("cat cat cat"))["cat"] > dict(parts[2].next("cat cat cat"))["cat"]
    np.testing.assert_allclose(
        [math.exp(cached.score("the cat the cat").log_probs[3])],
        [dict(cached.next("the cat the"))["cat"]],
        rtol=1e-5,
    )
    loaded = seqloom.load(cached.save(tmp_path / "m"))
    assert loaded.score(HELD) == cached.score(HELD)
    assert loaded.generate("the", seed=4) == cached.generate("the", seed=4)
    assert loaded.generate("the", beam=3) == cached.generate("the", beam=3)
    both = mix([cached, parts[1]], HELD)
    assert both.evaluate(HELD)["perplexity"] <= parts[1].evaluate(HELD)["perplexity"]


def test_what_a_cache_refuses(parts):
    with pytest.raises(ConfigError, match="features of a network, got arch='ngram'"):
        with_cache(parts[0], HELD)
    with pytest.raises(ConfigError, match="either heldout or both theta and share"):
        with_cache(parts[2])
    with pytest.raises(ConfigError, match=r"theta=0\.1, share=None"):
        with_cache(parts[2], theta=0.1)
    for options, message in (
        ({"size": 0}, "size must be a whole number of at least 1, got 0"),
        ({"theta": -1.0}, "theta must be a number not below 0, got -1.0"),
        ({"share": 1.0}, r"share must lie in \[0, 1\), got 1.0"),
    ):
        with pytest.raises(ConfigError, match=message):
            with_cache(parts[2], **({"size": 3, "theta": 0.1, "share": 0.1} | options))
