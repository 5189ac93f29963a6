"""Small openly licensed texts that come with the package; `NOTICE` says where they are from."""

from __future__ import annotations

from importlib import resources

ENGLISH, CHINESE = "udhr.en.txt", "udhr.zh.txt"  # the Universal Declaration of Human Rights
SHAKESPEARE = "shakespeare.txt"  # lines of plays
TANG = "tang.txt"  # a quatrain a line
NAMES = "names.tsv"  # surnames and their languages


def read_embedded(name: str) -> str:
    """Return an embedded text by its file name."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
