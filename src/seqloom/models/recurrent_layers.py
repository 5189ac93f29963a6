"""What models of recurrent layers over sequences of vectors have in common."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from seqloom.errors import ConfigError
from seqloom.models.sentence_encoder import SequenceInput, SequenceOptions
from seqloom.nn.recurrent import Merge, Recurrent


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """Settings of recurrent layers over vectors.

    A configuration inherits these and calls `check` in `__post_init__`.

    Args:
        input_size: Width D of the vectors.
        cell: A cell's name: one of `seqloom.nn.cells.CELLS`, or one that was registered.
        hidden_size: Width of the state, in each direction.
        num_layers: Layers stacked.
        bidirectional: Whether the sequence is read in both directions.
        merge: How the directions become one: "concat", "sum", "mean", "product" or "weighted".
        dropout: Share of units dropped between layers and after the last.
        input_dropout: Share of the coordinates of the vectors dropped.
        backend: What runs the recurrence; "auto" chooses.
    """

    input_size: int
    cell: str = "lstm"
    hidden_size: int = 64
    num_layers: int = 1
    bidirectional: bool = False
    merge: Merge = "concat"
    dropout: float = 0.0
    input_dropout: float = 0.0
    backend: str = "auto"

    def check(self) -> None:
        """Refuse settings that no data makes possible.

        Raises:
            ConfigError: Naming the setting.
        """
        if not isinstance(self.cell, str):
            raise ConfigError(
                f"cell must be a name, got {self.cell!r}; give the class one with register_cell"
            )
        self.input_options()  # refuses a share that is none
        with torch.device("meta"):  # the layers check the rest, and take no memory there
            self.build_layers()

    def input_options(self) -> SequenceOptions:
        """The settings of the input."""
        options = SequenceOptions(
            vocab_size=0,
            input_size=self.input_size,
            output_size=1,
            embedding_dropout=self.input_dropout,
        )
        options.check()
        return options

    def build_input(self) -> SequenceInput:
        """What standardizes vectors and drops some of their coordinates."""
        return SequenceInput(self.input_options())

    def build_layers(self) -> Recurrent:
        """The recurrent layers."""
        return Recurrent(
            self.cell,
            self.input_size,
            self.hidden_size,
            num_layers=self.num_layers,
            bidirectional=self.bidirectional,
            merge=self.merge,
            dropout=self.dropout,
            backend=self.backend,
        )
