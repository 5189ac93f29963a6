"""Where a word stands to two marked entities, as vectors beside its own: for any classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seqloom.errors import ConfigError, ShapeError
from seqloom.models.outputs import ScoreOutput
from seqloom.models.sentence_encoder import (
    ScoreLayers,
    SequenceInput,
    SequenceItems,
    SequenceOptions,
    items_of,
)
from seqloom.nn.context import context_size
from seqloom.nn.masking import lengths_to_mask

INIT_RANGE = 0.25


def entity_distances(ids: Int[Tensor, "B T"], opening: int, closing: int) -> Int[Tensor, "B T"]:
    r"""How far each word is from an entity, counted from its nearer marker.

    $$d_t = \begin{cases} t - a & t < a \\ 0 & a \le t \le b \\ t - b & t > b \end{cases}$$

    a and b are the places of the two markers.

    Args:
        ids: Sentences, each with both markers once.
        opening: The id of the marker before the entity.
        closing: The id of the one behind it.

    Raises:
        ShapeError: On a CPU, if a row lacks a marker, or has it twice.

    Examples:
        >>> entity_distances(torch.tensor([[7, 2, 7, 3, 7, 7]]), 2, 3)
        tensor([[-1,  0,  0,  0,  1,  2]])
    """
    T = ids.shape[1]
    places = torch.arange(T, device=ids.device)[None]
    ends = []
    for marker in (opening, closing):
        is_marker = ids == marker
        # On a card the question would wait for its answer; an export has no values to ask for.
        is_asked = ids.device.type == "cpu" and not torch.compiler.is_compiling()
        if is_asked and (is_marker.sum(dim=1) != 1).any():
            raise ShapeError(f"every row must hold marker {marker} once, got {ids.tolist()[:1]}...")
        ends.append(is_marker.long().argmax(dim=1, keepdim=True))  # (B, 1)
    start, end = ends
    return (places - start).clamp(max=0) + (places - end).clamp(min=0)


class EntityDistances(nn.Module):
    r"""A classifier that reads, beside each word, how far it is from each of two entities.

    $$x_t = [e(w_t); p_1(d^1_t); p_2(d^2_t)]$$

    $d^k_t$ is the distance from entity k, no longer than `max_distance` on either side.

    Paper: Zeng et al. (2014), "Relation Classification via Convolutional Deep Neural Network",
    COLING, section 3.4.2 (position features).
    Differs from the paper: the markers of the entities are words of the sentence, so distances
    are counted from them, and 0 within.
    Parameters: e = input.embedding; $p_1, p_2$ = first, second; the classifier = encoder.

    Args:
        build: Makes the classifier of a configuration.
        config: The classifier's, as if it read the words alone.
        position_size: Width of a position vector.
        max_distance: The longest distance told from shorter ones.
        markers: The ids of <e1>, </e1>, <e2> and </e2>.
    """

    def __init__(
        self,
        build: Callable[[Any], nn.Module],
        config: SequenceOptions,
        *,
        position_size: int,
        max_distance: int,
        markers: tuple[int, int, int, int],
    ) -> None:
        super().__init__()
        if min(position_size, max_distance) < 1:
            raise ConfigError(
                "position_size and max_distance must be positive, got "
                f"{position_size} and {max_distance}"
            )
        self.config, self.max_distance, self.markers = config, max_distance, markers
        self.input = SequenceInput(config)
        self.first, self.second = (nn.Embedding(2 * max_distance + 1, position_size) for _ in "12")
        for table in (self.first, self.second):
            nn.init.uniform_(table.weight, -INIT_RANGE, INIT_RANGE)
        if context_size(config.context, "output"):
            raise ConfigError(
                "with position_size words in context go to the input alone, got contextual.insert "
                "with 'output'"
            )
        width = config.vector_size + 2 * position_size
        # Words are dropped here already, so the classifier drops none.
        inner = replace(
            config,
            vocab_size=0,
            input_size=width,
            word_dropout=0.0,
            embedding_dropout=0.0,
            context=None,
        )
        self.encoder = build(inner)

    @property
    def head(self) -> ScoreLayers:
        """The layers after pooling."""
        head = self.encoder.head
        assert isinstance(head, ScoreLayers)
        return head

    def vectors(
        self, x: SequenceItems, lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """What the classifier reads; 0 on padding."""
        parts, ids = [self.input(x, lengths)], items_of(x)
        for table, k in ((self.first, 0), (self.second, 2)):
            distances = entity_distances(ids, self.markers[k], self.markers[k + 1])
            limit = self.max_distance
            parts.append(table(distances.clamp(-limit, limit) + limit))
        found = torch.cat(parts, dim=-1)
        if lengths is not None:
            found = found.masked_fill(~lengths_to_mask(lengths, ids.shape[1])[..., None], 0.0)
        return found

    def forward(self, x: SequenceItems, lengths: Int[Tensor, " B"] | None = None) -> ScoreOutput:
        """The scores of each row, and with attention how much each word counted."""
        found: ScoreOutput = self.encoder(self.vectors(x, lengths), lengths)
        return found
