"""What readers are trained for: the log-probability of where answers begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.data.batches import Batch
from seqloom.data.bucketing import BatchConfig, Bucketing
from seqloom.data.ragged import Ragged
from seqloom.models.reader_parts import ReaderInput, SpanOutput
from seqloom.tasks.class_scores import divergence
from seqloom.tasks.reader_data import PassageQuestions, reader_input
from seqloom.tasks.reader_others import OtherPassages

PAIRED = (
    "passage",
    "passage_lengths",
    "question",
    "question_lengths",
    "passage_context",
    "question_context",
)
"""What of an input has a row a pair."""
PADDING = -1e4  # a score so low that its probability is 0 in 32 bits


def span_loss(output: SpanOutput, answers: Tensor, asked_again: Tensor | None = None) -> Tensor:
    r"""The summed loss of answers: $-\log p^{start}_{y_s} - \log p^{end}_{y_e}$.

    Of answers that are probabilities $t$ of every beginning and end it is
    $-\sum_i t^{start}_i \log p^{start}_i - \sum_i t^{end}_i \log p^{end}_i$. Where a question is
    read with other passages k as well, the probabilities are over all of them:

    $$p^{start}_i = \frac{\exp s_i}{\sum_j \exp s_j + \sum_k \sum_j \exp s^k_j}$$

    Paper: Clark and Gardner (2018), "Simple and Effective Multi-Paragraph Reading Comprehension",
    ACL, section 3.2, shared normalization.

    Args:
        output: What a reader says; rows after those of `answers` are of other passages.
        answers: The first and the last word (B, 2) of each answer, or the probabilities (B, T, 2).
        asked_again: The question of each of those rows.
    """
    total = _negative_log(output.start, answers[..., 0], asked_again)
    return total + _negative_log(output.end, answers[..., 1], asked_again)


def _negative_log(scores: Tensor, true: Tensor, asked_again: Tensor | None) -> Tensor:
    """The loss of the beginnings or ends `true`: places (B,) or probabilities (B, T)."""
    is_sure, alone = not true.is_floating_point(), asked_again is None or not len(asked_again)
    if is_sure and alone:
        return functional.cross_entropy(scores, true, reduction="sum")
    own, other = scores[: len(true)], scores[len(true) :]
    norms = own.logsumexp(dim=1)
    if asked_again is not None and not alone:
        norms = _sums_by_row(norms, other.logsumexp(dim=1), asked_again)
    said = own.gather(1, true[:, None])[:, 0] if is_sure else (true * _finite(own)).sum(dim=1)
    return (norms - said).sum()


def _sums_by_row(norms: Tensor, more: Tensor, rows: Tensor) -> Tensor:
    """ln(exp(norms) + the sum of exp(more) of each row)."""
    # A table, so that sums are in one order on a card too: the same input, the same bits.
    apart = more.new_full((len(norms), len(more)), -torch.inf)
    apart[rows, torch.arange(len(more), device=rows.device)] = more
    return torch.cat([norms[:, None], apart], dim=1).logsumexp(dim=1)


def twice(x: ReaderInput) -> ReaderInput:
    """Every pair twice, all of them first and then all of them again; words are read once."""
    found = {name: getattr(x, name) for name in PAIRED}
    both = {name: torch.cat([part, part]) for name, part in found.items() if part is not None}
    return x._replace(**both)


def halves(output: SpanOutput) -> tuple[SpanOutput, SpanOutput]:
    """What was said the first and the second time."""
    first, second = zip(*(part.chunk(2) for part in output), strict=True)
    return SpanOutput(*first), SpanOutput(*second)


def span_divergence(first: SpanOutput, second: SpanOutput, count: int) -> Tensor:
    """How far two passes are apart over the words of the first `count` rows, summed.

    Beginnings and ends are compared by `divergence`, each over the passage of its row.
    """
    pairs = ((first.start, second.start), (first.end, second.end))
    return torch.stack([divergence(*map(_finite, (a[:count], b[:count]))) for a, b in pairs]).sum()


def _finite(scores: Tensor) -> Tensor:
    """Scores whose softmax is 0 on padding without being minus infinity there."""
    return scores.masked_fill(scores == -torch.inf, PADDING)


class ReadingObjective:
    r"""Passages and questions in, minus the log-probability of the answers out.

    With `consistency` $\alpha$ two passes with other units dropped give $p$ and $q$; a question
    costs

    $$\tfrac12 (L_p + L_q) + \alpha \sum_{start, end} \tfrac12
    \left(KL(p \| q) + KL(q \| p)\right)$$

    Paper: Liang et al. (2021), "R-Drop: Regularized Dropout for Neural Networks", NeurIPS,
    equation 4.
    Differs from the paper: it adds the two losses, so that its alpha is twice the one here; what
    is dropped of the characters of a word is the same in both passes.

    Args:
        train: The training questions.
        measure: What a model reaches on the validation data.
        batches: How batches are cut.
        others: What some questions are read with as well, if anything.
        consistency: $\alpha$; 0 for one pass.
        targets: The probabilities (T, 2) that an answer begins and ends with each word a training
            question reads, where they are learned in place of the answer alone.
    """

    metric = "f1"
    higher_is_better = True

    def __init__(
        self,
        train: PassageQuestions,
        measure: Callable[[nn.Module], dict[str, float]],
        batches: BatchConfig,
        others: OtherPassages | None = None,
        *,
        consistency: float = 0.0,
        targets: Ragged | None = None,
    ) -> None:
        self.train, self.measure, self.others = train, measure, others
        self.consistency, self.targets = consistency, targets
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
                continue
            if self.others is None:
                batch = self.train.batch(index)
            else:
                batch = self.others.batch(index, epoch, number * world_size + rank)
            if self.targets is not None:
                targets = self.targets.pad(index)[0]  # (B, T, 2), T that of the batch
                batch = replace(batch, values={**batch.values, "targets": targets})
            yield batch

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        """The loss of a batch, and how many questions it has.

        Of several processes, one may have no question of a small batch.
        """
        from seqloom.training import LossOutput

        if not len(batch):
            weights = [weight for weight in model.parameters() if weight.requires_grad]
            return LossOutput(torch.stack([0 * weight.sum() for weight in weights]).sum(), 0)
        given, values = reader_input(batch), batch.values
        answers = values.get("targets", values["spans"]), values.get("asked_again")
        if not self.consistency:
            return LossOutput(span_loss(model(given), *answers), len(batch))
        first, second = halves(model(twice(given)))
        loss = (span_loss(first, *answers) + span_loss(second, *answers)) / 2
        apart = span_divergence(first, second, len(values["spans"]))
        return LossOutput(loss + self.consistency * apart, len(batch))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """What the model reaches on the validation data."""
        return self.measure(model)

    def carry(self) -> Mapping[str, Tensor]:
        """Nothing goes from batch to batch."""
        return {}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Nothing was carried."""
