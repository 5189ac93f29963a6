"""Encoder-decoders on a card: trained in bf16, and searched as on a processor."""

from __future__ import annotations

import pytest
from test_translator import PAIRS, SENTENCES, small


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("additive", {}),
        ("additive", {"input_feeding": "output", "cell": "lstm", "num_layers": 2}),
        ("additive", {"attention": "multi-head", "num_heads": 2, "context_to": "both"}),
        ("pointer", {"coverage": True}),
        ("transformer", {}),
    ],
)
def test_a_card_trains_and_translates(name, options):
    training = {"device": "cuda", "precision": "bf16", "epochs": 150, "evaluate_every": 150}
    model = small(name, training=training, **options).fit(PAIRS, valid=PAIRS)
    assert model.metrics_["valid_perplexity"] < 5  # of 6 words, unlearned
    model.model_.double()
    search = {"beam": 3, "n_best": 3, "coverage_penalty": 0.1, "attention": True}
    here = model.translate(SENTENCES, **search)
    model.model_.cuda()
    there = model.translate(SENTENCES, **search)
    for one, two in zip(here, there, strict=True):
        assert one.text == two.text
        assert one.score == pytest.approx(two.score)
        assert [each.text for each in one.others] == [each.text for each in two.others]
