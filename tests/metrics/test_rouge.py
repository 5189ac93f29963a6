"""ROUGE against computation by hand."""

from __future__ import annotations

import importlib.util

import pytest

from seqloom.errors import BackendError, ConfigError, ShapeError
from seqloom.metrics.rouge import _Characters, rouge

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("rouge_score") is None,
    reason="rouge-score is not installed (pip install 'seqloom[summaries]')",
)


def f1(common: int, own: int, other: int) -> float:
    return 2 * common / (own + other)


@needs_package
def test_words_pairs_and_the_longest_run_by_hand():
    # Lin (2004), section 3.1: "police killed the gunman" and two candidates.
    reference = "police killed the gunman"
    first = rouge("police kill the gunman", reference, stem=False)
    second = rouge("the gunman kill police", reference, stem=False)
    assert first["rouge_l"].f1 == pytest.approx(3 / 4)
    assert second["rouge_l"].f1 == pytest.approx(2 / 4)
    assert first["rouge_1"].f1 == second["rouge_1"].f1 == pytest.approx(3 / 4)
    assert first["rouge_2"].f1 == second["rouge_2"].f1 == pytest.approx(f1(1, 3, 3))
    assert rouge("police kill the gunman", reference)["rouge_1"].f1 == pytest.approx(1.0)


@needs_package
def test_precision_and_recall():
    found = rouge("the cat", "the cat sat down", stem=False)["rouge_1"]
    assert (found.precision, found.recall) == (1.0, 0.5)


@needs_package
def test_the_summary_level_takes_sentences_apart():
    # Lin (2004), section 3.2: w1 w2 w3 w4 w5 against w1 w2 w6 w7 w8 and w1 w3 w8 w9 w5.
    reference, summary = "a1 a2 a3 a4 a5", ["a1 a2 a6 a7 a8", "a1 a3 a8 a9 a5"]
    found = rouge(summary, reference, stem=False)
    assert found["rouge_lsum"].recall == pytest.approx(4 / 5), "the union of both is w1 w2 w3 w5"
    assert found["rouge_lsum"].precision == pytest.approx(4 / 10)
    # As one sequence the longest common subsequence is w1 w2 w3 w5 here too; order decides:
    turned = rouge(["a4 a5", "a1 a2"], "a1 a2\na4 a5", stem=False)
    assert turned["rouge_lsum"].f1 == pytest.approx(1.0)
    assert turned["rouge_l"].f1 == pytest.approx(2 / 4)


@needs_package
def test_the_best_of_several_references_counts():
    found = rouge("the cat", ["a dog", "the cat", "the dog"])
    assert found["rouge_1"].f1 == 1.0


@needs_package
def test_chinese_is_compared_by_characters():
    found = rouge("我爱北京", "我爱中国", language="zh")
    assert found["rouge_1"].f1 == pytest.approx(2 / 4)
    assert found["rouge_2"].f1 == pytest.approx(1 / 3)
    assert found["rouge_l"].f1 == pytest.approx(2 / 4)
    assert rouge("我爱北京", "我爱中国")["rouge_1"].f1 == 0.0, "its own rules see no Chinese word"


def test_characters_and_other_words():
    assert _Characters().tokenize("用GPT-4写，2024年。") == [
        "用", "gpt", "4", "写", "2024", "年",
    ]  # fmt: skip


def test_wrong_input_is_refused():
    with pytest.raises(ConfigError, match="unknown language 'fr'"):
        rouge("a", "b", language="fr")
    with pytest.raises(ShapeError, match="a reference to compare with, got none"):
        rouge("a", [])


def test_a_missing_package_is_named(monkeypatch):
    import sys

    from seqloom.metrics import rouge as module

    monkeypatch.setitem(sys.modules, "rouge_score", None)
    module._scorer.cache_clear()
    with pytest.raises(BackendError, match=r"rouge-score.*seqloom\[summaries\]"):
        rouge("a", "b")
    module._scorer.cache_clear()


@needs_package
def test_a_summarizer_is_evaluated():
    from seqloom import Summarizer

    data = [("The cat sat. Dogs ran far.", "The cat sat."), ("一只猫。两条狗。", "一只狗。")]
    found = Summarizer("lead").evaluate(data, sentences=1)
    assert found["rouge_1"] == pytest.approx((1 + f1(2, 3, 3)) / 2)
    assert found["examples"] == 2
