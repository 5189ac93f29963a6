"""A trained segmenter: tags to words, the text pipeline, and quick numbers equal to slow ones."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from seqloom import Tagger, load
from seqloom.data.examples import TaggedTokens
from seqloom.errors import ConfigError
from seqloom.models.tagger import CNNTagger, CNNTaggerConfig
from seqloom.tasks.segmenter import (
    CharacterIndex,
    CompiledCutter,
    as_characters,
    as_words,
    cut_texts,
)
from seqloom.tasks.tagger_objective import best_tags
from seqloom.text import TextConfig, TextPipeline

WORDS = ["我们", "今天", "去", "北京", "天安门", "看", "电影", "了", "。", "T恤", "2026年"]


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    choose = random.Random(0)
    rows = [choose.choices(WORDS, k=choose.randint(1, 9)) for _ in range(80)]
    examples = [TaggedTokens(tuple(row), ("n",) * len(row)) for row in rows]
    training = {"epochs": 25, "device": "cpu", "optimizer": {"rate": 0.01}}
    options = {"embed_size": 8, "feature_embed_size": 8, "hidden_size": 16, "dropout": 0.0}
    return Tagger(
        "cnn", segment=True, fold=False, features=["next", "last"], training=training, **options
    ).fit(examples)


def test_words_to_tags_and_back():
    choose = random.Random(1)
    for _ in range(50):
        words = choose.choices(WORDS, k=6)
        characters, tags = as_characters(words)
        assert as_words("".join(characters), tags) == words


def test_cuts_words_it_knows_and_keeps_every_character(fitted):
    assert fitted.metrics_["valid_f1"] > 0.95
    assert fitted.cut("我们今天去天安门。") == ["我们", "今天", "去", "天安门", "。"]
    for text in ("", "  ", "我们 去\n北京  ", "龘\U0001f600x我们", "\ud800我"):
        assert "".join(fitted.cut(text)) == text
    texts = ["我们去北京", "", "看 电影"]
    assert fitted.cut_all(texts) == [fitted.cut(text) for text in texts]


def test_scores_are_those_of_words(fitted):
    gold = [["我们", "去", "北京"], ["看", "电影"]]
    cut = [fitted.cut("".join(row)) for row in gold]
    right = found = 0
    for ours, theirs in zip(cut, gold, strict=True):
        spans = []
        for row in (ours, theirs):
            ends = np.cumsum([len(word) for word in row])
            spans.append({(end - len(word), end) for word, end in zip(row, ends, strict=True)})
        right, found = right + len(spans[0] & spans[1]), found + len(spans[0])
    examples = [TaggedTokens(tuple(row), ("n",) * len(row)) for row in gold]
    metrics = fitted.evaluate(examples)
    assert metrics["precision"] == pytest.approx(right / found)
    assert metrics["recall"] == pytest.approx(right / 5)


def test_numbers_an_array_at_a_time_equal_those_word_by_word(fitted):
    texts = ["我们去北京", "看", "龘x电影了\U0001f600", "天安门天安门"]
    assert CharacterIndex.fits(fitted.reader_)
    quick, slow = CharacterIndex(fitted.reader_)(texts), fitted.reader_([list(t) for t in texts])
    for a, b in zip([quick.items, *quick.features], [slow.items, *slow.features], strict=True):
        assert np.array_equal(a.flat, b.flat)
        assert np.array_equal(a.offsets, b.offsets)


@pytest.mark.parametrize("output", ["crf", "softmax"])
def test_one_compiled_loop_gives_the_tags_of_the_network(fitted, output):
    """Widths of 2, inputs that are no multiple of 4, texts of one character, several threads."""
    reader = fitted.reader_
    sizes = tuple(len(known) for known in reader.features.values())
    torch.manual_seed(0)
    config = CNNTaggerConfig(
        vocab_size=len(reader.words),
        input_size=0,
        output_size=4,
        feature_sizes=sizes,
        char_vocab_size=0,
        output=output,
        embed_size=3,
        feature_embed_size=2,
        hidden_size=21,
        widths=(3, 2, 1),
    )
    model = CNNTagger(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    torch.nn.init.zeros_(model.scores.bias)
    choose = random.Random(3)
    texts = ["".join(choose.choices(WORDS, k=choose.randint(1, 30))) for _ in range(300)] + ["我"]
    assert CompiledCutter.fits(model, reader)
    quick = CompiledCutter(model, reader)(texts)
    slow = best_tags(model, reader([list(text) for text in texts]))
    assert len(np.unique(np.concatenate(quick))) > 2
    for ours, expected in zip(quick, slow, strict=True):
        assert np.array_equal(ours, expected)


def test_any_tags_make_the_words_of_the_visible_loop():
    choose = random.Random(2)
    names = ["B", "E", "M", "S"]
    for _ in range(100):
        texts = ["".join(choose.choices("ab 中\n", k=choose.randint(0, 8))) for _ in range(3)]
        given = {}

        def tags_of(pieces, given=given):
            drawn = [np.array(choose.choices(range(4), k=len(piece))) for piece in pieces]
            given["pieces"] = [*zip(pieces, drawn, strict=True)]
            return drawn

        cut = cut_texts(texts, names, tags_of)
        expected = iter(
            as_words(piece, [names[i] for i in row]) for piece, row in given.get("pieces", [])
        )
        flat = [word for row in cut for word in row if not word.isspace()]
        assert flat == [word for row in expected for word in row]
        assert ["".join(row) for row in cut] == texts


def test_the_text_pipeline_takes_it_in_place_of_the_dictionary(fitted, tmp_path):
    again = load(fitted.save(tmp_path / "segmenter"))
    pipeline = TextPipeline(TextConfig(language="zh"), segmenter=again)
    tokens = pipeline("我们 今天去天安门")
    assert tokens.words == ["我们", "今天", "去", "天安门"]
    assert tokens.spans[1] == (3, 5)


def test_a_tagger_of_words_does_not_cut():
    rows, tags = [["a", "b"], ["b", "a"]], [["X", "Y"], ["Y", "X"]]
    model = Tagger("cnn", training={"max_steps": 1, "device": "cpu"}, valid_share=0).fit(rows, tags)
    with pytest.raises(ConfigError, match="segment=True"):
        model.cut("a")
