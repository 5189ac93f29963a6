"""Bracketed trees: phrase structure, sentiment over phrases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from seqloom.errors import ConfigError
from seqloom.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NODES = 5000
_LEVEL, _WORD_DROP, _GAP, _MARGIN = 0.52, 0.27, 0.16, 0.2  # inches


class TreeNode(Protocol):
    """What a tree must offer to be drawn: a label over children, or over a word."""

    @property
    def label(self) -> str:
        """The name of the node, such as "NP"."""

    @property
    def children(self) -> Sequence[TreeNode]:
        """The nodes below, left to right; none for a leaf."""

    @property
    def word(self) -> str | None:
        """The word of a leaf; None elsewhere."""


@dataclass(slots=True)
class _Box:
    """A node with the middle of its label, in inches from the top left."""

    node: TreeNode
    depth: int
    width: float
    x: float = 0.0
    below: list[_Box] = field(default_factory=list)


def tree(node: TreeNode, *, title: str = "") -> Figure:
    """Draw a tree with its root on top and its words at the leaves.

    Raises:
        ConfigError: If it has more than 5000 nodes (or runs in a circle).
    """
    style.require_matplotlib()
    nodes = _nodes(node)
    texts = [text for n in nodes for text in (n.label, n.word or "")]
    fonts = style.families([*texts, title])
    probe = style.new_figure(1, 1)
    sizes = {
        text: style.text_width(probe, style.shown(text), style.LABEL, fonts) for text in set(texts)
    }
    boxes = _place(node, sizes)
    left = min(box.x - box.width / 2 for box in boxes)
    width = max(box.x + box.width / 2 for box in boxes) - left + 2 * _MARGIN
    depth = max(box.depth for box in boxes)
    words = any(n.word for n in nodes)
    head = 0.45 if title else 0.0
    height = head + depth * _LEVEL + 0.3 + (_WORD_DROP if words else 0) + 2 * _MARGIN
    scale = min(1.0, style.MAX_INCHES / max(width, height))
    title_room = style.text_width(probe, style.shown(title, 90), style.TITLE, fonts)
    wide = max(width * scale, 1.2, title_room + 2 * _MARGIN if title else 0)
    figure = style.new_figure(wide, height * scale, constrained=False)
    axes = figure.add_axes((0, 0, 1, 1))
    spare = (wide / scale - width) / 2
    axes.set(xlim=(-spare, width + spare), ylim=(height, 0))
    axes.axis("off")
    if title:
        axes.text(
            width / 2,
            _MARGIN,
            style.shown(title, 90),
            ha="center",
            va="top",
            fontsize=style.TITLE * scale,
            fontfamily=fonts,
            color=style.INK,
            parse_math=False,
        )
    for box in boxes:
        x, y = box.x - left + _MARGIN, head + _MARGIN + 0.15 + box.depth * _LEVEL
        for child in box.below:
            end = (child.x - left + _MARGIN, y + _LEVEL - 0.12)
            axes.plot((x, end[0]), (y + 0.12, end[1]), color=style.FAINT, linewidth=scale)
        shared: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontfamily": fonts,
            "parse_math": False,
        }
        shared["fontsize"] = style.LABEL * scale
        axes.text(x, y, style.shown(box.node.label), color=style.INK, **shared)
        if box.node.word:
            word = style.shown(box.node.word)
            axes.text(x, y + _WORD_DROP, word, color=style.PALETTE[0], **shared)
    return figure


def _nodes(root: TreeNode) -> list[TreeNode]:
    nodes, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if len(nodes) > MAX_NODES:
            raise ConfigError(f"a tree to draw must have at most {MAX_NODES} nodes, got more")
        waiting.extend(node.children)
    return nodes


def _place(root: TreeNode, sizes: dict[str, float]) -> list[_Box]:
    """Set the leaves side by side in their order, and each label over the middle of its children.

    Depth first without recursion, so that a deep tree is no trouble.
    """
    top = _Box(root, 0, _box_width(root, sizes))
    boxes, waiting = [], [top]  # parents before children, right before left
    while waiting:
        box = waiting.pop()
        boxes.append(box)
        box.below = [
            _Box(child, box.depth + 1, _box_width(child, sizes)) for child in box.node.children
        ]
        waiting.extend(box.below)
    taken = _Taken([0.0] * (max(box.depth for box in boxes) + 2))
    for box in reversed(boxes):
        taken.put(box)
    return boxes


@dataclass(slots=True)
class _Taken:
    """How far to the right each depth is taken, and the leaves altogether."""

    depths: list[float]
    leaves: float = 0.0

    def put(self, box: _Box) -> None:
        """Place a box whose children are placed, pushing them right where its label needs room."""
        edge = self.depths[box.depth]
        if not box.below:
            edge = max(edge, self.depths[box.depth + 1], self.leaves)
        free = edge + box.width / 2 + _GAP
        middle = (box.below[0].x + box.below[-1].x) / 2 if box.below else free
        box.x = max(middle, free)
        self._take(box)
        waiting = list(box.below) if box.x > middle else []
        while waiting:
            child = waiting.pop()
            child.x += box.x - middle
            self._take(child)
            waiting.extend(child.below)

    def _take(self, box: _Box) -> None:
        right = box.x + box.width / 2
        self.depths[box.depth] = max(self.depths[box.depth], right)
        if not box.below:  # its word hangs into the level below
            self.depths[box.depth + 1] = max(self.depths[box.depth + 1], right)
            self.leaves = max(self.leaves, right)


def _box_width(node: TreeNode, sizes: dict[str, float]) -> float:
    return max(sizes[node.label], sizes[node.word or ""], 0.1)
