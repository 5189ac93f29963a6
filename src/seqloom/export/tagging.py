"""Taggers to be exported: words and their characters in, scores and the best tags out."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.export.program import Input, Output, Program
from seqloom.export.viterbi import add_viterbi
from seqloom.models.tagger import TaggerInput
from seqloom.nn.crf import CRF
from seqloom.nn.masking import lengths_to_mask

ROWS, STEPS = 3, 5  # of the example that is traced
WORDS, CHARACTERS = 7, 4


class TaggerGraph(nn.Module):
    """A tagger with its inputs side by side.

    Args:
        model: The tagger.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor, lengths: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        """Return the scores, and the best tags where each is chosen on its own."""
        model: Any = self.model
        count = len(model.config.feature_sizes)
        spelled = others[count:] if model.config.reads_characters else (None, None, None)
        scores = model(TaggerInput(items, others[:count], *spelled), lengths).scores
        if isinstance(model.output, CRF):
            return (scores,)
        tags = scores.argmax(dim=-1)
        return scores, tags.masked_fill(~lengths_to_mask(lengths, scores.shape[1]), 0)


def tagger_program(model: Any) -> Program:
    """Return what is exported of a tagger; the best tags of a CRF are found in the graph."""
    config = model.config
    ids = torch.ones(ROWS, STEPS, dtype=torch.long)
    if config.vocab_size:
        items = Input("ids", ids, ("batch", "steps"), "ids of words; on padding any of them")
    else:
        D = config.input_size
        items = Input("vectors", torch.zeros(ROWS, STEPS, D), ("batch", "steps", D), "vectors")
    meaning = "how many words of each row are real, 1 to steps"
    inputs = [items, Input("lengths", torch.tensor([STEPS, 2, 1]), ("batch",), meaning)]
    for number in range(len(config.feature_sizes)):
        meaning = "ids of a further feature of each word"
        inputs.append(Input(f"feature_{number}", ids, ("batch", "steps"), meaning))
    if config.reads_characters:
        inputs += spelling_inputs()
        inputs.append(
            Input("which", ids, ("batch", "steps"), "which of the spellings each word has")
        )
    K = config.output_size
    by_chance = isinstance(model.output, CRF)
    outputs = [
        Output("scores", ("batch", "steps", K), "scores of the tags of each word"),
        Output("tags", ("batch", "steps"), "numbers of the best tags; 0 on padding", by_chance),
    ]
    finish = None
    if isinstance(model.output, CRF):
        finish = partial(add_viterbi, weights=_arrays(model.output))
    return Program(TaggerGraph(model), inputs, outputs, {}, finish)


def spelling_inputs() -> list[Input]:
    """The characters of the different words of a batch, and how many each has."""
    letters = torch.ones(WORDS, CHARACTERS, dtype=torch.long)
    lengths = torch.tensor([CHARACTERS, 1, 2, 3, 4, 1, 2])
    return [
        Input("spellings", letters, ("words", "characters"), "characters of the different words"),
        Input("spelling_lengths", lengths, ("words",), "how many characters each of them has"),
    ]


def _arrays(layer: CRF) -> Any:
    return tuple(each.detach().cpu().numpy() for each in layer.weights())
