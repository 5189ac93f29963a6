"""Ways to read a sequence off a model; they take a step function and know no model."""

from seqloom.decoding.beam import Hypothesis, beam_search, coverage
from seqloom.decoding.fusion import fused
from seqloom.decoding.limits import Limits
from seqloom.decoding.sampling import chances, greedy, sample
from seqloom.decoding.steps import Step, largest, reorder

__all__ = [
    "Hypothesis",
    "Limits",
    "Step",
    "beam_search",
    "chances",
    "coverage",
    "fused",
    "greedy",
    "largest",
    "reorder",
    "sample",
]
