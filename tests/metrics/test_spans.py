"""Spans against a hand-written port of conlleval's own rules, and against worked cases."""

from __future__ import annotations

import itertools
import random

import pytest

from seqloom.errors import ConfigError, InputError
from seqloom.metrics.spans import (
    TagSpan,
    convert_tags,
    find_scheme,
    first_illegal,
    is_allowed,
    score_spans,
    write_spans,
)


def end_of_chunk(prev_tag: str, tag: str, prev_type: str, kind: str) -> bool:
    """`endOfChunk` of the program conlleval, its list of cases in its own order."""
    pairs = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
    end = (prev_tag, tag) in pairs
    if prev_tag not in ("O", ".") and prev_type != kind:
        end = True
    return end or prev_tag in ("]", "[")


def start_of_chunk(prev_tag: str, tag: str, prev_type: str, kind: str) -> bool:
    """`startOfChunk` of the same."""
    pairs = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}
    start = (prev_tag, tag) in pairs
    if tag not in ("O", ".") and prev_type != kind:
        start = True
    return start or tag in ("[", "]")


def conlleval(predicted: list[list[str]], gold: list[list[str]]) -> tuple[int, int, int]:
    """The main loop of conlleval: correct, found and true chunks."""
    correct = found = there = 0
    in_correct = False
    last_g, last_gt, last_p, last_pt = "O", "", "O", ""
    rows = [
        pair
        for sentence in zip(predicted, gold, strict=True)
        for pair in [*zip(*sentence, strict=True), ("O", "O")]
    ]
    for ours, true in rows:
        (p, _, pt), (g, _, gt) = ours.partition("-"), true.partition("-")
        ends_g = end_of_chunk(last_g, g, last_gt, gt)
        ends_p = end_of_chunk(last_p, p, last_pt, pt)
        if in_correct:
            if ends_g and ends_p and last_gt == last_pt:
                in_correct = False
                correct += 1
            elif ends_g != ends_p or gt != pt:
                in_correct = False
        starts_g = start_of_chunk(last_g, g, last_gt, gt)
        starts_p = start_of_chunk(last_p, p, last_pt, pt)
        if starts_g and starts_p and gt == pt:
            in_correct = True
        there += starts_g
        found += starts_p
        last_g, last_gt, last_p, last_pt = g, gt, p, pt
    return correct, found, there


@pytest.mark.parametrize("prefixes", ["BI", "IE"])  # the program does not know E before B
def test_counts_equal_the_loop_of_conlleval_on_random_tags(prefixes):
    choose = random.Random(0)
    tags = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("NP", "VP"))]
    for _ in range(300):
        lengths = [choose.randint(1, 8) for _ in range(3)]
        ours, gold = ([choose.choices(tags, k=n) for n in lengths] for _ in range(2))
        report = score_spans(ours, gold)
        total = report.total
        assert (total.correct, total.found, total.gold) == conlleval(ours, gold)


def test_a_report_worked_by_hand():
    gold = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP"]]
    ours = [["B-NP", "I-NP", "B-NP", "B-VP"], ["O"]]
    report = score_spans(ours, gold)
    assert report.metrics() == pytest.approx(
        {"f1": 2 / 3, "precision": 2 / 3, "recall": 2 / 3, "accuracy": 0.6}
        | {"f1/NP": 0.5, "f1/VP": 1.0}
    )
    first, second, *rest = str(report).splitlines()
    assert first == "processed 5 tokens with 3 phrases; found: 3 phrases; correct: 2."
    assert second.startswith("accuracy:  60.00%; precision:  66.67%; recall:  66.67%; FB1:  66.67")
    assert rest[0].strip().startswith("NP: precision:  50.00%")


CASES = {  # the same spans, NP NP | O | NP | VP, in each scheme
    "iob1": ["I-NP", "I-NP", "B-NP", "O", "I-VP"],
    "bio": ["B-NP", "I-NP", "B-NP", "O", "B-VP"],
    "bioes": ["B-NP", "E-NP", "S-NP", "O", "S-VP"],
    "bmes": ["B-NP", "E-NP", "S-NP", "O", "S-VP"],
}


@pytest.mark.parametrize("source", CASES)
@pytest.mark.parametrize("target", CASES)
def test_schemes_convert_into_each_other(source, target):
    assert convert_tags(CASES[source], target) == CASES[target]
    assert first_illegal(CASES[target], target) is None


def test_longer_spans_have_middles():
    assert convert_tags(["B", "I", "I"], "bmes") == ["B", "M", "E"]
    assert convert_tags(["B-X", "I-X", "I-X"], "bioes") == ["B-X", "I-X", "E-X"]


@pytest.mark.parametrize("scheme", CASES)
def test_what_is_allowed_is_what_can_be_written(scheme):
    """A pair of tags may follow each other if some spans of four words are written with it."""
    prefixes = {"iob1": "BI", "bio": "BI", "bioes": "BIES", "bmes": "BMES"}[scheme]
    tags = ["O", *(f"{p}-{k}" for p in prefixes for k in "XY")]
    seen: set[tuple[str | None, str | None]] = set()

    def extend(start: int, spans: list) -> None:
        if start == 4:
            row = [None, *write_spans(spans, 4, scheme), None]
            seen.update(itertools.pairwise(row))
            return
        extend(start + 1, spans)
        for end in range(start + 1, 5):
            for kind in "XY":
                extend(end, [*spans, TagSpan(start, end, kind)])

    extend(0, [])
    for before in (None, *tags):
        for tag in (None, *tags):
            if before is not None or tag is not None:
                assert is_allowed(before, tag, scheme) == ((before, tag) in seen), (before, tag)


def test_illegal_tags_are_found_and_schemes_recognized():
    assert first_illegal(["O", "B-A", "I-B"], "bio") == 2
    assert first_illegal(["B-A", "O"], "bioes") == 1
    assert first_illegal(["B-A", "I-A"], "bioes") == 1
    assert find_scheme(["NOUN", "VERB"]) is None
    assert find_scheme(["O", "B-a", "E-a", "M-a"]) == "bmes"
    assert find_scheme(["B-a", "I-a", "E-a"]) == "bioes"
    with pytest.raises(ConfigError, match="'bilou'"):
        is_allowed("O", "O", "bilou")


def test_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="got 1 and 2"):
        score_spans([["O"]], [["O"], ["O"]])
    with pytest.raises(InputError, match="sentence 0 must have 2 tags as the true ones, got 1"):
        score_spans([["O"]], [["O", "O"]])
    with pytest.raises(InputError, match="not overlap"):
        write_spans([TagSpan(0, 2, "A"), TagSpan(1, 3, "A")], 3, "bio")
    with pytest.raises(InputError, match="got none"):
        score_spans([[]], [[]])
