r"""Words under tags, known and unknown.

What stands under a preterminal t (tag g, or g below a node) is a word of the vocabulary or an
unknown word, of which the shape s is seen. Each distribution gives a discount D to one that knows
less:

$$p(x \mid t) = \frac{\max(n_{tx} - D, 0)}{n_t} + \frac{D\,T_t}{n_t}\, p(x \mid g), \qquad
p(x \mid g) = \frac{\max(n_{gx} - D, 0)}{n_g} + \frac{D\,T_g}{n_g}\, b(x \mid g)$$

with D as in `markov`. What is new under a tag, b, is an unknown word or one known from other tags:

$$b(x \mid g) = u_g\, q(s \mid g) \text{ for an unknown word of shape } s, \qquad
(1 - u_g)\, n_x / n \text{ for a known word } x$$

$u_g$ is the share of the words seen once under g that were seen nowhere else (leave one of these
out, and it is unknown), with one more count at the rate of all tags. $q(s \mid g)$ are the shapes
of those words and of the words left out of the vocabulary, smoothed with those of all tags (Witten
and Bell 1991), and these by adding one.

To the language model an unknown word is one word: $p(\text{unk} \mid t) = \sum_s p(s \mid t)$. To
the parser its shape counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seqloom.grammar.markov import discount
from seqloom.grammar.rules import Floats, Numbers, add_at
from seqloom.grammar.shapes import SHAPES, shape
from seqloom.text.vocabulary import Vocabulary

NEW = -1  # an id below 0 is an unknown word: NEW - its shape


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """The probability of each word under each preterminal.

    Args:
        offsets: Where the column of each id begins; one more at the end.
        tags: The preterminals a word was seen under, or might have been, column by column.
        values: What is added there to the share all preterminals give the word.
        share: How much each preterminal gives to words known from others.
        unigram: How that is spread over the ids.
        shapes: The probability of an unknown word of each shape (preterminals, shapes).
    """

    offsets: Numbers
    tags: Numbers
    values: Floats
    share: Floats
    unigram: Floats
    shapes: Floats

    def known(self, id_: int) -> Floats:
        """p(word | t) for every preterminal t."""
        found: Floats = self.share * self.unigram[id_]
        column = slice(self.offsets[id_], self.offsets[id_ + 1])
        found[self.tags[column]] += self.values[column]
        return found

    def unknown(self, shape: int | None = None) -> Floats:
        """p(unknown word | t), of a shape or of any, for every preterminal t."""
        found: Floats = self.shapes.sum(axis=1) if shape is None else self.shapes[:, shape].copy()
        return found

    def words(self, weights: Floats) -> Floats:
        """The probability of each id when t comes with these weights; that of unknown is not in."""
        columns = np.repeat(np.arange(len(self.unigram)), np.diff(self.offsets))
        found = add_at(columns, self.values * weights[self.tags], len(self.unigram))
        return found + float(weights @ self.share) * self.unigram


def estimate_lexicon(
    counts: Mapping[str, Mapping[str, int]], tags: Mapping[str, str], vocabulary: Vocabulary
) -> Lexicon:
    """The lexicon of words counted under preterminals.

    Args:
        counts: How often each word was seen under each preterminal, in the order of their numbers.
        tags: The tag of each preterminal.
        vocabulary: The words that are known.
    """
    specials = {vocabulary[name] for name in vocabulary.specials.names()}
    fine = {name: _numbered(words, vocabulary, specials) for name, words in counts.items()}
    coarse: dict[str, Counter[int]] = defaultdict(Counter)
    for name, found in fine.items():
        coarse[tags[name]].update(found)
    everywhere: Counter[int] = Counter()
    for found in coarse.values():
        everywhere.update(found)
    rest = _Rest(coarse, everywhere, vocabulary)
    d_fine = discount(n for found in fine.values() for n in found.values())
    d_coarse = discount(n for found in coarse.values() for n in found.values())

    entries: list[tuple[int, int, float]] = []  # id, preterminal, value
    share, shapes = np.zeros(len(fine)), np.zeros((len(fine), SHAPES))
    for number, (name, own) in enumerate(fine.items()):
        tag = tags[name]
        below, total = coarse[tag], own.total()
        given = d_fine * len(own) / total
        given_below = d_coarse * len(below) / below.total()
        for id_, n in below.items():
            value = given * (n - d_coarse) / below.total()
            if own[id_]:
                value += (own[id_] - d_fine) / total
            if id_ <= NEW:
                shapes[number, NEW - id_] += value
            else:
                entries.append((id_, number, value))
        share[number] = given * given_below * (1 - rest.new[tag])
        shapes[number] += given * given_below * rest.new[tag] * rest.shapes[tag]
    entries.sort()
    ids = np.array([entry[0] for entry in entries], np.int64)
    sizes = np.bincount(ids, minlength=len(vocabulary))
    return Lexicon(
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        tags=np.array([entry[1] for entry in entries], np.int32),
        values=np.array([entry[2] for entry in entries], np.float64),
        share=share,
        unigram=rest.unigram,
        shapes=shapes,
    )


def _numbered(words: Mapping[str, int], vocabulary: Vocabulary, specials: set[int]) -> Counter[int]:
    """Words by id; those not in the vocabulary by shape."""
    found: Counter[int] = Counter()
    for word, n in words.items():
        id_ = vocabulary[word]
        found[NEW - shape(word) if id_ in specials else id_] += n
    return found


class _Rest:
    """What is new under a tag: u, q and the shares of known words, as the module says."""

    def __init__(
        self, counts: Mapping[str, Counter[int]], everywhere: Counter[int], vocabulary: Vocabulary
    ) -> None:
        self.unigram = np.zeros(len(vocabulary))
        for id_, n in everywhere.items():
            if id_ > NEW:
                self.unigram[id_] = n
        known = self.unigram.sum()
        self.unigram /= known or 1
        once: dict[str, int] = {}  # pairs (g, x) seen once
        alone: dict[str, int] = {}  # of these, x seen nowhere else
        shapes: dict[str, Floats] = {}
        for tag, found in counts.items():
            pairs = [id_ for id_, n in found.items() if n == 1 and id_ > NEW]
            new = [id_ for id_ in pairs if everywhere[id_] == 1]
            once[tag], alone[tag] = len(pairs), len(new)
            shapes[tag] = np.zeros(SHAPES)
            for id_ in new:
                shapes[tag][shape(vocabulary.words[id_])] += 1
            for id_, n in found.items():
                if id_ <= NEW:
                    shapes[tag][NEW - id_] += n
        rate = (sum(alone.values()) + 1) / (sum(once.values()) + 2)
        self.new = {tag: (alone[tag] + rate) / (once[tag] + 1) if known else 1.0 for tag in counts}
        of_all = np.sum(list(shapes.values()), axis=0) + 1
        of_all /= of_all.sum()
        self.shapes = {tag: _witten_bell(found, of_all) for tag, found in shapes.items()}


def _witten_bell(counts: Floats, lower: Floats) -> Floats:
    kinds = max(1, int((counts > 0).sum()))
    found: Floats = (counts + kinds * lower) / (counts.sum() + kinds)
    return found
