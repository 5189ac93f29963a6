"""Networks that give each word of a sentence a score for each tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.models.sentence_encoder import BY_TASK, INIT_RANGE, SequenceInput, SequenceItems
from seqloom.nn.characters import CharacterCNN, CharacterRNN, SpellingSizes
from seqloom.nn.context import ContextOptions, context_size
from seqloom.nn.crf import CRF
from seqloom.nn.crf_softmax import TagSoftmax
from seqloom.nn.masking import lengths_to_mask
from seqloom.nn.recurrent import Recurrent
from seqloom.nn.windows import windows

CharacterKind = Literal["none", "cnn", "rnn"]
OutputKind = Literal["crf", "softmax"]


class TaggerInput(NamedTuple):
    """Sentences as a tagger reads them.

    Args:
        items: Ids of words, or vectors; perhaps with their context.
        features: Further ids of each word: of its shape, of the pair with the next word, ...
        spellings: The characters of the different words of the batch, if they are read.
        spelling_lengths: How many characters each of those has.
        which: Which of those each word is.
    """

    items: SequenceItems
    features: tuple[Int[Tensor, "B T"], ...] = ()
    spellings: Int[Tensor, "U C"] | None = None
    spelling_lengths: Int[Tensor, " U"] | None = None
    which: Int[Tensor, "B T"] | None = None


class TagOutput(NamedTuple):
    """Of a tagger: a score for each tag of each word; on padding they mean nothing."""

    scores: Float[Tensor, "B T K"]


@dataclass(frozen=True, kw_only=True)
class TaggerOptions(SpellingSizes):
    """What the configuration of every tagger has.

    Args:
        vocab_size: Words known; 0 where the input is vectors.
        input_size: Width of the vectors; 0 where the input is words.
        output_size: Tags K.
        feature_sizes: How many values each further feature of a word has.
        char_vocab_size: Characters known; 0 where they are not read.
        output: "crf" for tags that depend on each other, "softmax" for tags one by one.
        embed_size: Width of a word vector.
        feature_embed_size: Width of the vector of a further feature.
        characters: What makes a vector of a word's characters: "cnn", "rnn" or "none".
        char_embed_size: Width of a character's vector.
        char_size: Filters of each width, or the width of the state in each direction.
        char_widths: Widths of the filters.
        dropout: Share of units dropped before the scores.
        embedding_dropout: Share of the coordinates of vectors dropped.
        word_dropout: Share of words that are read as the unknown word in training.
        context: What is read of words in context, if anything; the task's `contextual` decides.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = {
        "epochs": 30,
        "patience": 6,
        "clip_norm": 5.0,
        "batch": {"batch_size": 32, "max_waste": 0.1},
        "optimizer": {"name": "adam", "rate": 1e-3},
    }

    vocab_size: int
    input_size: int
    output_size: int
    feature_sizes: tuple[int, ...]
    char_vocab_size: int
    output: OutputKind = "crf"
    embed_size: int = 100
    feature_embed_size: int = 20
    characters: CharacterKind = "cnn"
    char_embed_size: int = 30
    char_size: int = 50
    char_widths: tuple[int, ...] = (3,)
    dropout: float = 0.5
    embedding_dropout: float = 0.3
    word_dropout: float = 0.05
    context: ContextOptions | None = field(default=None, metadata=BY_TASK)

    def check(self) -> None:
        """Refuse settings that make no sense for any tagger.

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
        for name in ("output_size", "embed_size", "feature_embed_size", "char_embed_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be positive, got {getattr(self, name)}")
        for name, known in (("output", ("crf", "softmax")), ("characters", ("none", "cnn", "rnn"))):
            if getattr(self, name) not in known:
                raise ConfigError(one_of(name, getattr(self, name), known))
        if self.char_size < 1 or not self.char_widths or min(self.char_widths) < 1:
            raise ConfigError(
                f"char_size and char_widths must be positive, got {self.char_size} and "
                f"{self.char_widths}"
            )
        for name in ("dropout", "embedding_dropout", "word_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must lie in [0, 1), got {getattr(self, name)}")

    @property
    def token_size(self) -> int:
        """Width of all that is known of a word, side by side."""
        more = len(self.feature_sizes) * self.feature_embed_size
        own = (self.input_size or self.embed_size) + context_size(self.context, "input")
        return own + more + self.char_output_size


@dataclass(frozen=True, kw_only=True)
class RecurrentTaggerConfig(TaggerOptions):
    """Settings of `RecurrentTagger`, besides those of `TaggerOptions`.

    Args:
        cell: A cell's name: one of `seqloom.nn.cells.CELLS`, or one that was registered.
        hidden_size: Width of the state, in each direction.
        num_layers: Layers stacked.
        layer_dropout: Share of units dropped between layers.
        backend: What runs the recurrence; "auto" chooses.
    """

    cell: str = "lstm"
    hidden_size: int = 200
    num_layers: int = 1
    layer_dropout: float = 0.3
    backend: str = "auto"

    def __post_init__(self) -> None:
        self.check()
        with torch.device("meta"):  # the layer checks the rest, and takes no memory there
            self.build_layers()

    def build_layers(self) -> Recurrent:
        """The recurrent layers."""
        return Recurrent(
            self.cell,
            self.token_size,
            self.hidden_size,
            num_layers=self.num_layers,
            bidirectional=True,
            dropout=self.layer_dropout,
            backend=self.backend,
        )


@dataclass(frozen=True, kw_only=True)
class CNNTaggerConfig(TaggerOptions):
    """Settings of `CNNTagger`, besides those of `TaggerOptions`.

    Args:
        hidden_size: Units of each layer.
        widths: Of the windows, a layer each.
    """

    hidden_size: int = 128
    widths: tuple[int, ...] = (3, 3)

    def __post_init__(self) -> None:
        self.check()
        if self.hidden_size < 1 or not self.widths or min(self.widths) < 1:
            raise ConfigError(
                f"hidden_size and widths must be positive, got {self.hidden_size} and {self.widths}"
            )


class TokenFeatures(nn.Module):
    """All that is known of a word, side by side: its vector, further features, its characters.

    Args:
        config: The settings.
        vectors: What makes the vectors of words.
    """

    def __init__(self, config: TaggerOptions, vectors: SequenceInput) -> None:
        super().__init__()
        self.config = config
        self.vectors = [vectors]  # in a list, so that its weights have one name: input.embedding
        self.tables = nn.ModuleList(
            nn.Embedding(size, config.feature_embed_size) for size in config.feature_sizes
        )
        for table in self.tables:
            nn.init.uniform_(table.weight, -INIT_RANGE, INIT_RANGE)  # type: ignore[arg-type]
        self.characters: CharacterCNN | CharacterRNN | None = None
        if config.reads_characters:
            sizes = (config.char_vocab_size, config.char_embed_size)
            if config.characters == "cnn":
                filters = [(width, config.char_size) for width in config.char_widths]
                self.characters = CharacterCNN(*sizes, filters)
            else:
                self.characters = CharacterRNN(*sizes, config.char_size)

    def forward(self, x: TaggerInput, lengths: Int[Tensor, " B"] | None) -> Float[Tensor, "B T D"]:
        """The vectors; 0 on padding."""
        share = self.config.embedding_dropout
        parts = [self.vectors[0](x.items, lengths)]  # (B, T, E), dropped already
        if len(x.features) != len(self.tables):
            raise ShapeError(
                f"there must be {len(self.tables)} further features, got {len(x.features)}"
            )
        more = [table(ids) for table, ids in zip(self.tables, x.features, strict=True)]
        if self.characters is not None:
            if x.spellings is None or x.spelling_lengths is None or x.which is None:
                raise ShapeError("this tagger reads characters, got none; give spellings")
            spelled = self.characters(x.spellings, x.spelling_lengths)  # (U, D)
            more.append(functional.embedding(x.which, spelled))  # (B, T, D)
        if not more:
            found: Tensor = parts[0]
            return found
        others = functional.dropout(torch.cat(more, dim=-1), share, self.training)
        if lengths is not None:
            others = others.masked_fill(~lengths_to_mask(lengths, others.shape[1])[..., None], 0.0)
        return torch.cat([*parts, others], dim=-1)


def _output(config: TaggerOptions) -> CRF | TagSoftmax:
    return (CRF if config.output == "crf" else TagSoftmax)(config.output_size)


class RecurrentTagger(nn.Module):
    r"""Words and their characters, recurrent layers in both directions, a score a tag.

    $$x_t = [e(w_t); c(w_t)], \quad h_t = [\overrightarrow{h}_t; \overleftarrow{h}_t], \quad
    s_t = W h_t + b$$

    `output` makes a loss, the best tags or probabilities of the scores.

    Paper: Huang, Xu and Yu (2015), "Bidirectional LSTM-CRF Models for Sequence Tagging",
    arXiv:1508.01991; Ma and Hovy (2016), "End-to-end Sequence Labeling via Bi-directional
    LSTM-CNNs-CRF", ACL, with characters="cnn"; Lample et al. (2016), "Neural Architectures for
    Named Entity Recognition", NAACL, with characters="rnn".
    Parameters: e = input.embedding, c = tokens.characters, the layers = rnn, W and b = scores.

    Args:
        config: The settings.
    """

    def __init__(self, config: RecurrentTaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.input = SequenceInput(config)
        self.tokens = TokenFeatures(config, self.input)
        self.rnn = config.build_layers()
        width = self.rnn.output_size + context_size(config.context, "output")
        self.scores = nn.Linear(width, config.output_size)
        self.output = _output(config)

    def forward(self, x: TaggerInput, lengths: Int[Tensor, " B"] | None = None) -> TagOutput:
        """The scores of each tag of each word."""
        states = self.rnn(self.tokens(x, lengths), lengths).outputs  # (B, T, H)
        states = functional.dropout(states, self.config.dropout, self.training)
        return TagOutput(self.scores(self.input.after_layers(states, x.items, lengths)))


class CNNTagger(nn.Module):
    r"""Words and what surrounds them: layers of windows, a score a tag.

    $$h_t^0 = x_t, \quad h_t^i = \max(0, W_i [h_{t-l}^{i-1}; \ldots; h_{t+r}^{i-1}] + b_i), \quad
    s_t = W h_t + b$$

    Each layer sees what lies in a window around a word; its units need no step to wait for another,
    so that it is several times as fast as a recurrent one.

    Paper: Collobert et al. (2011), "Natural Language Processing (Almost) from Scratch", JMLR 12,
    section 3.2.1, for one layer.
    Parameters: the $W_i$ = layers, W and b = scores.

    Args:
        config: The settings.
    """

    def __init__(self, config: CNNTaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.input = SequenceInput(config)
        self.tokens = TokenFeatures(config, self.input)
        sizes = [config.token_size, *[config.hidden_size] * len(config.widths)]
        self.layers = nn.ModuleList(
            nn.Linear(width * size, config.hidden_size)
            for width, size in zip(config.widths, sizes, strict=False)
        )
        width = config.hidden_size + context_size(config.context, "output")
        self.scores = nn.Linear(width, config.output_size)
        self.output = _output(config)

    def forward(self, x: TaggerInput, lengths: Int[Tensor, " B"] | None = None) -> TagOutput:
        """The scores of each tag of each word."""
        h = self.tokens(x, lengths)  # (B, T, D)
        padding = None if lengths is None else ~lengths_to_mask(lengths, h.shape[1])[..., None]
        for width, layer in zip(self.config.widths, self.layers, strict=True):
            h = torch.relu_(layer(windows(h, width)))  # (B, T, H)
            h = functional.dropout(h, self.config.dropout, self.training)
            if padding is not None:
                h = h.masked_fill(padding, 0.0)
        return TagOutput(self.scores(self.input.after_layers(h, x.items, lengths)))
