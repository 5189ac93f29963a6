"""Counted language models: count, smooth, store, query, ARPA."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.ngram.arpa import read_arpa, write_arpa
    from seqloom.ngram.entropy import prune_by_entropy
    from seqloom.ngram.estimation import estimate
    from seqloom.ngram.levels import Level, Ngrams
    from seqloom.ngram.methods import SMOOTHINGS, Smoothing
    from seqloom.ngram.mixing import mix
    from seqloom.ngram.model import NgramModel, Perplexity, WordScore
    from seqloom.ngram.stores import write_store
    from seqloom.ngram.workspace import Workspace

# Name -> where it lies; numba is loaded when one of them is asked for.
_PLACES = {
    "Level": "levels",
    "NgramModel": "model",
    "Ngrams": "levels",
    "Perplexity": "model",
    "SMOOTHINGS": "methods",
    "Smoothing": "methods",
    "WordScore": "model",
    "Workspace": "workspace",
    "estimate": "estimation",
    "mix": "mixing",
    "prune_by_entropy": "entropy",
    "read_arpa": "arpa",
    "write_arpa": "arpa",
    "write_store": "stores",
}

__all__ = [
    "SMOOTHINGS",
    "Level",
    "NgramModel",
    "Ngrams",
    "Perplexity",
    "Smoothing",
    "WordScore",
    "Workspace",
    "estimate",
    "mix",
    "prune_by_entropy",
    "read_arpa",
    "write_arpa",
    "write_store",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
