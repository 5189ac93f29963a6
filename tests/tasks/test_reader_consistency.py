"""Readers that read every question twice with other units dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from test_reader_others import PEOPLE, others, questions
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from seqloom import Reader
from seqloom.architectures import find_architecture, load_model_class
from seqloom.data.bucketing import BatchConfig
from seqloom.errors import ConfigError
from seqloom.models.reader_parts import SpanOutput
from seqloom.tasks.reader_data import reader_input
from seqloom.tasks.reader_objective import ReadingObjective, span_divergence, span_loss


def test_two_passes_are_compared_by_both_divergences_without_padding():
    """Against torch's kl_div, row by row over the real words."""
    chance = torch.Generator().manual_seed(0)
    passes = [
        SpanOutput(
            *(torch.randn(4, 6, generator=chance).double() for _ in range(2)), torch.zeros(0)
        )
        for _ in range(2)
    ]
    lengths = [6, 3, 1, 5]
    expected = torch.zeros((), dtype=torch.float64)
    for name in ("start", "end"):
        for row, length in enumerate(lengths[:3]):  # the last row is of another passage
            a, b = (getattr(each, name)[row, :length].log_softmax(dim=0) for each in passes)
            expected += functional.kl_div(a, b, reduction="sum", log_target=True) / 2
            expected += functional.kl_div(b, a, reduction="sum", log_target=True) / 2
        for each in passes:
            for row, length in enumerate(lengths):
                getattr(each, name)[row, length:] = float("-inf")
    starts = passes[0].start.requires_grad_()
    found = span_divergence(passes[0], passes[1], 3)
    assert_close(found, expected)
    found.backward()
    assert starts.grad is not None and starts.grad[:3].isfinite().all()
    assert not starts.grad[3].any() and not starts.grad[1, 3:].any()


def network(dropout: float) -> nn.Module:
    architecture = find_architecture("answer", "bidaf")
    reader = Reader("bidaf", characters="none", embed_size=6, hidden_size=4, dropout=dropout)
    torch.manual_seed(0)
    config = reader.build_config(vocab_size=60, char_vocab_size=0)
    model: nn.Module = load_model_class(architecture)(config)
    return model.double().train()


@pytest.mark.parametrize("with_others", [False, True])
def test_the_loss_is_the_mean_of_both_and_how_far_they_are_apart(with_others):
    """Where nothing is dropped both are the same; where units are, they are told apart."""
    drawn = others(1.0 if with_others else 0.0)
    batch = drawn.batch(np.arange(5), 0, 0).tensors()
    values = batch.values
    batches = BatchConfig(batch_size=5)
    objective = ReadingObjective(drawn.data, lambda _: {}, batches, consistency=2.0)
    plain = network(0.0)
    expected = span_loss(plain(reader_input(batch)), values["spans"], values["asked_again"])
    found = objective.loss(plain, batch)
    assert found.items == 5
    assert_close(found.total, expected)
    dropping = network(0.5)
    said: list[SpanOutput] = []
    dropping.register_forward_hook(lambda _module, _given, output: said.append(output))
    found = objective.loss(dropping, batch)
    rows = len(said[0].start) // 2
    first, second = (
        SpanOutput(said[0].start[part], said[0].end[part], said[0].attention[part])
        for part in (slice(rows), slice(rows, None))
    )
    assert rows == 5 + len(values["asked_again"])
    assert not torch.equal(first.start, second.start)
    losses = [span_loss(each, values["spans"], values["asked_again"]) for each in (first, second)]
    assert_close(found.total, sum(losses) / 2 + 2.0 * span_divergence(first, second, 5))


def new(**settings: Any) -> Reader:
    training = {
        "epochs": 120, "seed": 0, "averaging": "none", "device": "cpu",
        "schedule": {"warmup": 0}, "optimizer": {"rate": 0.005},
    }  # fmt: skip
    sizes = {"hidden_size": 16, "embed_size": 24, "characters": "none", "dropout": 0.1}
    own = {"min_count": 1, "valid_share": 0, **settings}
    return Reader("bidaf", training=training, **own, **sizes)


def test_a_reader_learns_with_it():
    data = questions(["a"] * 5)
    model = new(consistency=1.0).fit(data)
    found = [model.answer(each.passage, each.question).text for each in data]
    assert found == [city for _, city in PEOPLE]


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan"), "x", None])
def test_bad_weights_are_refused(value):
    with pytest.raises(ConfigError, match="consistency must be a number not below 0, got"):
        new(consistency=value).fit(questions(["a"] * 5))
