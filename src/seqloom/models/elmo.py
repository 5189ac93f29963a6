"""ELMo: two language models of characters and LSTMs, one in each direction, and their layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError
from seqloom.models.inputs import check_lm_input
from seqloom.models.outputs import LMOutput, OutputOptions
from seqloom.nn.recurrent import Recurrent
from seqloom.nn.reversal import reverse_rows
from seqloom.nn.word_encoder import WordEncoder

SYMBOLS = 261  # of a spelling, as `seqloom.text.spellings` writes it
DirectionName = Literal["ahead", "back"]


@dataclass(frozen=True, kw_only=True)
class ElmoConfig(OutputOptions):
    """Settings of `Elmo`, besides those of `OutputOptions`.

    Args:
        vocab_size: Words that can be predicted.
        char_size: Width of the vector of a symbol of a spelling.
        filters: (width, number) of each kind of convolution over a spelling.
        highway_layers: Highway layers after them.
        max_characters: Symbols of a spelling at most, two marks among them; symbols are bytes.
        projection_size: Width of a word's vector, and that the state of each layer is projected
            to; a layer of both directions is twice as wide.
        hidden_size: Width of the cell of each layer, in each direction.
        num_layers: Layers stacked, in each direction.
        dropout: Share of units dropped of word vectors, between layers and before the output.
        clip: The largest absolute value a state may have; None for no bound.
        state_reset: While training, the share of windows that begin with no state instead of that
            which the window before them left: 0 always carries it on, 1 never does.
        backend: What runs the recurrence; "auto" chooses.
    """

    vocab_size: int
    char_size: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256))
    highway_layers: int = 1
    max_characters: int = 40
    projection_size: int = 256
    hidden_size: int = 512
    num_layers: int = 2
    dropout: float = 0.1
    clip: float | None = 3.0
    state_reset: float = 0.0
    backend: str = "auto"

    def __post_init__(self) -> None:
        if min(self.vocab_size, self.num_layers) < 1 or self.max_characters < 4:
            raise ConfigError(
                "vocab_size and num_layers must be positive and max_characters at least 4, got "
                f"{self.vocab_size}, {self.num_layers} and {self.max_characters}"
            )
        if not 0 <= self.dropout < 1 or not 0 <= self.state_reset <= 1:
            raise ConfigError(
                "dropout must lie in [0, 1) and state_reset in [0, 1], got "
                f"{self.dropout} and {self.state_reset}"
            )
        self.check_output()
        with torch.device("meta"):  # the layers check the rest, and take no memory there
            self.build_words()
            self.build_layer()

    def build_words(self) -> WordEncoder:
        """What makes a vector of a spelling."""
        return WordEncoder(
            SYMBOLS,
            self.char_size,
            self.filters,
            self.projection_size,
            highway_layers=self.highway_layers,
        )

    def build_layer(self) -> Recurrent:
        """One layer of one direction."""
        return Recurrent(
            "lstm",
            self.projection_size,
            self.hidden_size,
            projection_size=0 if self.projection_size == self.hidden_size else self.projection_size,
            clip=self.clip,
            backend=self.backend,
        )


class ElmoState(NamedTuple):
    """Of one direction, the states of all layers side by side."""

    h: Float[Tensor, "B L P"]
    c: Float[Tensor, "B L H"]


class ElmoEncoder(nn.Module):
    r"""The layers of ELMo, without what predicts words.

    $$\overrightarrow{h}_{t,0} = \overleftarrow{h}_{t,0} = e(w_t), \quad
    \overrightarrow{h}_{t,l} = \overrightarrow{\mathrm{LSTM}}_l(\overrightarrow{h}_{1..t,l-1}) +
    [l > 1]\, \overrightarrow{h}_{t,l-1}, \quad h_{t,l} = [\overrightarrow{h}_{t,l};
    \overleftarrow{h}_{t,l}]$$

    and likewise backward from the end. No layer of one direction reads anything of the other.

    Paper: Peters et al. (2018), "Deep contextualized word representations", NAACL, section 3.
    Parameters: e = words; the LSTMs = ahead and back, by layer.

    Args:
        config: The settings.
    """

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.config = config
        self.words = config.build_words()
        self.ahead = nn.ModuleList(config.build_layer() for _ in range(config.num_layers))
        self.back = nn.ModuleList(config.build_layer() for _ in range(config.num_layers))

    @property
    def output_size(self) -> int:
        """Width of a layer, both directions together."""
        return 2 * self.config.projection_size

    def layers(self, direction: DirectionName) -> list[Recurrent]:
        """The recurrent layers of one direction."""
        return list(self.ahead if direction == "ahead" else self.back)  # type: ignore[arg-type]

    def initial_state(self, batch_size: int) -> ElmoState:
        """Zeros, of one direction."""
        return _stacked([layer.initial_states(batch_size) for layer in self.layers("ahead")])

    def read(
        self,
        x: Float[Tensor, "B T P"],
        lengths: Int[Tensor, " B"] | None = None,
        state: ElmoState | None = None,
        *,
        direction: DirectionName = "ahead",
    ) -> tuple[list[Float[Tensor, "B T P"]], ElmoState]:
        """Run one direction over word vectors in the order in which it reads them.

        Args:
            x: Word vectors; those of direction "back" from the last word of a text to the first.
            lengths: How many of each row are real; all if not given. A row of length 0 keeps its
                state.
            state: The state to begin with.
            direction: Whose layers.

        Returns:
            The output of each layer, and the state after each row.
        """
        began = self.initial_state(len(x)) if state is None else state
        own = None if lengths is None else lengths.clamp(min=1)
        found, ended = [], []
        for number, layer in enumerate(self.layers(direction)):
            given = functional.dropout(x, self.config.dropout, self.training)
            states = [part[:, number][None].to(given.dtype).contiguous() for part in began]
            y, after = layer(given, own, None if state is None else states)
            x = y + x if number else y
            found.append(x)
            ended.append(after)
        result = _stacked(ended)
        if lengths is not None:
            alive = (lengths > 0)[:, None, None]
            pairs = zip(result, began, strict=True)
            result = ElmoState(*(torch.where(alive, new, old.to(new.dtype)) for new, old in pairs))
        return found, result

    def forward(
        self,
        spellings: Int[Tensor, "N C"],
        places: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        states: tuple[ElmoState | None, ElmoState | None] = (None, None),
    ) -> tuple[Float[Tensor, "B L T D"], tuple[ElmoState, ElmoState]]:
        """All layers of texts, from word vectors (twice) to the last; 0 on padding.

        Args:
            spellings: The different words.
            places: Which of them stands where in each text.
            lengths: How many words of each text are real, at least 1; all if not given.
            states: Of the direction ahead before the first word, and of that back after the last.

        Returns:
            The layers, and the states after the last word (ahead) and before the first (back).
        """
        x = functional.embedding(places, self.words(spellings))  # (B, T, P)
        ahead, after = self.read(x, lengths, states[0])
        turned = reverse_rows(x, lengths)
        back, before = self.read(turned, lengths, states[1], direction="back")
        layers = [torch.cat([x, x], dim=-1)]
        back = [reverse_rows(each, lengths) for each in back]
        layers += [torch.cat(both, dim=-1) for both in zip(ahead, back, strict=True)]
        found = torch.stack(layers, dim=1)  # (B, L + 1, T, D)
        if lengths is not None:
            real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
            found = found * real[:, None, :, None]
        return found, (after, before)


class Elmo(nn.Module):
    r"""A forward and a backward language model with the same word vectors and output layer.

    $$p(w_t \mid w_{<t}) = \mathrm{softmax}(V \overrightarrow{h}_{t-1,L} + b), \quad
    p(w_t \mid w_{>t}) = \mathrm{softmax}(V \overleftarrow{h}_{t+1,L} + b)$$

    Both are trained together; as a language model it is the forward one, and `read_back` is the
    other.

    Paper: Peters et al. (2018), "Deep contextualized word representations", NAACL, section 3.1.
    Differs from the paper: sizes; any output layer of `OutputOptions` in place of a sampled one;
    the state and the cell are clipped at one bound, after each step.
    Parameters: the layers = encoder; V, b = output; the spelling of each word = spellings.

    Args:
        config: The settings.
    """

    spellings: Tensor

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = ElmoEncoder(config)
        self.output = config.build_output(config.projection_size, config.vocab_size)
        self.register_buffer("spellings", _numbers(config.vocab_size, config.max_characters))

    def set_spellings(self, spellings: Int[Tensor, "V C"]) -> None:
        """Take in how each word is spelled; until then words are spelled as their ids."""
        if spellings.shape != self.spellings.shape:
            raise ShapeError(
                f"spellings must be {tuple(self.spellings.shape)}, got {tuple(spellings.shape)}"
            )
        self.spellings.copy_(spellings)

    def initial_state(self, batch_size: int) -> ElmoState:
        """Zeros, of one direction."""
        return self.encoder.initial_state(batch_size)

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: ElmoState | None = None,
    ) -> LMOutput:
        """Read `ids` forward; on padding the features mean nothing.

        A row of length 0 keeps its state.
        """
        check_lm_input(ids, lengths, state)
        return self._read(self._embedded(ids), lengths, state, "ahead")

    def read_back(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: ElmoState | None = None,
    ) -> LMOutput:
        """Read `ids`, which come from the last word of a text to the first, backward."""
        check_lm_input(ids, lengths, state)
        return self._read(self._embedded(ids), lengths, state, "back")

    def read(
        self,
        ids: Sequence[Int[Tensor, "B T"]],
        lengths: Int[Tensor, " B"] | None,
        states: Sequence[ElmoState | None],
    ) -> tuple[LMOutput, LMOutput]:
        """Read windows of both directions.

        Args:
            ids: A window for the direction ahead, and one for the direction back in the order in
                which it reads.
            lengths: How many of each row are real, of both alike.
            states: The state of each direction to begin with.
        """
        for one, state in zip(ids, states, strict=True):
            check_lm_input(one, lengths, state)
        ahead, back = self._embedded(torch.cat(list(ids))).split(len(ids[0]))
        return (
            self._read(ahead, lengths, states[0], "ahead"),
            self._read(back, lengths, states[1], "back"),
        )

    def _embedded(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T P"]:
        words, places = torch.unique(ids, return_inverse=True)
        return functional.embedding(places, self.encoder.words(self.spellings[words]))

    def _read(
        self,
        x: Float[Tensor, "B T P"],
        lengths: Int[Tensor, " B"] | None,
        state: ElmoState | None,
        direction: DirectionName,
    ) -> LMOutput:
        layers, after = self.encoder.read(x, lengths, state, direction=direction)
        features = functional.dropout(layers[-1], self.config.dropout, self.training)
        return LMOutput(features, after, layers[-1])


def _stacked(states: Sequence[Sequence[Float[Tensor, "1 B _"]]]) -> ElmoState:
    """The states of layers (1, B, ...), side by side."""
    return ElmoState(
        *(torch.cat(list(parts)).transpose(0, 1) for parts in zip(*states, strict=True))
    )


def _numbers(rows: int, size: int) -> Tensor:
    """Spellings of the numbers from 0 on, as `seqloom.text.spellings` would write them."""
    digits = [[1 + ord(digit) for digit in str(number)[: size - 2]] for number in range(rows)]
    return torch.tensor(
        [[257, *own, 258, *[0] * (size - 2 - len(own))] for own in digits], dtype=torch.int16
    )
