"""A tagger of windows over looked-up rows as one compiled loop, for use without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.kernels.tag_windows import WindowWeights, tag_sequences
from seqloom.nn.crf import CRF


class CompiledWindows:
    """The best tags of sequences by layers of windows and a CRF, on all cores.

    Its weights are those of the layers when it was made.

    Args:
        tables: What is looked up of each step, side by side.
        layers: The layers, each with a rectifier after it.
        widths: Of their windows.
        scores: The layer that makes scores.
        output: The CRF; any other module stands for tags one by one.
    """

    def __init__(
        self,
        tables: Sequence[nn.Embedding],
        layers: Sequence[nn.Linear],
        widths: Sequence[int],
        scores: nn.Linear,
        output: nn.Module,
    ) -> None:
        size = scores.out_features
        path = [np.zeros((size, size)), np.zeros(size), np.zeros(size)]
        if isinstance(output, CRF):
            path = [_array(each, np.float64) for each in output.weights()]
        self.tables = [_array(table.weight) for table in tables]
        self.weights = WindowWeights(
            np.array(widths, np.int64),
            np.concatenate([_array(layer.weight.T).ravel() for layer in layers]),
            np.stack([_array(layer.bias) for layer in layers]),
            _array(scores.weight.T),
            _array(scores.bias),
            *path,
        )

    def __call__(
        self, columns: Sequence[NDArray[Any]], offsets: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the tags of sequences that lie end to end.

        Args:
            columns: The row of each table that each step has.
            offsets: Where each sequence begins, and the end of the last; none is empty.
        """
        return tag_sequences(self.tables, columns, offsets, self.weights)


def _array(tensor: Tensor, kind: Any = np.float32) -> NDArray[Any]:
    return np.ascontiguousarray(tensor.detach().numpy(), kind)
