"""Sentences of reviews, written as the treebank writes its own."""

from __future__ import annotations

import json
from pathlib import Path

from seqloom.data.datasets.corpora import read_review_sentences


def test_each_sentence_comes_once_with_the_label_of_its_review(tmp_path: Path) -> None:
    reviews = [
        ("A good film.<br /><br />It was (very) good. Short one.", "pos"),
        ('It was (very) good. He said "no" and left us.', "neg"),
    ]
    file = tmp_path / "reviews.jsonl"
    file.write_text("\n".join(json.dumps({"text": t, "label": label}) for t, label in reviews))
    found = [(each.text, each.label) for each in read_review_sentences(file, shortest=4, longest=9)]
    assert found == [
        ("A good film .", "pos"),
        ("It was -LRB- very -RRB- good .", "pos"),
        ("He said `` no '' and left us .", "neg"),
    ]


def test_what_is_malformed_is_told_of(tmp_path: Path) -> None:
    file = tmp_path / "reviews.jsonl"
    file.write_text('{"text": "A good film was made.", "label": "pos"}\n{"text": 3}\n')
    records = read_review_sentences(file, shortest=1, longest=9, on_error="skip")
    assert len(list(records)) == 1
    assert records.skipped == 1
