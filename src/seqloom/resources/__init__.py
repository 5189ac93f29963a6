"""Small openly licensed texts that come with the package.

`udhr.en.txt` and `udhr.zh.txt` are the Universal Declaration of Human Rights in English and
Chinese (public domain).
"""

from __future__ import annotations

from importlib import resources

TEXTS = {"en": "udhr.en.txt", "zh": "udhr.zh.txt"}


def read_embedded(name: str) -> str:
    """Return an embedded text by its file name."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
