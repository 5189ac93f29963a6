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
from seqloom.tasks.reader_others import OtherPassages


def span_loss(output: SpanOutput, spans: Tensor, asked_twice: Tensor | None = None) -> Tensor:
    r"""The summed loss of answers: $-\log p^{start}_{y_s} - \log p^{end}_{y_e}$.

    Where a question is read with another passage as well, the probabilities are over both:

    $$p^{start}_i = \frac{\exp s_i}{\sum_j \exp s_j + \sum_j \exp s'_j}$$

    Paper: Clark and Gardner (2018), "Simple and Effective Multi-Paragraph Reading Comprehension",
    ACL, section 3.2, shared normalization.

    Args:
        output: What a reader says; rows after those of `spans` are of other passages.
        spans: The first and the last word (B, 2) of each answer.
        asked_twice: The question of each of those rows.
    """
    total = _negative_log(output.start, spans[:, 0], asked_twice)
    return total + _negative_log(output.end, spans[:, 1], asked_twice)


def _negative_log(scores: Tensor, true: Tensor, asked_twice: Tensor | None) -> Tensor:
    if asked_twice is None or not len(asked_twice):
        return functional.cross_entropy(scores, true, reduction="sum")
    own, other = scores[: len(true)], scores[len(true) :]
    beside = own.new_full((len(true),), float("-inf"))
    beside = beside.index_copy(0, asked_twice, other.logsumexp(dim=1))
    both = torch.logaddexp(own.logsumexp(dim=1), beside)
    return (both - own.gather(1, true[:, None])[:, 0]).sum()


class ReadingObjective:
    """Passages and questions in, minus the log-probability of the answers out.

    Args:
        train: The training questions.
        measure: What a model reaches on the validation data.
        batches: How batches are cut.
        others: What some questions are read with as well, if anything.
    """

    metric = "f1"
    higher_is_better = True

    def __init__(
        self,
        train: PassageQuestions,
        measure: Callable[[nn.Module], dict[str, float]],
        batches: BatchConfig,
        others: OtherPassages | None = None,
    ) -> None:
        self.train, self.measure, self.others = train, measure, others
        self.plan = Bucketing(train, batches)

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return self.plan.num_batches(epoch)

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        """The batches from number `start` on, each of passages of about one length."""
        for number, whole in enumerate(self.plan.indices(epoch, start), start):
            index = whole[rank::world_size]
            if not len(index):
                yield Batch(index, {})
            elif self.others is None:
                yield self.train.batch(index)
            else:
                yield self.others.batch(index, epoch, number * world_size + rank)

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        """The loss of a batch, and how many questions it has.

        Of several processes, one may have no question of a small batch.
        """
        from seqloom.training import LossOutput

        if not len(batch):
            weights = [weight for weight in model.parameters() if weight.requires_grad]
            return LossOutput(torch.stack([0 * weight.sum() for weight in weights]).sum(), 0)
        output: SpanOutput = model(reader_input(batch))
        values = batch.values
        loss = span_loss(output, values["spans"], values.get("asked_twice"))
        return LossOutput(loss, len(batch))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """What the model reaches on the validation data."""
        return self.measure(model)

    def carry(self) -> Mapping[str, Tensor]:
        """Nothing goes from batch to batch."""
        return {}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Nothing was carried."""
