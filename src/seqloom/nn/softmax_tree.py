"""The hierarchical softmax: a word is a path through a binary tree of Huffman's."""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.nn.softmax import copy_counts, exact, rows_at_once


class HuffmanTree(NamedTuple):
    """A binary tree over V words: V - 1 inner nodes, numbered from the root level by level.

    Args:
        nodes: The inner nodes on the way to each word, root first, all ways one after another.
        signs: 1.0 where the way goes left, -1.0 where it goes right.
        starts: Where the way of each word begins in `nodes`; one more at the end.
        parents: The inner node above each inner node but the root, within its level.
        parent_signs: On which side of it.
        levels: How many inner nodes each level has.
        leaf_parents: The inner node above each word.
        leaf_signs: On which side of it.
    """

    nodes: Int[Tensor, " P"]
    signs: Float[Tensor, " P"]
    starts: Int[Tensor, " V1"]
    parents: Int[Tensor, " I"]
    parent_signs: Float[Tensor, " I"]
    levels: tuple[int, ...]
    leaf_parents: Int[Tensor, " V"]
    leaf_signs: Float[Tensor, " V"]


def huffman_children(counts: list[int]) -> list[tuple[int, int]]:
    """The two children of each inner node, in the order the nodes are made; the last is the root.

    Words are 0 .. V - 1 and inner nodes V, V + 1, ... Among equal counts the smaller number goes
    first, so a tree depends on the counts alone.
    Paper: Huffman (1952), "A Method for the Construction of Minimum-Redundancy Codes".
    """
    heap = [(count, word) for word, count in enumerate(counts)]
    heapq.heapify(heap)
    children: list[tuple[int, int]] = []
    while len(heap) > 1:
        left_count, left = heapq.heappop(heap)
        right_count, right = heapq.heappop(heap)
        heapq.heappush(heap, (left_count + right_count, len(counts) + len(children)))
        children.append((left, right))
    return children


def huffman_tree(counts: Int[Tensor, " V"]) -> HuffmanTree:
    """The tree of these counts, on their device."""
    words, device = len(counts), counts.device
    children = huffman_children(counts.tolist())
    ways: list[tuple[list[int], list[float]]] = [([], [])] * words
    parents, parent_signs, levels = [], [], []
    leaf_parents, leaf_signs = [0] * words, [0.0] * words
    number = 0  # of the next inner node, level by level
    level: list[tuple[int, list[int], list[float]]] = []
    if children:
        level = [(words + len(children) - 1, [], [])]
    while level:
        below: list[tuple[int, list[int], list[float]]] = []
        for place, (node, way, turns) in enumerate(level):
            for child, sign in zip(children[node - words], (1.0, -1.0), strict=True):
                longer = [*way, number], [*turns, sign]
                if child < words:
                    ways[child] = longer
                    leaf_parents[child], leaf_signs[child] = number, sign
                else:
                    below.append((child, *longer))
                    parents.append(place)
                    parent_signs.append(sign)
            number += 1
        levels.append(len(level))
        level = below
    lengths = torch.tensor([len(way) for way, _ in ways])
    return HuffmanTree(
        torch.tensor([node for way, _ in ways for node in way], dtype=torch.long, device=device),
        torch.tensor([sign for _, turns in ways for sign in turns], device=device),
        functional.pad(lengths.cumsum(0), (1, 0)).to(device),
        torch.tensor(parents, dtype=torch.long, device=device),
        torch.tensor(parent_signs, device=device),
        tuple(levels),
        torch.tensor(leaf_parents, device=device),
        torch.tensor(leaf_signs, device=device),
    )


class HierarchicalSoftmax(nn.Module):
    r"""A product of choices between left and right on the way from the root of a tree to a word.

    $$p(w \mid x) = \prod_{j} \sigma(s_j (W_{n_j} x + b_{n_j}))$$

    over the inner nodes $n_j$ above $w$, with $s_j = 1$ where the way goes left and $-1$ where it
    goes right. The tree is Huffman's for the counts of the training data (`set_counts`), so that
    frequent words are few choices away; until then all words count alike.
    Paper: Morin and Bengio (2005), "Hierarchical Probabilistic Neural Network Language Model";
    Mikolov et al. (2013), "Distributed Representations of Words and Phrases", section 2.1, for
    Huffman's tree.
    Differs from the papers: a bias a node, as Morin and Bengio have and Mikolov et al. have not.
    Parameters: W = weight (V - 1, D), b = bias (V - 1,), by inner node, level by level.

    Args:
        in_features: Width D of the features.
        vocab_size: Words V.

    Examples:
        >>> layer = HierarchicalSoftmax(3, 5)
        >>> layer.set_counts(torch.tensor([8, 4, 2, 1, 1]))
        >>> layer.tree().starts.diff().tolist()  # choices a word
        [1, 2, 3, 4, 4]
    """

    counts: Tensor

    def __init__(self, in_features: int, vocab_size: int) -> None:
        super().__init__()
        self.in_features, self.vocab_size = in_features, vocab_size
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(vocab_size - 1, in_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(vocab_size - 1).uniform_(-bound, bound))
        self.register_buffer("counts", torch.zeros(vocab_size, dtype=torch.long))
        self._tree: HuffmanTree | None = None
        self.register_load_state_dict_post_hook(_forget_tree)  # type: ignore[no-untyped-call]

    def set_counts(self, counts: Int[Tensor, " V"]) -> None:
        """Build the tree for how often each word occurs."""
        copy_counts(self.counts, counts)
        self._tree = None

    def tie(self, embedding: nn.Embedding) -> None:
        """Refused: there is a vector a node, not a word."""
        raise ConfigError(f"a hierarchical softmax cannot be tied, got weights of {embedding}")

    def tree(self) -> HuffmanTree:
        """The tree, built when it is first asked for."""
        if self._tree is None or self._tree.starts.device != self.counts.device:
            self._tree = huffman_tree(self.counts)
        return self._tree

    def loss(self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]) -> Float[Tensor, ""]:
        """The cross-entropy, summed."""
        return -self.target_log_probs(features, targets).sum()

    def target_log_probs(
        self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]
    ) -> Float[Tensor, " N"]:
        """The log-probability of one word a row: the nodes above it and no others."""
        if torch.is_grad_enabled():
            return self._target_log_probs(features, targets)
        size = rows_at_once(max(1, len(self.tree().levels) * self.in_features))
        pairs = zip(features.split(size), targets.split(size), strict=True)
        return torch.cat([self._target_log_probs(*pair) for pair in pairs])

    def _target_log_probs(self, features: Tensor, targets: Tensor) -> Tensor:
        tree = self.tree()
        begins = tree.starts[targets.long()]  # (N,)
        lengths = tree.starts[targets.long() + 1] - begins
        rows = torch.repeat_interleave(lengths)  # (M,): the row of each choice
        first = lengths.cumsum(0) - lengths
        places = torch.arange(len(rows), device=rows.device) + (begins - first)[rows]
        nodes = tree.nodes[places]
        scores = (functional.embedding(nodes, self.weight) * features[rows]).sum(dim=-1)  # (M,)
        scores = exact(scores) + self.bias[nodes]
        chosen = functional.logsigmoid(tree.signs[places].to(scores.dtype) * scores)
        return chosen.new_zeros(len(targets)).index_add(0, rows, chosen)

    def log_probs(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
        """The log-probability of every word, from the root down."""
        tree = self.tree()
        scores = exact(functional.linear(features, self.weight, self.bias))  # (N, V - 1)
        if not tree.levels:
            return scores.new_zeros(features.shape[0], self.vocab_size)
        level = scores.new_zeros(features.shape[0], 1)  # of arriving at the nodes of a level
        arrived, begin = [level], 0  # `begin`: the first node of the level above
        for size, below in zip(tree.levels, tree.levels[1:], strict=False):
            end = begin + size  # nodes of the level above are begin .. end - 1
            inside = slice(end - 1, end - 1 + below)  # the root has no parent
            above, signs = tree.parents[inside], tree.parent_signs[inside].to(scores.dtype)
            turns = functional.logsigmoid(signs * scores[:, begin + above])
            level = level[:, above] + turns
            arrived.append(level)
            begin = end
        whole = torch.cat(arrived, dim=1)[:, tree.leaf_parents]
        signs = tree.leaf_signs.to(scores.dtype)
        return whole + functional.logsigmoid(signs * scores[:, tree.leaf_parents])


def _forget_tree(module: HierarchicalSoftmax, _: object) -> None:
    module._tree = None
