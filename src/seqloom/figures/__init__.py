"""The few ways we draw: curves, bars, heat maps over words, shaded sentences and trees.

Every function returns a matplotlib `Figure`; `save` writes it. matplotlib is imported when a
figure is drawn, never before, and its global state (pyplot, rcParams) is left alone.
"""

from seqloom.figures.charts import bars, curve, grouped_bars
from seqloom.figures.style import save
from seqloom.figures.trees import TreeNode, tree
from seqloom.figures.words import heatmap, word_weights

__all__ = [
    "TreeNode",
    "bars",
    "curve",
    "grouped_bars",
    "heatmap",
    "save",
    "tree",
    "word_weights",
]
