"""What readers are trained for: the log-probability of where answers begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.data.batches import Batch
from seqloom.data.bucketing import BatchConfig, Bucketing
from seqloom.models.reader_parts import SpanOutput
from seqloom.tasks.reader_data import PassageQuestions, reader_input


def span_loss(output: SpanOutput, spans: Tensor) -> Tensor:
    r"""The summed loss of answers: $-\log p^{start}_{y_s} - \log p^{end}_{y_e}$.

    Args:
        output: What a reader says.
        spans: The first and the last word (B, 2) of each answer.
    """
    start = functional.cross_entropy(output.start, spans[:, 0], reduction="sum")
    return start + functional.cross_entropy(output.end, spans[:, 1], reduction="sum")


class ReadingObjective:
    """Passages and questions in, minus the log-probability of the answers out.

    Args:
        train: The training questions.
        measure: What a model reaches on the validation data.
        batches: How batches are cut.
    """

    metric = "f1"
    higher_is_better = True

    def __init__(
        self,
        train: PassageQuestions,
        measure: Callable[[nn.Module], dict[str, float]],
        batches: BatchConfig,
    ) -> None:
        self.train, self.measure = train, measure
        self.plan = Bucketing(train, batches)

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return self.plan.num_batches(epoch)

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        """The batches from number `start` on, each of passages of about one length."""
        for whole in self.plan.indices(epoch, start):
            index = whole[rank::world_size]
            yield self.train.batch(index) if len(index) else Batch(index, {})

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        """The loss of a batch, and how many questions it has.

        Of several processes, one may have no question of a small batch.
        """
        from seqloom.training import LossOutput

        if not len(batch):
            weights = [weight for weight in model.parameters() if weight.requires_grad]
            return LossOutput(torch.stack([0 * weight.sum() for weight in weights]).sum(), 0)
        output: SpanOutput = model(reader_input(batch))
        return LossOutput(span_loss(output, batch.values["spans"]), len(batch))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """What the model reaches on the validation data."""
        return self.measure(model)

    def carry(self) -> Mapping[str, Tensor]:
        """Nothing goes from batch to batch."""
        return {}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Nothing was carried."""
