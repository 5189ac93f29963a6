"""Training questions that are read with passages that have no answer as well."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from seqloom.data.batches import Batch
from seqloom.tasks.reader_data import PassageQuestions

CHOICES = 8  # passages that one is drawn from
COMMON = 50  # a word that more than one of so many passages has leads to none of other articles


class OtherPassages:
    """Draws more passages for the questions of a batch.

    Half of them are of the same article, half of others; from passages of its own article alone a
    reader never learns that one is about something else. Each is one of those that have most in
    common with the question, as the windows that are read of a long document are; one that is drawn
    twice for a question is read once. What is drawn depends on the seed, the epoch and the number
    of the batch alone, so that a run that was stopped goes on with the same passages.

    Args:
        data: The training questions.
        articles: The article of each passage.
        count: How many are drawn for a question on average; of 1.5 the half get two, the others
            one.
        seed: What decides.
    """

    def __init__(
        self, data: PassageQuestions, articles: Sequence[str], count: float, seed: int
    ) -> None:
        self.data, self.count, self.seed = data, count, seed
        numbers = {name: number for number, name in enumerate(dict.fromkeys(articles))}
        article = np.array([numbers[name] for name in articles])
        self.near = nearest_passages(data, article)
        self.far = foreign_passages(data, article)

    def draw(
        self, index: NDArray[np.int64], epoch: int, number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of the questions get other passages, by their place, and which they get.

        Args:
            index: The questions of a batch.
            epoch: The epoch.
            number: The number of the batch in it.
        """
        chance = np.random.default_rng([self.seed, epoch, number])
        near, far = self.near[index], self.far[index]
        pairs = [np.zeros((0, 2), np.int64)]
        for before in range(ceil(self.count)):
            taken = chance.random(len(index)) < self.count - before
            drawn = chance.random(len(index))
            leaves = (chance.random(len(index)) < 0.5) & (far[:, 0] >= 0) | (near[:, 0] < 0)
            choices = np.where(leaves[:, None], far, near)
            known = (choices >= 0).sum(axis=1)
            rows = np.flatnonzero(taken & (known > 0))
            place = (drawn[rows] * known[rows]).astype(np.int64)
            pairs.append(np.stack([rows, choices[rows, place]], axis=1))
        rows, which = np.unique(np.concatenate(pairs), axis=0).T
        return rows, which

    def batch(self, index: NDArray[np.int64], epoch: int, number: int) -> Batch:
        """Return questions with their passages, after them some of them with others.

        An other passage is read from its beginning, no further than the longest of the questions'
        own. `values["asked_again"]` has the places of the questions that have one, as often as they
        do.
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
        more = {"spans": data.spans[index], "asked_again": rows}
        return Batch(index, both.sequences, {**both.values, **more})


def nearest_passages(data: PassageQuestions, article: NDArray[np.int64]) -> NDArray[np.int64]:
    r"""Return the other passages of its article that have most in common with each question.

    $$\sum_{w \in q \cap p} r_w \ln\Big(1 + \frac{N - n_w + 0.5}{n_w + 0.5}\Big)$$

    over the roots w of the question's words, $n_w$ of the N passages of the article having them; it
    is `window_scores`, by which long documents are searched, without counts and lengths.

    Args:
        data: The training questions.
        article: The number of each passage's article.

    Returns:
        Numbers of passages (N, `CHOICES`), those with most in common first; -1 where there is none.
    """
    texts = data.texts
    found = np.full((len(data), CHOICES), -1, np.int64)
    asked, count = article[data.which], int(article.max()) + 1
    by_article = np.argsort(asked, kind="stable")
    edges = np.searchsorted(asked[by_article], np.arange(count + 1))
    for number in range(count):
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


def foreign_passages(data: PassageQuestions, article: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the passages of other articles that have most in common with each question.

    By the sum of `nearest_passages` over all passages; of the roots that many passages have (more
    than one of `COMMON`) none is looked up.

    Args:
        data: The training questions.
        article: The number of each passage's article.

    Returns:
        Numbers of passages (N, `CHOICES`), those with most in common first; -1 where there is none.
    """
    texts, count = data.texts, len(article)
    own = [np.unique(texts.roots[texts.passages[place]]) for place in range(count)]
    roots = np.concatenate(own)
    order = np.argsort(roots, kind="stable")
    holders = np.repeat(np.arange(count), [len(each) for each in own])[order]
    edges = np.searchsorted(roots[order], np.arange(int(texts.roots.max()) + 2))
    having = np.diff(edges)
    rare = np.log1p((count - having + 0.5) / (having + 0.5))
    rare[having > max(CHOICES, count // COMMON)] = 0
    found = np.full((len(data), CHOICES), -1, np.int64)
    for row, (asked, passage) in enumerate(zip(data.asked, data.which, strict=True)):
        words = texts.questions[int(asked)]
        terms, places = np.unique(texts.roots[words], return_inverse=True)
        worth = np.zeros(len(terms))
        np.maximum.at(worth, places, texts.rarities[words])
        worth *= rare[terms]
        terms, worth = terms[worth > 0], worth[worth > 0]
        if not len(terms):
            continue
        holding = np.concatenate([holders[edges[term] : edges[term + 1]] for term in terms])
        seen, places = np.unique(holding, return_inverse=True)
        scores = np.bincount(places, np.repeat(worth, having[terms]))
        away = article[seen] != article[passage]
        seen, scores = seen[away], scores[away]
        best = seen[np.argsort(-scores, kind="stable")[:CHOICES]]
        found[row, : len(best)] = best
    return found
