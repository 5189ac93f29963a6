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

    $$s = s_0 + W_e [\tanh(h_{b_1}); \tanh(h_{b_2})] + W_w [e_{b_1 - 1}; e_{b_2 - 1}]$$

    $s_0$ are the scores of the classifier, h its vectors before pooling, e the vectors of words and
    $b_k$ the place of the marker behind entity k; the last term, of the last word of each entity,
    is there with `words`. Where no hidden layer follows pooling, this is the same as putting the
    two states beside the pooled vector.

    Paper: Zhang et al. (2015), "Bidirectional Long Short-Term Memory Networks for Relation
    Classification", PACLIC, section 3.4, where the states at the entities are features of the
    sentence; Zeng et al. (2014), "Relation Classification via Convolutional Deep Neural Network",
    COLING, section 3.3, for the vectors of the entities' words.
    Differs from the papers: of the features around the entities only these.
    Parameters: $W_e$ = output.weight (C, 2 D), $W_w$ = word_output.weight (C, 2 E), the classifier
    = encoder.

    Args:
        encoder: The classifier; it must return its vectors before pooling.
        markers: The ids of </e1> and </e2>.
        words: Whether the last words of the entities are read as well.
    """

    def __init__(self, encoder: Any, markers: tuple[int, int], *, words: bool = False) -> None:
        super().__init__()
        self.config, self.markers, self.encoder = encoder.config, markers, encoder
        size = self.config.output_size
        self.output = nn.Linear(2 * self.head.in_features, size, bias=False)
        self.word_output = None
        if words:
            self.word_output = nn.Linear(2 * self.config.embed_size, size, bias=False)

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
        ids = items_of(x)
        rows = torch.arange(ids.shape[0], device=ids.device)
        places = [(ids == marker).long().argmax(dim=1) for marker in self.markers]
        states = torch.cat([found.states[rows, place] for place in places], dim=1)
        scores = found.scores + self.output(self._dropped(torch.tanh(states)))
        if self.word_output is not None:
            assert self.input.embedding is not None
            last = torch.stack([ids[rows, place - 1] for place in places], dim=1)  # (B, 2)
            scores = scores + self.word_output(self._dropped(self.input.embedding(last).flatten(1)))
        return found._replace(scores=scores)

    def _dropped(self, x: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        return functional.dropout(x, self.config.dropout, self.training)
