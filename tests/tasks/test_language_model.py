"""The language model as people use it: fit, score, evaluate, generate, save and load."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import seqloom
from seqloom import LanguageModel
from seqloom.data import PrepareConfig, Text, prepare
from seqloom.data.prepared import PreparedData
from seqloom.errors import (
    BackendError,
    ConfigError,
    DataError,
    NotFittedError,
    SeqloomError,
    StoppedError,
    TrainingError,
)
from seqloom.nn import Cell, State, sigmoid, tanh
from seqloom.nn.cells import CELLS
from seqloom.tasks import language_objective
from seqloom.text import SubwordTokenizer, TextConfig, words
from seqloom.text.vocabulary import Specials
from seqloom.training import STOP, TrainConfig
from seqloom.training.state import RunState

TEXTS = ["the cat sat on the mat", "a dog ran", "the bird saw a fish", "a cat ate the fish"] * 4
VALID = ["the dog sat", "a fish ran"]
QUICK = {"epochs": 1, "batch": {"batch_size": 2}, "device": "cpu", "optimizer": {"rate": 0.02}}


def small(arch="rnn", **options):
    training = QUICK | options.pop("training", {})
    sizes = {"hidden_size": 6} | ({"num_layers": 1} if arch != "nnlm" else {"embed_size": 4})
    return LanguageModel(arch, window=5, training=training, **(sizes | options))


@pytest.fixture(scope="module")
def model():
    return small(training={"epochs": 5}).fit(TEXTS)


# -- scores --------------------------------------------------------------------------------------


def by_hand(model, texts):
    """Log-probabilities of the words of a stream of texts, with numpy from the weights alone."""
    weights = {k: v.double().numpy() for k, v in model.model_.state_dict().items()}
    words = [word for text in texts for word in [*text.split(), "</s>"]]
    ids = [model.vocabulary_[word] for word in words]
    h = np.zeros(weights["rnn.weight_hh_l0"].shape[0])
    last, found = model.vocabulary_["</s>"], []
    for id_ in ids:
        x = weights["embedding.weight"][last]
        h = np.tanh(
            weights["rnn.weight_ih_l0"] @ x
            + weights["rnn.bias_ih_l0"]
            + weights["rnn.weight_hh_l0"] @ h
            + weights["rnn.bias_hh_l0"]
        )
        logits = weights["output.weight"] @ h + weights["output.bias"]
        found.append(logits[id_] - np.log(np.exp(logits).sum()))
        last = id_
    return np.array(found)


def test_scores_equal_a_hand_computation(model):
    for text in ("the cat sat", "a dog", "fish fish fish on the mat", ""):
        score = model.score(text)
        assert score.words == (*text.split(), "</s>")
        np.testing.assert_allclose(score.log_probs, by_hand(model, [text]), rtol=1e-5, atol=1e-6)
        assert score.total == pytest.approx(sum(score.log_probs))
        assert score.perplexity == pytest.approx(math.exp(-score.total / len(score.words)))


def test_evaluation_is_the_perplexity_of_the_whole_stream(model):
    expected = by_hand(model, TEXTS)
    found = model.evaluate(TEXTS)
    assert found["tokens"] == len(expected)
    assert found["loss"] == pytest.approx(-expected.mean(), rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(-expected.mean()), rel=1e-5)
    assert found["unknown"] == 0


@pytest.mark.parametrize("arch", ["nnlm", "rnn", "lstm"])
def test_a_stream_longer_than_a_window_is_read_to_its_end(arch, monkeypatch):
    fitted = small(arch).fit(TEXTS)
    whole = fitted.evaluate(TEXTS)
    monkeypatch.setattr("seqloom.tasks.neural_language.EVALUATION_WINDOW", 7)
    assert fitted.evaluate(TEXTS) == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize("arch", ["nnlm", "rnn", "lstm"])
def test_a_batch_scores_as_each_alone(arch):
    fitted = small(arch).fit(TEXTS)
    texts = [*TEXTS[:4], "", "zebra", "the"] * 11  # more than one piece of 64
    together = fitted.score(texts)
    assert [score.text for score in together] == texts
    for text, score in zip(texts, together, strict=True):
        alone = fitted.score(text)
        assert score.words == alone.words and score.unknown == alone.unknown
        np.testing.assert_allclose(score.log_probs, alone.log_probs, rtol=1e-5, atol=1e-6)
    assert fitted.score([]) == []


def test_unknown_words_are_marked(model):
    score = model.score("zebra cat xylophone")
    assert score.unknown == (True, False, True, False)
    assert score.words == ("zebra", "cat", "xylophone", "</s>")
    found = model.evaluate(["zebra yak"])
    assert found["unknown"] == pytest.approx(2 / 3) and math.isfinite(found["perplexity"])


def test_probabilities_of_all_words_sum_to_one(model):
    total = sum(math.exp(model.score(word).log_probs[0]) for word in ["the", "a", "cat", "dog"])
    assert 0 < total < 1


def test_training_helps():
    before = small().fit(TEXTS).evaluate(TEXTS)["perplexity"]
    after = small(training={"epochs": 15}).fit(TEXTS).evaluate(TEXTS)["perplexity"]
    assert after < before - 1


# -- generation ----------------------------------------------------------------------------------


def test_no_temperature_is_the_likeliest_word_every_time(model):
    text = model.generate("the", temperature=0, max_words=1)
    word = text.split()[-1] if text != "the" else "</s>"
    ids = range(len(model.vocabulary_))
    names = [w for w in model.vocabulary_.decode(ids) if w not in ("<pad>", "<unk>", "<s>")]
    chances = {
        w: by_hand(model, ["the"])[1] if w == "</s>" else by_hand(model, [f"the {w}"])[1]
        for w in names
    }
    assert word == max(chances, key=chances.get)
    assert model.generate(temperature=0, seed=1) == model.generate(temperature=0, seed=2)


def test_same_seed_same_text_and_global_chance_is_left_alone(model):
    before = torch.get_rng_state()
    drawn = [model.generate(seed=seed) for seed in range(12)]
    assert drawn == [model.generate(seed=seed) for seed in range(12)]
    assert len(set(drawn)) > 1
    assert torch.equal(torch.get_rng_state(), before)


def test_specials_are_never_generated():
    """Not even by a model that wants nothing else."""
    fitted = small().fit(TEXTS)
    vocabulary = fitted.vocabulary_
    with torch.no_grad():
        for word in ("<pad>", "<unk>", "<s>"):
            fitted.model_.output.bias[vocabulary[word]] += 50
    for seed in range(20):
        text = fitted.generate("the", seed=seed, max_words=8)
        assert not re.search("<|>", text)


def test_max_words_and_the_prompt(model):
    with torch.no_grad():
        kept = model.model_.output.bias.clone()
        model.model_.output.bias[model.vocabulary_["</s>"]] -= 100
        try:
            text = model.generate("the cat", max_words=7)
            free = model.generate(max_words=3)
        finally:
            model.model_.output.bias.copy_(kept)
    assert text.startswith("the cat ") and len(text.split()) == 9
    assert len(free.split()) == 3


def test_a_prompt_of_unknown_words_stays_as_it_is(model):
    assert model.generate("Zebra yak", temperature=0).startswith("Zebra yak")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_words": 0}, "max_words must be a whole number of at least 1, got 0"),
        ({"temperature": -0.5}, "temperature must be a number not below 0, got -0.5"),
        ({"top_k": -1}, "top_k must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_ways_to_generate(options, message, model):
    with pytest.raises(ConfigError, match=message):
        model.generate(**options)


def test_chinese_characters(tmp_path):
    texts = ["我爱北京", "北京很大", "我爱你"] * 6
    fitted = small(text={"unit": "character"}, training={"epochs": 4}).fit(texts)
    assert fitted.score("我爱").words == ("我", "爱", "</s>")
    text = fitted.generate("我", max_words=5, seed=3)
    assert text.startswith("我") and " " not in text
    fitted.save(tmp_path / "m")
    assert seqloom.load(tmp_path / "m").score("北京") == fitted.score("北京")


def test_a_vocabulary_of_nothing_generates_nothing():
    fitted = small(vocabulary={"max_size": 0}).fit(TEXTS)
    assert fitted.generate() == ""
    assert fitted.evaluate(TEXTS)["unknown"] > 0.7


# -- fitting -------------------------------------------------------------------------------------


def test_a_list_a_file_and_prepared_data_are_the_same(tmp_path):
    (tmp_path / "train.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    data = prepare((Text(text) for text in TEXTS), tmp_path / "prepared", PrepareConfig())
    expected = small().fit(TEXTS).score("the cat")
    for source in (
        tmp_path / "train.txt",
        str(tmp_path / "train.txt"),
        tmp_path / "prepared",
        data,
        (Text(text) for text in TEXTS),
        iter(TEXTS),
    ):
        assert small().fit(source).score("the cat") == expected


def test_evaluation_takes_the_same_sources(tmp_path, model):
    (tmp_path / "x.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    train = prepare((Text(text) for text in TEXTS), tmp_path / "prepared", PrepareConfig())
    expected = model.evaluate(TEXTS)
    assert model.evaluate(tmp_path / "x.txt") == expected
    # Of prepared text the words and characters are not known any more.
    counted = {
        k: v for k, v in expected.items() if k not in ("word_perplexity", "bits_per_character")
    }
    for source in (tmp_path / "prepared", train):
        assert model.evaluate(source) == counted


def test_a_named_data_set(shared_data):
    fitted = small(training={"max_steps": 2}, vocabulary={"max_size": 50}).fit("ptb:valid")
    assert fitted.provenance_["train"] == "ptb:valid"


@pytest.fixture
def other(tmp_path) -> PreparedData:
    return prepare([Text("quite other words")], tmp_path / "other", PrepareConfig())


def test_data_of_another_vocabulary_is_refused(other, tmp_path, model):
    for valid in (other, tmp_path / "other"):
        with pytest.raises(DataError, match="prepared with the vocabulary of the training data"):
            small().fit(TEXTS, valid)
        with pytest.raises(DataError, match="prepared with the vocabulary of the training data"):
            model.evaluate(valid)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "at least one example"),
        (["a", 5], "text 1 must be a string or a Text, got 5"),
        ("no-such-file.txt", "no-such-file.txt"),
    ],
)
def test_bad_texts_are_refused_and_leave_nothing(source, message, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(SeqloomError, match=message):
        small().fit(source, out=out)
    assert not out.exists()
    small().fit(TEXTS, out=out)  # and the place is free


def test_nothing_to_evaluate(model):
    with pytest.raises(DataError, match="there must be a text to evaluate, got none"):
        model.evaluate([])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LanguageModel("lstn"), "architecture for task 'lm' 'lstn'; did you mean 'lstm'"),
        (lambda: LanguageModel(5), "architecture for task 'lm' 5"),
        (lambda: small(hiden_size=3), "'hiden_size'; did you mean 'hidden_size'"),
        (lambda: small(vocab_size=3), "option of architecture 'rnn' 'vocab_size'"),
        (lambda: small(cell="lstm"), "option of architecture 'rnn' 'cell'"),
        (lambda: small("recurrent", cell="lstn"), "unknown cell 'lstn'; did you mean 'lstm'"),
        (lambda: small("recurrent", cell=Leaky), "'cell' must be text, got .*Leaky"),
        (lambda: small("gru", zoneout=1.5), "zoneout must lie in .*got 1.5"),
        (lambda: small(hidden_size=-2), "hidden_size and num_layers must be positive.*-2"),
        (lambda: small(hidden_size="wide"), "'hidden_size' must be a whole number, got 'wide'"),
        (lambda: small(hidden_size=2.5), "'hidden_size' must be a whole number, got 2.5"),
        (lambda: small(tied=True, embed_size=3), "of the last layer, got 3 and 6"),
        (lambda: small(dropout=True), "'dropout' must be a number, got True"),
        (lambda: small(training={"epoch": 1}), "'training.epoch'; did you mean 'epochs'"),
        (lambda: small(training={"epochs": 0}), "training.epochs must be at least 1, got 0"),
        (lambda: small(text={"unt": "word"}), "'text.unt'; did you mean 'unit'"),
        (lambda: small(text={"unit": "charcter"}), "'text.unit'.*did you mean 'character'"),
        (lambda: small(vocabulary={"min_cont": 2}), "'min_cont'; did you mean 'min_count'"),
        (lambda: small(vocabulary={"min_count": 0}), "min_count must be at least 1, got 0"),
        (lambda: LanguageModel("rnn", window=0), "window must be a whole number.*got 0"),
        (lambda: LanguageModel("rnn", window="5"), "window must be a whole number.*got '5'"),
        (lambda: small(training={"patience": 2}), "need validation data, got valid=None"),
        (lambda: small(training={"schedule": {"name": "plateau"}}), "need validation data"),
    ],
)
def test_bad_settings_are_refused_and_leave_nothing(make, message, tmp_path):
    with pytest.raises(ConfigError, match=message) as caught:
        make().fit(TEXTS, out=tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_what_cannot_run_here_is_refused_before_text_is_read(tmp_path):
    def unread():
        pytest.fail("a text was read")
        yield

    with pytest.raises(BackendError, match="'fp16' needs a GPU"):
        small(training={"precision": "fp16"}).fit(unread(), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_global_chance_is_left_alone_and_does_not_matter():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = small(dropout=0.3).fit(TEXTS)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert small(dropout=0.3).fit(TEXTS).score("the") == first.score("the")
    other = small(dropout=0.3, training={"seed": 5}).fit(TEXTS)
    assert other.score("the") != first.score("the")


def test_validation_decides_and_is_remembered(tmp_path):
    fitted = small(training={"epochs": 3}).fit(TEXTS, VALID, tmp_path / "m")
    assert fitted.metrics_["valid_perplexity"] > 1
    best = json.loads((tmp_path / "m" / "seqloom.json").read_text())["metrics"]
    assert best == fitted.metrics_
    assert fitted.provenance_["epochs"] == 3
    assert fitted.provenance_["valid"] == "given in Python"
    assert not fitted.model_.training
    names = sorted(path.name for path in (tmp_path / "m" / "training").iterdir())
    assert names == [
        "best.safetensors",
        "last.safetensors",
        "learning-curve.png",
        "metrics.jsonl",
    ]


def test_a_training_config_and_callbacks():
    config = TrainConfig(epochs=9, device="cpu", log_every=1)
    fitted = LanguageModel("nnlm", training=config)
    fitted.fit(TEXTS, callbacks=[lambda report: STOP if report.step == 1 else None])
    assert fitted.provenance_["updates"] == 1


# -- runs that end badly -------------------------------------------------------------------------


def test_a_failed_fit_leaves_the_model_as_it_was(model):
    fitted = small().fit(TEXTS)
    before = fitted.score("the cat zebra")
    fitted.set_params(training__optimizer__rate=3e37)
    with pytest.raises(TrainingError):
        fitted.fit(["zebra yak emu"] * 50)
    assert fitted.score("the cat zebra") == before


def test_a_failed_fit_is_no_fit():
    fitted = small()
    with pytest.raises(DataError):
        fitted.fit([])
    with pytest.raises(NotFittedError, match="this LanguageModel has not been fitted; call fit"):
        fitted.score("the")
    with pytest.raises(NotFittedError):
        fitted.generate()
    with pytest.raises(NotFittedError):
        fitted.evaluate(TEXTS)
    with pytest.raises(NotFittedError):
        fitted.save("nowhere")


def strike(report):
    if report.step == 5:
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_stopped_fit_goes_on_in_the_same_place(tmp_path):
    training = {"epochs": 4, "log_every": 1}
    whole = small("lstm", dropout=0.2, training=training).fit(TEXTS, VALID, tmp_path / "whole")
    stopped = small("lstm", dropout=0.2, training=training)
    with pytest.raises(StoppedError, match=f"at update 5; all is kept in {tmp_path}/cut/training"):
        stopped.fit(TEXTS, VALID, tmp_path / "cut", callbacks=[strike])
    with pytest.raises(DataError, match="cut: holds a run that has not finished; resume it or"):
        stopped.fit(TEXTS, VALID, tmp_path / "cut")
    stopped.fit(TEXTS, VALID, tmp_path / "cut", resume=True)
    assert stopped.score(TEXTS) == whole.score(TEXTS)
    assert stopped.metrics_ == whole.metrics_


@pytest.mark.parametrize(
    ("options", "valid", "message"),
    [
        ({"dropout": 0.3}, VALID, "model.dropout was 0.2 and is 0.3"),
        ({"hidden_size": 7}, VALID, "model.hidden_size was 6 and is 7"),
        ({"training": {"epochs": 5}}, VALID, "training.epochs was 4 and is 5"),
        ({}, None, "valid_tokens was 8 and is None"),
    ],
)
def test_a_run_does_not_go_on_with_other_settings(options, valid, message, tmp_path):
    training = {"epochs": 4, "log_every": 1}
    place = tmp_path / "m"
    with pytest.raises(StoppedError):
        small(dropout=0.2, training=training).fit(TEXTS, VALID, place, callbacks=[strike])
    changed = {"dropout": 0.2} | options
    changed["training"] = training | options.get("training", {})
    with pytest.raises(ConfigError, match=message):
        small(**changed).fit(TEXTS, valid, place, resume=True)
    small(dropout=0.2, training=training).fit(TEXTS, VALID, place, resume=True)
    # Nor does a finished one, with other text.
    with pytest.raises(ConfigError, match="vocabulary was"):
        small(dropout=0.2, training=training).fit(["x y z"] * 9, VALID, place, resume=True)
    seqloom.load(place)


OTHER = [text.replace("bird", "dog").replace("a dog ran", "a bird ran") for text in TEXTS]


@pytest.mark.parametrize(
    ("options", "train", "valid", "message"),
    [
        ({}, OTHER, VALID, "with the text it began with, got another one as train"),
        ({}, TEXTS, VALID[::-1], "with the text it began with, got another one as valid"),
        ({"text": {"unit": "space"}}, TEXTS, VALID, "text.unit was 'word' and is 'space'"),
        ({"vocabulary": {"max_size": 3}}, TEXTS, VALID, "max_size was None and is 3"),
    ],
)
def test_a_run_does_not_go_on_with_other_text(options, train, valid, message, tmp_path):
    training, place = {"epochs": 4, "log_every": 1}, tmp_path / "m"
    whole = small(training=training).fit(TEXTS, VALID)
    with pytest.raises(StoppedError):
        small(training=training).fit(TEXTS, VALID, place, callbacks=[strike])
    with pytest.raises(ConfigError, match=message):
        small(training=training, **options).fit(train, valid, place, resume=True)
    path = tmp_path / "texts.txt"  # the same text from another place is no other text
    path.write_text("\n".join(TEXTS) + "\n")
    done = small(training=training).fit(path, iter(VALID), place, resume=True)
    assert done.score(TEXTS) == whole.score(TEXTS)
    with pytest.raises(ConfigError, match=r"content\.|max_size|text.unit|vocabulary was"):
        small(training=training, **options).fit(train, valid, place, resume=True)


def test_a_run_of_prepared_data_does_not_go_on_with_other_data(tmp_path):
    training, place = {"epochs": 4, "log_every": 1}, tmp_path / "m"
    data = prepare((Text(text) for text in TEXTS), tmp_path / "prepared")
    other = prepare((Text(text) for text in TEXTS[::-1]), tmp_path / "other", like=data)
    assert other.header.vocabularies == data.header.vocabularies
    with pytest.raises(StoppedError):
        small(training=training).fit(data, out=place, callbacks=[strike])
    for another in (other, TEXTS):
        with pytest.raises(ConfigError, match="got another one as train"):
            small(training=training).fit(another, out=place, resume=True)
    done = small(training=training).fit(tmp_path / "prepared", out=place, resume=True)
    assert done.score(TEXTS) == small(training=training).fit(data).score(TEXTS)


def test_a_run_that_noted_no_text_still_goes_on(tmp_path, monkeypatch):
    """Runs that were begun before texts were noted."""
    pack = RunState.pack

    def without_content(self, objective, **values):
        found = pack(self, objective, **values)
        known = {k: v for k, v in found.values["settings"].items() if k != "content"}
        return replace(found, values={**found.values, "settings": known})

    monkeypatch.setattr(RunState, "pack", without_content)
    training, place = {"epochs": 4, "log_every": 1}, tmp_path / "m"
    with pytest.raises(StoppedError):
        small(training=training).fit(TEXTS, VALID, place, callbacks=[strike])
    monkeypatch.undo()
    (place / "training" / "data" / "train.content").unlink()
    (place / "training" / "data" / "valid.content").unlink()
    done = small(training=training).fit(TEXTS, VALID, place, resume=True)
    assert done.score(TEXTS) == small(training=training).fit(TEXTS, VALID).score(TEXTS)


@pytest.mark.parametrize("arch", ["ngram", "rnn"])
def test_prepared_data_keeps_its_settings(arch, tmp_path):
    config = PrepareConfig(text=TextConfig(unit="space"), min_count=2)
    prepare((Text(text) for text in TEXTS), tmp_path / "prepared", config)

    def asking(**asked):
        sizes = {"order": 2, "smoothing": "witten-bell"} if arch == "ngram" else {"hidden_size": 3}
        training = QUICK if arch == "rnn" else None
        return LanguageModel(arch, training=training, **sizes, **asked).fit(tmp_path / "prepared")

    for given, message in (
        ({"text": {"unit": "character"}}, "text.unit was 'space' and is 'character'"),
        ({"text": TextConfig()}, "text.unit was 'space' and is 'word'"),
        ({"text": {"normalizer": {"lowercase": True}}}, "text.normalizer.lowercase was False"),
        ({"vocabulary": {"max_size": 1}}, "max_size was None and is 1"),
        ({"vocabulary": {"min_count": 1}}, "min_count was 2 and is 1"),
    ):
        with pytest.raises(ConfigError, match=f"made with, but {message}"):
            asking(**given)
    plain = asking().score("the cat sat")
    assert asking(text={"unit": "space"}, vocabulary={"min_count": 2}).score("the cat sat") == plain


def test_settings_changed_after_fit_change_nothing_of_it(tmp_path):
    fitted = small(training={"epochs": 2}).fit(TEXTS)
    expected, written = fitted.score(TEXTS), fitted.generate("the cat", temperature=0)
    fitted.set_params(reverse=True, window=9, text={"unit": "character"}, hidden_size=9)
    fitted.set_params(arch="ngram")
    assert fitted.score(TEXTS) == expected
    assert fitted.generate("the cat", temperature=0) == written
    loaded = seqloom.load(fitted.save(tmp_path / "m"))
    assert loaded.score(TEXTS) == expected and loaded.arch == "rnn"
    assert not loaded.reverse and loaded.window == 5


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    first = small(training={"max_steps": 3}).fit(TEXTS, VALID, tmp_path / "m")
    again = small(training={"max_steps": 3}).fit(TEXTS, VALID, tmp_path / "m", resume=True)
    assert again.score(TEXTS) == first.score(TEXTS) == seqloom.load(tmp_path / "m").score(TEXTS)
    assert again.provenance_["updates"] == 3


def test_a_loss_that_is_not_finite_keeps_what_was_good(tmp_path, monkeypatch):
    real, calls = language_objective.window_loss, []

    def spoilt(model, batch, state):
        calls.append(state)
        result = real(model, batch, state)
        return result._replace(total=result.total * torch.inf) if len(calls) == 4 else result

    monkeypatch.setattr(language_objective, "window_loss", spoilt)
    with pytest.raises(TrainingError, match=f"at update 4 .*kept in {tmp_path}/m/training"):
        small(training={"save_every": 1}).fit(TEXTS, out=tmp_path / "m")
    kept = load_file(tmp_path / "m" / "training" / "last.safetensors")
    assert all(weight.isfinite().all() for weight in kept.values() if weight.is_floating_point())


def test_a_run_that_fails_before_its_first_checkpoint_leaves_nothing(tmp_path):
    training = {"optimizer": {"rate": 3e37}, "save_every": 9}
    with pytest.raises(TrainingError, match=r"not finite at update 2 .*nothing was kept"):
        small(training=training).fit(TEXTS, out=tmp_path / "m")
    assert not (tmp_path / "m").exists()


# -- a cell of one's own --------------------------------------------------------------------------


class Leaky(Cell):
    gates = ("n",)
    vectors = ("rate",)

    @staticmethod
    def step(a, s, v):
        return State(h=s.h + sigmoid(v.rate) * (tanh(a.n) - s.h))


def test_a_registered_cell_trains_is_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setitem(CELLS, "leaky", Leaky)  # as register_cell does, and undone afterwards
    before = small("recurrent", cell="leaky").fit(TEXTS).evaluate(TEXTS)["perplexity"]
    model = small("recurrent", cell="leaky", training={"epochs": 15})
    model.fit(TEXTS, VALID, tmp_path / "m")
    assert model.evaluate(TEXTS)["perplexity"] < before - 1
    assert "rnn.vector_rate_l0" in load_file(tmp_path / "m" / "weights.safetensors")
    loaded = seqloom.load(tmp_path / "m")
    assert loaded.score(TEXTS) == model.score(TEXTS)
    assert loaded.get_params()["cell"] == "leaky"
    assert loaded.generate("the", seed=2) == model.generate("the", seed=2)


def test_a_directory_whose_cell_is_not_registered_names_it(tmp_path, monkeypatch):
    with monkeypatch.context() as here:
        here.setitem(CELLS, "leaky", Leaky)
        small("recurrent", cell="leaky").fit(TEXTS, out=tmp_path / "m")
    message = r"m/seqloom.json: unknown cell 'leaky'.*registered first: register_cell\('leaky'"
    for load in (seqloom.load, LanguageModel.load):
        with pytest.raises(DataError, match=message):
            load(tmp_path / "m")


def test_any_cell_and_option_by_name():
    options = {"state_dropout": 0.1, "weight_dropout": 0.1, "zoneout": 0.1, "clip": 3}
    fitted = small("recurrent", cell="gru-before", variational=True, dropout=0.1, **options)
    assert math.isfinite(fitted.fit(TEXTS).evaluate(TEXTS)["perplexity"])


# -- scikit-learn's protocol ---------------------------------------------------------------------


def test_params_round_trip_and_clone():
    sklearn_base = pytest.importorskip("sklearn.base")
    model = small(dropout=0.1)
    clone = sklearn_base.clone(model)
    assert clone.get_params() == model.get_params()
    clone.set_params(hidden_size=9, training__epochs=2, window=4)
    assert clone.get_params()["hidden_size"] == 9
    assert clone.build_training().epochs == 2 and clone.window == 4
    assert model.get_params()["hidden_size"] == 6
    clone.set_params(arch="nnlm")
    assert clone.build_config(vocab_size=5).hidden_size == 9
    with pytest.raises(ConfigError, match="'hiden_size'; did you mean 'hidden_size'"):
        clone.set_params(hiden_size=1)


def test_the_repr_can_be_read():
    text = repr(small(dropout=0.1))
    assert text.startswith("LanguageModel(arch='rnn', hidden_size=6") and "dropout=0.1" in text


def test_subword_pieces(tmp_path):
    pieces = SubwordTokenizer.train(TEXTS, vocab_size=280, specials=Specials().names())
    config = PrepareConfig(text=TextConfig(unit="subword"))
    data = prepare((Text(t) for t in TEXTS), tmp_path / "data", config, subword=pieces)
    fitted = small().fit(data)
    fitted.save(tmp_path / "m")
    loaded = seqloom.load(tmp_path / "m")
    assert loaded.score("the catfish") == fitted.score("the catfish")
    assert loaded.generate("the", seed=2) == fitted.generate("the", seed=2)


def test_a_character_model_is_measured_where_nothing_cuts_words(monkeypatch):
    """A machine may have no dictionary of Chinese; the figures by characters stand without it."""
    texts = ["我来到北京清华大学", "床前明月光", "我想上大学"]
    model = LanguageModel(
        "ngram", order=2, smoothing="witten-bell", text={"unit": "character"}
    ).fit(texts)
    whole = model.evaluate(texts)
    monkeypatch.setitem(sys.modules, "rjieba", None)
    monkeypatch.setattr(words, "_rjieba", words._rjieba.__wrapped__)  # the one that is not cached
    found = model.evaluate(texts)
    assert found == {k: v for k, v in whole.items() if k != "word_perplexity"}
    with pytest.raises(BackendError, match="rjieba"):
        model.evaluate(texts, words="word")
