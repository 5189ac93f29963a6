r"""A grammar as a language model.

A sentence is drawn from the grammar, or, with a small probability $\epsilon$, from a flat grammar
that has any sequence of tags below its root:

$$P(w_1 \dots w_n) = (1 - \epsilon)\, P_{\text{grammar}}(w_1 \dots w_n)
+ \epsilon\, P_{\text{flat}}(w_1 \dots w_n), \qquad
P_{\text{flat}} = e \prod_i (1 - e) \sum_t p(t)\, p(w_i \mid t)$$

e is one over the mean length of a sentence with its end, p(t) the relative frequency of the tags.
So every sentence over any words, the empty one too, has a probability, and all of them sum to 1.
Words are those of a `Vocabulary`; whatever else is the unknown word, one word like any other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import in_threads
from seqloom.data.examples import Tree
from seqloom.errors import ConfigError, DataError
from seqloom.grammar.chart import PrefixChart
from seqloom.grammar.config import PcfgConfig
from seqloom.grammar.lexicon import Lexicon, estimate_lexicon
from seqloom.grammar.markov import MarkovGrammar
from seqloom.grammar.rules import Floats, Rules
from seqloom.grammar.shapes import shape
from seqloom.grammar.tables import Tables, make_tables
from seqloom.grammar.treebank import TOP
from seqloom.grammar.viterbi import as_tree, best_derivation
from seqloom.text.vocabulary import Vocabulary

_RULES = ("unary_parent", "unary_child", "unary_prob", "parent", "left", "right", "prob")


class Parse(NamedTuple):
    """The best tree of a sentence.

    Args:
        tree: The tree.
        log_prob: The log-probability of tree and words; an unknown word is one of its shape.
        is_flat: Whether the grammar has no tree for it, and this is the flat one.
    """

    tree: Tree
    log_prob: float
    is_flat: bool


class PcfgModel:
    """A probabilistic grammar over the words of a vocabulary.

    Paper: Jelinek, Lafferty and Mercer (1992), "Basic Methods of Probabilistic Context Free
    Grammars". How rules and words are estimated is in `markov` and `lexicon`.

    Args:
        rules: The grammar.
        lexicon: Its words.
        tag_probs: p(t) of the flat grammar.
        end_prob: e, the probability that a sentence of the flat grammar ends.
        vocabulary: What the ids mean.
        config: The settings.

    Examples:
        >>> from seqloom.data.trees import parse_trees
        >>> trees = parse_trees("(TOP (S (NP (NN time)) (VP (VB flies)))) (TOP (NP (NN time)))")
        >>> vocabulary = Vocabulary.build([["time", "flies"]])
        >>> model = PcfgModel.estimate(trees, vocabulary, PcfgConfig())
        >>> model.best_tree(["time", "flies"]).tree.children[0].label
        'S'
    """

    def __init__(
        self,
        rules: Rules,
        lexicon: Lexicon,
        tag_probs: Floats,
        end_prob: float,
        *,
        vocabulary: Vocabulary,
        config: PcfgConfig,
    ) -> None:
        self.rules, self.lexicon, self.config = rules, lexicon, config
        self.tag_probs, self.end_prob, self.vocabulary = tag_probs, end_prob, vocabulary
        specials = vocabulary.specials
        self.unknown_id, self.end_id = vocabulary[specials.unk], vocabulary[specials.eos]
        self.special_ids = frozenset(vocabulary[name] for name in specials.names())
        self._unknown = lexicon.unknown()

    @classmethod
    def estimate(cls, trees: Iterable[Tree], vocabulary: Vocabulary, config: PcfgConfig) -> Self:
        """Read a grammar off plain trees (see `plain_tree`).

        Raises:
            DataError: If there is no tree.
        """
        plain = list(trees)
        if not plain:
            raise DataError("a grammar is read off trees, got none; give a treebank with words")
        markov = MarkovGrammar(
            plain,
            horizontal=config.horizontal,
            vertical=config.vertical,
            split_tags=config.split_tags,
        )
        words = {name: markov.words[name] for name in markov.tags}
        totals = np.array([Counter(found).total() for found in words.values()], np.float64)
        return cls(
            markov.rules().tight(),
            estimate_lexicon(words, markov.tags, vocabulary),
            totals / totals.sum(),
            float(len(plain) / (totals.sum() + len(plain))),
            vocabulary=vocabulary,
            config=config,
        )

    @cached_property
    def tables(self) -> Tables:
        """The grammar as its compiled loops read it."""
        return make_tables(self.rules)

    def emission(self, id_: int) -> Floats:
        """p(word | t) for every preterminal t; special ids are unknown words."""
        return self._unknown if id_ in self.special_ids else self.lexicon.known(id_)

    # -- reading ---------------------------------------------------------------------------------

    def start(self, room: int = 16) -> Reader:
        """A sentence that is about to be read."""
        return Reader(self, room)

    def score_ids(self, ids: Sequence[int]) -> list[float]:
        """The log-probability of each word of a sentence and of its end, given those before."""
        reader = self.start(len(ids))
        return [*(reader.advance(id_) for id_ in ids), reader.end_log_prob()]

    def score_all(self, sentences: Iterable[Sequence[int]]) -> list[list[float]]:
        """The same for several sentences, on all cores."""
        _ = self.tables  # made once, before the threads
        return in_threads(self.score_ids, sentences)

    # -- trees -----------------------------------------------------------------------------------

    def best_tree(self, words: Sequence[str]) -> Parse:
        """The best tree of a sentence, as in the treebank: with unbinarized nodes below TOP.

        Words the vocabulary lacks are told apart by their shape. The time grows with the cube of
        the length, and `longest` does not hold here.

        Raises:
            DataError: If there are no words.
        """
        if not words:
            raise DataError("a tree stands over words, got none")
        emission = np.stack([self._shaped(word) for word in words])
        # Relative to each word's own probability, so that nothing grows too small.
        scale = emission @ self.tag_probs
        found = best_derivation(self.tables, emission / scale[:, None])
        log_scale = float(np.log(scale).sum())
        if found is not None:
            tree = as_tree(found, self.rules, list(words))
            log_prob = math.log1p(-self.config.fallback) + math.log(found.prob) + log_scale
            return Parse(tree, log_prob, is_flat=False)
        joint = self.tag_probs * emission
        labels = [self.rules.labels[int(tag)] or "" for tag in joint.argmax(axis=1)]
        leaves = [Tree(label, (), word) for label, word in zip(labels, words, strict=True)]
        log_prob = math.log(self.config.fallback * self.end_prob)
        log_prob += len(words) * math.log1p(-self.end_prob) + float(np.log(joint.max(axis=1)).sum())
        return Parse(Tree(TOP, tuple(leaves)), log_prob, is_flat=True)

    def _shaped(self, word: str) -> Floats:
        id_ = self.vocabulary[word]
        return self.lexicon.unknown(shape(word)) if id_ in self.special_ids else self.emission(id_)

    # -- saving ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that is a number, by name."""
        return {
            **{f"rules.{name}": getattr(self.rules, name) for name in _RULES},
            **{f"lexicon.{f.name}": getattr(self.lexicon, f.name) for f in fields(Lexicon)},
            "flat.tags": self.tag_probs,
            "flat.end": np.array([self.end_prob]),
        }

    def symbols(self) -> dict[str, Any]:
        """The symbols, for JSON."""
        rules = self.rules
        return {
            "names": list(rules.names),
            "labels": list(rules.labels),
            "preterminals": rules.preterminals,
            "root": rules.root,
        }

    @classmethod
    def restore(
        cls,
        symbols: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        vocabulary: Vocabulary,
        config: PcfgConfig,
    ) -> Self:
        """The model that `arrays` and `symbols` were taken from.

        Raises:
            ConfigError: If they do not fit each other or the vocabulary.
        """
        try:
            rules = Rules(
                names=tuple(symbols["names"]),
                labels=tuple(symbols["labels"]),
                preterminals=symbols["preterminals"],
                root=symbols["root"],
                **{name: arrays[f"rules.{name}"] for name in _RULES},
            )
            lexicon = Lexicon(**{f.name: arrays[f"lexicon.{f.name}"] for f in fields(Lexicon)})
            tag_probs, (end_prob,) = arrays["flat.tags"], arrays["flat.end"]
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"the parts of a grammar must be complete, got {error}") from None
        sizes = {len(tag_probs), len(lexicon.share), len(lexicon.shapes), rules.preterminals}
        if len(sizes) != 1 or len(lexicon.unigram) != len(vocabulary):
            raise ConfigError("a grammar must have the words of the vocabulary beside it")
        return cls(rules, lexicon, tag_probs, float(end_prob), vocabulary=vocabulary, config=config)


class Reader:
    """A sentence that is read word by word.

    Args:
        model: The model.
        room: How many words to make room for at first.
    """

    def __init__(self, model: PcfgModel, room: int = 16) -> None:
        self._model = model
        self._chart = PrefixChart(model.tables, min(room, model.config.longest))
        # The logarithm of how likely it is that the words so far are of the one or the other.
        self._grammar = math.log1p(-model.config.fallback)
        self._flat = math.log(model.config.fallback)

    def copy(self) -> Reader:
        """Another one that has read the same words."""
        other = copy(self)
        other._chart = self._chart.copy()
        return other

    def advance(self, id_: int) -> float:
        """Read a word; its log-probability given those before."""
        model = self._model
        emission = model.emission(id_)
        by_grammar = self._grammar + _log(self._chart.word_prob(emission))
        by_flat = self._flat + math.log1p(-model.end_prob) + _log(float(model.tag_probs @ emission))
        log_prob = float(np.logaddexp(by_grammar, by_flat))
        self._grammar, self._flat = by_grammar - log_prob, by_flat - log_prob
        if self._grammar > -math.inf:
            self._chart.advance(emission)
            if self._chart.is_dead or self._chart.length >= model.config.longest:
                self._grammar, self._flat = -math.inf, 0.0
        return log_prob

    def end_log_prob(self) -> float:
        """The log-probability that the sentence ends here."""
        by_grammar = self._grammar + _log(self._chart.end)
        return float(np.logaddexp(by_grammar, self._flat + math.log(self._model.end_prob)))

    def next_probs(self) -> Floats:
        """The probability of each id to come next; that of the end's is that the sentence ends."""
        model = self._model
        weights = math.exp(self._flat) * (1 - model.end_prob) * model.tag_probs
        weights = weights + math.exp(self._grammar) * self._chart.expected
        found = model.lexicon.words(weights)
        found[model.unknown_id] = weights @ model.emission(model.unknown_id)
        found[model.end_id] = math.exp(self.end_log_prob())
        return found


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
