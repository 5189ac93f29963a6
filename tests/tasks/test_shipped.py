"""The models that come with the package: they load, say what they read, and reach what they say."""

from __future__ import annotations

import pytest

import seqloom
from seqloom.data.datasets.catalog import find_dataset
from seqloom.tasks.directory import read_model, shipped_models
from seqloom.tasks.recipe import load_recipe

SHIPPED = shipped_models()
QUICK = ("english-ngram", "english-nnlm")
FIGURES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name, place in SHIPPED.items()
    if "packed_measured_on" in read_model(place).header.provenance
]


def test_what_is_to_come_with_the_package_does():
    walk = ("ngram", "nnlm", "rnn", "lstm", "attention", "transformer")
    assert {f"english-{arch}" for arch in walk} <= set(SHIPPED)
    assert {"tang-lstm", "english-pos", "english-ner", "english-elmo", "english-reader"} <= set(
        SHIPPED
    )
    assert {"tatoeba-zh-en", "tatoeba-en-zh", "debian-pointer"} <= set(SHIPPED)


def size_of(names):
    """Bytes of some models."""
    files = [file for name in names for file in SHIPPED[name].rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def test_all_of_it_is_small():
    by_task = {}
    for name, place in SHIPPED.items():
        by_task.setdefault(read_model(place).header.task, []).append(name)
    assert size_of(SHIPPED) <= 40e6
    assert size_of(by_task["lm"]) <= 6e6
    assert size_of([*by_task["tag"], *by_task["classify"], *by_task["relate"]]) <= 6e6
    assert size_of([*by_task["translate"], *by_task["summarize"]]) <= 12e6
    assert size_of(by_task["answer"]) <= 10e6
    assert size_of(by_task["embed"]) <= 6e6


@pytest.mark.parametrize("name", SHIPPED)
def test_a_card_names_the_recipe_and_texts_that_may_be_passed_on(name):
    facts = read_model(SHIPPED[name]).header.provenance
    recipe = load_recipe(facts["recipe"])
    card = (SHIPPED[name] / "README.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {recipe.title}\n")
    assert facts["read"]
    for source in facts["read"]:
        found = find_dataset(source)
        assert found.redistributable, source
        assert found.license in card and found.citation.replace("|", "\\|") in card


@pytest.mark.parametrize("name", FIGURES)
def test_a_model_reaches_what_its_card_says(name, shared_data):
    model = seqloom.load(name)
    header = read_model(SHIPPED[name]).header
    found = model.evaluate(header.provenance["packed_measured_on"])
    for what, value in found.items():
        said = header.metrics[f"packed_{what}"]
        assert value == (said if isinstance(said, str) else pytest.approx(said, rel=1e-3)), what


def test_models_of_the_walk_share_their_words():
    words = {
        seqloom.load(name).vocabulary_.hash
        for name in ("english-ngram", "english-nnlm", "english-lstm", "english-transformer")
    }
    assert len(words) == 1
