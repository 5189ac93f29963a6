"""Extractive summaries: sentences scored, chosen and put back in the order of the text."""

from seqloom.extract.choice import Length, choose
from seqloom.extract.config import FEATURES, ReadingConfig
from seqloom.extract.features import feature_table
from seqloom.extract.keywords import Keyword, find_keywords
from seqloom.extract.markup import PlainText, guess_markup, read_markup
from seqloom.extract.reading import Document, Reader, Tagger
from seqloom.extract.summary import ChosenSentence, Summary
from seqloom.extract.table import TermTable
from seqloom.extract.units import Unit, split_units

__all__ = [
    "FEATURES",
    "ChosenSentence",
    "Document",
    "Keyword",
    "Length",
    "PlainText",
    "Reader",
    "ReadingConfig",
    "Summary",
    "Tagger",
    "TermTable",
    "Unit",
    "choose",
    "feature_table",
    "find_keywords",
    "guess_markup",
    "read_markup",
    "split_units",
]
