"""Splits by a hash: the same text is always in one part, and the parts are the whole."""

from __future__ import annotations

import hashlib

import pytest

from seqloom.data.datasets import open_dataset
from seqloom.data.datasets.hashed import PARTS, percent, read_hashed_pairs, read_titles
from seqloom.errors import DataError


def test_the_hash_is_that_of_the_words():
    number = int(hashlib.sha256(b"how are you").hexdigest(), 16) % 100
    assert percent("How are you?") == percent("  how ARE  you") == number
    assert sorted(n for part in PARTS.values() for n in part) == list(range(100))


def test_parts_are_the_whole_and_share_no_text(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"Text {i % 70}!\tNumber {i}\n" for i in range(200)))
    options = {"source_field": "a", "target_field": "b", "format": "tsv", "header": ["a", "b"]}
    parts = [list(read_hashed_pairs(file, part=p, by="source", **options)) for p in PARTS]
    assert sum(map(len, parts)) == 200
    texts = [{pair.source for pair in part} for part in parts]
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])


def test_titles_are_first_lines(tmp_path):
    file = tmp_path / "articles.jsonl"
    file.write_text('{"article": "A title\\n\\nMore of it.\\nAnd more."}\n{"article": "Alone"}\n')
    (part,) = [name for name, numbers in PARTS.items() if percent("A title") in numbers]
    (pair,) = read_titles(file, part=part, on_error="skip")
    assert (pair.source, pair.target) == ("More of it.\nAnd more.", "A title")
    with pytest.raises(
        DataError, match=r"articles\.jsonl:2: an article must have a title and more"
    ):
        list(read_titles(file, part=part))


def test_no_english_sentence_of_the_test_is_in_the_training_data(shared_data):
    train, test = (
        {pair.source.lower() for pair in open_dataset("tatoeba-cmn-eng", part, variant="en-zh")}
        for part in ("train", "test")
    )
    assert not train & test
