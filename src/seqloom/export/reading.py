"""Readers to be exported: a passage and a question in, where an answer begins and ends out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.export.program import Input, Output, Program
from seqloom.export.tagging import WORDS, spelling_inputs
from seqloom.models.reader_parts import ReaderInput

ROWS, STEPS, ASKED = 3, 6, 5  # of the example that is traced


class ReaderGraph(nn.Module):
    """A reader with its inputs side by side.

    Args:
        model: The reader.
        names: Of its inputs, in order.
    """

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return log-probabilities of beginnings and ends, and the attention."""
        given = dict(zip(self.names, inputs, strict=True))
        start, end, attention = self.model(ReaderInput(**given))
        return start.log_softmax(dim=1), end.log_softmax(dim=1), attention


def reader_program(model: Any) -> Program:
    """Return what is exported of a reader."""
    words = torch.arange(ROWS * STEPS).view(ROWS, STEPS) % WORDS
    asked = torch.arange(ROWS * ASKED).view(ROWS, ASKED) % WORDS
    real = "how many words of each {} are real, 1 to {}"
    inputs = [
        Input("passage", words, ("batch", "steps"), "which of `words` each word of a passage is"),
        Input(
            "passage_lengths",
            torch.tensor([STEPS, 2, 1]),
            ("batch",),
            real.format("passage", "steps"),
        ),
        Input("question", asked, ("batch", "asked"), "which of `words` each word of a question is"),
        Input(
            "question_lengths",
            torch.tensor([1, ASKED, 2]),
            ("batch",),
            real.format("question", "asked"),
        ),
        Input(
            "words",
            torch.ones(WORDS, dtype=torch.long),
            ("words",),
            "ids of the different words of the batch",
        ),
    ]
    if model.config.reads_characters:
        inputs += spelling_inputs()
    if model.config.exact_match:
        meaning = "a number for each of `words`, the same for those equal in lower case"
        inputs.append(Input("forms", torch.arange(WORDS), ("words",), meaning))
    outputs = [
        Output("start", ("batch", "steps"), "natural log-probability that an answer begins there"),
        Output("end", ("batch", "steps"), "natural log-probability that an answer ends there"),
        Output(
            "attention",
            ("batch", "steps", "asked"),
            "how much each word of a passage looked at each word of its question",
        ),
    ]
    names = [each.name for each in inputs]
    return Program(ReaderGraph(model, names), inputs, outputs)
