"""Classifiers to be exported: words, vectors or bags in, scores and probabilities out."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.export.program import Input, Output, Program
from seqloom.models.outputs import ScoreOutput
from seqloom.nn.bag import Bag

Reading = Literal["softmax", "logistic", "labels", "none"]
ROWS, STEPS = 3, 5  # of the example that is traced


def probabilities(scores: Tensor, reading: Reading) -> Tensor:
    r"""The probabilities that scores stand for, as `seqloom.tasks.class_scores` has them.

    Args:
        scores: Of each class, (B, C), or of the second of two, (B, 1).
        reading: "softmax"; "logistic" for $\sigma(s_c) / \sum_j \sigma(s_j)$; "labels" for
            $\sigma(s_c)$ of each label on its own.
    """
    if reading == "softmax":
        return scores.softmax(dim=1)
    heights = torch.sigmoid(scores)
    if reading == "labels":
        return heights
    if scores.shape[1] == 1:
        return torch.cat([torch.sigmoid(-scores), heights], dim=1)
    # Heights may all be 0 in so few bits; their logarithms differ still.
    return functional.logsigmoid(scores).softmax(dim=1)


class ClassifierGraph(nn.Module):
    """A classifier and what makes probabilities of its scores.

    Args:
        model: The classifier.
        reading: How its scores are read.
        temperature: What they are divided by first.
        bags: Whether it reads bags, as ids and weights side by side.
    """

    def __init__(
        self, model: nn.Module, reading: Reading, temperature: float, *, bags: bool
    ) -> None:
        super().__init__()
        self.model, self.reading, self.temperature, self.bags = model, reading, temperature, bags

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return scores, probabilities if there are any, and attention if there is one."""
        given = (Bag(inputs[0], inputs[1], None),) if self.bags else inputs
        found: ScoreOutput = self.model(*given)
        outputs = [found.scores]
        if self.reading != "none":
            outputs.append(probabilities(found.scores / self.temperature, self.reading))
        return (*outputs, *([] if found.attention is None else [found.attention]))


def sequence_inputs(model: Any) -> list[Input]:
    """The inputs of a classifier of sequences: ids, or vectors, and lengths."""
    lengths = torch.tensor([STEPS, 2, 1])
    config = model.config
    if config.vocab_size:
        x = torch.full((ROWS, STEPS), 1)
        items = Input("ids", x, ("batch", "steps"), "ids of words; on padding any of them")
    else:
        D = config.input_size
        items = Input("vectors", torch.zeros(ROWS, STEPS, D), ("batch", "steps", D), "vectors")
    meaning = "how many items of each row are real, 1 to steps"
    return [items, Input("lengths", lengths, ("batch",), meaning)]


def vector_inputs(model: Any) -> list[Input]:
    """The input of a classifier of vectors."""
    D = model.config.input_size
    x = torch.zeros(ROWS, D, dtype=torch.float64)
    return [Input("x", x, ("batch", D), "features of each example")]


def bag_inputs() -> list[Input]:
    """The inputs of a classifier of bags."""
    ids, weights = torch.ones(2, ROWS, STEPS, dtype=torch.long)
    return [
        Input("ids", ids, ("batch", "terms"), "ids of the terms of each text, each once"),
        Input("weights", weights.double(), ("batch", "terms"), "of the terms; 0 on padding"),
    ]


def classifier_program(
    model: Any, inputs: list[Input], reading: Reading, temperature: float = 1.0
) -> Program:
    """Return what is exported of a classifier.

    Args:
        model: The network.
        inputs: What it reads.
        reading: How its scores are read.
        temperature: What they are divided by before they become probabilities.
    """
    bags = inputs[-1].name == "weights"
    network = ClassifierGraph(model.eval(), reading, temperature, bags=bags)
    with torch.no_grad():
        found = network(*(each.sample for each in inputs))
    outputs = [Output("scores", ("batch", found[0].shape[1]), "scores of the classes")]
    if reading != "none":
        meaning = "probabilities of the classes"
        outputs.append(Output("probabilities", ("batch", found[1].shape[1]), meaning))
    if len(found) > len(outputs):
        meaning = "how much each item counted; a row sums to 1 and is 0 on padding"
        outputs.append(Output("attention", ("batch", "steps"), meaning))
    return Program(network, inputs, outputs)
