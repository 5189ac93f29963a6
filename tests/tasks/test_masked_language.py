"""Masked language models: what is hidden, what is minimized, how a text is scored and filled."""

from __future__ import annotations

import math
import os
import signal

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import seqloom
from seqloom import LanguageModel
from seqloom.data import PrepareConfig, Text, prepare
from seqloom.data.batches import Batch, Padded
from seqloom.errors import ConfigError, StoppedError
from seqloom.models.transformer_lm import TransformerLM, TransformerLMConfig
from seqloom.tasks.masked_objective import (
    MaskedObjective,
    hide_words,
    pseudo_log_probs,
    restored_log_probs,
)

V = 11
TEXTS = ["the cat sat on the mat", "a dog ran", "the bird saw a fish", "a cat ate the fish"] * 8
QUICK = {"epochs": 2, "batch": {"batch_size": 4}, "device": "cpu", "optimizer": {"rate": 0.005}}
SIZES = {"hidden_size": 32, "num_heads": 2, "num_layers": 1, "context_size": 12}


def masked(**training):
    return LanguageModel(
        "transformer", objective="masked", window=6, training=QUICK | training, **SIZES
    )


@pytest.fixture(scope="module")
def network() -> TransformerLM:
    torch.manual_seed(0)
    sizes = SIZES | {"hidden_size": 4, "context_size": 5}
    config = TransformerLMConfig(vocab_size=V, objective="masked", **sizes)
    return TransformerLM(config).double().eval()


@pytest.fixture(scope="module")
def model():
    return masked(epochs=150).fit(TEXTS)


# -- hiding --------------------------------------------------------------------------------------


def test_words_are_hidden_in_the_shares_of_the_paper():
    torch.manual_seed(0)
    words = 1000
    ids = torch.randint(words, (50, 401))
    inputs, chosen = hide_words(ids, torch.full((50,), 401), words)
    assert int(chosen.sum()) == 3000  # 15% of 20,000
    blank = inputs == words
    assert not (blank & ~chosen).any()
    assert torch.equal(inputs[~chosen], ids[~chosen])
    assert int(blank.sum()) / 3000 == pytest.approx(0.8, abs=0.02)
    kept = chosen & (inputs == ids)
    assert int(kept.sum()) / 3000 == pytest.approx(0.1, abs=0.02)
    other = inputs[chosen & ~blank & ~kept]
    assert len(other) / 3000 == pytest.approx(0.1, abs=0.02)
    assert 0 <= other.min() < 100 and 900 < other.max() < words  # of the whole vocabulary


def test_neither_padding_nor_the_first_word_is_hidden():
    lengths = torch.tensor([8, 2, 0, 1])
    seen = torch.zeros(4, 8)
    for seed in range(200):
        torch.manual_seed(seed)
        _, chosen = hide_words(torch.zeros(4, 8, dtype=torch.long), lengths, V)
        assert int(chosen.sum()) == 1  # 15% of 8 words
        seen += chosen
    assert (seen[0, 1:] > 0).all() and seen[1, 1] > 0
    assert not seen[:, 0].any() and not seen[1, 2:].any() and not seen[2:].any()


# -- the objective -------------------------------------------------------------------------------


def log_probs_at(network: TransformerLM, row: list[int], place: int) -> torch.Tensor:
    """The log-probabilities of a row at a place, from the features of that row alone."""
    features = network(torch.tensor([row])).features[0, place]
    logits = network.output.weight @ features + network.output.bias
    return logits - logits.exp().sum().log()


def test_the_loss_is_the_cross_entropy_of_the_hidden_words(network, tmp_path):
    objective = objective_of(network, tmp_path)
    ids, lengths = torch.randint(V, (3, 6)), torch.tensor([6, 3, 5])
    batch = Batch(np.arange(3), {"ids": Padded(ids, lengths)}, {})
    torch.manual_seed(5)
    found = objective.loss(network, batch)
    torch.manual_seed(5)
    inputs, chosen = hide_words(ids, lengths, V)
    expected = 0.0
    for b, t in chosen.nonzero().tolist():
        row = inputs[b, : int(lengths[b])].tolist()
        expected -= log_probs_at(network, row, t)[ids[b, t]].item()
    assert found.items == int(chosen.sum()) == 2
    assert found.total.item() == pytest.approx(expected)


def prepared(place, texts):
    examples = [Text(text) for text in texts]
    return prepare(examples, place, PrepareConfig())


def objective_of(network, place, **settings):
    data = prepared(place / "train", ["a b c d e f g"])
    assert len(data.vocabularies["words"]) == V
    valid = prepared_like(place / "valid", data, ["g f e d c b a a a b", "c c"])
    return MaskedObjective(network, data, valid, **({"lanes": 2, "window": 5} | settings))


def prepared_like(place, data, texts):
    return prepare([Text(text) for text in texts], place, like=data)


def test_every_validation_word_is_hidden_once(network, tmp_path):
    objective = objective_of(network, tmp_path)
    total, items = 0.0, 0
    for batch in objective.valid.batches():
        ids = batch["ids"]
        for row, length in zip(ids.values.tolist(), ids.lengths.tolist(), strict=True):
            for first in range(7):
                places = [t for t in range(1, length) if t % 7 == first]
                hidden = [V if t in places else word for t, word in enumerate(row[:length])]
                for t in places:
                    total -= log_probs_at(network, hidden, t)[row[t]].item()
                    items += 1
    assert items == 14  # ten words, two words and two ends
    assert objective.evaluate(network) == {
        "masked_perplexity": pytest.approx(math.exp(total / items))
    }


def test_a_window_the_model_cannot_read_is_refused(network, tmp_path):
    with pytest.raises(ConfigError, match="at most context_size for a masked model, got 6 and 5"):
        objective_of(network, tmp_path, window=6)


# -- scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [1, 2, 5, 6, 13])
def test_pseudo_log_probabilities_hide_one_word_at_a_time(network, words, monkeypatch):
    ids = torch.randint(V, (words + 1,)).tolist()
    expected = []
    for begin in range(1, words + 1, 5):  # as much as the model reads at once
        end = min(begin + 5, words + 1)
        first = max(0, end - 6)
        for t in range(begin, end):
            row = [*ids[first:t], V, *ids[t + 1 : end]]
            expected.append(log_probs_at(network, row, t - first)[ids[t]].item())
    found = pseudo_log_probs(network, torch.tensor(ids))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    monkeypatch.setattr("seqloom.tasks.masked_objective.PIECE", 7)
    assert_close(pseudo_log_probs(network, torch.tensor(ids)), found)


def test_a_word_is_restored_from_what_lies_around_it(network):
    ids = torch.randint(V, (14,))
    for place in range(14):
        first = max(0, min(place - 3, 14 - 6))
        row = ids[first : first + 6].tolist()
        row[place - first] = V
        found = restored_log_probs(network, ids, place)
        assert_close(found, log_probs_at(network, row, place - first))
        assert found.exp().sum().item() == pytest.approx(1)


def test_scores_are_pseudo_log_likelihoods(model):
    network = model.model_.double()
    for text in ("the cat sat", "a dog", ""):
        words = [*text.split(), "</s>"]
        ids = [model.vocabulary_[word] for word in ["</s>", *words]]
        expected = []
        for t in range(1, len(ids)):
            row = [*ids[:t], network.blank, *ids[t + 1 :]]
            expected.append(log_probs_at(network, row, t)[ids[t]].item())
        score = model.score(text)
        assert score.words == tuple(words)
        np.testing.assert_allclose(score.log_probs, expected, rtol=1e-9)
    network.float()


def test_evaluation_is_named_for_what_it_is(model):
    found = model.evaluate(["a dog ran"])
    total = model.score("a dog ran").total
    assert found.keys() == {"pseudo_perplexity", "loss", "tokens", "unknown"}
    assert found["pseudo_perplexity"] == pytest.approx(math.exp(-total / 4), rel=1e-5)


def test_a_long_text_is_scored_to_its_end(model):
    text = " ".join(["the cat sat on the mat a dog ran"] * 4)
    assert len(model.score(text).log_probs) == 37
    assert model.evaluate([text] * 3)["tokens"] == 111


def test_blanks_are_filled_from_both_sides(model):
    """Only what follows tells these apart."""
    assert model.fill("the ___ saw a fish", k=1)[0].word == "bird"
    assert model.fill("the ___ sat on the mat", k=1)[0].word == "cat"
    log_probs = model.engine_.fill_log_probs(model.vocabulary_.encode(["a"]), np.array([], int))
    assert log_probs.shape == (len(model.vocabulary_),)
    assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-5)


def test_what_comes_next_is_refused(model):
    message = "got one with objective='masked', which sees both sides; use fill or score"
    for ask in (model.generate, model.next, lambda: list(model.predict_lines(["a"]))):
        with pytest.raises(ConfigError, match=message):
            ask()


def test_saving_and_loading_changes_nothing(model, tmp_path):
    loaded = seqloom.load(model.save(tmp_path / "model"))
    assert loaded.score(TEXTS[:4]) == model.score(TEXTS[:4])
    assert loaded.fill("the ___ sat") == model.fill("the ___ sat")
    assert loaded.get_params()["objective"] == "masked"
    again = loaded.save(tmp_path / "again")
    for name in ("weights.safetensors", "seqloom.json", "README.md"):
        assert (again / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def strike(report):
    if report.step == 5:
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("transformer", {**SIZES, "objective": "masked"}),
        ("transformer", {**SIZES, "context_size": 7, "dropout": 0.2}),
        ("attention", {"hidden_size": 6, "context_size": 4}),
        ("cnn", {"hidden_size": 6, "num_layers": 2}),
    ],
    ids=str,
)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(arch, options, tmp_path):
    """What is carried from window to window and what is drawn at random are in the checkpoint."""
    settings = {"window": 5, "training": QUICK | {"log_every": 1}, **options}
    whole = LanguageModel(arch, **settings).fit(TEXTS, TEXTS[:4], tmp_path / "whole")
    stopped = LanguageModel(arch, **settings)
    with pytest.raises(StoppedError, match="at update 5"):
        stopped.fit(TEXTS, TEXTS[:4], tmp_path / "cut", callbacks=[strike])
    stopped.fit(TEXTS, TEXTS[:4], tmp_path / "cut", resume=True)
    assert stopped.score(TEXTS) == whole.score(TEXTS)
    assert stopped.metrics_ == whole.metrics_
