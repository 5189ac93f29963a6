"""Metrics: plain functions on plain data."""

from seqloom.metrics.classification import accuracy, confusion_matrix, f1_scores
from seqloom.metrics.likelihood import bits_per, perplexity
from seqloom.metrics.regression import mean_squared_error, r_squared
from seqloom.metrics.relations import score_relations
from seqloom.metrics.similarity import analogy_answers, spearman
from seqloom.metrics.spans import score_spans

__all__ = [
    "accuracy",
    "analogy_answers",
    "bits_per",
    "confusion_matrix",
    "f1_scores",
    "mean_squared_error",
    "perplexity",
    "r_squared",
    "score_relations",
    "score_spans",
    "spearman",
]
