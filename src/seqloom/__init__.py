"""Seqloom: sequence models from n-grams to attention.

Importing this package is quick: it loads neither torch nor numba. A room is imported when it is
named (`from seqloom.text import WordTokenizer`).
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
