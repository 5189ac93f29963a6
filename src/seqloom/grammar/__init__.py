"""Grammar-based language models: a probabilistic grammar read off a treebank."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.grammar.config import PcfgConfig
    from seqloom.grammar.model import Parse, PcfgModel, Reader
    from seqloom.grammar.rules import Rules
    from seqloom.grammar.treebank import bracketed, open_trees, plain_tree, sentences

# Name -> where it lies; numba is loaded when one of them is asked for.
_PLACES = {
    "Parse": "model",
    "PcfgConfig": "config",
    "PcfgModel": "model",
    "Reader": "model",
    "Rules": "rules",
    "bracketed": "treebank",
    "open_trees": "treebank",
    "plain_tree": "treebank",
    "sentences": "treebank",
}

__all__ = [
    "Parse",
    "PcfgConfig",
    "PcfgModel",
    "Reader",
    "Rules",
    "bracketed",
    "open_trees",
    "plain_tree",
    "sentences",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(f"seqloom.grammar.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
