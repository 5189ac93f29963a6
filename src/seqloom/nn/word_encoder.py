"""A vector of a word from its spelling alone: convolutions, highway layers, a projection."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor, nn

from seqloom.errors import ConfigError
from seqloom.nn.characters import CharacterCNN
from seqloom.nn.highway import Highway


class WordEncoder(nn.Module):
    r"""What stands in place of a table of word vectors, and has one for every word.

    $$h = \max(0, [\max_i c_i^{w_1}; \max_i c_i^{w_2}; \ldots]), \quad e = P\,
    \mathrm{highway}(h) + b$$

    for the convolutions $c^w$ of `CharacterCNN`.

    Paper: Kim et al. (2016), "Character-Aware Neural Language Models", AAAI, section 3; Jozefowicz
    et al. (2016), "Exploring the Limits of Language Modeling", section 3.3, for the projection.
    Parameters: convolutions = characters; highway layers = highway; P, b = projection.

    Args:
        vocab_size: Symbols of a spelling, padding (0) among them.
        embed_size: Width of a symbol's vector.
        filters: (width w, number of filters) of each kind.
        output_size: Width of a word's vector.
        highway_layers: Highway layers stacked; 0 for none.
    """

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        filters: Sequence[tuple[int, int]],
        output_size: int,
        *,
        highway_layers: int = 1,
    ) -> None:
        super().__init__()
        if output_size < 1 or highway_layers < 0:
            raise ConfigError(
                "output_size must be positive and highway_layers not negative, got "
                f"{output_size} and {highway_layers}"
            )
        self.characters = CharacterCNN(vocab_size, embed_size, filters, activation="relu")
        width = self.characters.output_size
        self.highway = Highway(width, num_layers=highway_layers) if highway_layers else None
        self.projection = nn.Linear(width, output_size)

    def forward(self, spellings: Int[Tensor, "N C"]) -> Float[Tensor, "N D"]:
        """The vector of each word; padding (0) comes after the last symbol of a spelling."""
        lengths = (spellings != 0).sum(dim=1)
        steps = int(lengths.max()) if len(lengths) else 1
        h = self.characters(spellings[:, :steps].long(), lengths)
        if self.highway is not None:
            h = self.highway(h)
        found: Tensor = self.projection(h)
        return found
