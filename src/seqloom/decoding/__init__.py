"""Ways to read a sequence off a model; they take a step function and know no model."""

from seqloom.decoding.sampling import Step, sample

__all__ = ["Step", "sample"]
