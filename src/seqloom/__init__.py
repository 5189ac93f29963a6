"""Seqloom: sequence models from n-grams to attention.

Importing this package is quick: it loads neither torch nor numba. What is named here is imported
when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel as LanguageModel
    from seqloom.tasks.loading import load as load

__version__ = "0.1.0"

__all__ = ["LanguageModel", "__version__", "load"]

_PLACES = {
    "LanguageModel": "seqloom.tasks.language_model",
    "load": "seqloom.tasks.loading",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'seqloom' has no attribute {name!r}")
