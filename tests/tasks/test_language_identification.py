"""One label for a whole sequence of characters: languages, told apart on articles held out."""

from __future__ import annotations

import pytest

from seqloom import Classifier
from seqloom.data import open_dataset
from seqloom.data.inputs import read_input
from seqloom.tasks.recipe import load_recipe

FOUR = ("eng", "deu", "fin", "swh")


def snippets(part: str) -> tuple[list[str], list[str]]:
    found = [e for e in open_dataset("udhr-langid", part) if e.label in FOUR]
    return [e.text for e in found], [e.label for e in found]


@pytest.mark.parametrize("arch", ["cnn", "blstm"])
def test_four_languages_in_one_script(shared_data, arch):
    """A guess by the most frequent of them would be right in about 30 of 100."""
    recipe = load_recipe("udhr-langid")
    training = {"epochs": 3, "batch": {"batch_size": 32}, "optimizer": {"rate": 0.004}}
    options = {"num_maps": 32} if arch == "cnn" else {"cell": "gru", "hidden_size": 32}
    model = Classifier(
        arch, **recipe.settings, training=training | {"device": "cpu"}, embed_size=16, **options
    )
    model.fit(*snippets("train"), valid=snippets("valid"))
    found = model.evaluate(*snippets("test"))
    assert found["accuracy"] > 0.85
    assert model.classify("Kila mtu ana haki ya elimu").label == "swh"


def test_the_recipe_describes_what_it_says(shared_data):
    recipe = load_recipe("udhr-langid")
    model = recipe.estimator()
    assert model.build_training().seed == 0
    texts = {
        part: [e.text for e in read_input(source, "labeled")]
        for part, source in (
            ("train", recipe.data.train),
            ("valid", recipe.data.valid),
            ("test", recipe.data.test),
        )
    }
    assert {len(text) for part in texts.values() for text in part} == {20}
    assert recipe.settings["text"]["unit"] == "character"
    assert recipe.target.at_least
