"""What all classifiers of sequences share: their settings, their input and their output layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.nn.context import ContextMix, ContextOptions, Place, WordsInContext, context_size
from seqloom.nn.masking import lengths_to_mask
from seqloom.nn.pooling import POOLINGS, PoolingName

UNKNOWN = 1  # the id of the unknown word; 0 is padding
INIT_RANGE = 0.25  # word vectors begin in it, as in the code of Kim (2014)
BY_TASK = {"by_task": True}  # marks a setting that a user gives the task, not the architecture

SequenceItems = Int[Tensor, "B T"] | Float[Tensor, "B T D"] | WordsInContext
"""Ids of words, vectors, or either with their context."""


def items_of(x: SequenceItems) -> Int[Tensor, "B T"] | Float[Tensor, "B T D"]:
    """The ids or vectors, without their context."""
    return x.items if isinstance(x, WordsInContext) else x


@dataclass(frozen=True, kw_only=True)
class SequenceOptions:
    """What the configuration of every classifier of sequences has.

    A configuration inherits these and calls `check` in `__post_init__`. The last three are for
    whoever trains the model; `forward` does not look at them.

    Args:
        vocab_size: Words known; 0 where the input is vectors.
        input_size: Width of the vectors; 0 where the input is words.
        output_size: Scores C, one a class.
        embed_size: Width of a word vector.
        pooling: How the vectors of a text become one: one of `POOLINGS`.
        hidden_sizes: Units of hidden layers between that vector and the scores.
        dropout: Share of units dropped before each layer after pooling.
        embedding_dropout: Share of the coordinates of word vectors dropped.
        word_dropout: Share of words that are read as the unknown word in training, so that it is
            learned too; a vector is read as the mean of all.
        max_norm: The greatest length of the weights of a class; they are shortened to it after
            each update (Hinton et al. 2012).
        l2: Times the squared weights, added to the mean loss.
        consistency: Times how far apart the probabilities are that two passes with other units
            dropped give, added to the mean loss of the two (R-Drop, Liang et al. 2021); 0 for one
            pass.
        adversarial: Length of the shift of a text's word vectors, in the direction that raises its
            loss most, with which it is read a second time in training (Miyato et al. 2017); the
            losses are averaged, and `consistency` compares the two passes. 0 for none.
        context: What is read of words in context, if anything; the task's `contextual` decides.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = {
        "epochs": 30,
        "patience": 4,
        "batch": {"batch_size": 50, "max_waste": 0.1},
        "optimizer": {"name": "adam", "rate": 1e-3},
    }
    VALID_SHARE: ClassVar[float] = 0.1
    CONTEXT_AT_OUTPUT: ClassVar[bool] = False
    """Whether there is a vector a word after the layers, for a context to stand beside."""
    MAX_LENGTH: ClassVar[int | None] = None
    """Items of a text that are read; None where time and memory only grow with the length."""

    vocab_size: int
    input_size: int
    output_size: int
    embed_size: int = 100
    pooling: PoolingName = "max"
    hidden_sizes: tuple[int, ...] = ()
    dropout: float = 0.5
    embedding_dropout: float = 0.0
    word_dropout: float = 0.0
    max_norm: float | None = None
    l2: float = 0.0
    consistency: float = 0.0
    adversarial: float = 0.0
    context: ContextOptions | None = field(default=None, metadata=BY_TASK)

    def check(self) -> None:
        """Refuse settings that make no sense for any model.

        Raises:
            ConfigError: Naming the setting.
        """
        if min(self.vocab_size, self.input_size) < 0 or bool(self.vocab_size) == bool(
            self.input_size
        ):
            raise ConfigError(
                "either vocab_size or input_size must be positive and the other 0, got "
                f"{self.vocab_size} and {self.input_size}"
            )
        if min(self.output_size, self.embed_size, *self.hidden_sizes) < 1:
            raise ConfigError(
                "output_size, embed_size and hidden_sizes must be positive, got "
                f"{self.output_size}, {self.embed_size} and {self.hidden_sizes}"
            )
        if self.pooling not in POOLINGS:
            raise ConfigError(one_of("pooling", self.pooling, POOLINGS))
        for name in ("dropout", "embedding_dropout", "word_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        if self.max_norm is not None and self.max_norm <= 0:
            raise ConfigError(f"max_norm must be positive, got {self.max_norm}")
        for name in ("l2", "consistency", "adversarial"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be a number not below 0, got {getattr(self, name)}")
        if self.adversarial and self.input_size:
            raise ConfigError(
                f"adversarial shifts word vectors, got {self.adversarial} with vectors as input, "
                "which position_size makes of words too"
            )
        if context_size(self.context, "output") and not self.CONTEXT_AT_OUTPUT:
            raise ConfigError(
                f"{type(self).__name__} takes words in context at its input alone, got contextual."
                "insert with 'output'; recurrent architectures take them there"
            )

    @property
    def vector_size(self) -> int:
        """Width of the vectors a model's layers read."""
        return (self.input_size or self.embed_size) + context_size(self.context, "input")


class InputOptions(Protocol):
    """What `SequenceInput` asks of a configuration, as `SequenceOptions` has it."""

    @property
    def vocab_size(self) -> int:
        """Words known; 0 where the input is vectors."""

    @property
    def input_size(self) -> int:
        """Width of the vectors; 0 where the input is words."""

    @property
    def embed_size(self) -> int:
        """Width of a word vector."""

    @property
    def embedding_dropout(self) -> float:
        """Share of the coordinates of word vectors dropped."""

    @property
    def word_dropout(self) -> float:
        """Share of words that are read as the unknown word."""


class SequenceInput(nn.Module):
    """Ids to word vectors, or given vectors; words and coordinates are dropped in training.

    Paper: Iyyer et al. (2015), "Deep Unordered Composition Rivals Syntactic Methods for Text
    Classification", ACL, for dropped words.
    Differs from the paper: a dropped word is read as the unknown word.

    Parameters: word vectors = embedding; mixes of words in context = context.

    Args:
        config: The settings.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, config: InputOptions) -> None:
        super().__init__()
        self.vector_size = config.input_size or config.embed_size
        self.word_dropout, self.embedding_dropout = config.word_dropout, config.embedding_dropout
        self.embedding = None
        if config.vocab_size:
            self.embedding = nn.Embedding(config.vocab_size, config.embed_size)
            nn.init.uniform_(self.embedding.weight, -INIT_RANGE, INIT_RANGE)
        else:
            self.register_buffer("mean", torch.zeros(config.input_size, dtype=torch.float64))
            self.register_buffer("scale", torch.ones(config.input_size, dtype=torch.float64))
        options: ContextOptions | None = getattr(config, "context", None)
        self.context = None if options is None else ContextMix(options)

    def standardize(self, mean: Float[Tensor, " D"], scale: Float[Tensor, " D"]) -> None:
        """Subtract a mean from every given vector and multiply by a factor, from now on."""
        self.mean, self.scale = mean, scale

    def forward(
        self, x: SequenceItems, lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """The vectors of each row, a mix of their context beside them; 0 on padding."""
        given, x = x, items_of(x)
        self._check_input(x, lengths)
        B, T = x.shape[:2]
        dropped = None
        if self.training and self.word_dropout:
            dropped = torch.rand(B, T, device=x.device) < self.word_dropout
        if self.embedding is not None:
            y: Tensor = self.embedding(x if dropped is None else x.masked_fill(dropped, UNKNOWN))
        else:
            y = ((x - self.mean) * self.scale).to(x.dtype)
            y = y if dropped is None else y.masked_fill(dropped[..., None], 0.0)
        y = functional.dropout(y, self.embedding_dropout, self.training)
        if lengths is not None:
            y = y.masked_fill(~lengths_to_mask(lengths, T)[..., None], 0.0)
        return self._beside("input", y, given, lengths)

    def after_layers(
        self, y: Float[Tensor, "B T H"], x: SequenceItems, lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T O"]:
        """What layers made of `x`, with a mix of the context beside it if it is wanted there."""
        return self._beside("output", y, x, lengths)

    def _beside(self, place: Place, y: Tensor, x: SequenceItems, lengths: Tensor | None) -> Tensor:
        if self.context is None or place not in self.context.options.insert:
            return y
        context = x.context if isinstance(x, WordsInContext) else None
        return torch.cat([y, self.context(place, context, lengths).to(y.dtype)], dim=-1)

    def _check_input(self, x: Tensor, lengths: Tensor | None) -> None:
        shape = tuple(x.shape)
        if self.embedding is not None:
            if x.ndim != 2 or shape[1] < 1 or x.is_floating_point():
                raise ShapeError(
                    f"ids must be whole numbers of shape (B, T) with T at least 1, got {x.dtype} "
                    f"of shape {shape}"
                )
        elif x.ndim != 3 or shape[1] < 1 or shape[2] != self.vector_size:
            raise ShapeError(
                f"vectors must have shape (B, T, {self.vector_size}) with T at least 1, got {shape}"
            )
        if lengths is not None and tuple(lengths.shape) != shape[:1]:
            raise ShapeError(
                f"lengths must have shape {shape[:1]} for an input of shape {shape}, got "
                f"{tuple(lengths.shape)}"
            )


class ScoreLayers(nn.Module):
    r"""Rectified hidden layers, if any, then a score a class.

    $$h_0 = x, \quad h_i = \max(0, W_i h_{i-1} + b_i), \quad s = W h_n + b$$

    Parameters: the $W_i$ = hidden, W and b = output.

    Args:
        in_features: Width of x.
        config: The settings.
    """

    def __init__(self, in_features: int, config: SequenceOptions) -> None:
        super().__init__()
        self.share, self.max_norm, self.in_features = config.dropout, config.max_norm, in_features
        widths = [in_features, *config.hidden_sizes]
        self.hidden = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.output = nn.Linear(widths[-1], config.output_size)

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B C"]:
        """The scores."""
        for layer in self.hidden:
            x = torch.relu(layer(functional.dropout(x, self.share, self.training)))
        scores: Tensor = self.output(functional.dropout(x, self.share, self.training))
        return scores

    @torch.no_grad()
    def constrain(self) -> None:
        """Shorten the weights of each class to `max_norm`, if they are longer."""
        if self.max_norm is not None:
            self.output.weight.renorm_(2, 0, self.max_norm)
