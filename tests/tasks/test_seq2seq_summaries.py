"""Summaries that are written."""

from __future__ import annotations

import logging

import pytest
from test_translator import PAIRS, SENTENCES, TARGETS, small

from seqloom import Summarizer
from seqloom.errors import ConfigError, InputError


@pytest.mark.parametrize("arch", ["seq2seq", "pointer", "transformer"])
def test_summaries_are_written(arch, tmp_path, caplog):
    model = small({"seq2seq": "no attention"}.get(arch, arch), Summarizer).fit(PAIRS)
    assert model.summarize(SENTENCES[0]).text == TARGETS[0]
    loaded = Summarizer.load(model.save(tmp_path / "model"))
    assert [each.text for each in loaded.summarize_all(SENTENCES)] == TARGETS
    with caplog.at_level(logging.WARNING, "seqloom"):
        measured = loaded.evaluate(PAIRS)
    assert measured["accuracy"] == 1
    assert measured.get("rouge_1", 1.0) == pytest.approx(1.0)
    assert ("rouge_1" in measured) != ("ROUGE is left out" in caplog.text)
    with pytest.raises(ConfigError, match=f"sentences chooses sentences, got 2 with arch='{arch}'"):
        model.summarize("red green", sentences=2)
    with pytest.raises(ConfigError, match=f"sentences chooses sentences, got 2 with arch='{arch}'"):
        list(model.summarize_all(["red green"], sentences=2))
    with pytest.raises(ConfigError, match=f"words chooses sentences, got 9 with arch='{arch}'"):
        model.evaluate(PAIRS, words=9)
    with pytest.raises(ConfigError, match=r"query_weight chooses sentences, got 0\.9 .* leave it"):
        model.summarize("red green", query_weight=0.9)
    with pytest.raises(ConfigError, match="unknown option of a search 'sentenses'"):
        model.summarize("red green", sentenses=2)
    assert model.summarize(SENTENCES[0], sentences=None, diversity=0.0, query_weight=0.5).words
    with pytest.raises(ConfigError, match="reading belongs to summaries by sentences"):
        Summarizer(arch, reading={"language": "en"})


@pytest.mark.parametrize("arch", ["textrank", "tfidf", "additive"])
def test_what_is_no_text_is_refused(arch):
    writes = arch == "additive"
    model = small(arch, Summarizer, training={"epochs": 1}) if writes else Summarizer(arch)
    model = model.fit(PAIRS) if writes else model
    with pytest.raises(InputError, match="a text or several must be given, got NoneType"):
        model.summarize(None)
    with pytest.raises(InputError, match="a text must be a str, got NoneType"):
        model.summarize(["red green", None])
    with pytest.raises(InputError, match="texts must be several, one after the other, got str"):
        next(model.summarize_all("red green"))
    with pytest.raises(InputError, match="a text or several must be given, got int"):
        list(model.summarize_all([5]))
    with pytest.raises(InputError, match="texts or pairs of a text and its summary, got NoneType"):
        model.evaluate(None)
    if arch != "textrank":
        with pytest.raises(InputError, match="of a text and its summary, got NoneType"):
            model.fit(None)


def test_choosing_sentences_takes_no_settings_of_writing():
    with pytest.raises(ConfigError, match=r"max_source belongs to networks.*arch='textrank'"):
        Summarizer("textrank", max_source=3)
    with pytest.raises(ConfigError, match="searches for none, got beam=3"):
        Summarizer("textrank").summarize("Cats sleep.", beam=3)
