"""Layers of windows and the best tags, sequence by sequence: a whole tagger in one compiled loop.

What it computes is `seqloom.models.tagger.CNNTagger` in use, followed by the best path of its CRF;
without batches, padding or a framework's calls, so that one short text takes microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled_real, in_threads
from seqloom.kernels.crf import viterbi_loop

AT_ONCE = 4096  # steps whose rows are looked up together


class WindowWeights(NamedTuple):
    """The weights of a tagger of windows.

    Args:
        widths: Of the windows, a layer each (L,).
        weights: Of all layers end to end: of each, (width * its input, H), row by row.
        biases: Of each layer (L, H).
        last: Of the scores (H, K).
        last_bias: The same (K,).
        transitions: Of the CRF (K, K), 64-bit numbers.
        start: The same (K,).
        end: The same (K,).
    """

    widths: NDArray[np.int64]
    weights: NDArray[np.float32]
    biases: NDArray[np.float32]
    last: NDArray[np.float32]
    last_bias: NDArray[np.float32]
    transitions: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]


def tag_sequences(
    tables: Sequence[NDArray[np.float32]],
    columns: Sequence[NDArray[Any]],
    offsets: NDArray[np.int64],
    weights: WindowWeights,
) -> NDArray[np.int64]:
    """Return the best tags of sequences that lie end to end, on all cores.

    Args:
        tables: Rows of numbers; those of a step, one of each table, lie side by side.
        columns: Which row of each table each step has (N,).
        offsets: Where each sequence begins, and the end of the last; none is empty.
        weights: Of the tagger.
    """
    paths = np.empty(offsets[-1], np.int64)
    marks = np.searchsorted(offsets, np.arange(0, offsets[-1], AT_ONCE))
    edges = np.unique([0, *marks.tolist(), len(offsets) - 1]).tolist()

    def run(part: tuple[int, int]) -> None:
        places = offsets[part[0] : part[1] + 1]
        chosen = slice(int(places[0]), int(places[-1]))
        pairs = zip(tables, columns, strict=True)
        x = np.concatenate([table[column[chosen]] for table, column in pairs], axis=1)
        tag_loop(x, places - places[0], *weights, paths[chosen])

    in_threads(run, pairwise(edges))
    return paths


@compiled_real
def _layer(given, first, steps, weight, bias, found):  # type: ignore[no-untyped-def]
    """Write each step's window times the weights, what is below 0 becoming 0.

    Two steps and four inputs are taken at a time, so that each weight is loaded once for both.

    Args:
        given: The inputs with zeros around them; one row more than all windows need.
        first: The row at which the first window begins.
        steps: How many there are.
        weight: (width * D, H).
        bias: (H,).
        found: Written; one row more than there are steps may be written.
    """
    size = given.shape[1]
    rows, units = weight.shape
    flat = given.reshape(-1)
    whole = rows - rows % 4
    for t in range(0, steps, 2):
        a = (first + t) * size
        b = a + size
        for j in range(units):
            found[t, j] = bias[j]
            found[t + 1, j] = bias[j]
        for i in range(0, whole, 4):
            a0, a1, a2, a3 = flat[a + i], flat[a + i + 1], flat[a + i + 2], flat[a + i + 3]
            b0, b1, b2, b3 = flat[b + i], flat[b + i + 1], flat[b + i + 2], flat[b + i + 3]
            for j in range(units):
                w0, w1, w2, w3 = weight[i, j], weight[i + 1, j], weight[i + 2, j], weight[i + 3, j]
                found[t, j] += a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
                found[t + 1, j] += b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3
        for i in range(whole, rows):
            for j in range(units):
                found[t, j] += flat[a + i] * weight[i, j]
                found[t + 1, j] += flat[b + i] * weight[i, j]
        for j in range(units):
            found[t, j] = max(found[t, j], np.float32(0))
            found[t + 1, j] = max(found[t + 1, j], np.float32(0))


@compiled_real
def tag_loop(  # type: ignore[no-untyped-def]
    x, offsets, widths, weights, biases, last, last_bias, transitions, start, end, paths
):
    """Write the best tags of sequences that lie end to end.

    Args:
        x: What is known of each step (N, D).
        offsets: Where each sequence begins, and the end of the last (S + 1,).
        widths: As in `WindowWeights`, and so on.
        weights: The same.
        biases: The same.
        last: The same.
        last_bias: The same.
        transitions: The same.
        start: The same.
        end: The same.
        paths: Written (N,).
    """
    units, tags = last.shape
    longest = widest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    for layer in range(len(widths)):
        widest = max(widest, widths[layer])
    # Rows of zeros before and after the inputs of a layer; its outputs begin at row `widest`.
    inputs = np.zeros((longest + 2 * widest + 1, x.shape[1]), np.float32)
    one = np.zeros((longest + 2 * widest + 1, units), np.float32)
    other = np.zeros_like(one)
    scores = np.empty((1, longest, tags))
    lengths, totals = np.empty(1, np.int64), np.empty(1)
    for s in range(len(offsets) - 1):
        first, steps = offsets[s], offsets[s + 1] - offsets[s]
        inputs[widest : widest + steps] = x[first : first + steps]
        inputs[widest + steps :] = 0
        begin = widths[0] * x.shape[1]
        matrix = weights[: begin * units].reshape(begin, units)
        left = (widths[0] - 1) // 2
        _layer(inputs, widest - left, steps, matrix, biases[0], one[widest:])
        here, there = one, other
        for layer in range(1, len(widths)):
            here[widest + steps :] = 0
            rows = widths[layer] * units
            matrix = weights[begin * units : (begin + rows) * units].reshape(rows, units)
            left = (widths[layer] - 1) // 2
            _layer(here, widest - left, steps, matrix, biases[layer], there[widest:])
            here, there = there, here
            begin += rows
        for t in range(steps):
            for k in range(tags):
                scores[0, t, k] = last_bias[k]
            for j in range(units):
                value = here[widest + t, j]
                if value != 0:
                    for k in range(tags):
                        scores[0, t, k] += value * last[j, k]
        lengths[0] = steps
        path = paths[first : first + steps].reshape(1, steps)
        viterbi_loop(scores[:, :steps], lengths, transitions, start, end, path, totals)
