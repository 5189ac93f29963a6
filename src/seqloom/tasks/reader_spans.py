"""The best spans of what a reader says, and of all windows of a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from seqloom.metrics.reading import Rules, bare_answer
from seqloom.models.reader_parts import SpanOutput, best_spans
from seqloom.tasks.reader_data import PassageQuestions, reader_input
from seqloom.tasks.reader_results import FoundAnswer
from seqloom.tasks.supervised_objective import parts_by_length

SPANS = 10  # the fewest that are looked at for an answer
PART = 1 << 13  # words of passages read at once on a processor
DEVICE_PART = 1 << 15  # and on a card


class FoundSpans(NamedTuple):
    """The best spans of all windows, as arrays.

    Args:
        scores: (N, K), as `Spans` has them.
        first: (N, K), from the beginning of the window.
        last: (N, K).
        norms: (N,), the logarithm of the sum of the exponentials of all scores of a beginning plus
            an end.
    """

    scores: NDArray[np.float64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    norms: NDArray[np.float64]

    def favor(self, more: NDArray[np.float64]) -> FoundSpans:
        """The same with something added to all scores of a window."""
        return self._replace(scores=self.scores + more[:, None], norms=self.norms + more)


def find_spans(model: nn.Module, data: PassageQuestions, max_words: int, k: int = 1) -> FoundSpans:
    """Return the best spans of each window, in order; memory does not grow with their number."""
    device = next(model.parameters()).device
    n, k = len(data), min(k, int(data.sizes.max()) * max_words)
    scores = np.full((n, k), -np.inf)
    first, last = np.zeros((n, k), np.int64), np.zeros((n, k), np.int64)
    norms = np.zeros(n)
    items = PART if device.type == "cpu" else DEVICE_PART
    for index in parts_by_length(data.sizes, items):
        with torch.no_grad():
            output: SpanOutput = model(reader_input(data.batch(index).tensors(device)))
            # In 64 bits, so that what rounding adds makes no probability greater than 1.
            start, end = output.start.double(), output.end.double()
            found = best_spans(start, end, max_words, k)
            sums = start.logsumexp(1) + end.logsumexp(1)  # (B,)
        width = found.scores.shape[1]
        scores[index, :width] = found.scores.cpu().numpy()
        first[index, :width] = found.first.cpu().numpy()
        last[index, :width] = found.last.cpu().numpy()
        norms[index] = sums.cpu().numpy()
    return FoundSpans(scores, first, last, norms)


class Candidate(NamedTuple):
    """A span of a passage.

    Args:
        passage: The passage, by its place.
        first: Its first word.
        last: Its last word.
        probability: Of its beginning and its end, among those of all windows.
    """

    passage: int
    first: int
    last: int
    probability: float


def merge_windows(
    data: PassageQuestions, found: FoundSpans, rows: NDArray[np.int64], k: int
) -> list[Candidate]:
    r"""Return the best different spans of the windows of one question, the best first.

    $$p(w, i, j) = \frac{\exp(s_i^w + e_j^w)}{\sum_{w'} \sum_{i'} \sum_{j'}
    \exp(s_{i'}^{w'} + e_{j'}^{w'})}$$

    over all windows w; of one window it is $p^{start}_i p^{end}_j$.

    Args:
        data: The windows.
        found: Their spans.
        rows: Which of the windows belong to the question.
        k: How many spans.
    """
    norm = np.logaddexp.reduce(found.norms[rows])
    order = np.argsort(-found.scores[rows].ravel(), kind="stable")
    width = found.scores.shape[1]
    seen: dict[tuple[int, int, int], float] = {}
    for flat in order.tolist():
        row, column = rows[flat // width], flat % width
        score = found.scores[row, column]
        if len(seen) == k or score == -np.inf:
            break
        begin = int(data.first[row])
        key = (
            int(data.which[row]),
            begin + int(found.first[row, column]),
            begin + int(found.last[row, column]),
        )
        seen.setdefault(key, float(np.exp(score - norm)))
    return [Candidate(*key, probability) for key, probability in seen.items()]


def as_answer(
    candidate: Candidate, spans: Sequence[tuple[int, int]], text: str, place: int = 0
) -> FoundAnswer:
    """Return a span as an answer.

    Args:
        candidate: The span.
        spans: Where each word of its passage stands in it.
        text: The passage.
        place: Which of those given it is.
    """
    start, end = spans[candidate.first][0], spans[candidate.last][1]
    return FoundAnswer(text[start:end], start, end, candidate.probability, place)


def joined(answers: Iterable[FoundAnswer], rules: Rules) -> list[FoundAnswer]:
    r"""Return different answers, the most probable first: spans that say the same are one answer.

    $$p(a) = \sum_{(w, i, j) \text{ says } a} p(w, i, j)$$

    "the Rhine" and "Rhine" are one, and so is a name that stands in a passage twice. The most
    probable span of an answer stands for it.

    Args:
        answers: The spans, the most probable first.
        rules: By which texts are the same.
    """
    found: dict[str, FoundAnswer] = {}
    for each in answers:
        key = bare_answer(each.text, rules)
        first = found.setdefault(key, each)
        if first is not each:
            found[key] = replace(first, probability=first.probability + each.probability)
    return sorted(found.values(), key=lambda each: -each.probability)
