"""Language models side by side: the table, its intervals, contexts, pictures and verbs."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch

from commands import call_command, start_command
from seqloom import LanguageModel
from seqloom.errors import ConfigError, DataError, NotFittedError, ShapeError
from seqloom.figures import save
from seqloom.figures.league import context_curves, interval_table
from seqloom.metrics.bootstrap import paired_bootstrap
from seqloom.tasks.league import by_context, compare

TEXTS = [
    "the cat sat on the mat",
    "a dog ran to the cat",
    "the bird saw a fish",
    "a cat ate the fish",
    "the old dog sat",
] * 4
TEST = ["the dog sat on a fish", "a bird ran", "the cat saw the old mat", "a dog sat on the mat"]
QUICK = {"epochs": 3, "batch": {"batch_size": 2}, "device": "cpu", "optimizer": {"rate": 0.02}}
SPACE = {"text": {"unit": "space"}}


def counted(order=2, **options):
    return LanguageModel("ngram", order=order, smoothing="witten-bell", **(SPACE | options))


@pytest.fixture(scope="module")
def models():
    network = LanguageModel("rnn", hidden_size=6, num_layers=1, window=5, training=QUICK, **SPACE)
    letters = counted(4, text={"unit": "character"})
    fitted = {"two": counted(2), "one": counted(1), "net": network, "letters": letters}
    return {name: model.fit(TEXTS) for name, model in fitted.items()}


# -- the bootstrap -------------------------------------------------------------------------------


def test_the_bootstrap_against_every_resample():
    ours, theirs, sizes = [3.0, 8.0, 2.0, 9.0], [1.0, 7.0, 4.0, 2.0], [1, 3, 2, 4]
    every = []
    for drawn in itertools.product(range(4), repeat=4):
        gap = sum(ours[i] - theirs[i] for i in drawn)
        every.append(gap / sum(sizes[i] for i in drawn))
    for level in (0.5, 0.8, 0.95):
        expected = np.quantile(every, [(1 - level) / 2, (1 + level) / 2])
        found = paired_bootstrap(ours, theirs, sizes, resamples=40_000, level=level)
        np.testing.assert_allclose(found, expected, atol=0.06)


def test_pairs_are_kept_together():
    """Two that differ by the same everywhere differ for sure, however noisy both are."""
    noise = np.random.default_rng(0).normal(size=200) * 50
    low, high = paired_bootstrap(noise + 3, noise, np.full(200, 2.0))
    assert (low, high) == pytest.approx((1.5, 1.5))
    first = paired_bootstrap(noise, noise[::-1], np.ones(200), seed=1)
    assert first == paired_bootstrap(noise, noise[::-1], np.ones(200), seed=1)
    assert first[0] < 0 < first[1]


def test_bad_bootstraps():
    with pytest.raises(ShapeError, match=r"of one length, got \(2,\), \(1,\), \(2,\)"):
        paired_bootstrap([1, 2], [1], [1, 1])
    with pytest.raises(ShapeError):
        paired_bootstrap([], [], [])
    with pytest.raises(ConfigError, match=r"got 0, 0\.95"):
        paired_bootstrap([1], [1], [1], resamples=0)
    with pytest.raises(ConfigError, match=r"got 5, 1\.0"):
        paired_bootstrap([1], [1], [1], resamples=5, level=1.0)


# -- the league ----------------------------------------------------------------------------------


def test_a_league_is_what_each_model_says_itself(models):
    league = compare(models, TEST, resamples=200)
    assert [row.word_perplexity for row in league] == sorted(r.word_perplexity for r in league)
    best = league[0]
    assert (best.ratio, best.low, best.high) == (1, 1, 1)
    for row in league:
        model = models[row.name]
        said = model.evaluate(TEST, words="space")
        assert row.arch == model.arch
        for name in ("perplexity", "word_perplexity", "bits_per_character", "unknown"):
            assert getattr(row, name) == pytest.approx(said[name], rel=1e-5), name
        assert row.ratio == pytest.approx(row.word_perplexity / best.word_perplexity)
        assert row.low <= row.ratio <= row.high
        assert row.parameters == sum(math.prod(shape) for shape in model.shapes().values())
        assert row.seconds == model.provenance_["seconds"]
        assert row.words_per_second > 0


def test_intervals_are_of_the_sentences_losses(models):
    pair = {name: models[name] for name in ("two", "one")}
    worse = compare(pair, TEST, resamples=300, seed=5)[1]
    losses = {name: [-model.score(text).total for text in TEST] for name, model in pair.items()}
    best = next(name for name in pair if name != worse.name)
    sizes = [len(text.split()) + 1 for text in TEST]
    low, high = paired_bootstrap(losses[worse.name], losses[best], sizes, resamples=300, seed=5)
    assert (worse.low, worse.high) == pytest.approx((math.exp(low), math.exp(high)))


def test_a_model_against_itself(models):
    first, second = compare({"a": models["two"], "b": models["two"]}, TEST)
    assert (second.ratio, second.low, second.high) == (1, 1, 1)
    assert first.word_perplexity == second.word_perplexity


def test_what_cannot_happen_is_last(models):
    sure = LanguageModel("ngram", order=2, smoothing="maximum-likelihood", **SPACE).fit(TEXTS)
    league = compare({"sure": sure, **models}, TEST)
    assert league[-1].name == "sure" and league[-1].word_perplexity == math.inf


def test_bad_leagues(models):
    with pytest.raises(ConfigError, match="a model to compare, got none"):
        compare({}, TEST)
    with pytest.raises(DataError, match="a text to evaluate, got none"):
        compare(models, [])
    with pytest.raises(NotFittedError):
        compare({"a": counted()}, TEST)


# -- contexts ------------------------------------------------------------------------------------


def test_contexts_of_a_network_against_a_loop(models):
    model = models["net"]
    ids = np.concatenate([[*model.reader.encode(text), model.reader.end] for text in TEST])
    net = model.model_
    for k in (1, 2, 4, 8):
        total = 0.0
        for t in range(8, len(ids)):
            with torch.no_grad():
                features = net(torch.tensor(ids[t - k : t])[None].long()).features[0, -1]
                logits = torch.nn.functional.linear(features, net.output.weight, net.output.bias)
            total -= float(logits.log_softmax(0)[ids[t]])
        found = by_context(model, TEST, [1, 2, 4, 8])
        assert found[k] == pytest.approx(math.exp(total / (len(ids) - 8)), rel=1e-5)
    whole = model.engine_.stream(ids)[0][8:]
    assert found[None] == pytest.approx(math.exp(-whole.mean()), rel=1e-5)


def test_ngrams_need_no_more_than_their_order():
    model = counted(3).fit(TEXTS)
    found = by_context(model, TEST, [1, 2, 4, 8])
    assert found[2] == pytest.approx(found[4]) and found[2] == pytest.approx(found[8])
    assert found[2] == pytest.approx(found[None])
    assert found[1] != pytest.approx(found[2], rel=1e-3)


def test_positions_are_drawn_by_the_seed(models):
    options = {"lengths": [1, 2], "positions": 5}
    first = by_context(models["two"], TEST, **options, seed=1)
    assert first == by_context(models["two"], TEST, **options, seed=1)
    assert first != by_context(models["two"], TEST, **options, seed=2)


def test_bad_contexts(models):
    with pytest.raises(ConfigError, match=r"at least 1, got \[0\] and 1000"):
        by_context(models["two"], TEST, [0])
    with pytest.raises(DataError, match="a context of 99 tokens needs a longer text"):
        by_context(models["two"], TEST, [99])


# -- pictures ------------------------------------------------------------------------------------


def texts_of(figure):
    return {text.get_text() for text in figure.findobj(lambda o: hasattr(o, "get_text"))}


def test_a_table_that_is_drawn(tmp_path):
    rows = {"five grams": (120.0, 120.0, 120.0), "LSTM": (150.0, 140.0, 161.0)}
    figure = interval_table(
        rows, columns={"parameters": ["480 k", "1.2 M"]}, label="perplexity", title="Models"
    )
    (axes,) = figure.axes
    assert {"five grams", "LSTM", "480 k", "1.2 M", "parameters", "Models"} <= texts_of(figure)
    lines = [line.get_xydata().tolist() for line in axes.lines]
    assert [[140.0, 1.0], [161.0, 1.0]] in lines and [[150.0, 1.0]] in lines
    low, high = axes.get_xlim()
    assert low < 120 and high > 161 and axes.get_xscale() == "log"
    for suffix in ("png", "svg"):
        assert save(figure, tmp_path / f"a.{suffix}").stat().st_size > 1000
    assert interval_table({"alone": (1.0, 1.0, 1.0)}).axes


def test_curves_of_contexts(tmp_path):
    figure = context_curves({"a": {1: 9.0, 4: 5.0, None: 4.0}, "b": {1: 8.0, 2: 7.0}}, label="p")
    (axes,) = figure.axes
    assert [line.get_xydata().tolist() for line in axes.lines] == [
        [[0, 9.0], [2, 5.0], [3, 4.0]],
        [[0, 8.0], [1, 7.0]],
    ]
    assert {"1", "2", "4", "all"} <= texts_of(figure)
    save(figure, tmp_path / "a.png")


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: interval_table({}), ConfigError, "at least one row"),
        (lambda: interval_table({"a": (1, 0, 2)}), ConfigError, "'a' must have positive, finite"),
        (lambda: interval_table({"a": (1, 1, math.inf)}), ConfigError, "inf"),
        (
            lambda: interval_table({"a": (1, 1, 1)}, columns={"c": []}),
            ShapeError,
            "'c' must have 1 entries, got 0",
        ),
        (lambda: context_curves({}), ConfigError, "at least one line"),
        (lambda: context_curves({"a": {1: math.nan}}), ConfigError, "got nan at 1"),
    ],
)
def test_bad_pictures(draw, error, message):
    with pytest.raises(error, match=message):
        draw()


# -- the command line ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory, models):
    place = tmp_path_factory.mktemp("league")
    (place / "train.txt").write_text("\n".join(TEXTS))
    (place / "test.txt").write_text("\n".join(TEST * 5))
    (place / "few.txt").write_text("\n".join(TEST[:3]))
    models["two"].save(place / "two")
    counted(2, reverse=True).fit(TEXTS).save(place / "right")
    models["net"].save(place / "net")
    return place


def test_compare_fits_and_loads(folder):
    out = folder / "out"
    result = start_command(
        *("compare", folder / "two", "ngram:order=1,smoothing=add-one", "nnlm:hidden_size=4"),
        *("--train", folder / "train.txt", "--data", folder / "test.txt", "--out", out),
        *("--set", "text.unit=space", "--set", "training.max_steps=2", "--resamples", 50),
        "--json",
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found == json.loads((out / "league.json").read_text())
    names = [row["name"] for row in found["league"]]
    assert names[0] == str(folder / "two") and len(names) == 3
    assert found["contexts"].keys() == set(names)
    assert list(found["contexts"][names[0]]) == ["1", "2", "4", "8", "16", "32", "all"]
    kept = LanguageModel.load(out / "models" / "ngram:order=1,smoothing=add-one")
    row = next(r for r in found["league"] if r["name"].startswith("ngram"))
    said = kept.evaluate(folder / "test.txt")
    assert row["word_perplexity"] == pytest.approx(said["perplexity"])
    for name in ("league.png", "league.svg", "contexts.png", "contexts.svg"):
        assert (out / name).stat().st_size > 1000
    again = call_command("compare", folder / "two", "--data", folder / "test.txt", "--out", out)
    assert again.returncode == 1 and "exists already" in again.stderr


def test_compare_prints_a_table_also_of_what_cannot_happen(folder):
    (folder / "sure.toml").write_text(
        f"""
task = "lm"
arch = "ngram"
text = {{unit = "space"}}
[data]
train = "{folder / "train.txt"}"
[model]
order = 3
smoothing = "maximum-likelihood"
"""
    )
    names = [folder / "two", folder / "sure.toml"]
    out = folder / "sure"
    wide = call_command("compare", *names, "--data", folder / "few.txt", "--out", out, "--json")
    assert wide.returncode == 0, wide.stderr
    best, last = json.loads(wide.stdout)["league"]
    assert best["name"].endswith("two") and last["word_perplexity"] is None
    assert list(json.loads(wide.stdout)["contexts"][best["name"]]) == ["1", "2", "4", "8", "all"]
    assert (out / "league.png").exists() and (out / "contexts.png").exists()
    result = call_command("compare", folder / "two", folder / "net", "--data", folder / "test.txt")
    assert result.returncode == 0, result.stderr
    assert "perplexity a word" in result.stdout and "best" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ngran"], 1, "did you mean 'ngram'"),
        (["ngram"], 2, "give a text"),
        (["ngram:ordr=3", "--train", "train.txt"], 1, "did you mean 'order'"),
        (["two", "two"], 2, "named twice"),
    ],
)
def test_what_compare_refuses(arguments, code, message, folder):
    result = call_command("compare", *arguments, "--data", "test.txt", cwd=folder)
    assert result.returncode == code, result.stderr
    assert message in result.stderr


def test_mix_and_cache_make_models(folder, tmp_path):
    mixed = call_command(
        *("mix", folder / "two", folder / "net", "--heldout", folder / "test.txt"),
        *("--out", tmp_path / "mixed", "--json"),
    )
    assert mixed.returncode == 0, mixed.stderr
    rows = json.loads(mixed.stdout)
    assert sum(row["weight"] for row in rows) == pytest.approx(1)
    assert "perplexity on" in mixed.stderr
    cached = call_command(
        *("cache", folder / "net", "--heldout", folder / "test.txt", "--size", 20),
        *("--out", tmp_path / "cached", "--json"),
    )
    assert cached.returncode == 0, cached.stderr
    found = {row["what"]: row["value"] for row in json.loads(cached.stdout)}
    assert found["size"] == 20 and 0 <= found["share"] < 1
    for name in ("mixed", "cached"):
        scored = call_command("score", tmp_path / name, "--json", input="the cat\n")
        model = LanguageModel.load(tmp_path / name)
        expected = model.score("the cat").total
        assert json.loads(scored.stdout)["log_prob"] == pytest.approx(expected)
    refused = call_command(
        *("mix", folder / "two", folder / "right", "--heldout", folder / "test.txt"),
        *("--out", tmp_path / "no"),
    )
    assert refused.returncode == 1 and "reverse=False and reverse=True" in refused.stderr
    assert not (tmp_path / "no").exists()


def test_fill_and_rescore(folder, models):
    filled = call_command(
        "fill", folder / "two", "the ___ sat", "-k", 2, "--right", folder / "right", "--json"
    )
    assert filled.returncode == 0, filled.stderr
    found = [json.loads(line) for line in filled.stdout.splitlines()]
    right = LanguageModel.load(folder / "right")
    expected = models["two"].fill("the ___ sat", 2, right=right)
    assert [each["word"] for each in found] == [each.word for each in expected]
    lists = "u1\t-1.0\ta mat the\nu1\t-1.5\tthe cat sat\n\nu2\t-3\tthe dog\n"
    scored = call_command("rescore", folder / "two", "--json", "--weight", 2, input=lists)
    assert scored.returncode == 0, scored.stderr
    rows = [json.loads(line) for line in scored.stdout.splitlines()]
    assert [(row["list"], row["text"]) for row in rows] == [
        ("u1", "the cat sat"),
        ("u1", "a mat the"),
        ("u2", "the dog"),
    ]
    total = -1.5 + 2 * models["two"].score("the cat sat").total
    assert rows[0]["total"] == pytest.approx(total)
    best = call_command("rescore", folder / "two", "--best", input=lists)
    assert len(best.stdout.splitlines()) == 3  # a heading and two lists
    bad = call_command("rescore", folder / "two", input="u1 -1.0 a mat\n")
    assert bad.returncode == 1 and "-:1" in bad.stderr and "set apart by tabs" in bad.stderr


def test_generate_takes_the_ways_to_write(folder, models):
    beam = call_command("generate", folder / "two", "the", "--beam", 3, "--length-penalty", 0.6)
    assert beam.stdout.strip() == models["two"].generate("the", beam=3, length_penalty=0.6)
    drawn = call_command(
        "generate", folder / "two", "the", "--top-p", 0.5, "--seed", 4, "--no-repeat", 2
    )
    assert drawn.stdout.strip() == models["two"].generate("the", top_p=0.5, seed=4, no_repeat=2)
    assert call_command("generate", folder / "two", "--beam", 0).returncode == 1
