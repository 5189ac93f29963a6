"""Weights in few bytes: what they lose, what they share, and models that load from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors import safe_open

import seqloom
from seqloom import Captioner, Classifier, Forecaster, LanguageModel, Regressor, Summarizer
from seqloom.errors import ConfigError, DataError, SeqloomError
from seqloom.tasks.directory import WEIGHTS
from seqloom.tasks.packed_weights import apart, pack_weights, together, unpack_weights
from seqloom.tasks.packing import pack_model, trained_by


def test_a_row_loses_at_most_half_a_step_of_its_own_scale():
    torch.manual_seed(0)
    matrix = torch.randn(300, 40) * torch.logspace(-4, 3, 300)[:, None]
    packed = pack_weights({"w": matrix}, "int8")
    assert packed["w"].dtype == torch.int8 and packed["w#scale"].shape == (300,)
    found = unpack_weights(packed)["w"]
    step = np.abs(matrix.numpy()).max(axis=1) / 127
    assert (np.abs((found - matrix).numpy()).max(axis=1) <= 0.501 * step).all()


def test_small_and_narrow_weights_become_halves_and_whole_numbers_stay():
    weights = {
        "bias": torch.randn(9000),
        "small": torch.randn(3, 4),
        "large": torch.tensor([1e6, 1.0]),
        "counts": torch.arange(5),
    }
    packed = pack_weights(weights, "int8")
    assert packed["bias"].dtype == packed["small"].dtype == torch.float16
    assert packed["large"].dtype == torch.float32  # a half cannot hold it
    assert packed["counts"].dtype == torch.int64
    found = unpack_weights(packed)
    assert torch.allclose(found["bias"], weights["bias"], rtol=1e-3, atol=1e-7)
    assert found["bias"].dtype == torch.float32


def test_shared_tensors_are_stored_once_and_given_back_as_one():
    one = torch.randn(4, 4)
    once, metadata = apart({"a": one, "b": one, "c": one.clone()})
    assert list(once) == ["a", "c"]
    found = together(once, metadata)
    assert found["b"] is found["a"] and found["c"] is not found["a"]


@pytest.mark.parametrize("said", ["[]", "{", '{"b": "nothing"}', '{"b": 3}'])
def test_metadata_that_makes_no_sense_is_refused(said):
    with pytest.raises(DataError, match="shared tensors make no sense"):
        together({"a": torch.zeros(1)}, {"shared": said})


def test_a_scale_without_its_matrix_is_refused():
    with pytest.raises(DataError, match="w#scale must have a scale for each row"):
        unpack_weights({"w#scale": torch.ones(3), "w": torch.zeros(4, 2, dtype=torch.int8)})


TEXT = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 30


@pytest.fixture(scope="module")
def tied(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "tied"
    options = {"hidden_size": 64, "num_layers": 1, "tied": True}
    model = LanguageModel("lstm", training={"epochs": 2}, **options).fit(TEXT)
    model.save(place)
    return model, place


def test_tied_weights_are_in_the_file_once(tied):
    _, place = tied
    with safe_open(place / WEIGHTS, "pt") as file:
        names = set(file.keys())
    assert not {"embedding.weight", "output.weight"} <= names
    loaded = seqloom.load(place)
    weights = dict(loaded.model_.named_parameters(remove_duplicate=False))
    assert weights["embedding.weight"] is weights["output.weight"]


@pytest.mark.parametrize(("kind", "within", "share"), [("half", 1e-3, 0.6), ("int8", 2e-2, 0.4)])
def test_a_packed_model_says_nearly_the_same_and_is_smaller(tied, tmp_path, kind, within, share):
    model, place = tied
    packed = pack_model(place, tmp_path / "packed", kind, data=TEXT[:20])
    loaded = seqloom.load(packed)
    one, two = model.score("the cat sat").total, loaded.score("the cat sat").total
    assert one == pytest.approx(two, rel=within) and one != two
    assert (packed / WEIGHTS).stat().st_size < share * (place / WEIGHTS).stat().st_size
    assert loaded.metrics_["packed_perplexity"] == pytest.approx(
        loaded.evaluate(TEXT[:20])["perplexity"]
    )
    assert loaded.provenance_["weights"] == kind


def test_unpacked_again_nothing_changes(tied, tmp_path):
    _, place = tied
    pack_model(place, tmp_path / "packed", "int8")
    again = pack_model(tmp_path / "packed", tmp_path / "again", "full")
    one, two = seqloom.load(tmp_path / "packed"), seqloom.load(again)
    assert one.score("a dog").log_probs == two.score("a dog").log_probs


def test_a_counted_model_becomes_a_trie(tmp_path):
    model = LanguageModel("ngram", order=2, smoothing="witten-bell").fit(TEXT)
    model.save(tmp_path / "counted")
    packed = pack_model(tmp_path / "counted", tmp_path / "packed", data=TEXT)
    found = seqloom.load(packed)
    one, two = model.score("a dog").log_probs, found.score("a dog").log_probs
    assert two == pytest.approx(one, abs=0.05)  # 8 bits a value
    card = (packed / "README.md").read_text(encoding="utf-8")
    assert "packed_perplexity" in card and "of 0 numbers" not in card


def test_the_card_says_what_a_recipe_read(tied, tmp_path):
    place = pack_model(tied[1], tmp_path / "packed", recipe="english-lstm")
    card = (place / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# LSTM on WikiText-2, 5,000 words\n")
    assert "| wikitext-2 | WikiText-2: good and featured articles" in card
    assert "CC BY-SA 3.0" in card and "| recipe | english-lstm |" in card


def test_the_card_says_what_was_read_beside_a_recipe(tied, tmp_path):
    more = {"recipe": "english-lstm", "also_read": ["udhr-langid"]}
    card = (pack_model(tied[1], tmp_path / "packed", **more) / "README.md").read_text("utf-8")
    assert "| wikitext-2 | " in card and "| udhr-langid | " in card
    with pytest.raises(ConfigError, match="got no recipe"):
        pack_model(tied[1], tmp_path / "two", also_read=["udhr-langid"])
    with pytest.raises(ConfigError, match="no-such-set"):
        pack_model(tied[1], tmp_path / "two", recipe="english-lstm", also_read=["no-such-set"])
    assert not (tmp_path / "two").exists()


def test_what_cannot_be_packed_is_refused(tmp_path):
    Summarizer("lead").save(tmp_path / "lead")
    with pytest.raises(ConfigError, match="no weights to pack"):
        pack_model(tmp_path / "lead", tmp_path / "packed")
    with pytest.raises(ConfigError, match="kind of weights"):
        pack_weights({}, "int4")


def packed_again(model, tmp_path, kind):
    model.save(tmp_path / "full")
    return seqloom.load(pack_model(tmp_path / "full", tmp_path / kind, kind))


def two_heaps(count=400, width=6):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=count)
    return rng.normal(size=(count, width)) + 3 * y[:, None] * (np.arange(width) == 0), y


@pytest.mark.parametrize("kind", ["half", "int8"])
@pytest.mark.parametrize("moved", [lambda x: x + 2020.6, lambda x: x * 1e9, lambda x: x * 1e-7])
def test_vectors_in_any_unit_are_read_alike_after_packing(tmp_path, kind, moved):
    x, y = two_heaps()
    training = {"epochs": 5, "device": "cpu"}
    model = Classifier("mlp", training=training).fit(moved(x), y)
    found = packed_again(model, tmp_path, kind)
    one, two = model.predict_proba(moved(x)), found.predict_proba(moved(x))
    assert model.score(moved(x), y) > 0.9
    assert np.abs(one - two).max() < 0.02


@pytest.mark.parametrize("outputs", [1, 20])
def test_a_regression_on_numbers_of_any_size_stays_what_it_was(tmp_path, outputs):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 300)) + 2020.6
    y = x @ rng.normal(size=(300, outputs)) + 2020.6
    model = Regressor().fit(x, y if outputs > 1 else y[:, 0])
    found = packed_again(model, tmp_path, "int8")
    assert np.array_equal(found.predict(x), model.predict(x))


def test_a_forecaster_of_years_does_not_drift(tmp_path):
    series = 2020.6 + np.sin(np.arange(120) / 5)
    training = {"epochs": 3, "device": "cpu"}
    model = Forecaster(window=8, training=training).fit(series)
    found = packed_again(model, tmp_path, "half")
    one, two = model.forecast(series).median, found.forecast(series).median
    assert np.abs(np.asarray(one) - np.asarray(two)).max() < 1e-4


def test_a_captioner_of_vectors_in_any_unit_says_the_same(tmp_path):
    x, y = two_heaps()
    texts = [("left side", "right side")[i] for i in y]
    pairs = list(zip(x + 2020.6, texts, strict=True))
    training = {"epochs": 8, "device": "cpu", "optimizer": {"rate": 0.02}}
    model = Captioner(hidden_size=16, training=training).fit(pairs)
    exact = model.evaluate(pairs)["exact"]
    assert exact > 0.9
    found = packed_again(model, tmp_path, "half")
    assert found.evaluate(pairs)["exact"] == pytest.approx(exact, abs=0.01)


def test_numbers_too_small_for_halves_stay_and_the_scales_of_words_shrink():
    torch.manual_seed(0)
    tiny = torch.randn(50) * 1e-8
    ones = torch.ones(50, dtype=torch.float64)
    large = torch.randn(5000, 3, dtype=torch.float64)
    packed = pack_weights({"tiny": tiny, "ones": ones, "large": large}, "int8", of_words=True)
    assert packed["tiny"].dtype == torch.float32
    assert packed["ones"].dtype == torch.float16  # exactly what it was
    assert packed["large"].dtype == torch.int8
    assert pack_weights({"large": large}, "int8")["large"].dtype == torch.float64


@pytest.mark.parametrize("data", ["nofile", ["nothing", 3]])
def test_a_packed_model_that_cannot_be_measured_is_not_left(tied, tmp_path, data):
    with pytest.raises(SeqloomError):
        pack_model(tied[1], tmp_path / "packed", data=data)
    assert not (tmp_path / "packed").exists()


def test_the_card_of_a_taught_model_says_what_its_teacher_read() -> None:
    read = trained_by("sst-cnn")["read"]
    assert list(read) == ["sst-trees", "glove-6b-100d-subset", "imdb"]
    assert all(
        trained_by("sst-joint-attention")["read"][name] == read[name]
        for name in read
        if name != "imdb"
    )
