"""Two directions trained together: what the loss is, what is carried, and several texts at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from seqloom import LanguageModel
from seqloom.data.batches import Batch, Padded
from seqloom.data.prepare import prepare
from seqloom.errors import ConfigError
from seqloom.models.elmo import Elmo, ElmoConfig
from seqloom.tasks.corpus import TextSources, text_examples
from seqloom.tasks.recipe import DataPlan, load_recipe, read_recipe
from seqloom.tasks.two_way_objective import TwoWayObjective, two_way_loss

TEXTS = ["the cat sat on the mat", "a dog sat on the rug", "the dog ran to the cat"] * 6
SMALL = {"char_size": 4, "filters": ((1, 4), (3, 6)), "projection_size": 6, "hidden_size": 8}
QUICK = {"epochs": 12, "batch": {"batch_size": 3}, "device": "cpu", "optimizer": {"rate": 0.05}}


@pytest.fixture
def data(tmp_path):
    return prepare(text_examples(TEXTS), tmp_path / "data")


def model_of(data, **options) -> Elmo:
    torch.manual_seed(0)
    return Elmo(ElmoConfig(vocab_size=len(data.vocabularies["words"]), **SMALL, **options)).eval()


def test_the_loss_is_the_cross_entropy_of_both_directions(data):
    model = model_of(data)
    rows, lengths = torch.randint(4, 12, (2, 2, 5)), torch.tensor([5, 3])
    windows = {name: Padded(rows[i], lengths) for i, name in enumerate(("ahead", "back"))}
    found = two_way_loss(model, Batch(np.arange(2), windows, {}), (None, None))
    assert found.items == 6
    for total, ids, read in zip(found.totals, rows, (model, model.read_back), strict=True):
        expected = 0.0
        for row, n in zip(ids, lengths.tolist(), strict=True):
            features = read(row[None, : n - 1]).features[0]
            scores = features @ model.output.weight.T + model.output.bias
            expected += functional.cross_entropy(scores, row[1:n], reduction="sum").item()
        assert total.item() == pytest.approx(expected, rel=1e-5)


def test_the_direction_back_reads_sentences_from_their_ends(data):
    objective = TwoWayObjective(model_of(data), data, None, lanes=1, window=7)
    batch = next(iter(objective.batches(0, 0, rank=0, world_size=1)))
    words = data.vocabularies["words"]
    assert words.decode(batch["ahead"].values[0]) == ["</s>", *TEXTS[0].split(), "</s>"]
    assert words.decode(batch["back"].values[0]) == ["</s>", *TEXTS[0].split()[::-1], "</s>"]


def test_both_losses_fall_and_evaluation_says_both():
    model = LanguageModel("elmo", window=7, training=QUICK, **SMALL).fit(TEXTS, TEXTS[:6])
    for name in ("forward_perplexity", "backward_perplexity"):
        assert model.metrics_[f"valid_{name}"] < 5  # 13 words; 13 where nothing was learned
    found = model.evaluate(TEXTS[:6])
    assert found["perplexity"] < 5 and found["backward_perplexity"] < 5


def test_the_state_is_carried_or_not(data):
    runs = {}
    for share in (0.0, 1.0):
        model = model_of(data, state_reset=share)
        objective = TwoWayObjective(model, data, None, lanes=2, window=4)
        batches = [b.tensors() for b in objective.batches(0, 0, rank=0, world_size=1)][:2]
        runs[share] = [objective.loss(model, batch).total.item() for batch in batches]
    assert runs[0.0][0] == runs[1.0][0]
    assert runs[0.0][1] != runs[1.0][1]
    whole = two_way_loss(model, batches[1], (None, None))
    assert runs[1.0][1] == pytest.approx(sum(t.item() for t in whole.totals) / 2)


def test_some_states_are_dropped_at_random(data):
    model = model_of(data, state_reset=0.5)
    objective = TwoWayObjective(model, data, None, lanes=64, window=1)
    objective.loss(model, next(iter(objective.batches(0, 0, rank=0, world_size=1))).tensors())
    ahead, back = objective._kept()
    gone = (ahead.h == 0).all(dim=(1, 2))
    assert 0.2 < gone.float().mean().item() < 0.8
    assert torch.equal(gone, (back.c == 0).all(dim=(1, 2)))


def test_a_run_resumes_with_the_states_of_both_directions(data):
    model = model_of(data)
    objective = TwoWayObjective(model, data, None, lanes=2, window=4)
    assert objective.carry() == {}
    batches = [b.tensors() for b in objective.batches(0, 0, rank=0, world_size=1)]
    objective.loss(model, batches[0])
    kept = {name: tensor.clone() for name, tensor in objective.carry().items()}
    expected = objective.loss(model, batches[1]).total
    other = TwoWayObjective(model, data, None, lanes=2, window=4)
    other.restore(kept)
    assert torch.equal(other.loss(model, batches[1]).total, expected)
    other.restore({})
    assert other.states == (None, None)


def test_several_sources_follow_each_other(tmp_path):
    for name, text in (("a", "One. Two two.\n"), ("b", "Three.\n")):
        (tmp_path / f"{name}.txt").write_text(text)
    paths = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    plan = DataPlan(train=tuple(paths), sentences=True)
    (source,) = plan.open("lm", plan.train)
    for _ in range(2):  # read anew each time
        assert [each.text for each in source] == ["One.", "Two two.", "Three."]
    assert str(source) == f"{paths[0]}, {paths[1]}"
    assert [each.text for each in TextSources(paths)] == ["One. Two two.", "Three."]
    assert DataPlan(train=paths[0]).open("lm", paths[0]) == (paths[0],)
    with pytest.raises(ConfigError, match="got task 'tag'"):
        plan.open("tag", plan.train)


def test_the_recipes_build_their_models():
    for name, arch in (
        ("english-elmo", "elmo"),
        ("wikitext2-elmo", "elmo"),
        ("pd199801-elmo", "elmo"),
    ):
        plan = load_recipe(name)
        assert plan.estimator().build_config(vocab_size=10).num_layers == 2
        assert plan.arch == arch
    found = read_recipe({"task": "lm", "arch": "elmo", "data": {"train": ["a", "b"]}})
    assert found.data.train == ("a", "b")
