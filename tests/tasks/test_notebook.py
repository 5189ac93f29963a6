"""What notebooks show."""

from __future__ import annotations

from seqloom import LanguageModel
from seqloom.tasks.language_model import TextScore
from seqloom.tasks.notebook import html_table


def test_an_estimator_shows_its_settings_and_escapes_them():
    shown = LanguageModel("rnn", hidden_size=8)._repr_html_()
    assert "<th style='text-align:left'>hidden_size</th><td style='text-align:left'>8</td>" in shown
    assert "&lt;b&gt;" in html_table("t", {"a": "<b>"})


def test_surprising_words_are_redder():
    score = TextScore("a <b>", ("a", "<b>"), (-1.2, -24.0), (False, False))
    shown = score._repr_html_()
    assert "rgba(213,94,0,0.10)" in shown  # 1.2 of 12 nats
    assert "rgba(213,94,0,1.00)" in shown
    assert "&lt;b&gt;" in shown
    assert "log-probability -24.000" in shown
