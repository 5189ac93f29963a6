"""From what a recognizer's network says to labels: what is trained for, measured and read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.decoding.ctc import LabelLanguage, best_path, prefix_search
from seqloom.decoding.steps import Floats
from seqloom.errors import ConfigError
from seqloom.metrics.alignment import error_rate
from seqloom.models.recognizer import BLANK
from seqloom.nn.ctc import ctc_loss
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.setting_checks import check_count
from seqloom.tasks.supervised_objective import Examples, Goal, all_outputs

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel

DEFAULT_BEAM = 16


class Recognition(NamedTuple):
    """What was read.

    Args:
        labels: The labels.
        log_prob: Their log-probability given the input; of the best path, that of its alignment.
        score: What they were ranked by: with a language model, its part is in it.
    """

    labels: list[Any]
    log_prob: float
    score: float

    @property
    def text(self) -> str:
        """The labels as one string."""
        return "".join(map(str, self.labels))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How labels are read; `Recognizer.recognize` says what each setting means."""

    beam: int | None = None
    language: LanguageModel | None = None
    weight: float = 0.5
    bonus: float = 0.0

    def __post_init__(self) -> None:
        if self.beam is not None:
            check_count("beam", self.beam)
        if self.language is None:
            return
        if getattr(self.language, "reverse", False):
            raise ConfigError(
                "the language model must read from left to right, got one with reverse=True"
            )
        self.language.require_fitted()

    def for_labels(self, labels: NDArray[Any]) -> LabelLanguage | None:
        """The language model over these labels and the blank; unknown ones are its unknown word."""
        model = self.language
        if model is None:
            return None
        end = model.reader.end
        last, state = model.engine_.read(np.array([[end]]))
        words = model.vocabulary_.encode([str(label) for label in labels.tolist()])
        ids = np.concatenate([[end], words]).astype(np.int64)
        return LabelLanguage(
            model.engine_.step, state, int(last[0]), ids, end, self.weight, self.bonus
        )


def labels_goal() -> Goal:
    """What a recognizer is trained for: the probability of the labels over all alignments."""
    return Goal(alignment_loss, None, lambda *_: {}, evaluation=evaluated)


def alignment_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """The summed loss of rows; on padding the blank is certain, so all steps count."""
    sizes = (targets > BLANK).sum(dim=1)
    steps = torch.full_like(sizes, scores.shape[1])
    return ctc_loss(scores, targets, steps, sizes, blank=BLANK).sum()


def evaluated(model: nn.Module, examples: Examples) -> dict[str, float]:
    """Mean loss, and the error rate and share of right sequences of the best paths."""
    total = 0.0
    found: list[tuple[int, ...]] = [()] * len(examples.targets)
    for index, output in all_outputs(model, examples.features):
        scores, targets = output.scores.cpu(), torch.from_numpy(examples.targets[index])
        total += float(alignment_loss(scores, targets))
        for place, row in zip(index.tolist(), scores.numpy(), strict=True):
            found[place] = best_path(row, blank=BLANK)
    truth = [tuple(row[row > BLANK].tolist()) for row in examples.targets]
    return {"loss": total / len(truth), **closeness(found, truth)}


def closeness(found: list[Any], truth: list[Any]) -> dict[str, float]:
    """The error rate and the share of sequences that are right; of no label at all, 0 edits."""
    right = sum(left == right for left, right in zip(found, truth, strict=True))
    labels = sum(map(len, truth))
    return {
        "error_rate": error_rate(found, truth) if labels else float(sum(map(len, found))),
        "exact": right / len(truth),
    }


def recognitions(
    model: nn.Module, features: Sequences, labels: NDArray[Any], reading: Reading, n_best: int
) -> list[list[Recognition]]:
    """What is read off each sequence, best first."""
    language = reading.for_labels(labels)
    beam = reading.beam
    if beam is None and (language is not None or n_best > 1):
        beam = max(DEFAULT_BEAM, n_best)
    names = labels.tolist()
    found: list[list[Recognition]] = [[] for _ in range(len(features))]
    for place, rows in _scores(model, features):
        if beam is None:
            path = best_path(rows, blank=BLANK)
            total = float(rows.max(axis=1).sum())
            found[place] = [Recognition([names[i - 1] for i in path], total, total)]
            continue
        for each in prefix_search(rows, blank=BLANK, beam=beam, n_best=n_best, language=language):
            said = [names[i - 1] for i in each.labels]
            found[place].append(Recognition(said, each.log_prob, each.score))
    return found


def _scores(model: nn.Module, features: Sequences) -> Iterator[tuple[int, Floats]]:
    """The log-probabilities of each sequence, (T, C), without padding."""
    for index, output in all_outputs(model, features):
        lengths = features.lengths(index)[:, 0]
        rows = output.scores.double().cpu().numpy()
        for place, row, length in zip(index.tolist(), rows, lengths.tolist(), strict=True):
            yield place, row[:length]
