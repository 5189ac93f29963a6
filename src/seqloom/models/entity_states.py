"""What a classifier knew at two marked entities, beside its view of the whole sentence."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.models.outputs import ScoreOutput
from seqloom.models.sentence_encoder import ScoreLayers, SequenceInput, SequenceItems, items_of


class EntityStates(nn.Module):
    r"""A classifier whose scores also read its states at the ends of two entities.

    $$s = s_0 + W_e [\tanh(h_{b_1}); \tanh(h_{b_2})]$$

    $s_0$ are the scores of the classifier, h its vectors before pooling and $b_k$ the place of the
    marker behind entity k. Where no hidden layer follows pooling, this is the same as putting the
    two states beside the pooled vector.

    Paper: Zhang et al. (2015), "Bidirectional Long Short-Term Memory Networks for Relation
    Classification", PACLIC, section 3.4, where the states at the entities are features of the
    sentence; Zeng et al. (2014) have their word vectors.
    Differs from the paper: of the features around the entities only these.
    Parameters: $W_e$ = output.weight (C, 2 D); the classifier = encoder.

    Args:
        encoder: The classifier; it must return its vectors before pooling.
        markers: The ids of </e1> and </e2>.
    """

    def __init__(self, encoder: Any, markers: tuple[int, int]) -> None:
        super().__init__()
        self.config, self.markers, self.encoder = encoder.config, markers, encoder
        self.output = nn.Linear(2 * self.head.in_features, self.config.output_size, bias=False)

    @property
    def input(self) -> SequenceInput:
        """The word vectors."""
        found = self.encoder.input
        assert isinstance(found, SequenceInput)
        return found

    @property
    def head(self) -> ScoreLayers:
        """The layers after pooling."""
        found = self.encoder.head
        assert isinstance(found, ScoreLayers)
        return found

    def forward(self, x: SequenceItems, lengths: Int[Tensor, " B"] | None = None) -> ScoreOutput:
        """The scores of each row, and with attention how much each word counted."""
        found: ScoreOutput = self.encoder(x, lengths)
        if found.states is None:
            raise ConfigError(
                "entity states need a model with a vector a word, got "
                f"{type(self.encoder).__name__}"
            )
        states = torch.cat(
            [marked_states(found.states, items_of(x), m) for m in self.markers], dim=1
        )
        states = functional.dropout(torch.tanh(states), self.config.dropout, self.training)
        return found._replace(scores=found.scores + self.output(states))


def marked_states(
    states: Float[Tensor, "B T D"], ids: Int[Tensor, "B T"], marker: int
) -> Float[Tensor, "B D"]:
    """The vector at the marker of each row.

    Examples:
        >>> states = torch.arange(6.0).view(1, 3, 2)
        >>> marked_states(states, torch.tensor([[7, 3, 7]]), 3)
        tensor([[2., 3.]])
    """
    places = (ids == marker).long().argmax(dim=1)
    return states[torch.arange(ids.shape[0], device=ids.device), places]
