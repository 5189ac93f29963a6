"""Training questions that are read with a passage that has no answer as well."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqloom.data.batches import Batch
from seqloom.tasks.reader_data import PassageQuestions


class OtherPassages:
    """Draws a second passage of the same article for some questions of a batch.

    What is drawn depends on the seed, the epoch and the number of the batch alone, so that a run
    that was stopped goes on with the same passages.

    Args:
        data: The training questions.
        articles: The article of each passage.
        share: The share of the questions that get one.
        seed: What decides.
    """

    def __init__(
        self, data: PassageQuestions, articles: Sequence[str], share: float, seed: int
    ) -> None:
        self.data, self.share, self.seed = data, share, seed
        numbers = {name: number for number, name in enumerate(dict.fromkeys(articles))}
        self.article = np.array([numbers[name] for name in articles])
        self.order = np.argsort(self.article, kind="stable")  # passages, article by article
        self.begin = np.searchsorted(self.article[self.order], np.arange(len(numbers) + 1))
        self.place = np.empty(len(self.order), np.int64)  # of a passage in `order`
        self.place[self.order] = np.arange(len(self.order))

    def draw(
        self, index: NDArray[np.int64], epoch: int, number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of the questions get another passage, by their place, and which they get.

        Args:
            index: The questions of a batch.
            epoch: The epoch.
            number: The number of the batch in it.
        """
        chance = np.random.default_rng([self.seed, epoch, number])
        taken, drawn = chance.random(len(index)) < self.share, chance.random(len(index))
        own = self.data.which[index]
        first = self.begin[self.article[own]]
        others = self.begin[self.article[own] + 1] - first - 1  # of the article, besides its own
        rows = np.flatnonzero(taken & (others > 0))
        step = 1 + (drawn[rows] * others[rows]).astype(np.int64)
        place = self.place[own[rows]] - first[rows] + step
        return rows, self.order[first[rows] + place % (others[rows] + 1)]

    def batch(self, index: NDArray[np.int64], epoch: int, number: int) -> Batch:
        """Return questions with their passages, after them some with another one.

        An other passage is read from its beginning, no further than the longest of the questions'
        own. `values["asked_twice"]` has the places of the questions that have one.
        """
        data = self.data
        rows, which = self.draw(index, epoch, number)
        again, longest = index[rows], int(data.sizes[index].max())
        sizes = np.minimum(data.texts.passages.lengths(which), longest)
        both = PassageQuestions(
            data.texts,
            np.concatenate([data.which[index], which]),
            np.concatenate([data.asked[index], data.asked[again]]),
            np.concatenate([data.first[index], np.zeros(len(rows), np.int64)]),
            np.concatenate([data.sizes[index], sizes]),
        ).batch(np.arange(len(index) + len(rows)))
        assert data.spans is not None
        more = {"spans": data.spans[index], "asked_twice": rows}
        return Batch(index, both.sequences, {**both.values, **more})
