"""Snippets of the Declaration of Human Rights: no article in two parts, nothing lost."""

from __future__ import annotations

import re

import pytest

from seqloom.data import open_dataset
from seqloom.data.datasets.declaration import read_snippets
from seqloom.data.datasets.store import dataset_file
from seqloom.errors import ConfigError


@pytest.fixture
def archive(shared_data):
    return dataset_file("udhr-langid", "udhr2-52langs.tar")


def texts(archive, part, **options) -> dict[str, str]:
    """What a part holds of each language, by snippets of one character."""
    found: dict[str, str] = {}
    for example in read_snippets(archive, part=part, characters=1, **options):
        found[example.label] = found.get(example.label, "") + example.text
    return found


def test_parts_are_the_articles_they_say(archive):
    train, valid, test = (texts(archive, part) for part in ("train", "valid", "test"))
    assert len(train) == len(valid) == len(test) == 52
    for articles, found in ((range(1, 23), train), (range(23, 26), valid), (range(26, 31), test)):
        numbers = [int(n) for n in re.findall(r"Article (\d+)", found["eng"])]
        assert numbers == list(articles)
        assert [int(n) for n in re.findall(r"Artikel (\d+)", found["deu"])] == list(articles)
        assert [int(n) for n in re.findall(r"第(\d+)条", found["jpn"])] == [
            n
            for n in articles
            if n != 23  # its heading is misspelled there
        ]


def test_the_parts_are_the_whole(archive):
    parts = [texts(archive, part) for part in ("train", "valid", "test")]
    for whole in open_dataset("udhr-langid", "all", variant="texts"):
        assert " ".join(part[whole.label] for part in parts) == " ".join(whole.text.split())


def test_snippets_follow_each_other_or_overlap(archive):
    whole = texts(archive, "test")["eng"]
    found = [e.text for e in read_snippets(archive, part="test") if e.label == "eng"]
    assert "".join(found) == whole[: 20 * (len(whole) // 20)]
    half = [e.text for e in read_snippets(archive, part="test", step=10) if e.label == "eng"]
    assert half[::2] == found
    assert half[1] == whole[10:30]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part": "tests"}, "did you mean 'test'"),
        ({"characters": 0}, "must be positive, got 0 and 0"),
        ({"step": 0}, "must be positive, got 20 and 0"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        read_snippets("nowhere.tar", **options)
