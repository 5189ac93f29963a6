"""How results show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


def html_table(title: str, rows: Mapping[str, Any]) -> str:
    """A table of names and values."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(str(name))}</th>"
        f"<td style='text-align:left'>{escape(_shown(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"


def html_words(words: Sequence[str], weights: Sequence[float], notes: Sequence[str]) -> str:
    """Words on a shade of red from 0 to 1, each with a note that shows under the pointer."""
    spans = (
        f"<span title='{escape(note, quote=True)}' "
        f"style='background:rgba(213,94,0,{weight:.2f});padding:0 2px'>{escape(word)}</span>"
        for word, weight, note in zip(words, weights, notes, strict=True)
    )
    return f"<p>{' '.join(spans)}</p>"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
