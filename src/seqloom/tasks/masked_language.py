"""Language models that restore words from both sides: `objective="masked"` of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.architectures import Architecture
from seqloom.errors import ConfigError
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.language_engine import (
    FitRequest,
    Fitted,
    Floats,
    Ids,
    LanguageEngine,
    Reading,
)
from seqloom.tasks.masked_objective import pseudo_log_probs, restored_log_probs
from seqloom.tasks.stored_network import StoredNetwork
from seqloom.text.vocabulary import Vocabulary


class MaskedLanguage(StoredNetwork):
    """The engine of a network that sees both sides of a word.

    It scores by pseudo-log-likelihood (`masked_objective`), fills blanks, and refuses to go on
    from a text.

    Args:
        model: The network.
        vocabulary: What its ids mean.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary) -> None:
        self.model = model
        self.end = vocabulary[vocabulary.specials.eos]

    @classmethod
    def fit(cls, request: FitRequest) -> Fitted:
        """As every network."""
        from seqloom.tasks.neural_language import NeuralLanguage

        return NeuralLanguage.fit(request)

    # -- use -------------------------------------------------------------------------------------

    def loss(self, ids: Ids) -> tuple[float, int]:
        """The pseudo-log-likelihood of a text, negated, and over how many ids it is summed."""
        return -float(self._pseudo(ids).double().sum()), len(ids)

    def log_probs(self, sequences: Sequence[Ids]) -> list[tuple[float, ...]]:
        """The log-probability of each id of each sequence, given those before and after it."""
        return [tuple(self._pseudo(ids).tolist()) for ids in sequences]

    def _pseudo(self, ids: Ids) -> Tensor:
        return pseudo_log_probs(self.model, self._tensor([self.end, *np.asarray(ids).tolist()]))

    def fill_log_probs(self, left: Ids, right: Ids) -> Floats:
        """The log-probability of every id (V,) between two sides of a sentence."""
        whole = [self.end, *np.asarray(left).tolist(), 0, *np.asarray(right).tolist(), self.end]
        found = restored_log_probs(self.model, self._tensor(whole), len(left) + 1)
        log_probs: Floats = found.double().cpu().numpy()
        return log_probs

    def _tensor(self, ids: list[int]) -> Tensor:
        return torch.tensor(ids, device=next(self.model.parameters()).device)

    def stream(
        self,
        ids: Ids,  # noqa: ARG002
        reading: Reading | None = None,  # noqa: ARG002
    ) -> tuple[Floats, Reading]:
        """Refuse: there is nothing to go on from."""
        self._refuse()

    def read(self, ids: NDArray[Any]) -> Reading:  # noqa: ARG002
        """Refuse: there is nothing to go on from."""
        self._refuse()

    def step(self, ids: NDArray[Any], state: Any) -> tuple[Any, Any]:  # noqa: ARG002
        """Refuse: there is nothing to go on from."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ConfigError(
            "what comes next must be asked of a model that reads one way, got one with "
            "objective='masked', which sees both sides; use fill or score, or fit with "
            "objective='causal'"
        )

    # -- saving ----------------------------------------------------------------------------------

    @classmethod
    def restore(
        cls, architecture: Architecture, config: Any, vocabulary: Vocabulary, stored: StoredModel
    ) -> LanguageEngine:
        """As every network."""
        from seqloom.tasks.neural_language import NeuralLanguage

        return NeuralLanguage.restore(architecture, config, vocabulary, stored)
