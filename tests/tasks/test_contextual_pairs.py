"""Words in context at the source of translators and of writers of summaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom import Embedder, Summarizer, Translator, load
from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.context import WordsInContext

TEXTS = ["the cat sat on the mat", "a dog sat on the rug", "the dog ran to the cat"] * 6
PAIRS = [(text, " ".join(reversed(text.split()))) for text in TEXTS]
QUICK = {"epochs": 2, "batch": {"batch_size": 4}, "device": "cpu", "optimizer": {"rate": 0.01}}
SMALL = {"char_size": 4, "filters": ((1, 4), (3, 6)), "projection_size": 6, "hidden_size": 8}
SIZES: dict[str, dict[str, Any]] = {
    "seq2seq": {"embed_size": 8, "hidden_size": 8},
    "pointer": {"embed_size": 8, "hidden_size": 8},
    "transformer": {"hidden_size": 8, "num_heads": 2, "num_layers": 1},
}


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder("elmo", training=QUICK, **SMALL).fit(TEXTS)


def fitted(arch: str, contextual: Any, **more: Any) -> Translator:
    given = {**SIZES[arch], "training": QUICK, **more}
    return Translator(arch, contextual=contextual, **given).fit(PAIRS, valid=PAIRS[:3])


def said(model: Any) -> list[float]:
    return [model.score(source, target) for source, target in PAIRS[:3]]


@pytest.mark.parametrize("arch", list(SIZES))
@pytest.mark.parametrize("more", [{}, {"tuned": True, "layer_norm": True}], ids=["", "tuned"])
def test_a_saved_translator_contains_its_embedder(embedder, arch, more, tmp_path):
    model = fitted(arch, {"model": embedder, **more})
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert said(loaded) == said(model)
    assert (tmp_path / "model" / "embedder" / "weights.safetensors").is_file()
    assert [each.text for each in loaded.translate(TEXTS[:3])] == [
        each.text for each in model.translate(TEXTS[:3])
    ]
    assert said(load(loaded.save(tmp_path / "again"))) == said(model)
    kept = Embedder.load(tmp_path / "model" / "embedder").model_.state_dict()
    given = embedder.model_.state_dict()
    assert any(not torch.equal(kept[name], given[name]) for name in kept) == bool(more)


def test_a_source_is_read_as_the_equation_says(embedder):
    """By hand: the layers of the words in their sentence, none of the end of the text."""
    model = fitted("seq2seq", {"model": embedder, "dropout": 0.0})
    network, text = model.model_, model.text_
    read = text.read("the dog sat")
    (found,) = embedder.embed_sentences([["the", "dog", "sat"]])
    w = network.encoder.input.context.mixes["input"]
    shares = torch.softmax(w.weights.detach(), dim=0).numpy()
    mixed = w.scale.item() * np.tensordot(shares, np.asarray(found.layers, np.float32), axes=1)
    mixed = np.concatenate([mixed, np.zeros((1, mixed.shape[1]))])
    own = network.encoder.input.embedding.weight.detach().numpy()[read.items]
    joined = network.encoder.input.joined
    expected = np.concatenate([own, mixed], axis=1) @ joined.weight.detach().numpy().T
    expected = expected + joined.bias.detach().numpy()
    layers = torch.from_numpy(text.context([read.words])[0])[None]
    source = WordsInContext(torch.from_numpy(read.items).long()[None], layers)
    got = network.input(source, torch.tensor([4]))[0].detach()
    assert_close(got, torch.from_numpy(expected).float(), atol=2e-3, rtol=2e-3)  # halves


def test_batches_and_two_passes_change_nothing(embedder):
    model = fitted("seq2seq", embedder, consistency=1.0)
    sources = [*TEXTS[:3], "the cat", "a dog ran to the rug on the mat"]
    whole = [each.text for each in model.translate(sources)]
    assert whole == [each.text for each in model.translate(sources, batch_size=1)]


def test_a_writer_of_summaries_reads_them_too(embedder, tmp_path):
    examples = [(text, [" ".join(text.split()[:2])]) for text in TEXTS]
    model = Summarizer("pointer", contextual=embedder, training=QUICK, **SIZES["pointer"])
    model.fit([text for text, _ in examples], [one[0] for _, one in examples])
    model.save(tmp_path / "model")
    text = TEXTS[0]
    assert load(tmp_path / "model").summarize(text).text == model.summarize(text).text


def test_what_is_refused(embedder):
    with pytest.raises(ConfigError, match=r"sources of words, got pieces.*'subword'"):
        fitted("seq2seq", embedder, text={"unit": "subword"})
    vectors = [(np.ones((2, 3)), "a b"), (np.zeros((1, 3)), "b")]
    with pytest.raises(ConfigError, match="sources of words, got vectors"):
        Translator("seq2seq", contextual=embedder, training=QUICK).fit(vectors)
    with pytest.raises(ConfigError, match="at their input alone"):
        fitted("seq2seq", {"model": embedder, "insert": ["output"]})
    with pytest.raises(ConfigError, match="contextual belongs to networks that write summaries"):
        Summarizer("textrank", contextual=embedder)
    model = fitted("seq2seq", embedder)
    with pytest.raises(ShapeError, match="reads words in context, got words alone"):
        model.model_.encode(torch.tensor([[4, 5]]), torch.tensor([2]))
