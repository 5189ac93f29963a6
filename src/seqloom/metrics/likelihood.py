"""How well a model foresees a text."""

from __future__ import annotations

import math


def perplexity(loss: float, items: float) -> float:
    r"""Return the perplexity of a text.

    $$PP = \exp\left(-\frac{1}{N} \sum_i \ln p(w_i \mid w_{<i})\right)$$

    Args:
        loss: The negative log-likelihood in nats, summed.
        items: N, how many items it was summed over.

    Returns:
        The perplexity; infinite where it is too large for a float.
    """
    try:
        return math.exp(loss / items)
    except OverflowError:
        return math.inf


def bits_per(loss: float, items: float) -> float:
    """Return the bits a model needs for each item (word, character), from a summed loss in nats."""
    return loss / items / math.log(2)
