r"""What is looked up while word vectors are trained: which words stay, are drawn, or lie where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled

WHOLE = 1 << 32  # chances are counted in 2^-32


def keep_chances(counts: NDArray[np.int64], sample: float) -> NDArray[np.float64]:
    r"""How likely one occurrence of each word is to be kept.

    $$p = \min\left(1, \sqrt{\frac{t}{f}} + \frac{t}{f}\right)$$

    for a word that is a share f of the text, with t = `sample`.
    Paper: Mikolov et al. (2013), "Distributed Representations of Words and Phrases and their
    Compositionality", equation 5.
    Differs from the paper: it has the root alone; the authors' program and those after it add t/f.
    """
    if sample == 0:
        return np.ones(len(counts))
    ratio = sample * counts.sum() / counts
    return np.asarray(np.minimum(1.0, np.sqrt(ratio) + ratio))


def draw_chances(counts: NDArray[np.int64], exponent: float) -> NDArray[np.float64]:
    r"""How likely each word is to be drawn as a negative one.

    $$P(w) = \frac{c_w^{\alpha}}{\sum_v c_v^{\alpha}}$$

    Paper: Mikolov et al. (2013), section 2.2, with alpha = 3/4.
    """
    weights = counts.astype(np.float64) ** exponent
    return np.asarray(weights / weights.sum())


def alias_table(chances: NDArray[np.float64]) -> NDArray[np.uint32]:
    r"""A table from which one look-up draws by given chances.

    Slot i of V, each as likely as another, is word i with chance $q_i$ and word $a_i$ else:
    $P(w) = \frac{1}{V} (q_w + \sum_{i: a_i = w} (1 - q_i))$.
    Paper: Walker (1977), "An Efficient Method for Generating Discrete Random Variables with
    General Distributions"; built as by Vose (1991).

    Returns:
        $2^{32} q_i$ and $a_i$ of each slot, side by side (2V,). A slot with $q_i = 1$ has
        $a_i = i$.
    """
    found: NDArray[np.uint32] = _fill_alias(chances * len(chances))
    return found


@compiled
def _fill_alias(scaled):  # type: ignore[no-untyped-def]
    size = len(scaled)
    table = np.empty(2 * size, np.uint32)
    for i in range(size):
        table[2 * i], table[2 * i + 1] = np.uint32(WHOLE - 1), np.uint32(i)
    waiting, small = np.empty(size, np.int64), 0  # slots below 1 from the left, others from the
    large = size  # right
    for i in range(size):
        if scaled[i] < 1:
            waiting[small] = i
            small += 1
        else:
            large -= 1
            waiting[large] = i
    while small > 0 and large < size:
        small -= 1
        less, more = waiting[small], waiting[large]
        table[2 * less] = np.uint32(scaled[less] * WHOLE)
        table[2 * less + 1] = np.uint32(more)
        scaled[more] -= 1 - scaled[less]
        if scaled[more] < 1:
            large += 1
            waiting[small] = more
            small += 1
    return table


class Paths(NamedTuple):
    """The way to each word from the root of a binary tree of V - 1 inner nodes.

    Args:
        starts: Where the way of each word begins in `nodes`; one more at the end.
        nodes: The inner nodes on the way, root first, all ways one after another.
        labels: 1 where the way goes to the heavier side of a node, 0 where it goes to the other.
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    labels: NDArray[np.float32]

    @classmethod
    def none(cls) -> Paths:
        """No ways at all."""
        return cls(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


def huffman_paths(counts: NDArray[np.int64]) -> Paths:
    """The ways through Huffman's tree: the more frequent a word, the shorter.

    Paper: Huffman (1952), "A Method for the Construction of Minimum-Redundancy Codes".

    Args:
        counts: Of at least two words, falling.
    """
    parents, sides = _join(counts)
    return Paths(*_ways(parents, sides, len(counts)))


@compiled
def _join(counts):  # type: ignore[no-untyped-def]
    """The parent of each word and inner node, and its side; words come from the rarest on.

    Both the words and the nodes made of them are in order, so the two lightest are the first of
    one queue or the other.
    """
    size = len(counts)
    weights = np.empty(2 * size - 1, np.int64)
    weights[:size] = counts
    parents = np.zeros(2 * size - 1, np.int64)
    sides = np.zeros(2 * size - 1, np.float32)
    word, node = size - 1, size
    for made in range(size, 2 * size - 1):
        total = 0
        for side in range(2):
            if word >= 0 and (node == made or weights[word] <= weights[node]):
                least, word = word, word - 1
            else:
                least, node = node, node + 1
            parents[least], sides[least] = made, side
            total += weights[least]
        weights[made] = total
    return parents, sides


@compiled
def _ways(parents, sides, size):  # type: ignore[no-untyped-def]
    """The way to each word; inner nodes are numbered from the root on."""
    root = 2 * size - 2
    depths = np.zeros(2 * size - 1, np.int64)
    for i in range(root - 1, -1, -1):  # a parent has a greater number, save that words come first
        if i >= size:
            depths[i] = depths[parents[i]] + 1
    starts = np.zeros(size + 1, np.int64)
    for word in range(size):
        starts[word + 1] = starts[word] + depths[parents[word]] + 1
    nodes = np.empty(starts[size], np.int32)
    labels = np.empty(starts[size], np.float32)
    for word in range(size):
        below, at = word, starts[word + 1]
        while below != root:
            at -= 1
            nodes[at], labels[at] = root - parents[below], sides[below]
            below = parents[below]
    return starts, nodes, labels
