"""What every engine that holds a network saves of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from seqloom.config import to_dict
from seqloom.tasks.estimator import tensor_shapes


class StoredNetwork:
    """A network with a configuration, saved by its weights alone."""

    model: Any

    def config(self) -> dict[str, Any]:
        """The network's configuration."""
        return to_dict(self.model.config)

    def weights(self) -> Mapping[str, Tensor]:
        """The network's weights."""
        found: Mapping[str, Tensor] = self.model.state_dict()
        return found

    def files(self) -> dict[str, Any]:
        """None besides the weights."""
        return {}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight."""
        return tensor_shapes(self.model)
