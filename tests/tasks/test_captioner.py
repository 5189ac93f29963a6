"""Captioners: vectors and images to words."""

from __future__ import annotations

import numpy as np
import pytest

import seqloom
from seqloom import Captioner
from seqloom.errors import ConfigError, InputError
from seqloom.tasks.captioner_data import caption_pairs

QUICK = {"epochs": 50, "device": "cpu", "optimizer": {"rate": 0.02}, "batch": {"batch_size": 8}}
PICTURES = [np.eye(3), np.eye(3)[::-1], np.ones((3, 3)), np.zeros((3, 3))]
TEXTS = ["a line down", "a line up it seems", "all", "nothing at all"]
PAIRS = list(zip(PICTURES, TEXTS, strict=True)) * 4


@pytest.mark.parametrize("feeding", ["output", "first"])
def test_a_few_pictures_are_described_by_heart(feeding, tmp_path):
    model = Captioner(feeding=feeding, hidden_size=24, embed_size=16, training=QUICK).fit(PAIRS)
    assert [each.text for each in model.caption(PICTURES)] == TEXTS
    measured = model.evaluate(PAIRS)
    assert (measured["exact"], measured["accuracy"], measured["examples"]) == (1.0, 1.0, 16.0)
    loaded = seqloom.load(model.save(tmp_path / "model"))
    assert [each.text for each in loaded.caption(PICTURES, beam=1)] == TEXTS
    assert loaded.get_params()["feeding"] == feeding


def test_digits_are_spelled_in_two_languages():
    train, valid, test = (
        caption_pairs(f"digits:{split}:en") for split in ("train", "valid", "test")
    )
    assert [len(each) for each in (train, valid, test)] == [1260, 179, 358]
    assert train[3].target == "t h r e e"
    assert caption_pairs("digits:train:zh")[3].target == "三"
    assert train[0].source.shape == (1, 64)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ("digits:train:fr", ConfigError, "unknown language of digits 'fr'"),
        ("digits:dev:en", ConfigError, "unknown split of digits 'dev'"),
        ("letters", ConfigError, "unknown set of captions 'letters'"),
        ([], InputError, "at least one pair, got none"),
        ([([1.0], "")], InputError, "pair 0 must be a tuple of a vector and a text"),
        ([([1.0], "a"), ([1.0, 2.0], "b")], InputError, r"of one width, got \[1, 2\]"),
        ([([np.nan], "a")], InputError, "input 0 must be a vector or an image of finite numbers"),
    ],
)
def test_bad_data_is_refused(data, kind, message):
    with pytest.raises(kind, match=message):
        Captioner(training=QUICK).fit(data)


def test_bad_input_and_settings_are_refused():
    model = Captioner(hidden_size=4, training={**QUICK, "epochs": 1}).fit(PAIRS)
    with pytest.raises(InputError, match="input 1 must hold 9 numbers as in training, got 4"):
        model.caption([np.ones(9), np.ones(4)])
    with pytest.raises(ConfigError, match="need a model with attention"):
        model.caption([np.ones(9)], attention=True)
    with pytest.raises(ConfigError, match="'feeding' must be one of 'first', 'output', got 'last'"):
        Captioner(feeding="last").fit(PAIRS)
