"""Settings of word vectors; light, so that options can be checked before any work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from seqloom.errors import ConfigError, one_of

Model = Literal["skip-gram", "cbow"]
Loss = Literal["negative", "hierarchical"]

MOST_NEGATIVES = 1000
MOST_EXPONENT = 4  # beyond it, one word would be all that is drawn
RATES: dict[str, float] = {"skip-gram": 0.025, "cbow": 0.05}


@dataclass(frozen=True, kw_only=True)
class Word2VecConfig:
    """Settings of `Word2Vec` as an architecture.

    Args:
        vector_size: Numbers in a vector, D.
        model: "skip-gram" predicts a word from each word near it, "cbow" from their mean.
        loss: "negative" tells the word from words drawn at random, "hierarchical" walks down
            Huffman's tree to it.
        window: How many words on each side are near at most; how many count is drawn for each word,
            uniformly from 1 to this.
        negatives: Of "negative": words drawn for each one that is predicted.
        exponent: Of "negative": a word that occurs c times is drawn in proportion to c to this
            power.
        sample: The share of the text above which a word is left out now and then; 0 for never.
        epochs: How often the text is read.
        rate: The first learning rate; 0 for 0.025 with "skip-gram" and 0.05 with "cbow".
        end_rate: The last one; between them it falls in a straight line.
        mean_gradient: Of "cbow": whether each word of the mean of n gets 1/n of the error, which
            is the gradient (Irsoy et al. 2021), or all of it, as in the first implementation.
        threads: How many work at once, in each other's way now and then (Recht et al. 2011,
            "Hogwild"); 0 for one a core. With 1, the same seed gives the same bits.
        seed: Of the first vectors and of all that is drawn.
    """

    vector_size: int = 100
    model: Model = "skip-gram"
    loss: Loss = "negative"
    window: int = 5
    negatives: int = 5
    exponent: float = 0.75
    sample: float = 1e-3
    epochs: int = 5
    rate: float = 0.0
    end_rate: float = 1e-4
    mean_gradient: bool = False
    threads: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (
            ("model", ("skip-gram", "cbow")),
            ("loss", ("negative", "hierarchical")),
        ):
            if getattr(self, name) not in known:
                raise ConfigError(one_of(name, getattr(self, name), known))
        for name in ("vector_size", "window", "negatives", "epochs"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.negatives > MOST_NEGATIVES:
            raise ConfigError(f"negatives must be at most {MOST_NEGATIVES}, got {self.negatives}")
        if not abs(self.exponent) <= MOST_EXPONENT:
            raise ConfigError(
                f"exponent must lie between -{MOST_EXPONENT} and {MOST_EXPONENT}, got "
                f"{self.exponent}"
            )
        for name in ("sample", "rate", "threads", "seed"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must not be negative, got {getattr(self, name)}")
        if not 0 < self.end_rate <= self.first_rate:
            raise ConfigError(
                f"end_rate must lie in (0, {self.first_rate}], the first rate, got {self.end_rate}"
            )
        if self.mean_gradient and self.model != "cbow":
            raise ConfigError(
                f"mean_gradient belongs to model='cbow', got model={self.model!r}; leave it out"
            )

    @property
    def first_rate(self) -> float:
        """The learning rate training begins with."""
        return self.rate or RATES[self.model]

    @property
    def is_cbow(self) -> bool:
        """Whether a word is predicted from the mean of those near it."""
        return self.model == "cbow"

    @property
    def is_hierarchical(self) -> bool:
        """Whether a word is a path through Huffman's tree."""
        return self.loss == "hierarchical"
