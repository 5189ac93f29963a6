"""The networks of taggers: padding, gradients, saving, and their equations written out."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.models.tagger import (
    CNNTagger,
    CNNTaggerConfig,
    RecurrentTagger,
    RecurrentTaggerConfig,
    TaggerInput,
)

SIZES = {"vocab_size": 11, "input_size": 0, "output_size": 3, "feature_sizes": (5,)}
SMALL = {"embed_size": 4, "feature_embed_size": 2, "char_embed_size": 3, "char_size": 2}
LENGTHS = [5, 1, 3]
CASES = [
    ("blstm", {"characters": "cnn"}),
    ("blstm", {"characters": "rnn", "output": "softmax", "cell": "gru", "num_layers": 2}),
    ("cnn", {"characters": "cnn", "char_widths": (1, 2)}),
    ("cnn", {"characters": "none", "widths": (5,)}),
]


def model_of(name: str, options: dict, **more):
    torch.manual_seed(0)
    config, model = {
        "blstm": (RecurrentTaggerConfig, RecurrentTagger),
        "cnn": (CNNTaggerConfig, CNNTagger),
    }[name]
    given = {**SIZES, **SMALL, "hidden_size": 4, "char_vocab_size": 7, **options, **more}
    return model(config(**given)).double().eval()


def some_input(seed: int = 0) -> TaggerInput:
    draw = torch.Generator().manual_seed(seed)
    return TaggerInput(
        torch.randint(11, (3, 5), generator=draw),
        (torch.randint(5, (3, 5), generator=draw),),
        torch.randint(7, (6, 4), generator=draw),
        torch.tensor([4, 1, 2, 3, 4, 2]),
        torch.randint(6, (3, 5), generator=draw),
    )


def row_of(x: TaggerInput, b: int, n: int) -> TaggerInput:
    features = tuple(each[b : b + 1, :n] for each in x.features)
    which = x.which[b : b + 1, :n]
    return x._replace(items=x.items[b : b + 1, :n], features=features, which=which)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_padding_never_changes_a_result(name, options):
    model, x = model_of(name, options), some_input()
    whole = model(x, torch.tensor(LENGTHS)).scores
    for b, n in enumerate(LENGTHS):
        assert_close(whole[b, :n], model(row_of(x, b, n)).scores[0])


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_weight_gets_a_gradient_and_saving_changes_nothing(name, options):
    model, x, lengths = model_of(name, options).train(), some_input(), torch.tensor(LENGTHS)
    scores = model(x, lengths).scores
    model.output.loss(scores, torch.randint(3, (3, 5)), lengths).sum().backward()
    for weight, value in model.named_parameters():
        assert value.grad is not None, weight
        assert value.grad.abs().sum() > 0, weight
    other = model_of(name, options)
    for value in other.parameters():
        torch.nn.init.zeros_(value)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.eval()(x, lengths).scores, model.eval()(x, lengths).scores)


def test_windows_layer_by_layer_as_the_equation_says():
    model = model_of("cnn", {"characters": "cnn", "widths": (3, 2)})
    x = row_of(some_input(), 0, 5)
    weights = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    spelled = model.tokens.characters(x.spellings, x.spelling_lengths).detach().numpy()
    h = [
        np.concatenate([weights["input.embedding.weight"][w], weights["tokens.tables.0.weight"][f]])
        for w, f in zip(x.items[0].tolist(), x.features[0][0].tolist(), strict=True)
    ]
    h = [np.concatenate([v, spelled[u]]) for v, u in zip(h, x.which[0].tolist(), strict=True)]
    for i, width in enumerate((3, 2)):
        W, b = weights[f"layers.{i}.weight"], weights[f"layers.{i}.bias"]  # noqa: N806
        zero, n = np.zeros_like(h[0]), len(h)
        around = [range(t - (width - 1) // 2, t + width // 2 + 1) for t in range(n)]
        h = [
            np.maximum(0, W @ np.concatenate([h[k] if 0 <= k < n else zero for k in places]) + b)
            for places in around
        ]
    expected = [weights["scores.weight"] @ v + weights["scores.bias"] for v in h]
    assert_close(model(x).scores[0], torch.from_numpy(np.stack(expected)))


def test_recurrent_layers_are_those_of_torch():
    model = model_of("blstm", {"characters": "cnn"})
    x = row_of(some_input(), 0, 5)
    tokens = model.tokens(x, None)
    oracle = torch.nn.LSTM(tokens.shape[2], 4, bidirectional=True, batch_first=True).double()
    oracle.load_state_dict(model.rnn.state_dict())
    assert_close(model(x).scores, model.scores(oracle(tokens)[0]))


def test_vectors_in_place_of_words():
    sizes = {"vocab_size": 0, "input_size": 6, "feature_sizes": (), "char_vocab_size": 0}
    model = model_of("blstm", {}, **sizes)
    vectors = torch.randn(2, 4, 6, dtype=torch.float64)
    whole = model(TaggerInput(vectors), torch.tensor([4, 2])).scores
    assert_close(whole[1, :2], model(TaggerInput(vectors[1:, :2])).scores[0])


def test_refuses_what_makes_no_sense():
    for wrong in ({"output": "hmm"}, {"characters": "lstm"}, {"dropout": 1.0}, {"widths": ()}):
        with pytest.raises(ConfigError, match=re.escape(str(next(iter(wrong.values()))))):
            model_of("cnn", wrong)
    with pytest.raises(ConfigError, match="got 11 and 3"):
        model_of("cnn", {"input_size": 3})
    x = some_input()
    with pytest.raises(ShapeError, match="1 further features, got 0"):
        model_of("cnn", {})(x._replace(features=()))
    with pytest.raises(ShapeError, match="give spellings"):
        model_of("cnn", {})(x._replace(spellings=None))
