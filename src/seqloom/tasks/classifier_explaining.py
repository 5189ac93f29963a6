"""Where a classifier looked, text by text."""

from __future__ import annotations

from typing import Any

from torch import nn

from seqloom.errors import ConfigError
from seqloom.tasks.classifier_results import Explanation
from seqloom.tasks.classifier_sequences import WordSequences
from seqloom.tasks.classifier_text import Terms, features_like
from seqloom.tasks.labeled import Labeled
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.supervised_objective import all_outputs


def explanations(model: nn.Module, terms: Terms | None, read: Labeled) -> list[Explanation]:
    """Return how much each word of each text counted.

    Args:
        model: The model.
        terms: What makes features of examples.
        read: The examples.

    Raises:
        ConfigError: If the model has no attention.
    """
    found: dict[int, Explanation] = {}
    x: Any = read.x
    features = features_like(read, terms)
    for index, output in all_outputs(model, features):
        if output.attention is None:
            raise ConfigError(
                "explain=True shows attention, which this model has none of; use pooling="
                "'attention' with an architecture that reads words in order, such as 'att-blstm'"
            )
        assert isinstance(features, Sequences)
        weights = output.attention.float().cpu().numpy()
        matrix = None if output.matrix is None else output.matrix.float().cpu().numpy()
        for row, place in enumerate(index.tolist()):
            n = int(features.lengths([place])[0, 0])
            words = [str(i) for i in range(n)]
            if isinstance(terms, WordSequences):
                words = terms.words(x[place])
            found[place] = Explanation(
                tuple(words),
                tuple(weights[row, :n].tolist()),
                None if matrix is None else matrix[row, :, :n, :n],
            )
    return [found[place] for place in range(len(features))]
