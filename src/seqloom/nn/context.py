"""What a task's network reads of words in context: mixes of layers, at its input or output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.nn.scalar_mix import ScalarMix

Place = Literal["input", "output"]
PLACES = ("input", "output")


@dataclass(frozen=True, kw_only=True)
class ContextOptions:
    """Which layers there are, and where they go.

    Args:
        size: Width D of a layer.
        num_layers: Layers L.
        insert: Where a mix of them stands beside what a network has of a word: at the "input" of
            its layers, at their "output", or at both, each with weights of its own.
        layer_norm: Whether layers are normalized before they are mixed.
        dropout: Share of the coordinates of a mix dropped.
    """

    size: int
    num_layers: int
    insert: tuple[Place, ...] = ("input",)
    layer_norm: bool = False
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if min(self.size, self.num_layers) < 1:
            raise ConfigError(
                f"size and num_layers must be positive, got {self.size} and {self.num_layers}"
            )
        for place in self.insert:
            if place not in PLACES:
                raise ConfigError(one_of("place to insert", place, PLACES))
        if not self.insert or len(set(self.insert)) != len(self.insert):
            raise ConfigError(f"insert must name each place once, got {list(self.insert)}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")

    def size_at(self, place: Place) -> int:
        """How much wider what is known of a word is at a place."""
        return self.size if place in self.insert else 0


def context_size(options: ContextOptions | None, place: Place) -> int:
    """How much wider what is known of a word is at a place, if there is context at all."""
    return 0 if options is None else options.size_at(place)


class WordsInContext(NamedTuple):
    """Words, and what there is of their context.

    Args:
        items: Ids of words, or vectors.
        context: The layers of each word side by side, (B, T, L D); or, while the network that makes
            them is trained too, what that network reads of each word, (B, T, C).
    """

    items: Shaped[Tensor, "B T ..."]
    context: Shaped[Tensor, "B T W"]


class ContextMix(nn.Module):
    """A mix of layers for each place where a network wants one.

    Parameters: the weights and the scale of each mix = mixes.input and mixes.output.

    Args:
        options: The settings.
    """

    def __init__(self, options: ContextOptions) -> None:
        super().__init__()
        self.options = options
        self.mixes = nn.ModuleDict(
            {
                place: ScalarMix(
                    options.num_layers, layer_norm=options.layer_norm, dropout=options.dropout
                )
                for place in options.insert
            }
        )
        self.encoder: nn.Module | None = None
        self._run: Callable[[Tensor, Tensor], Tensor] | None = None

    def attach(self, encoder: nn.Module, run: Callable[[Tensor, Tensor], Tensor]) -> None:
        """Train the network that makes the layers too, until `detach`.

        Args:
            encoder: The network; its weights are this module's from now on.
            run: What makes layers (B, L, T, D) of its input (B, T, C) and lengths.
        """
        self.encoder, self._run = encoder, run

    def detach(self) -> None:
        """Read layers again."""
        self.encoder = self._run = None

    def forward(
        self,
        place: Place,
        context: Shaped[Tensor, "B T W"] | None,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The mix of a place; 0 on padding."""
        if context is None:
            raise ShapeError("this model reads words in context, got words alone")
        mix: ScalarMix = self.mixes[place]  # type: ignore[assignment]
        return mix(self._layers(context, lengths), lengths)  # type: ignore[no-any-return]

    def _layers(self, context: Tensor, lengths: Tensor | None) -> Tensor:
        rows, steps, width = context.shape
        if self._run is not None:
            whole = torch.full((rows,), steps, device=context.device)
            return self._run(context, whole if lengths is None else lengths)
        L, D = self.options.num_layers, self.options.size
        if width != L * D:
            raise ShapeError(
                f"words in context must have {L} layers of {D} side by side, got width {width}"
            )
        like = next(self.parameters())
        return context.to(like.dtype).view(rows, steps, L, D).transpose(1, 2)

    def shares(self) -> dict[str, list[float]]:
        """How much each layer counts at each place."""
        return {place: mix.shares() for place, mix in self.mixes.items()}  # type: ignore[operator]
