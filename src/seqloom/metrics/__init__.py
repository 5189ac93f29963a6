"""Metrics: plain functions on plain data."""

from seqloom.metrics.classification import accuracy, confusion_matrix, f1_scores
from seqloom.metrics.likelihood import bits_per, perplexity

__all__ = ["accuracy", "bits_per", "confusion_matrix", "f1_scores", "perplexity"]
