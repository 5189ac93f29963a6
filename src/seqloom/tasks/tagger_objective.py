"""What taggers are trained for: the log-probability of the tags of a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.data.batches import Batch
from seqloom.data.bucketing import BatchConfig, Bucketing
from seqloom.data.ragged import Ragged
from seqloom.models.tagger import TaggerInput, TagOutput
from seqloom.nn.context import WordsInContext
from seqloom.tasks.supervised_objective import parts_by_length
from seqloom.tasks.tagger_words import TokenSequences

PART = 2048  # words of a batch in use: what a layer holds of them stays in the processor's caches


def run_tagger(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the scores of a batch of tensors, and its lengths."""
    names = [name for name in batch.sequences if name.startswith("feature")]
    items = batch["items"]
    given = items.values
    if "context" in batch.sequences:
        given = WordsInContext(given, batch["context"].values)
    x = TaggerInput(
        given,
        tuple(batch[name].values for name in names),
        batch.values.get("spellings"),
        batch.values.get("spelling_lengths"),
        batch["which"].values if "which" in batch.sequences else None,
    )
    padded = batch.host["items"]
    is_even = bool((np.asarray(padded.lengths) == padded.values.shape[1]).all())
    output: TagOutput = model(x, None if is_even else items.lengths)
    return output.scores.float(), items.lengths


class TaggingObjective:
    """Sentences in, minus the log-probability of their tags out.

    Args:
        train: The training sentences.
        tags: Their tags.
        measure: What a model reaches on the validation data.
        metric: Which of that decides.
        batches: How batches are cut.
    """

    higher_is_better = True

    def __init__(
        self,
        train: TokenSequences,
        tags: Ragged,
        measure: Callable[[nn.Module], dict[str, float]],
        metric: str,
        batches: BatchConfig,
    ) -> None:
        self.train, self.tags, self.measure, self.metric = train, tags, measure, metric
        self.plan = Bucketing(train, batches)

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return self.plan.num_batches(epoch)

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        """The batches from number `start` on, each of sentences of about one length."""
        for whole in self.plan.indices(epoch, start):
            index = whole[rank::world_size]
            if len(index):
                yield self.train.batch(index, self.tags)
            else:
                yield Batch(index, {})

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        """The loss of a batch, and how many words it has.

        Of several processes, one may have no sentence of a small batch.
        """
        from seqloom.training import LossOutput

        if not len(batch):
            weights = [weight for weight in model.parameters() if weight.requires_grad]
            return LossOutput(torch.stack([0 * weight.sum() for weight in weights]).sum(), 0)
        scores, lengths = run_tagger(model, batch)
        layer: Any = model.output
        total = layer.loss(scores, batch["tags"].values, lengths).sum()
        return LossOutput(total, int(np.asarray(batch.host["items"].lengths).sum()))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """What the model reaches on the validation data."""
        return self.measure(model)

    def carry(self) -> Mapping[str, Tensor]:
        """Nothing goes from batch to batch."""
        return {}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Nothing was carried."""


def each_part(
    model: nn.Module, sequences: TokenSequences
) -> Iterator[tuple[NDArray[np.int64], Tensor, Tensor]]:
    """Yield the places of some sentences, their scores and their lengths, until it was all."""
    device = next(model.parameters()).device
    for index in parts_by_length(sequences.items.lengths(), PART):
        with torch.no_grad():
            scores, lengths = run_tagger(model, sequences.batch(index).tensors(device))
        yield index, scores, lengths


def best_tags(model: nn.Module, sequences: TokenSequences) -> list[NDArray[np.int64]]:
    """Return the best tags of each sentence, in order."""
    found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(sequences)
    layer: Any = model.output
    for index, scores, lengths in each_part(model, sequences):
        tags = layer.decode(scores, lengths).cpu().numpy()
        for place, row, length in zip(index.tolist(), tags, lengths.tolist(), strict=True):
            found[place] = row[:length]
    return found
