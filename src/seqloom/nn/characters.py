"""A vector of a word from its characters: convolutions of several widths, or two directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.masking import lengths_to_mask
from seqloom.nn.recurrent import Recurrent
from seqloom.nn.windows import windows


class SpellingSizes:
    """What follows from the settings of whoever reads the characters of words.

    A configuration that has these fields inherits it.
    """

    char_vocab_size: int
    characters: Literal["none", "cnn", "rnn"]
    char_size: int
    char_widths: tuple[int, ...]

    @property
    def reads_characters(self) -> bool:
        """Whether the characters of words are read."""
        return bool(self.char_vocab_size) and self.characters != "none"

    @property
    def char_output_size(self) -> int:
        """Width of the vector made of a word's characters."""
        if not self.reads_characters:
            return 0
        return self.char_size * (2 if self.characters == "rnn" else len(self.char_widths))


class CharacterCNN(nn.Module):
    r"""Filters over the characters of a word, the maximum over their places.

    $$c_i^w = W_w [x_{i-l}; \ldots; x_{i+r}] + b_w, \quad h_w = \max_{1 \le i \le n} c_i^w, \quad
    h = f([h_1; h_2; \ldots])$$

    with $l = \lfloor (w-1)/2 \rfloor$ and $r = \lfloor w/2 \rfloor$. Vectors before the beginning
    and after the end of a word are 0.

    Paper: Santos and Zadrozny (2014), "Learning Character-level Representations for Part-of-Speech
    Tagging", ICML, section 2.1.2; Kim et al. (2016), "Character-Aware Neural Language Models",
    AAAI, section 3.2, for several widths.
    Parameters: the vectors x = embedding, W and b of each width = filters.

    Args:
        vocab_size: Characters known, padding (0) among them.
        embed_size: Width of a character's vector.
        filters: (width w, number of filters) of each kind.
        activation: "tanh", "relu" or "none", of f.
        dropout: Share of the coordinates of characters dropped.

    Examples:
        >>> layer = CharacterCNN(30, 8, [(2, 10), (3, 20)])
        >>> layer(torch.ones(5, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3, 4])).shape
        torch.Size([5, 30])
    """

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        filters: Sequence[tuple[int, int]],
        *,
        activation: str = "tanh",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not filters or min(min(each) for each in filters) < 1:
            raise ConfigError(f"filters must be positive (width, number) pairs, got {filters}")
        if activation not in ("tanh", "relu", "none"):
            raise ConfigError(f"activation must be 'tanh', 'relu' or 'none', got {activation!r}")
        self.embedding = _embedding(vocab_size, embed_size)
        self.activation, self.dropout = activation, dropout
        self.widths = [width for width, _ in filters]
        self.filters = nn.ModuleList(nn.Linear(w * embed_size, n) for w, n in filters)
        self.output_size = sum(number for _, number in filters)

    def forward(self, ids: Int[Tensor, "N C"], lengths: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """The vector of each word.

        Args:
            ids: The characters of each word.
            lengths: How many of each row are real, at least 1.
        """
        _check(ids, lengths)
        _, C = ids.shape
        real = lengths_to_mask(lengths, C)[..., None]  # (N, C, 1)
        x = self.embedding(ids).masked_fill(~real, 0.0)  # (N, C, E)
        x = functional.dropout(x, self.dropout, self.training)
        found = []
        for width, layer in zip(self.widths, self.filters, strict=True):
            y = layer(windows(x, width))  # (N, C, number)
            found.append(y.masked_fill(~real, -torch.inf).amax(dim=1))
        h = torch.cat(found, dim=1)
        if self.activation == "tanh":
            return torch.tanh(h)
        return torch.relu(h) if self.activation == "relu" else h


class CharacterRNN(nn.Module):
    r"""Recurrent layers over the characters of a word: the last state of each direction.

    $$h = [\overrightarrow{h}_n; \overleftarrow{h}_1]$$

    Paper: Ling et al. (2015), "Finding Function in Form", EMNLP, section 3.2; Lample et al. (2016),
    "Neural Architectures for Named Entity Recognition", NAACL, section 4.1.
    Parameters: the vectors of characters = embedding, the layers = rnn.

    Args:
        vocab_size: Characters known, padding (0) among them.
        embed_size: Width of a character's vector.
        hidden_size: Width of a state; the output has twice that.
        cell: A cell's name.
        dropout: Share of the coordinates of characters dropped.
    """

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        hidden_size: int,
        *,
        cell: str = "lstm",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = _embedding(vocab_size, embed_size)
        self.dropout = dropout
        self.rnn = Recurrent(cell, embed_size, hidden_size, bidirectional=True)
        self.output_size = 2 * hidden_size

    def forward(self, ids: Int[Tensor, "N C"], lengths: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """The vector of each word, as `CharacterCNN` takes them."""
        _check(ids, lengths)
        x = functional.dropout(self.embedding(ids), self.dropout, self.training)
        states = self.rnn(x, lengths).states[0]  # (2, N, H)
        return torch.cat([states[0], states[1]], dim=1)


def _embedding(vocab_size: int, embed_size: int) -> nn.Embedding:
    """Vectors of characters, uniform within sqrt(3 / width) (Ma and Hovy 2016, section 3.2)."""
    if min(vocab_size, embed_size) < 1:
        raise ConfigError(
            f"vocab_size and embed_size must be positive, got {vocab_size} and {embed_size}"
        )
    embedding = nn.Embedding(vocab_size, embed_size)
    bound = (3 / embed_size) ** 0.5
    nn.init.uniform_(embedding.weight, -bound, bound)
    return embedding


def _check(ids: Tensor, lengths: Tensor) -> None:
    if ids.ndim != 2 or ids.shape[1] < 1 or tuple(lengths.shape) != tuple(ids.shape[:1]):
        raise ShapeError(
            "ids must be (words, characters) with at least one character and lengths (words,), got "
            f"{tuple(ids.shape)} and {tuple(lengths.shape)}"
        )
