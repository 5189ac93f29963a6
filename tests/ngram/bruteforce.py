"""The smoothings once more, slowly: dictionaries of tuples, floats, and the textbook's sums.

Nothing here is shared with `seqloom.ngram` but the words it is called with. `Slow` says what a
probability should be; `train` and `Scorer` ask the package for the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from seqloom.ngram.counting import count_ngrams
from seqloom.ngram.levels import Ngrams
from seqloom.ngram.smoothing import smooth, smoothing
from seqloom.ngram.words import SPECIALS, Words
from seqloom.ngram.workspace import Workspace

Sentences = Sequence[Sequence[str]]


def number_words(sentences: Sentences) -> dict[str, int]:
    return {
        w: i for i, w in enumerate(dict.fromkeys([*SPECIALS, *(w for s in sentences for w in s)]))
    }


def to_ids(sentences: Sentences, numbers: dict[str, int]) -> np.ndarray:
    ids = [n for s in sentences for n in (1, *(numbers.get(w, 0) for w in s), 2)]
    return np.array(ids, np.uint32)


def count(sentences: Sentences, order: int, place: Workspace | None = None):
    numbers = number_words(sentences)
    words = Words.of(numbers)
    return count_ngrams(to_ids(sentences, numbers), words, order, place or Workspace())


def train(
    sentences: Sentences, order: int, name: str, *,
    prune=(), held_out=None, say=lambda line: None, place=None, **options,
) -> Ngrams:  # fmt: skip
    if held_out is not None:
        held_out = to_ids(held_out, number_words(sentences))
    place = place or Workspace()
    method = smoothing(name, **options)
    counts = count(sentences, order, place)
    return smooth(counts, method, place, prune=prune, held_out=held_out, say=say)


def as_dict(ngrams: Ngrams) -> dict[tuple[str, ...], tuple[float, float]]:
    """Every n-gram with its log-probability and its back-off weight, 0 at the highest order."""
    words = list(ngrams.words)
    found = {}
    below: list[tuple[str, ...]] = [()]
    for level in ngrams.levels:
        context = level.context if len(level.context) else np.zeros(len(level), int)
        here = [(*below[c], words[w]) for c, w in zip(context, level.word, strict=True)]
        backoff = level.backoff if len(level.backoff) else np.zeros(len(level))
        found.update(
            zip(here, zip(level.prob.tolist(), backoff.tolist(), strict=True), strict=True)
        )
        below = here
    return found


class Scorer:
    """Looks n-grams up in a dictionary, longest first."""

    def __init__(self, ngrams: Ngrams) -> None:
        self.order, self.missing = ngrams.order, ngrams.missing_backoff
        self.ngrams = as_dict(ngrams)

    def log(self, word: str, history: tuple[str, ...]) -> float:
        history = (
            history[len(history) - self.order + 1 :] if len(history) >= self.order else history
        )
        paid = 0.0
        while (*history, word) not in self.ngrams:
            if not history:
                return self.log("<unk>", ()) + paid
            paid += self.ngrams[history][1] if history in self.ngrams else self.missing
            history = history[1:]
        return self.ngrams[*history, word][0] + paid


def perplexity(ngrams: Ngrams, ids: np.ndarray) -> float:
    """Over the words and sentence ends of a text; all positions at once, as there are many."""
    rows = ids.astype(np.int64)  # by position, the n-gram that ends there, or -1
    logs = ngrams.levels[0].prob[ids]
    for lower, level in pairwise(ngrams.levels):
        at = np.flatnonzero((ids[1:] != 1) & (rows[:-1] >= 0)) + 1
        context = rows[at - 1]
        keys = level.context.astype(np.int64) << 32 | level.word
        sort = np.argsort(keys)
        place = np.minimum(
            np.searchsorted(keys, context << 32 | ids[at], sorter=sort), len(keys) - 1
        )
        row = sort[place]
        seen = keys[row] == context << 32 | ids[at]
        logs[at] = np.where(seen, level.prob[row], lower.backoff[context] + logs[at])
        rows = np.full(len(ids), -1)
        rows[at[seen]] = row[seen]
    return float(10 ** -logs[ids != 1].mean())


class Slow:
    """p(word | history) of a smoothing by its definition."""

    def __init__(
        self, sentences: Sentences, order: int, name: str, *, prune=(), weights=(), delta=1.0,
        cutoff=5, backoff=0.4, interpolate_unigrams=True, discounts=(), fallback=(0.5, 1, 1.5),
    ) -> None:  # fmt: skip
        self.order, self.name, self.weights, self.delta = order, name, weights, delta
        self.fixed, self.cutoff, self.all_words = backoff, cutoff, interpolate_unigrams
        thresholds = [*prune, *[prune[-1] if prune else 0] * order][:order]
        self.occurs: Counter[tuple[str, ...]] = Counter()
        for sentence in sentences:
            whole = ("<s>", *sentence, "</s>")
            for end in range(1, len(whole) + 1):
                for start in range(max(0, end - order), end):
                    self.occurs[whole[start:end]] += 1
        del self.occurs["<s>",]
        counts = dict(self.occurs)
        if "kneser-ney" in name:
            before: dict[tuple[str, ...], set[str]] = defaultdict(set)
            for gram in self.occurs:
                before[gram[1:]].add(gram[0])
            for sentence in sentences:
                before[(*sentence, "</s>")[:1]].add("<s>")
            for gram in counts:
                if len(gram) < order and gram[0] != "<s>":
                    counts[gram] = len(before[gram])
        self.after: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
        for gram, c in counts.items():
            self.after[gram[:-1]][gram[-1]] = c
        self.pruned = {
            gram
            for gram, c in self.occurs.items()
            if 0 < c <= thresholds[len(gram) - 1] and gram not in [("<unk>",), ("</s>",)]
        }
        self.vocabulary = {"<unk>", "</s>"} | {w for s in sentences for w in s}
        self.vocabulary -= {gram[0] for gram in self.pruned if len(gram) == 1}
        self.tables = [
            self._table(o, counts, sentences, discounts[o - 1 : o], fallback)
            for o in range(1, order + 1)
        ]
        self.p = cache(self.p)

    def _table(self, o, counts, sentences, given, fallback) -> list[float]:
        """Discounts by count, a long list."""
        if given and given[0] is not None:
            table = [0.0, *given[0]]
            return table + [table[-1]] * 1000
        n = Counter(c for gram, c in counts.items() if len(gram) == o)
        last = self._last(sentences)[-o:]
        if "kneser-ney" in self.name and o < self.order and last[1:].count("<s>") == 0:
            n[counts[last]] -= 1
            n[self.occurs[last]] += 1
        strict = self.name.endswith("backoff")
        if self.name == "good-turing":
            table = self._katz(n)
            return table or [0, *fallback, *[fallback[-1]] * 1000]
        if self.name.startswith("modified"):
            one = np.float32
            if n[1] and n[2] and n[3]:
                y = one(n[1]) / one(n[1] + 2 * n[2])
                d = [float(one(j) - one(j + 1) * y * one(n[j + 1]) / one(n[j])) for j in (1, 2, 3)]
                if all(0 <= d[j] <= j + 1 and not (strict and d[j] == j + 1) for j in range(3)):
                    return [0, *d, *[d[-1]] * 1000]
            return [0, *fallback, *[fallback[-1]] * 1000]
        d = n[1] / (n[1] + 2 * n[2]) if n[1] and n[2] else fallback[0]
        return [0, *[d] * 1000]

    def _katz(self, n) -> list[float] | None:
        k = self.cutoff
        if not n[1] or (k + 1) * n[k + 1] >= n[1]:
            return None
        common = (k + 1) * n[k + 1] / n[1]
        table = [0.0] * 1000
        for r in range(1, k + 1):
            if n[r]:
                ratio = ((r + 1) * n[r + 1] / n[r] / r - common) / (1 - common)
                if not 0 < ratio <= 1:
                    return None
                table[r] = r - ratio * r
        return table

    def _last(self, sentences: Sentences) -> tuple[str, ...]:
        """The last n-gram of the highest order, sentences padded in front, read from the end."""
        numbers = number_words(sentences)
        full = set()
        for sentence in sentences:
            whole = (*["<s>"] * (self.order - 1), *sentence, "</s>")
            full |= {whole[i : i + self.order] for i in range(len(whole) - self.order + 1)}
        return max(full, key=lambda gram: [numbers[w] for w in reversed(gram)])

    def _alpha(self, history: tuple[str, ...]) -> dict[str, float]:
        seen = self.after[history]
        total, types, o = sum(seen.values()), len(seen), len(history) + 1
        table = self.tables[o - 1]
        whole = all(table[c] == 0 and (*history, w) not in self.pruned for w, c in seen.items())
        if self.name == "good-turing" and whole and set(seen) != self.vocabulary:
            total += 1
        alpha = {}
        for word, c in seen.items():
            if (*history, word) in self.pruned:
                continue
            if self.name in ("maximum-likelihood", "stupid-backoff"):
                alpha[word] = c / total
            elif self.name == "witten-bell":
                alpha[word] = c / (total + types)
            elif self.name == "jelinek-mercer":
                alpha[word] = self.weights[o - 1] * c / total
            elif self.name.startswith("add"):
                alpha[word] = c / (total + self.delta * len(self.vocabulary))
            else:
                alpha[word] = (c - table[c]) / total
        return alpha

    def probability(self, word: str, history: tuple[str, ...]) -> float:
        history = (
            history[len(history) - self.order + 1 :] if len(history) >= self.order else history
        )
        if self.name.startswith("add"):
            uniform = 1 / len(self.vocabulary)
            full = len(history) == self.order - 1 or history[:1] == ("<s>",)
            if not full or not self.after.get(history):
                return uniform
            alpha = self._alpha(history)
            return alpha.get(word, 0) + (1 - sum(alpha.values())) * uniform
        return self.p(word, history)

    def p(self, word: str, history: tuple[str, ...]) -> float:
        shorter = self.p(word, history[1:]) if history else 1 / len(self.vocabulary)
        if self.name == "stupid-backoff" and history:
            alpha = self._alpha(history) if history in self.after else {}
            return alpha[word] if word in alpha else self.fixed * shorter
        if not self.after.get(history):
            return shorter
        alpha = self._alpha(history)
        left = 1 - sum(alpha.values())
        interpolated = self.name in (
            "witten-bell", "jelinek-mercer", "absolute-discounting", "kneser-ney",
            "modified-kneser-ney",
        )  # fmt: skip
        if interpolated:
            if not history and not self.all_words:
                return alpha.get(word, 0) + (left if word == "<unk>" else 0)
            return alpha.get(word, 0) + left * shorter
        others = self.vocabulary - set(alpha)
        if history:
            free = sum(self.p(other, history[1:]) for other in others)
        else:
            free = len(others) / len(self.vocabulary)
        if word in alpha:
            return alpha[word] / (1 - left) if free < 1e-12 else alpha[word]
        return left / free * shorter if free >= 1e-12 else 0.0
