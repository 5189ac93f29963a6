"""Captioners: vectors and images to words."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

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
    parts = [caption_pairs(f"digits:{split}:en") for split in ("train", "valid", "test")]
    assert sum(map(len, parts)) == 1797  # the images scikit-learn has
    images = load_digits()
    by_image = {
        (image / 16).astype(np.float32).tobytes(): digit
        for image, digit in zip(images.data, images.target, strict=True)
    }
    english = "zero one two three four five six seven eight nine".split()
    chinese = caption_pairs("digits:valid:zh")
    for pair, other in zip(parts[1], chinese, strict=True):
        digit = by_image[pair.source.tobytes()]
        assert pair.target.replace(" ", "") == english[digit]
        assert other.target == "零一二三四五六七八九"[digit]


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ("digits:train:fr", ConfigError, "unknown language of digits 'fr'"),
        ("digits:dev:en", ConfigError, "unknown split of the digits 'dev'"),
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
    with pytest.raises(InputError, match="must be several vectors or images, got NoneType"):
        model.caption(None)
    with pytest.raises(ConfigError, match="need a model with attention"):
        model.caption([np.ones(9)], attention=True)
    with pytest.raises(ConfigError, match="'feeding' must be one of 'first', 'output', got 'last'"):
        Captioner(feeding="last").fit(PAIRS)
