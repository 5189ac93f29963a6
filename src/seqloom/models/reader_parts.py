"""What readers share: their settings, their input, the words of it, and what they say of spans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.models.sentence_encoder import BY_TASK, INIT_RANGE
from seqloom.nn.attention import whole
from seqloom.nn.characters import CharacterCNN, CharacterRNN, SpellingSizes
from seqloom.nn.context import ContextMix, ContextOptions, context_size
from seqloom.nn.dropping import dropped
from seqloom.nn.highway import Highway
from seqloom.nn.masking import lengths_to_mask

CharacterKind = Literal["none", "cnn", "rnn"]
KINDS = ("none", "cnn", "rnn")


class ReaderInput(NamedTuple):
    """Passages and the questions about them.

    Args:
        passage: Which of the different words of the batch each word of a passage is.
        passage_lengths: How many words of each passage are real, at least 1.
        question: The same of the questions.
        question_lengths: How many words of each question are real, at least 1.
        words: The ids of the different words.
        spellings: Their characters, if those are read.
        spelling_lengths: How many characters each of them has.
        forms: Numbers of the different words in lower case, where equal words are marked.
        passage_context: What there is of the context of each word of a passage, if it is read.
        question_context: The same of the questions.
    """

    passage: Int[Tensor, "B T"]
    passage_lengths: Int[Tensor, " B"]
    question: Int[Tensor, "B S"]
    question_lengths: Int[Tensor, " B"]
    words: Int[Tensor, " U"]
    spellings: Int[Tensor, "U C"] | None = None
    spelling_lengths: Int[Tensor, " U"] | None = None
    forms: Int[Tensor, " U"] | None = None
    passage_context: Shaped[Tensor, "B T W"] | None = None
    question_context: Shaped[Tensor, "B S W"] | None = None


class SpanOutput(NamedTuple):
    """What a reader says of the spans of each passage.

    Args:
        start: How well an answer begins with each word, minus infinity on padding; the softmax of
            it is the probability.
        end: How well it ends with each word.
        attention: How much each word of the passage looked at each word of the question.
    """

    start: Float[Tensor, "B T"]
    end: Float[Tensor, "B T"]
    attention: Float[Tensor, "B T S"]


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(SpellingSizes):
    """What the configuration of every reader has.

    Args:
        vocab_size: Words known.
        char_vocab_size: Characters known; 0 where they are not read.
        embed_size: Width of a word vector.
        characters: What makes a vector of a word's characters: "cnn", "rnn" or "none".
        char_embed_size: Width of a character's vector.
        char_size: Filters of each width, or the width of the state in each direction.
        char_widths: Widths of the filters.
        num_highways: Highway layers over both vectors of a word; 0 for none.
        exact_match: Whether words that occur in both passage and question are marked.
        hidden_size: Width of the states of recurrent layers, in each direction.
        dropout: Share of the coordinates of each layer's input dropped.
        variational: Whether those of the input and of states are dropped at all words alike.
        backend: What runs the recurrences; "auto" chooses.
        context: What is read of words in context, if anything; the task's `contextual` decides.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = {
        "epochs": 12,
        "patience": 4,
        "clip_norm": 5.0,
        "averaging": "ema",
        "batch": {"batch_size": 60, "max_waste": 0.3},
        "optimizer": {"name": "adam", "rate": 1e-3},
        "schedule": {"warmup": 500},
    }

    vocab_size: int
    char_vocab_size: int
    embed_size: int = 100
    characters: CharacterKind = "cnn"
    char_embed_size: int = 16
    char_size: int = 100
    char_widths: tuple[int, ...] = (5,)
    num_highways: int = 2
    exact_match: bool = False
    hidden_size: int = 100
    dropout: float = 0.2
    variational: bool = False
    backend: str = "auto"
    context: ContextOptions | None = field(default=None, metadata=BY_TASK)

    def check(self) -> None:
        """Refuse settings that make no sense for any reader.

        Raises:
            ConfigError: Naming the setting.
        """
        for name in ("vocab_size", "embed_size", "char_embed_size", "char_size", "hidden_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be positive, got {getattr(self, name)}")
        if min(self.char_vocab_size, self.num_highways) < 0:
            raise ConfigError(
                "char_vocab_size and num_highways must not be negative, got "
                f"{self.char_vocab_size} and {self.num_highways}"
            )
        if not self.char_widths or min(self.char_widths) < 1:
            raise ConfigError(f"char_widths must be positive, got {self.char_widths}")
        if self.characters not in KINDS:
            raise ConfigError(one_of("characters", self.characters, KINDS))
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")
        if context_size(self.context, "output"):
            raise ConfigError(
                "readers take words in context at their input alone, got contextual.insert with "
                "'output'"
            )

    @property
    def word_size(self) -> int:
        """Width of all that is known of a word alone, side by side."""
        return self.embed_size + self.char_output_size

    @property
    def token_size(self) -> int:
        """The same with its mark and its context."""
        return self.word_size + int(self.exact_match) + context_size(self.context, "input")


class ReaderWords(nn.Module):
    r"""All that is known of a word: its vector and what its characters say, through highways.

    $$x_t = \mathrm{Highway}([e(w_t); c(w_t)])$$

    Each different word of a batch is computed once. Beside it stand a 1 where it occurs on the
    other side too, if that is marked, and a mix of its context, if that is read.

    Paper: Seo et al. (2017), "Bidirectional Attention Flow for Machine Comprehension", ICLR,
    section 2, layers 1 and 2; Peters et al. (2018), "Deep Contextualized Word Representations",
    NAACL, section 3.3, for the context; Chen et al. (2017), "Reading Wikipedia to Answer
    Open-Domain Questions", ACL, section 3.2, for the mark.
    Parameters: e = embedding, c = characters, the highways = highway; mixes of words in context =
    context.

    Args:
        config: The settings.
    """

    def __init__(self, config: ReaderOptions) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.embed_size)
        nn.init.uniform_(self.embedding.weight, -INIT_RANGE, INIT_RANGE)
        self.dropout, self.variational = config.dropout, config.variational
        self.characters: CharacterCNN | CharacterRNN | None = None
        if config.reads_characters:
            sizes = (config.char_vocab_size, config.char_embed_size)
            if config.characters == "cnn":
                filters = [(width, config.char_size) for width in config.char_widths]
                self.characters = CharacterCNN(
                    *sizes, filters, activation="relu", dropout=config.dropout
                )
            else:
                self.characters = CharacterRNN(
                    *sizes, config.char_size, cell="gru", dropout=config.dropout
                )
        self.highway = None
        if config.num_highways:
            self.highway = Highway(config.word_size, num_layers=config.num_highways)
        self.exact_match = config.exact_match
        self.context = None if config.context is None else ContextMix(config.context)

    def forward(self, x: ReaderInput) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B S D"]]:
        """The vectors of the words of passages and of questions; coordinates are dropped."""
        check_reader_input(x)
        known: Tensor = self.embedding(x.words)  # (U, E)
        if self.characters is not None:
            if x.spellings is None or x.spelling_lengths is None:
                raise ShapeError("this reader reads characters, got none; give spellings")
            spelled = self.characters(x.spellings, x.spelling_lengths)  # (U, D - E)
            known = torch.cat([known, spelled.to(known.dtype)], dim=1)
        if self.highway is not None:
            known = self.highway(known)  # (U, D)
        marks = _marks(x) if self.exact_match else (None, None)
        return (
            self._tokens(x.passage, known, marks[0], x.passage_context, x.passage_lengths),
            self._tokens(x.question, known, marks[1], x.question_context, x.question_lengths),
        )

    def _tokens(
        self,
        places: Tensor,
        known: Tensor,
        marks: Tensor | None,
        context: Tensor | None,
        lengths: Tensor,
    ) -> Tensor:
        """What is known of each word, coordinates dropped, its mark and a mix of its context."""
        own = functional.embedding(places, known)  # (B, T, D)
        parts = [dropped(own, self.dropout, training=self.training, variational=self.variational)]
        if marks is not None:
            parts.append(marks[..., None].to(own.dtype))
        if self.context is not None:
            parts.append(self.context("input", context, lengths).to(own.dtype))
        return torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]


def _marks(x: ReaderInput) -> tuple[Bool[Tensor, "B T"], Bool[Tensor, "B S"]]:
    """Which words of passages occur in their questions, and the other way round."""
    if x.forms is None:
        raise ShapeError("this reader marks words that occur on both sides, got no forms")
    passage, question = x.forms[x.passage], x.forms[x.question]
    real, asked = masks_of(x)
    equal = (passage[:, :, None] == question[:, None]) & real[:, :, None] & asked[:, None]
    return equal.any(dim=2), equal.any(dim=1)


def check_reader_input(x: ReaderInput) -> None:
    """Refuse tensors that do not belong together.

    Raises:
        ShapeError: Naming what is wrong.
    """
    for name in ("passage", "question"):
        items, lengths = getattr(x, name), getattr(x, f"{name}_lengths")
        if items.ndim != 2 or items.shape[1] < 1 or items.is_floating_point():
            raise ShapeError(
                f"{name} must be whole numbers of shape (B, T) with T at least 1, got "
                f"{items.dtype} of shape {tuple(items.shape)}"
            )
        if tuple(lengths.shape) != tuple(items.shape[:1]):
            raise ShapeError(
                f"{name}_lengths must have shape ({items.shape[0]},), got {tuple(lengths.shape)}"
            )
    if x.passage.shape[0] != x.question.shape[0]:
        raise ShapeError(
            f"there must be a question for each of {x.passage.shape[0]} passages, got "
            f"{x.question.shape[0]}"
        )


def masks_of(x: ReaderInput) -> tuple[Bool[Tensor, "B T"], Bool[Tensor, "B S"]]:
    """Which words of passages and of questions are real."""
    passage = lengths_to_mask(x.passage_lengths, x.passage.shape[1])
    return passage, lengths_to_mask(x.question_lengths, x.question.shape[1])


def span_output(
    start: Float[Tensor, "B T"],
    end: Float[Tensor, "B T"],
    real: Bool[Tensor, "B T"],
    attention: Float[Tensor, "B T S"],
) -> SpanOutput:
    """What a reader gives: scores without padding."""
    return SpanOutput(
        whole(start).masked_fill(~real, -torch.inf),
        whole(end).masked_fill(~real, -torch.inf),
        attention,
    )


class Spans(NamedTuple):
    """The best spans of each row, the best first.

    Args:
        scores: Of the beginning plus of the end; minus infinity where there are fewer spans.
        first: The first word.
        last: The last word.
    """

    scores: Float[Tensor, "B K"]
    first: Int[Tensor, "B K"]
    last: Int[Tensor, "B K"]


def best_spans(
    start: Float[Tensor, "B T"], end: Float[Tensor, "B T"], max_words: int, k: int = 1
) -> Spans:
    r"""Return the k spans with the greatest score.

    $$\max_{i \le j < i + L} s_i + e_j$$

    Args:
        start: The score of each beginning, minus infinity where there is none.
        end: The score of each end.
        max_words: The most words L of a span.
        k: How many spans.
    """
    T = start.shape[1]
    L = min(max_words, T)
    ends = functional.pad(end, (0, L - 1), value=-torch.inf).unfold(1, L, 1)  # (B, T, L)
    total = (start[..., None] + ends).flatten(1)  # (B, T * L)
    scores, places = total.topk(min(k, T * L), dim=1)
    first = places // L
    return Spans(scores, first, first + places % L)
