"""Two models that decode together: what one says of the next id, and what another does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from seqloom.decoding.steps import Numbers, Step, as_array
from seqloom.errors import ConfigError


def fused(
    step: Step, other: Step, weight: float, *, number: Callable[[Numbers], Numbers] | None = None
) -> Step:
    r"""One step of a model with a language model fused in.

    $$s(w) = \log p(w) + \lambda \log p_{LM}(w)$$

    Scores are no log-probabilities of a distribution any more; a search adds them up all the same.
    A weight of 0 leaves out the other model.

    Paper: Gulcehre et al. (2015), "On Using Monolingual Corpora in Neural Machine Translation",
    arXiv:1503.03535, section 4.1 (shallow fusion).

    Args:
        step: The model; the scores may have more columns than `number` is asked of.
        other: The language model. The state of both is the pair of their states.
        weight: Lambda.
        number: The ids of the other model for ids of the first; the same if not given. It is asked
            of the ids that were decoded and of all that may be.

    Returns:
        A step whose state is (the model's, the other's).
    """
    if not 0 <= weight < np.inf:
        raise ConfigError(f"the weight of a fused model must not be negative, got {weight}")

    def together(last: Numbers, state: Any) -> tuple[Any, Any]:
        own, theirs = state
        scores, own = step(last, own)
        if not weight:
            return scores, (own, theirs)
        more, theirs = other(last if number is None else number(last), theirs)
        columns = np.arange(scores.shape[1])
        if number is not None:
            more = more[:, number(columns)]
        if not hasattr(scores, "new_tensor"):
            more = as_array(more)
        elif hasattr(more, "new_tensor"):
            more = more.to(scores)
        else:
            more = scores.new_tensor(as_array(more))
        return scores + weight * more, (own, theirs)

    return together
