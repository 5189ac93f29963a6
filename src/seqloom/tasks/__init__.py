"""What people import: one estimator a task."""

from seqloom.tasks.loading import load

__all__ = ["load"]
