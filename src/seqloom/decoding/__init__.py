"""Ways to read a sequence off a model; they take a step function and know no model."""

from seqloom.decoding.beam import Hypothesis, beam_search, coverage
from seqloom.decoding.ctc import Labeling, LabelLanguage, best_path, prefix_search
from seqloom.decoding.fusion import fused
from seqloom.decoding.limits import Limits
from seqloom.decoding.sampling import Drawn, chances, greedy, sample
from seqloom.decoding.steps import Step, largest, reorder

__all__ = [
    "Drawn",
    "Hypothesis",
    "LabelLanguage",
    "Labeling",
    "Limits",
    "Step",
    "beam_search",
    "best_path",
    "chances",
    "coverage",
    "fused",
    "greedy",
    "largest",
    "prefix_search",
    "reorder",
    "sample",
]
