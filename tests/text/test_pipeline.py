"""Normalize, then tokenize: words of the normalized text, offsets into the original."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config import from_dict, to_dict
from seqloom.errors import ConfigError
from seqloom.text import Normalizer, SubwordTokenizer, TextConfig, TextPipeline
from texts import any_text

PIECES = SubwordTokenizer.train(["the lowest of the low 低头"] * 5, 300)
normalizers = st.builds(
    Normalizer,
    form=st.sampled_from(["none", "NFC", "NFKC", "NFKD"]),
    lowercase=st.booleans(),
    straight_quotes=st.booleans(),
    drop_controls=st.booleans(),
    single_blanks=st.booleans(),
)
configs = st.builds(
    TextConfig,
    unit=st.sampled_from(["word", "space", "character", "subword"]),
    language=st.sampled_from(["auto", "en", "zh"]),
    normalizer=normalizers,
)


def pipeline_of(config):
    return TextPipeline(config, subword=PIECES if config.unit == "subword" else None)


@given(configs, any_text)
def test_words_are_those_of_the_normalized_text_and_places_lie_in_the_original(config, text):
    pipeline = pipeline_of(config)
    tokens = pipeline(text)
    assert tokens.source == text
    assert tokens.words == pipeline.words(text)
    assert tokens.words == pipeline.tokenizer.words(config.normalizer(text).text)
    before = (0, 0)
    for start, end in tokens.spans:
        assert 0 <= start < end <= len(text)
        assert before[0] <= start and before[1] <= end
        before = (start, end)


@given(configs)
def test_a_config_survives_as_plain_values(config):
    assert from_dict(TextConfig, to_dict(config)) == config


def test_the_original_spelling_is_at_the_place():
    pipeline = TextPipeline(TextConfig(normalizer=Normalizer(form="NFKC", lowercase=True)))
    text = "Ｔｈｅ ﬁrst Cafe\u0301 doesn't"
    tokens = pipeline(text)
    assert tokens.words == ["the", "first", "café", "does", "n't"]
    found = [text[start:end] for start, end in tokens.spans]
    assert found == ["Ｔｈｅ", "ﬁrst", "Cafe\u0301", "does", "n't"]
    assert pipeline.detokenize(tokens) == "the first café doesn't"


def test_the_units():
    text = "don't 低"
    for unit, words in {
        "word": ["do", "n't", "低"],
        "space": ["don't", "低"],
        "character": list(text),
    }.items():
        assert TextPipeline(TextConfig(unit=unit)).words(text) == words
    assert TextPipeline(TextConfig(unit="subword"), subword=PIECES).words(text) == PIECES.words(
        text
    )


def test_the_default_joins_accents_and_reads_words():
    assert TextPipeline().words("cafe\u0301!") == ["café", "!"]


class Letters:
    def cut(self, text):
        return list(text)


def test_a_segmenter_of_ones_own():
    pipeline = TextPipeline(TextConfig(language="zh"), segmenter=Letters())
    assert pipeline.words("北京 大学") == ["北", "京", "大", "学"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "words"}, "unknown unit 'words'; did you mean 'word'"),
        ({"unit": None}, "unknown unit None"),
        ({"language": "cn"}, "unknown language 'cn'"),
    ],
)
def test_unknown_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        TextConfig(**options)


def test_pieces_go_with_the_unit_subword_and_only_then():
    with pytest.raises(ConfigError, match="got unit='subword' and subword=None"):
        TextPipeline(TextConfig(unit="subword"))
    with pytest.raises(ConfigError, match="got unit='word' and subword=<"):
        TextPipeline(subword=PIECES)
