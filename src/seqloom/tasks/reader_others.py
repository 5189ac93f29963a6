"""Training questions that are read with a passage that has no answer as well."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqloom.data.batches import Batch
from seqloom.tasks.reader_data import PassageQuestions

CHOICES = 8  # passages of an article that one is drawn from


class OtherPassages:
    """Draws a second passage of the same article for some questions of a batch.

    It is one of those that have most in common with the question, as the windows that are read of
    a long document are. What is drawn depends on the seed, the epoch and the number of the batch
    alone, so that a run that was stopped goes on with the same passages.

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
        self.nearest = nearest_passages(data, articles)

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
        known = (self.nearest[index] >= 0).sum(axis=1)
        rows = np.flatnonzero(taken & (known > 0))
        place = (drawn[rows] * known[rows]).astype(np.int64)
        return rows, self.nearest[index[rows], place]

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


def nearest_passages(data: PassageQuestions, articles: Sequence[str]) -> NDArray[np.int64]:
    r"""Return the other passages of its article that have most in common with each question.

    $$\sum_{w \in q \cap p} r_w \ln\Big(1 + \frac{N - n_w + 0.5}{n_w + 0.5}\Big)$$

    over the roots w of the question's words, $n_w$ of the N passages of the article having them; it
    is `window_scores`, by which long documents are searched, without counts and lengths.

    Args:
        data: The training questions.
        articles: The article of each passage.

    Returns:
        Numbers of passages (N, `CHOICES`), those with most in common first; -1 where there is none.
    """
    texts = data.texts
    found = np.full((len(data), CHOICES), -1, np.int64)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(articles))}
    article = np.array([numbers[name] for name in articles])
    asked = article[data.which]
    by_article = np.argsort(asked, kind="stable")
    edges = np.searchsorted(asked[by_article], np.arange(len(numbers) + 1))
    for number in range(len(numbers)):
        passages = np.flatnonzero(article == number)
        rows = by_article[edges[number] : edges[number + 1]]
        if len(passages) < 2 or not len(rows):
            continue
        roots = [np.unique(texts.roots[texts.passages[int(each)]]) for each in passages]
        terms = np.unique(np.concatenate(roots))
        has = np.zeros((len(passages), len(terms)), np.float32)
        for place, own in enumerate(roots):
            has[place, np.searchsorted(terms, own)] = 1
        counts = has.sum(axis=0)
        rare = np.log1p((len(passages) - counts + 0.5) / (counts + 0.5))
        wanted = np.zeros((len(rows), len(terms)), np.float32)
        for place, row in enumerate(rows):
            words = texts.questions[int(data.asked[row])]
            at = np.minimum(np.searchsorted(terms, texts.roots[words]), len(terms) - 1)
            known = terms[at] == texts.roots[words]
            np.maximum.at(wanted[place], at[known], texts.rarities[words][known])
        scores = (wanted * rare) @ has.T  # (questions, passages)
        scores[passages == data.which[rows, None]] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, : min(CHOICES, len(passages) - 1)]
        found[rows, : order.shape[1]] = passages[order]
    return found
