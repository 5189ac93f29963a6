"""Networks with other output layers and the options of the AWD-LSTM, as people use them."""

from __future__ import annotations

import math
import os
import signal

import numpy as np
import pytest
import torch

import seqloom
from seqloom import LanguageModel
from seqloom.errors import ConfigError, StoppedError
from seqloom.models.outputs import SOFTMAXES
from seqloom.tasks.language_objective import LanguageModelObjective

TEXTS = ["the cat sat on the mat", "a dog ran", "the bird saw a fish", "a cat ate the fish"] * 8
VALID = ["the dog sat", "a fish ran", "the cat saw the mat"]
AWD = {
    "hidden_size": 7,
    "embed_size": 4,
    "last_size": 4,
    "num_layers": 3,
    "tied": True,
    "variational": True,
    "dropout": 0.2,
    "input_dropout": 0.3,
    "output_dropout": 0.1,
    "word_dropout": 0.1,
    "weight_dropout": 0.3,
    "activation_reg": 2.0,
    "temporal_reg": 1.0,
    "window_spread": 3.0,
}
TRIGGERED = {
    "epochs": 8,
    "averaging": "triggered",
    "average_patience": 1,
    "optimizer": {"name": "sgd", "rate": 8.0},
    "clip_norm": 0.25,
    "batch": {"batch_size": 2},
    "device": "cpu",
    "log_every": 1,
}


def strike(report) -> None:
    if report.step == 17:
        os.kill(os.getpid(), signal.SIGTERM)


def test_an_awd_lstm_resumes_bit_for_bit(tmp_path):
    def model():
        return LanguageModel("lstm", window=9, training=TRIGGERED, **AWD)

    whole = model().fit(TEXTS, VALID, tmp_path / "whole")
    cut = model()
    with pytest.raises(StoppedError, match="at update 17"):
        cut.fit(TEXTS, VALID, tmp_path / "cut", callbacks=[strike])
    cut.fit(TEXTS, VALID, tmp_path / "cut", resume=True)
    assert cut.score(TEXTS) == whole.score(TEXTS)
    assert cut.metrics_ == whole.metrics_
    loaded = seqloom.load(tmp_path / "cut")
    assert loaded.score(TEXTS) == whole.score(TEXTS)
    assert loaded.evaluate(VALID)["perplexity"] < len(whole.vocabulary_)


def test_windows_differ_and_pace_the_rate(monkeypatch):
    seen = []
    real = LanguageModelObjective.loss

    def watched(self, model, batch):
        found = real(self, model, batch)
        seen.append((batch["ids"].values.shape[1] - 1, found.pace))
        return found

    monkeypatch.setattr(LanguageModelObjective, "loss", watched)
    training = {"epochs": 3, "batch": {"batch_size": 1}, "device": "cpu"}
    options = {"hidden_size": 4, "num_layers": 1}
    LanguageModel("gru", window=20, window_spread=4.0, training=training, **options).fit(TEXTS)
    assert len({length for length, _ in seen}) > 5
    assert all(pace == length / 20 for length, pace in seen)
    seen.clear()
    LanguageModel("gru", window=20, training=training, **options).fit(TEXTS)
    assert {pace for _, pace in seen} == {1.0}


def test_averaging_that_waits_for_a_trigger_needs_validation():
    with pytest.raises(ConfigError, match="averaging 'triggered' need validation data, got valid"):
        LanguageModel("rnn", training=TRIGGERED).fit(TEXTS)


@pytest.mark.parametrize("softmax", SOFTMAXES)
def test_every_output_layer_learns_and_is_kept(softmax, tmp_path):
    training = {
        "epochs": 25,
        "batch": {"batch_size": 4},
        "device": "cpu",
        "optimizer": {"rate": 0.02},
    }
    model = LanguageModel(
        "gru", window=8, hidden_size=16, num_layers=1, softmax=softmax, samples=8, training=training
    )
    model.fit(TEXTS, out=tmp_path / "m")
    assert model.evaluate(TEXTS)["perplexity"] < 3.5
    chances = dict(model.next("the cat"))
    assert len(chances) == len(model.vocabulary_)
    assert math.fsum(chances.values()) == pytest.approx(1, abs=1e-5)
    for word in ("sat", "fish", "ate"):
        scored = model.score(f"the cat {word}").log_probs[2]
        assert chances[word] == pytest.approx(math.exp(scored), rel=1e-4)
    loaded = seqloom.load(tmp_path / "m")
    assert loaded.score(VALID) == model.score(VALID)
    assert loaded.next("a", k=5) == model.next("a", k=5)


@pytest.mark.parametrize("softmax", ["adaptive", "hierarchical", "sampled", "nce"])
def test_counts_are_those_of_the_training_text(softmax, tmp_path):
    training = {"max_steps": 1, "batch": {"batch_size": 4}, "device": "cpu"}
    model = LanguageModel("rnn", hidden_size=4, softmax=softmax, training=training).fit(TEXTS)
    words = [word for text in TEXTS for word in [*text.split(), "</s>"]]
    layer = model.model_.output
    counts = getattr(layer, "proposal", layer).counts
    assert counts.sum().item() == len(words)
    for word in ("the", "mat", "</s>", "<unk>"):
        assert counts[model.vocabulary_[word]].item() == words.count(word)
    loaded = seqloom.load(model.save(tmp_path / "m")).model_.output
    assert torch.equal(getattr(loaded, "proposal", loaded).counts, counts)


def test_cutoffs_beyond_the_vocabulary_are_refused(tmp_path):
    model = LanguageModel("rnn", softmax="adaptive", cutoffs=[5, 5000])
    with pytest.raises(ConfigError, match=r"of the vocabulary, got \[5, 5000\]"):
        model.fit(TEXTS, out=tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_large_vocabulary_is_evaluated_in_slices(monkeypatch):
    """Never are scores of all words held for a whole window."""
    training = {"max_steps": 1, "batch": {"batch_size": 4}, "device": "cpu"}
    model = LanguageModel("rnn", hidden_size=4, num_layers=1, training=training).fit(TEXTS)
    expected = model.evaluate(TEXTS)["perplexity"]
    rows, real = [], torch.nn.functional.linear

    def watched(x, *rest):
        if rest[0] is model.model_.output.weight:
            rows.append(len(x))
        return real(x, *rest)

    monkeypatch.setattr("seqloom.nn.softmax.SLICE", 3 * len(model.vocabulary_))
    monkeypatch.setattr(torch.nn.functional, "linear", watched)
    assert model.evaluate(TEXTS)["perplexity"] == pytest.approx(expected, rel=1e-6)
    assert rows and max(rows) == 3
    assert np.sum(rows) == sum(len(text.split()) + 1 for text in TEXTS)


def test_a_tied_table_is_counted_once():
    training = {"max_steps": 1, "batch": {"batch_size": 4}, "device": "cpu"}
    sizes = {"embed_size": 6, "hidden_size": 6, "training": training}
    counts = [
        sum(
            math.prod(shape)
            for shape in LanguageModel("lstm", tied=tied, **sizes).fit(TEXTS).shapes().values()
        )
        for tied in (False, True)
    ]
    words = len(LanguageModel("ngram", order=1, smoothing="add-delta").fit(TEXTS).vocabulary_)
    assert counts[0] - counts[1] == 6 * words
