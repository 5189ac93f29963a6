r"""Training on a piece of text, compiled; `reference` says the same in plain Python.

A word is predicted from inputs $v_1 \dots v_n$ (one for skip-gram, all words near it for CBOW)
through $h = \frac{1}{n} \sum_i v_i$, by telling targets $u_t$ with label $y_t = 1$ from those with
$y_t = 0$:

$$L = -\sum_t y_t \ln \sigma(u_t \cdot h) + (1 - y_t) \ln(1 - \sigma(u_t \cdot h)), \quad
g_t = \sigma(u_t \cdot h) - y_t$$

$$u_t \leftarrow u_t - \eta\, g_t h, \quad v_i \leftarrow v_i - \eta\, s \sum_t g_t u_t$$

with $s = 1/n$, the gradient, or $s = 1$. With negative sampling the targets are the word itself
($y = 1$) and words drawn at random ($y = 0$); in Huffman's tree they are the inner nodes on the way
to the word, and y is the side the way takes. All sums are over the vectors before the update.
"""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled_sums, inner, inner_sums
from seqloom.kernels.elementary import sigmoid32

_F, _U = np.float32, np.uint64
_STEP, _MIX, _MIX2 = (
    _U(0x9E3779B97F4A7C15),
    _U(0xBF58476D1CE4E5B9),
    _U(0x94D049BB133111EB),
)
_1, _27, _30, _31, _32, _LOW = _U(1), _U(27), _U(30), _U(31), _U(32), _U(0xFFFFFFFF)
ALIGNED = 16  # rows begin at multiples of so many numbers, a line of the cache


@inner
def scatter(state):  # type: ignore[no-untyped-def]
    """64 random bits of a state that grows by `_STEP`.

    Paper: Steele, Lea and Flood (2014), "Fast Splittable Pseudorandom Number Generators".
    """
    z = (state ^ (state >> _30)) * _MIX
    z = (z ^ (z >> _27)) * _MIX2
    return z ^ (z >> _31)


@inner_sums
def _mean(vectors, inputs, count, hidden):  # type: ignore[no-untyped-def]
    """The mean h of several inputs, into the one row of `hidden`."""
    width, part = hidden.shape[1], _F(1) / _F(count)
    for k in range(width):
        hidden[0, k] = vectors[inputs[0], k]
    for i in range(1, count):
        row = inputs[i]
        for k in range(width):
            hidden[0, k] += vectors[row, k]
    for k in range(width):
        hidden[0, k] *= part


@inner_sums
def _predict(  # type: ignore[no-untyped-def]
    hidden, row, output, targets, labels, size, scores, error, rate
):
    """Move the targets, and leave what h must move by in `error`; h is a row of `hidden`."""
    width = len(error)
    for k in range(width):
        error[k] = _F(0)
    for t in range(size):
        target, score = targets[t], _F(0)
        for k in range(width):
            score += hidden[row, k] * output[target, k]
        scores[t] = score
    for t in range(size):
        scores[t] = rate * (labels[t] - sigmoid32(scores[t]))
    for t in range(size):
        target, step = targets[t], scores[t]
        for k in range(width):
            error[k] += step * output[target, k]
    for t in range(size):
        target, step = targets[t], scores[t]
        for k in range(width):
            output[target, k] += step * hidden[row, k]


@inner_sums
def _move(vectors, row, error, share):  # type: ignore[no-untyped-def]
    for k in range(len(error)):
        vectors[row, k] += share * error[k]


@inner
def _draw(table, word, negatives, targets, state):  # type: ignore[no-untyped-def]
    """Draw negative words after the word itself; where it is drawn, there is one less."""
    targets[0] = word
    size = 1
    slots = _U(len(table) >> 1)
    for _ in range(negatives):
        state += _STEP
        bits = scatter(state)
        slot = ((bits >> _32) * slots) >> _32
        drawn = slot if bits & _LOW < table[slot << _1] else _U(table[(slot << _1) + _1])
        targets[size] = np.int32(drawn)
        size += drawn != _U(word)
    return size, state


@compiled_sums
def train_piece(  # type: ignore[no-untyped-def]
    ids, bounds, rows, keep, vectors, output, table, starts, nodes, sides,
    words, inputs, targets, labels, scores, hidden, error,
    window, negatives, is_cbow, mean_gradient, rate, state,
):  # fmt: skip
    """Train on the sentences of a piece of text.

    Args:
        ids: The text.
        bounds: Where sentences begin in it, and where the last one ends.
        rows: The row of each id in the tables, -1 for what is left out.
        keep: By row, the chance to be kept, in 2^-32.
        vectors: The vectors (V, W); W is a multiple of `ALIGNED`, zero beyond the vector's size.
        output: Those of words as they are predicted, or of the nodes of a tree.
        table: Of `alias_table`; empty for a tree.
        starts: Of `Paths`, as `nodes` and `sides`.
        nodes: The nodes.
        sides: The labels.
        words: Room for the longest sentence; arrays made in here would be read and written one
            number at a time, as they might overlap.
        inputs: Room for 2 `window`.
        targets: Room for the targets of an update, as `labels` and `scores`.
        labels: Room.
        scores: Room.
        hidden: Room for one row (1, W).
        error: Room for W.
        window: How many words on each side are near at most.
        negatives: Words drawn for each that is predicted.
        is_cbow: Whether a word is predicted from all near it at once.
        mean_gradient: Whether s = 1/n.
        rate: The learning rate.
        state: Where the random numbers begin.

    Returns:
        How many updates there were.
    """
    for t in range(len(labels)):
        labels[t] = _F(0 if t else 1)  # the word itself, and words drawn
    is_tree, updates = len(table) == 0, 0
    for b in range(len(bounds) - 1):
        n = 0
        for i in range(bounds[b], bounds[b + 1]):
            row = rows[ids[i]]
            if row >= 0:
                state += _STEP
                words[n] = row
                n += scatter(state) >> _32 < keep[row]
        for i in range(n):
            state += _STEP
            reach = 1 + np.int64(((scatter(state) >> _32) * _U(window)) >> _32)
            word, size = words[i], 0
            first = i - reach if i > reach else 0
            last = i + reach + 1 if i + reach < n else n
            if last - first < 2:
                continue
            if is_tree:
                at = starts[word]
                size = starts[word + 1] - at
                for t in range(size):
                    targets[t], labels[t] = nodes[at + t], sides[at + t]
            if is_cbow:
                count = 0
                for j in range(first, last):
                    if j != i:
                        inputs[count] = words[j]
                        count += 1
                if not is_tree:
                    size, state = _draw(table, word, negatives, targets, state)
                _mean(vectors, inputs, count, hidden)
                _predict(hidden, 0, output, targets, labels, size, scores, error, rate)
                share = _F(1) / _F(count) if mean_gradient else _F(1)
                for place in range(count):
                    _move(vectors, inputs[place], error, share)
                updates += 1
                continue
            for j in range(first, last):
                if j == i:
                    continue
                if not is_tree:
                    size, state = _draw(table, word, negatives, targets, state)
                near = words[j]
                _predict(vectors, near, output, targets, labels, size, scores, error, rate)
                _move(vectors, near, error, _F(1))
                updates += 1
    return updates
