"""Language models to be exported: ids and a state in, log-probabilities and the next state out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seqloom.errors import ConfigError
from seqloom.export.program import Axes, Input, Output, Program
from seqloom.models.attention_lm import AttentionLM
from seqloom.models.cnn_lm import CNNLM
from seqloom.models.nnlm import NNLM
from seqloom.models.recurrent_lm import RecurrentLM
from seqloom.models.transformer_lm import TransformerLM

EXPORTED = (NNLM, RecurrentLM, AttentionLM, CNNLM, TransformerLM)
ROWS, STEPS = 3, 5  # of the example that is traced


class LanguageGraph(nn.Module):
    """A language model and its output layer, with the parts of the state side by side.

    Args:
        model: The language model.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, lengths: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """Return the log-probabilities of the word after each step, then the next state."""
        model: Any = self.model
        begin = type(model.initial_state(1))(*state) if state else None
        features, after, _ = model(ids, lengths, begin)
        B, T, _ = features.shape
        logs = model.output.log_probs(features.flatten(0, 1)).view(B, T, -1)
        return (logs, *(after if state else ()))


def language_program(model: Any) -> Program:
    """Return what is exported of a network that predicts words.

    Raises:
        ConfigError: If its equations have no place in a graph.
    """
    config = model.config
    if getattr(config, "unknown", "word") == "average":
        raise ConfigError(
            "a model with unknown='average' cannot be exported to ONNX: it computes the vectors of "
            "unknown words one after another; fit it with unknown='word'"
        )
    masked = getattr(config, "objective", "causal") == "masked"
    words = torch.ones(ROWS, STEPS, dtype=torch.long)
    lengths = torch.tensor([STEPS, 2, 1])
    inputs = [
        Input("ids", words, ("batch", "steps"), "ids of words; on padding any of them"),
        Input("lengths", lengths, ("batch",), "how many ids of each row are real, 0 to steps"),
    ]
    meaning = "natural log-probability of every word " + ("there" if masked else "after each id")
    outputs = [Output("log_probs", ("batch", "steps", config.vocab_size), meaning)]
    states = {} if masked else model.initial_state(ROWS)._asdict()
    for name, part in states.items():
        axes: Axes = ("batch", *part.shape[1:])
        given = f"{name} of the state before the first id; zeros where a text begins"
        inputs.append(Input(f"state_{name}", part, axes, given))
        outputs.append(Output(f"next_{name}", axes, f"{name} of the state after the last id"))
    facts: dict[str, Any] = {}
    if masked:
        facts = {"blank": model.blank, "max_steps": config.context_size + 1}
    return Program(LanguageGraph(model), inputs, outputs, facts)
