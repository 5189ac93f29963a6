"""Drawing a sequence from a model, one item after another."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor

from seqloom.errors import ConfigError

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
"""Takes the last ids (B,) and a state; returns log-probabilities (B, V) and the next state."""


def sample(
    step: Step,
    state: Any,
    first: int,
    *,
    max_length: int,
    temperature: float = 1.0,
    top_k: int = 0,
    stop: int | None = None,
    forbidden: Collection[int] = (),
    generator: torch.Generator | None = None,
) -> list[int]:
    """Draw ids until `stop` comes or `max_length` of them are there.

    Args:
        step: The model.
        state: Where it starts from.
        first: The id that came before; it is not returned.
        max_length: How many ids to draw at most.
        temperature: Divides the log-probabilities; 0 takes the likeliest id each time.
        top_k: Draw from the k likeliest ids only; 0 for all.
        stop: The id that ends a sequence; it is not returned.
        forbidden: Ids never to draw.
        generator: Where chance comes from.
    """
    if not 0 <= temperature < torch.inf:
        raise ConfigError(f"temperature must not be negative or infinite, got {temperature}")
    if max_length < 1 or top_k < 0:
        raise ConfigError(
            f"max_length must be positive and top_k not negative, got {max_length} and {top_k}"
        )
    drawn: list[int] = []
    last = first
    for _ in range(max_length):
        scores, state = step(torch.tensor([last]), state)
        scores = scores[0].float().cpu()
        scores[list(forbidden)] = -torch.inf
        if top_k:
            best = scores.topk(min(top_k, len(scores)))
            scores = torch.full_like(scores, -torch.inf).scatter(0, best.indices, best.values)
        if temperature == 0:
            last = int(scores.argmax())
        else:
            # From the likeliest down, so that a low temperature leaves no 0 / 0.
            chances = torch.softmax((scores - scores.max()) / temperature, dim=0)
            last = int(torch.multinomial(chances, 1, generator=generator))
        if last == stop:
            break
        drawn.append(last)
    return drawn
