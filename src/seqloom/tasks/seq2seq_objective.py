"""What an encoder-decoder is trained for: every word of the target, given those before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.data.batches import Batch, EncodedData
from seqloom.data.bucketing import BatchConfig, Bucketing
from seqloom.errors import ConfigError
from seqloom.metrics import perplexity
from seqloom.nn.context import WordsInContext
from seqloom.tasks.class_scores import divergence

EVALUATION_ITEMS = 1 << 13  # words of both sides at once, padding included


@dataclass(frozen=True, kw_only=True)
class PairGoal:
    """How pairs are learned from.

    Args:
        label_smoothing: Share of a target that is spread over all words.
        own_words: Share of the words fed to the decoder that are its own predictions, in the end.
        own_words_epochs: Epochs over which the share grows from 0.
        consistency: Times how far apart the probabilities are that two passes with other units
            dropped give the same words; each pair is then read twice.
    """

    label_smoothing: float = 0.0
    own_words: float = 0.0
    own_words_epochs: int = 10
    consistency: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1 or not 0 <= self.own_words <= 1:
            raise ConfigError(
                "label_smoothing must lie in [0, 1) and own_words in [0, 1], got "
                f"{self.label_smoothing} and {self.own_words}"
            )
        if self.own_words_epochs < 1:
            raise ConfigError(f"own_words_epochs must be at least 1, got {self.own_words_epochs}")
        if not 0 <= self.consistency < math.inf:
            raise ConfigError(
                f"consistency must not be negative or infinite, got {self.consistency}"
            )
        if self.consistency and self.own_words:
            raise ConfigError(
                "consistency compares two passes over the same words, which own_words changes; "
                f"set one of them to 0, got {self.consistency} and {self.own_words}"
            )


class PairBatch(NamedTuple):
    """A batch of tensors as models take it.

    Args:
        source: Ids or vectors, perhaps with their context.
        lengths: How many items of each source are real.
        copies: What each word of a source is among the words that may be written, for pointers.
        inputs: The words before each target.
        targets: The words to predict.
        real: Where there is one.
        items: How many there are.
    """

    source: Tensor | WordsInContext
    lengths: Tensor
    copies: Tensor | None
    inputs: Tensor
    targets: Tensor
    real: Tensor
    items: int

    @classmethod
    def of(cls, batch: Batch) -> PairBatch:
        """From a batch with the columns source, target and perhaps copies."""
        source, target = batch["source"], batch["target"]
        copies = batch["copies"].values if "copies" in batch.sequences else None
        items = int((np.asarray(batch.host["target"].lengths) - 1).sum())
        read = source.values
        if "context" in batch.sequences:
            read = WordsInContext(read, batch["context"].values)
        return cls(
            read,
            source.lengths,
            copies,
            target.values[:, :-1],
            target.values[:, 1:],
            target.mask[:, 1:],
            items,
        )

    def twice(self) -> PairBatch:
        """Every pair twice, all of them first and then all of them again."""

        def both(values: Tensor) -> Tensor:
            return torch.cat([values, values])

        source = self.source
        again = WordsInContext(*map(both, source)) if isinstance(source, tuple) else both(source)
        return PairBatch(
            again,
            both(self.lengths),
            None if self.copies is None else both(self.copies),
            both(self.inputs),
            both(self.targets),
            both(self.real),
            2 * self.items,
        )


class Seq2SeqObjective:
    r"""Pairs in, the cross-entropy of the targets out.

    With `own_words` some of the words the decoder is fed are its own: a first pass predicts them
    from the true words, a second one learns from the mixture.

    With `consistency` $\alpha$ two passes with other units dropped give $p$ and $q$; a pair costs

    $$\tfrac12 (L_p + L_q) + \alpha \sum_t \tfrac12 \left(KL(p_t \| q_t) + KL(q_t \| p_t)\right)$$

    Paper: Bengio et al. (2015), "Scheduled Sampling for Sequence Prediction with Recurrent Neural
    Networks", NeurIPS; Duckworth et al. (2019), "Parallel Scheduled Sampling", arXiv:1906.04331,
    for two passes in place of a pass a word; Liang et al. (2021), "R-Drop: Regularized Dropout for
    Neural Networks", NeurIPS, equation 4, for the consistency.
    Differs from the papers: the likeliest word is fed, and the share grows linearly with epochs;
    R-Drop adds the two cross-entropies, so that its alpha is twice the one here.

    Args:
        train: The training pairs as columns.
        valid: The validation pairs, if there are any.
        batches: How batches are cut.
        goal: How pairs are learned from.
    """

    metric = "perplexity"
    higher_is_better = False

    def __init__(
        self,
        train: EncodedData,
        valid: EncodedData | None,
        batches: BatchConfig,
        goal: PairGoal,
    ) -> None:
        self.train, self.valid, self.goal = train, valid, goal
        self.plan = Bucketing(train, batches)
        self.share = 0.0

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return self.plan.num_batches(epoch)

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        """The batches from number `start` on, by length."""
        grown = min(1.0, epoch / self.goal.own_words_epochs)
        self.share = self.goal.own_words * grown
        return self.plan.batches(self.train, epoch, start, rank=rank, world_size=world_size)

    def loss(self, model: Any, batch: Batch) -> Any:
        """The loss of a batch; of several processes, one may have no example of a small batch."""
        from seqloom.training import LossOutput

        if not len(batch):
            weights = [weight for weight in model.parameters() if weight.requires_grad]
            return LossOutput(torch.stack([0 * weight.sum() for weight in weights]).sum(), 0)
        given, apart = PairBatch.of(batch), self.goal.consistency
        if apart:
            given = given.twice()
        memory = model.encode(given.source, given.lengths, given.copies)
        inputs = given.inputs
        if self.share:
            inputs = self._mixed(model, given, memory)
        output = model.decode(inputs, memory, model.begin(memory))
        total = model.output.loss(
            output, memory, given.targets, given.real, self.goal.label_smoothing
        )
        if not apart:
            return LossOutput(total, given.items)
        scores = model.output.log_probs(output, memory)[given.real]
        total = total / 2 + apart * divergence(*scores.chunk(2))
        return LossOutput(total, given.items // 2)

    @torch.no_grad()
    def _mixed(self, model: Any, given: PairBatch, memory: Any) -> Tensor:
        """The words fed, some of them the model's own."""
        output = model.decode(given.inputs, memory, model.begin(memory))
        likeliest = model.output.log_probs(output, memory).argmax(dim=-1)  # (B, T)
        own = torch.rand(given.inputs.shape, device=given.inputs.device) < self.share
        own[:, 0] = False  # what begins a text is no prediction
        before = torch.cat([given.inputs[:, :1], likeliest[:, :-1]], dim=1)
        return torch.where(own, before, given.inputs)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Perplexity and accuracy of the words of the validation targets."""
        return {} if self.valid is None else measure_pairs(model, self.valid)

    def carry(self) -> Mapping[str, Tensor]:
        """Nothing goes from batch to batch."""
        return {}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Nothing was carried."""


@torch.no_grad()
def measure_pairs(model: Any, data: EncodedData) -> dict[str, float]:
    """The perplexity of all targets, each word given those before it, and the share it got right.

    A word is right if it is the likeliest one.
    """
    device = next(model.parameters()).device
    total = torch.zeros((), dtype=torch.float64, device=device)
    right = torch.zeros((), dtype=torch.float64, device=device)
    items = 0
    sizes = BatchConfig(batch_size=256, max_items=EVALUATION_ITEMS)
    for batch in Bucketing(data, sizes).batches(data, 0):
        given = PairBatch.of(batch.tensors(device))
        memory = model.encode(given.source, given.lengths, given.copies)
        output = model.decode(given.inputs, memory, model.begin(memory))
        logs = model.output.log_probs(output, memory)  # (B, T, V)
        own = logs.gather(2, given.targets[..., None])[..., 0]
        total += own[given.real].double().clamp(min=-100).sum()
        right += (logs.argmax(dim=-1) == given.targets)[given.real].sum()
        items += given.items
    return {"perplexity": perplexity(-float(total), items), "accuracy": float(right) / items}
