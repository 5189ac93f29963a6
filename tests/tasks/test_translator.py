"""Translators: what they learn, how they are searched, what they refuse."""

from __future__ import annotations

import copy
import itertools
import json
import os
import signal

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import seqloom
from seqloom import Translator
from seqloom.cli import app
from seqloom.data.examples import TextPair
from seqloom.errors import BackendError, ConfigError, InputError, StoppedError
from seqloom.metrics import translation
from seqloom.tasks.seq2seq_objective import PairBatch, PairGoal, Seq2SeqObjective
from seqloom.tasks.seq2seq_text import Pair

WORDS = "red green blue grey pink".split()
SENTENCES = [" ".join(each) for each in itertools.permutations(WORDS, 4)][::20]
PAIRS = [(each, " ".join(reversed(each.split())).upper()) for each in SENTENCES]
TARGETS = [target for _, target in PAIRS]
SPACE = {"text": {"unit": "space"}}
QUICK = {
    "epochs": 120,
    "batch": {"batch_size": 6},
    "device": "cpu",
    "optimizer": {"rate": 0.01},
    "evaluate_every": 120,
}
MODELS = {
    "additive": ("seq2seq", {"embed_size": 12, "hidden_size": 24}),
    "no attention": ("seq2seq", {"embed_size": 12, "hidden_size": 24, "attention": "none"}),
    "pointer": ("pointer", {"embed_size": 12, "hidden_size": 24}),
    "transformer": (
        "transformer",
        {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "dropout": 0.0, "tied": False},
    ),
}
LONGER = {
    "pointer": {"optimizer": {"rate": 0.02}},
    "transformer": {"schedule": {"name": "constant"}, "epochs": 160},
}


def small(name, task=Translator, **changes):
    arch, options = MODELS[name]
    training = {**QUICK, **LONGER.get(name, {}), **changes.pop("training", {})}
    return task(arch, **{"training": training, **SPACE, **options, **changes})


@pytest.fixture(scope="module")
def models():
    return {name: small(name).fit(PAIRS, valid=PAIRS) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_a_few_sentences_are_learned_by_heart(name, models):
    found = models[name].translate(SENTENCES)
    assert [each.text for each in found] == TARGETS
    measured = models[name].evaluate(PAIRS)
    assert measured["bleu"] == pytest.approx(100)
    assert measured["accuracy"] == 1
    assert measured["perplexity"] == pytest.approx(models[name].metrics_["valid_perplexity"])
    assert measured["bleu_signature"].startswith("nrefs:1|case:mixed")


def test_perplexity_is_that_of_the_scores(models):
    model = models["additive"]
    total = sum(model.score(*pair) for pair in PAIRS)
    words = sum(len(target.split()) + 1 for _, target in PAIRS)
    assert model.evaluate(PAIRS)["perplexity"] == pytest.approx(np.exp(-total / words), rel=1e-4)


def test_attention_is_where_each_word_looked(models):
    source, target = PAIRS[0]
    found = models["pointer"].translate(source, attention=True)
    assert found.source == (*source.split(), "</s>")
    assert found.words == tuple(target.split())
    assert found.attention.shape == (4, 5)
    np.testing.assert_allclose(found.attention.sum(axis=1), 1, rtol=1e-5)


# -- text, vectors, saving -------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_pieces_are_learned_on_both_sides(shared, tmp_path):
    model = small(
        "transformer",
        text={"unit": "subword"},
        vocabulary={"pieces": 300, "shared": shared},
        training={"epochs": 1},
    ).fit([TextPair(*pair) for pair in PAIRS])
    assert model.model_.config.shared is shared
    text = model.text_
    assert len(text.target_vocabulary) <= 300
    assert (text.source is text.target) is shared
    loaded = seqloom.load(model.save(tmp_path / "model"))
    sources = [*SENTENCES, "never seen: 你好 🙂"]
    assert [e.text for e in loaded.translate(sources)] == [e.text for e in model.translate(sources)]


@pytest.mark.parametrize("name", ["additive", "pointer", "transformer"])
def test_saving_and_loading_changes_nothing(name, models, tmp_path):
    model = models[name]
    loaded = Translator.load(model.save(tmp_path / "model"))
    for source, target in PAIRS[:3]:
        assert loaded.score(source, target) == model.score(source, target)
        assert loaded.translate(source).score == model.translate(source).score
    assert loaded.get_params()["arch"] == model.arch
    again = loaded.save(tmp_path / "again")
    for file in sorted(path.name for path in again.iterdir()):
        assert (again / file).read_bytes() == (tmp_path / "model" / file).read_bytes()


@pytest.mark.parametrize(("name", "other"), [("additive", "pointer"), ("pointer", "transformer")])
def test_another_architecture_waits_for_the_next_fit(name, other, models, tmp_path):
    model = copy.deepcopy(models[name]).set_params(arch=other)
    loaded = Translator.load(model.save(tmp_path / "model"))
    assert loaded.arch == models[name].arch
    for source, target in PAIRS[:3]:
        wanted = models[name].score(source, target)
        assert model.score(source, target) == loaded.score(source, target) == wanted


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(tmp_path):
    training = {"epochs": 3, "batch": {"batch_size": 2}, "log_every": 1, "evaluate_every": None}
    options = {"training": training, "dropout": 0.2, "own_words": 0.5, "own_words_epochs": 2}

    def stop(report):
        if report.step == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    whole = small("additive", **options).fit(PAIRS, valid=PAIRS, out=tmp_path / "whole")
    with pytest.raises(StoppedError, match="stopped by SIGTERM at update 4"):
        small("additive", **options).fit(PAIRS, valid=PAIRS, out=tmp_path / "cut", callbacks=[stop])
    again = small("additive", **options)
    again.fit(PAIRS, valid=PAIRS, out=tmp_path / "cut", resume=True)
    assert again.metrics_ == whole.metrics_
    for name, weight in whole.model_.state_dict().items():
        assert torch.equal(again.model_.state_dict()[name], weight), name


def test_vectors_as_a_source():
    chance = np.random.default_rng(0)
    table = chance.normal(size=(4, 3)) * 50 + 100
    numbers = [chance.integers(0, 4, size=n).tolist() for n in (2, 3, 4) for _ in range(12)]
    pairs = [(table[each], " ".join(f"n{i}" for i in each)) for each in numbers]
    model = small("additive", training={"epochs": 25}).fit(pairs)
    found = model.translate([source for source, _ in pairs[:6]], attention=True)
    assert [each.text for each in found] == [target for _, target in pairs[:6]]
    assert found[0].source == ()
    with pytest.raises(ConfigError, match="copies words of a source, got vectors, which have none"):
        model.translate([table[:2]], replace_unknown=True)
    with pytest.raises(InputError, match=r"source 1 must be vectors of shape \(S, D\).*got str"):
        model.translate([table[:2], "words"])
    for odd, shown in (([["a", "b", "c"]], "'a'"), ([[1.0, 2.0], [1.0]], r"\[1\.0\]")):
        with pytest.raises(InputError, match=rf"source 0 must be vectors of .*got.*{shown}"):
            model.translate([odd])
    with pytest.raises(InputError, match=r"source 0 must be vectors of .*got ndarray"):
        model.translate([table[:2] * 1j])
    with pytest.raises(InputError, match="source 0 must hold numbers, got NaN"):
        model.translate([table[:2] * np.nan])


def test_own_words_are_fed_as_the_schedule_says(models, monkeypatch):
    model = models["additive"]
    data = model.text_.encode([Pair(*pair) for pair in PAIRS])
    goal = PairGoal(own_words=1.0, own_words_epochs=4)
    objective = Seq2SeqObjective(data, None, model.build_training().batch, goal)
    for epoch, share in ((0, 0.0), (1, 0.25), (4, 1.0), (9, 1.0)):
        batch = next(iter(objective.batches(epoch, 0, rank=0, world_size=1)))
        assert objective.share == share
    given = PairBatch.of(batch.tensors())
    memory = model.model_.encode(given.source, given.lengths)
    # The model knows these by heart, so that its own words are the true ones: take others.
    wrong = torch.zeros(*given.inputs.shape, len(model.text_.target_vocabulary))
    wrong[..., 7] = 1.0
    monkeypatch.setattr(model.model_.output, "log_probs", lambda output, memory: wrong)
    mixed = objective._mixed(model.model_, given, memory)
    assert (mixed[:, 0] == given.inputs[:, 0]).all()
    assert (mixed[:, 1:] == 7).all()


def test_two_passes_cost_their_mean_and_how_far_they_are_apart(models, monkeypatch):
    """Against torch's own divergence, with the scores of the two passes given."""
    model = models["additive"]
    data = model.text_.encode([Pair(*pair) for pair in PAIRS])
    sizes = model.build_training().batch
    batch = next(iter(Seq2SeqObjective(data, None, sizes, PairGoal()).plan.batches(data, 0)))
    batch = batch.tensors()
    given = PairBatch.of(batch)
    rows, items = given.targets.shape
    words = len(model.text_.target_vocabulary)
    scores = torch.randn(
        2 * rows, items, words, generator=torch.Generator().manual_seed(3)
    ).double()
    logs = scores.log_softmax(dim=-1)

    def cross_entropy(output, memory, targets, real, smoothing):
        assert len(targets) == 2 * rows and smoothing == 0.2
        return -logs.gather(2, targets[..., None])[..., 0][real].sum()

    monkeypatch.setattr(model.model_.output, "log_probs", lambda output, memory: logs)
    monkeypatch.setattr(model.model_.output, "loss", cross_entropy)
    goal = PairGoal(consistency=0.7, label_smoothing=0.2)
    found = Seq2SeqObjective(data, None, sizes, goal).loss(model.model_, batch)
    first, second = logs[:rows][given.real], logs[rows:][given.real]
    target = given.targets[given.real]
    plain = sum(torch.nn.functional.nll_loss(each, target, reduction="sum")
                for each in (first, second))  # fmt: skip
    apart = sum(torch.nn.functional.kl_div(a, b, log_target=True, reduction="sum")
                for a, b in ((first, second), (second, first)))  # fmt: skip
    torch.testing.assert_close(found.total, plain / 2 + 0.7 * apart / 2)
    assert found.items == given.items


def test_two_passes_without_dropout_are_one(models):
    model = models["additive"]
    model.model_.eval()
    data = model.text_.encode([Pair(*pair) for pair in PAIRS])
    sizes = model.build_training().batch
    once, twice = (Seq2SeqObjective(data, None, sizes, PairGoal(consistency=c)) for c in (0.0, 5.0))
    batch = next(iter(once.plan.batches(data, 0))).tensors()
    torch.testing.assert_close(
        once.loss(model.model_, batch).total, twice.loss(model.model_, batch).total
    )


def test_words_of_one_source_have_ids_of_their_own():
    """By hand: specials are 0 to 3, then words by falling count and spelling."""
    model = small("pointer", vocabulary={"min_count": 2}, training={"epochs": 1})
    text = model.fit([("a a b", "x a"), ("b c", "x y"), ("b d", "a y")]).text_
    assert text.source_vocabulary.words[4:] == ("b", "a")
    assert text.target_vocabulary.words[4:] == ("a", "x", "y")
    read = text.read("d a c b d")
    assert read.words == ("d", "a", "c", "b", "d", "</s>")
    assert read.items.tolist() == [1, 5, 1, 4, 1, 3]
    assert read.copies.tolist() == [7, 4, 8, 9, 7, 3]
    assert read.extra == ("d", "c", "b")
    assert text.target_ids("x d b zebra", read).tolist() == [2, 5, 7, 9, 1, 3]
    assert text.words([5, 7, 9], read) == ["x", "d", "b"]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam and batch_size must be at least 1, got 0"),
        ({"beem": 3}, "unknown option of a search 'beem'; did you mean 'beam'"),
        ({"n_best": 9}, "between 1 and beam=5, got 9"),
        ({"temperature": 1.0, "n_best": 2}, "belong to a search, got temperature=1.0"),
        ({"top_k": 3}, "belong to drawing by chance, got temperature=0"),
        ({"lm_weight": 0.5}, "lm_weight=0.5 needs a language_model"),
        ({"beam": 2.5}, "'beam' must be a whole number, got 2.5"),
        ({"beam": "5"}, "'beam' must be a whole number, got '5'"),
        ({"max_length": 2.5}, "'max_length' must be a whole number, got 2.5"),
        ({"seed": None}, "'seed' must be a whole number, got None"),
        ({"prefix": None}, "'prefix' must be text, got None"),
        ({"attention": "yes"}, "'attention' must be true or false, got 'yes'"),
        (
            {"coverage_penalty": np.nan},
            "coverage_penalty must not be negative or infinite, got nan",
        ),
        ({"length_penalty": np.inf}, "length_penalty must not be negative or infinite, got inf"),
        ({"lm_weight": np.nan}, "lm_weight must not be negative or infinite, got nan"),
        ({"no_repeat": -2}, "no_repeat must not be negative, got -2"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"max_length": 3, "min_length": 4}, "between 0 and max_length=3, got 4"),
        ({"min_length": -1}, "between 0 and max_length=None, got -1"),
        (
            {"max_length": 3, "prefix": "RED RED RED RED"},
            "must fit into max_length=3, got one of 4",
        ),
    ],
)
def test_bad_searches_are_refused(models, options, message):
    with pytest.raises(ConfigError, match=message):
        models["additive"].translate("red", **options)


def test_options_of_a_search_may_be_numbers_of_numpy(models):
    options = {"beam": np.int64(2), "seed": np.int64(3), "temperature": np.float32(0.5)}
    assert models["additive"].translate("red", **options).words is not None


def test_what_is_no_source_target_or_pair_is_refused(models):
    model = models["additive"]
    with pytest.raises(InputError, match="must be a text or several sources, got NoneType"):
        model.translate(None)
    with pytest.raises(InputError, match="a target must be a text, got NoneType"):
        model.score("red", None)
    with pytest.raises(InputError, match="the name of a data set or tuples, got NoneType"):
        model.fit(None)
    with pytest.raises(InputError, match="the name of a data set or tuples, got int"):
        model.evaluate(5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_source": "abc"}, "'max_source' must be a whole number, got 'abc'"),
        ({"max_source": 1.5}, "'max_source' must be a whole number, got 1.5"),
        ({"label_smoothing": "abc"}, "'label_smoothing' must be a number, got 'abc'"),
        ({"own_words_epochs": 1.5}, "'own_words_epochs' must be a whole number, got 1.5"),
        ({"consistency": np.nan}, "consistency must not be negative or infinite, got nan"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        small("additive", **options).fit(PAIRS)


@pytest.mark.parametrize(
    ("arch", "options", "message"),
    [
        (
            "additive",
            {"consistency": -1.0},
            "consistency must not be negative or infinite, got -1.0",
        ),
        ("additive", {"consistency": 1.0, "own_words": 0.5}, "set one of them to 0, got 1.0 and"),
        ("pointer", {"consistency": 1.0}, "which a pointer has not; set it to 0, got 1.0"),
    ],
)
def test_two_passes_that_cannot_be_compared_are_refused(arch, options, message):
    with pytest.raises(ConfigError, match=message):
        small(arch, **options).fit(PAIRS)


def test_bad_sources_are_refused_and_odd_ones_are_translated(models):
    model = models["additive"]
    for empty in ("", "   "):
        with pytest.raises(InputError, match="source 1 must hold a word"):
            model.translate(["red", empty])
    with pytest.raises(InputError, match="source 0 must be a text, got ndarray"):
        model.translate([np.zeros((2, 2))])
    odd = model.translate(["zebra yak", "red " * 300], beam=2)  # unknown symbols only; very long
    assert all(len(each.words) <= 20 + 2 * 301 for each in odd)
    # A beam wider than the vocabulary keeps what there is.
    assert model.translate("red green blue", beam=50).words


def test_a_long_source_is_cut_where_the_setting_says():
    model = small("additive", max_source=2, training={"epochs": 1}).fit(PAIRS)
    found = model.translate(["red green blue", "red green"])
    assert [each.cut for each in found] == [True, False]
    assert found[0].source == found[1].source == ("red", "green", "</s>")
    assert found[0].score == found[1].score


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "at least one pair, got none"),
        ([("a", "b"), "c"], "pair 1 must be a TextPair or a tuple.*got str"),
        ([("a", "b"), ("c", " ")], "pair 1 must have two sides, got an empty one"),
    ],
)
def test_bad_pairs_are_refused(pairs, message):
    with pytest.raises(InputError, match=message):
        small("additive").fit(pairs)


def test_contradicting_settings_are_refused():
    with pytest.raises(ConfigError, match="need validation data, got valid=None"):
        small("additive", training={"patience": 2}).fit(PAIRS)
    with pytest.raises(ConfigError, match=r"got units.*set vocabulary\.shared=true"):
        small("pointer", text={"unit": "subword"}).fit(PAIRS)
    with pytest.raises(ConfigError, match="text and target_text that differ"):
        small("additive", target_text={"unit": "character"}, vocabulary={"shared": True}).fit(PAIRS)
    with pytest.raises(ConfigError, match="need a model with attention"):
        small("no attention", training={"epochs": 1}).fit(PAIRS).translate("red", attention=True)


# -- figures and the command line -------------------------------------------------------


def test_bleu_and_chrf_by_hand():
    """One sentence: 3 of 4 words, 2 of 3 pairs, 1 of 2 triples, no run of four."""
    found = translation.bleu(["a b c d e"], ["a b c x e"], tokenize="none")
    runs = [4 / 5, 2 / 4, 1 / 3, 1 / 2 / 2]  # sacrebleu's "exp": none of 2 counts as half a run
    assert found.score == pytest.approx(100 * float(np.prod(runs)) ** 0.25)
    assert "tok:none" in found.signature
    assert translation.bleu(["A B C D"], ["a b c d"], lowercase=True).score == pytest.approx(100)
    assert translation.chrf(["abc"], ["abc"]).score == pytest.approx(100)
    with pytest.raises(seqloom.errors.ShapeError, match="got 1 for 2"):
        translation.bleu(["a", "b"], ["a"])


def test_without_sacrebleu_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(BackendError, match=r"pip install 'seqloom\[translation\]'"):
        translation.bleu(["a"], ["a"])


def test_the_command_line_translates(models, tmp_path):
    place = models["additive"].save(tmp_path / "model")
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(SENTENCES[:3]))
    runner = CliRunner()
    found = runner.invoke(app, ["translate", str(place), str(lines)])
    assert found.stdout.splitlines() == TARGETS[:3]
    lines.write_text(f"\n{SENTENCES[0]}\n  \n{SENTENCES[1]}\n\n")
    found = runner.invoke(app, ["translate", str(place), str(lines)])
    assert found.stdout.splitlines() == ["", TARGETS[0], "", TARGETS[1], ""]
    found = runner.invoke(app, ["translate", str(place), str(lines), "--json"])
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["text"] for row in rows] == ["", TARGETS[0], "", TARGETS[1], ""]
    lines.write_text("\n".join(SENTENCES[:3]))
    picture = tmp_path / "attention.png"
    options = ["--n-best", "2", "--json", "--attention", str(picture)]
    found = runner.invoke(app, ["translate", str(place), str(lines), *options])
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["text"] for row in rows] == TARGETS[:3]
    assert all(len(row["others"]) == 1 for row in rows)
    assert picture.stat().st_size > 1000


def test_the_command_line_says_how_many_lines_were_cut(tmp_path):
    model = small("additive", max_source=2, training={"epochs": 1}).fit(PAIRS)
    place = model.save(tmp_path / "model")
    lines = tmp_path / "lines.txt"
    lines.write_text("a b\na b a b\n")
    found = CliRunner().invoke(app, ["translate", str(place), str(lines)])
    assert found.exit_code == 0
    assert "1 of 2 lines were longer than the model reads" in found.stderr
