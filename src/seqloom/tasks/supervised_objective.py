"""What classifiers and regressors are trained for: a loss of scores and targets, with a penalty.

Features are vectors, bags or sequences. Sequences are batched by length and padded, which never
changes a result; evaluation puts results back into the order of the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from seqloom.data.batches import Batch, Padded
from seqloom.data.bucketing import BatchConfig, Bucketing
from seqloom.data.features import Features
from seqloom.models.outputs import ScoreOutput
from seqloom.nn.bag import Bag
from seqloom.nn.context import WordsInContext
from seqloom.tasks.adversarial import noted, shifted, worst_shift
from seqloom.tasks.sequences import Sequences

EVALUATION_ROWS = 4096
EVALUATION_ITEMS = 1 << 14  # of padded sequences at once

Loss = Callable[[Tensor, Tensor], Tensor]
"""Scores (B, C) and targets to the summed loss."""


class Examples(NamedTuple):
    """Features, and what is to be predicted from them.

    Targets are the numbers of classes (N,), numbers (N, C), of several labels 1 or 0 (N, C), or
    the numbers of a sequence of labels, -1 after its end (N, L).
    """

    features: Features
    targets: NDArray[Any]


@dataclass(frozen=True)
class Goal:
    """What decides how good scores are.

    Args:
        loss: The summed loss of scores.
        penalty: What the weights of the whole training cost, if anything.
        metrics: Further metrics of scores and targets.
        extra: What else training costs, summed over the examples of a batch: it takes the model,
            its output and the lengths of the rows, None where nothing is padded.
        constrain: What is done to the weights after an update.
        twice: What it costs, summed, that two passes of training differ in their scores; with it a
            batch is read twice, and the losses are averaged.
        adversarial: Length of the shift against the model of the word vectors of each text; with
            it the second pass reads shifted words.
        evaluation: What is measured of a model on examples, in place of `loss` and `metrics` of
            all scores; "loss" is among it.
    """

    loss: Loss
    penalty: Callable[[Tensor], Tensor] | None
    metrics: Callable[[NDArray[Any], NDArray[Any]], dict[str, float]]
    extra: Callable[[nn.Module, ScoreOutput, Tensor | None], Tensor] | None = None
    constrain: Callable[[nn.Module], None] | None = None
    twice: Loss | None = None
    evaluation: Callable[[nn.Module, Examples], dict[str, float]] | None = None
    adversarial: float = 0.0

    def measure(self, model: nn.Module, examples: Examples) -> dict[str, float]:
        """Return mean loss and metrics of a model on examples."""
        if self.evaluation is not None:
            return self.evaluation(model, examples)
        scores, targets = all_scores(model, examples.features), examples.targets
        total = self.loss(torch.from_numpy(scores), torch.from_numpy(targets))
        return {"loss": float(total) / len(targets), **self.metrics(scores, targets)}


def model_input(batch: Batch) -> Tensor | Bag:
    """Return the features of a batch of tensors as models of one vector an example take them."""
    values = batch.values
    if "x" in values:
        x: Tensor = values["x"]
        return x
    return Bag(values["ids"], values["weights"], values["starts"])


def real_lengths(batch: Batch) -> Tensor | None:
    """Return the lengths of the sequences of a batch; None where nothing is padded."""
    if "sequences" not in batch.sequences:
        return None
    padded = batch.host["sequences"]
    if (np.asarray(padded.lengths) == padded.values.shape[1]).all():
        return None
    lengths: Tensor = batch["sequences"].lengths
    return lengths


def run_model(model: nn.Module, batch: Batch) -> ScoreOutput:
    """Return what a model says of a batch of tensors."""
    if "sequences" in batch.sequences:
        x = batch["sequences"].values
        if "context" in batch.sequences:
            x = WordsInContext(x, batch["context"].values)
        output: ScoreOutput = model(x, real_lengths(batch))
    else:
        output = model(model_input(batch))
    return output


def make_batch(features: Features, index: NDArray[np.int64], **values: NDArray[Any]) -> Batch:
    """Return the examples at these places with further values of them."""
    if isinstance(features, Sequences):
        sequences = {"sequences": features.pad(index)}
        if features.context is not None:
            sequences["context"] = Padded(*features.context.pad(index))
        return Batch(index, sequences, values)
    return Batch(index, {}, {**features.arrays(index), **values})


def all_outputs(
    model: nn.Module, features: Features
) -> Iterator[tuple[NDArray[np.int64], ScoreOutput]]:
    """Yield the places of some examples and what the model says of them, until it was all.

    Sequences come by length, so that little is padded.
    """
    device = next(model.parameters()).device
    for index in _parts(features):
        with torch.no_grad():
            output = run_model(model, make_batch(features, index).tensors(device))
        yield index, output


def all_scores(model: nn.Module, features: Features) -> NDArray[np.float64]:
    """Return the scores of all examples, (N, C) or more axes, in their order."""
    found: NDArray[np.float64] | None = None
    for index, output in all_outputs(model, features):
        scores = output.scores.double().cpu().numpy()
        if found is None:
            found = np.empty((len(features), *scores.shape[1:]))
        found[index] = scores
    assert found is not None
    return found


def _parts(features: Features) -> Iterator[NDArray[np.int64]]:
    places = np.arange(len(features))
    if not isinstance(features, Sequences):
        for begin in range(0, len(places), EVALUATION_ROWS):
            yield places[begin : begin + EVALUATION_ROWS]
        return
    yield from parts_by_length(features.lengths(places)[:, 0])


def parts_by_length(
    lengths: NDArray[np.int64], items: int = EVALUATION_ITEMS
) -> Iterator[NDArray[np.int64]]:
    """Yield the places of sequences of about one length, until it was all of them.

    Args:
        lengths: Of all sequences.
        items: How many there may be in a part, with the padding; a longer sequence is one alone.
    """
    order = np.argsort(lengths, kind="stable")
    begin = 0
    for i in range(1, len(order) + 1):
        full = i == len(order) or (i - begin + 1) * lengths[order[i]] > items
        if full:
            yield order[begin:i]
            begin = i


class SupervisedObjective:
    """Features in, the loss of the scores out, plus a penalty on the weights.

    The penalty belongs to the sum of all losses, so a batch carries its share of it.

    Args:
        train: The training examples.
        valid: The validation examples, if there are any.
        goal: What is minimized and what is measured.
        batches: How batches are cut; None makes one of all examples.
        before_epoch: What is done before each epoch but the first.
    """

    metric = "loss"
    higher_is_better = False

    def __init__(
        self,
        train: Examples,
        valid: Examples | None,
        goal: Goal,
        batches: BatchConfig | None,
        before_epoch: Callable[[], None] | None = None,
    ) -> None:
        self.train, self.valid, self.goal = train, valid, goal
        self.before_epoch = before_epoch
        size, features = len(train.features), train.features
        whole = BatchConfig(batch_size=size, shuffle=False)
        lengths = features if isinstance(features, Sequences) else _OneItemEach(size)
        self.plan = Bucketing(lengths, batches or whole)

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return self.plan.num_batches(epoch)

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        """The batches from number `start` on; bags lie in them end to end, without padding.

        Sequences are batched by length.
        """
        if epoch and not start and self.before_epoch is not None:
            self.before_epoch()
        for whole in self.plan.indices(epoch, start):
            index = whole[rank::world_size]
            yield make_batch(self.train.features, index, target=self.train.targets[index])

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        """The loss of a batch, with its share of the penalty.

        Of several processes, one may have no example of a small batch.
        """
        from seqloom.training import LossOutput

        if not len(batch):
            weights = [weight for weight in model.parameters() if weight.requires_grad]
            return LossOutput(torch.stack([0 * weight.sum() for weight in weights]).sum(), 0)
        if self.goal.constrain is not None:
            self.goal.constrain(model)
        if self.goal.twice is None and not self.goal.adversarial:
            total = self._cost(model, batch, run_model(model, batch))
        else:
            total = self._two_passes(model, batch)
        if self.goal.penalty is not None:
            share = len(batch) / len(self.train.features)
            weight: Any = model.original_weight()  # type: ignore[operator]
            total = total + share * self.goal.penalty(weight)
        return LossOutput(total, len(batch))

    def _two_passes(self, model: Any, batch: Batch) -> Tensor:
        """The mean loss of two passes, and how far apart they are."""
        if not self.goal.adversarial:
            output, again = (run_model(model, batch) for _ in range(2))
            total = self._cost(model, batch, output)
        else:
            words = model.input.embedding
            with noted(words) as vectors:
                output = run_model(model, batch)
            total = self._cost(model, batch, output)
            with shifted(words, worst_shift(total, vectors[0], self.goal.adversarial)):
                again = run_model(model, batch)
        total = (total + self._cost(model, batch, again)) / 2
        if self.goal.twice is None:
            return total
        return total + self.goal.twice(output.scores, again.scores)

    def _cost(self, model: nn.Module, batch: Batch, output: ScoreOutput) -> Tensor:
        """The loss of one pass, and what else it costs."""
        total = self.goal.loss(output.scores, batch.values["target"])
        if self.goal.extra is None:
            return total
        return total + self.goal.extra(model, output, real_lengths(batch))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss and metrics of the validation examples."""
        if self.goal.constrain is not None:
            self.goal.constrain(model)
        return {} if self.valid is None else self.goal.measure(model, self.valid)

    def carry(self) -> Mapping[str, Tensor]:
        """Nothing goes from batch to batch."""
        return {}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Nothing was carried."""


class _OneItemEach:
    """Examples without padding are all of one length to the bucketing."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def lengths(self, index: ArrayLike) -> NDArray[np.int64]:
        return np.ones((len(np.asarray(index)), 1), np.int64)
