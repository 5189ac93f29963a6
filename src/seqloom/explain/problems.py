"""Two problems that only a memory solves, at any distance: copying and adding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Generator, Tensor
from torch.nn import functional

from seqloom.errors import ConfigError


class Sequences(NamedTuple):
    """Some sequences of a problem.

    Args:
        inputs: By row and step (rows, steps, input_size).
        targets: What the last steps must give; copying: symbols (rows, length), adding: (rows, 1).
    """

    inputs: Tensor
    targets: Tensor


class Problem(Protocol):
    """What a probe needs to know of a problem."""

    name: ClassVar[str]
    measure: ClassVar[str]

    @property
    def input_size(self) -> int:
        """Width of an input."""

    @property
    def output_size(self) -> int:
        """Width of what the readout gives."""

    def draw(self, distance: int, rows: int, generator: Generator) -> Sequences:
        """Make sequences at random."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """What is trained on: a loss a row, from the readout of every step."""

    def score(self, outputs: Tensor, targets: Tensor) -> float:
        """What is reported."""

    def is_solved(self, score: float) -> bool:
        """Whether a score counts as solved."""


@dataclass(frozen=True)
class Copying:
    """Remember symbols over a gap, then repeat them.

    A sequence is `length` symbols, `distance` - 1 blanks, a signal, and `length` blanks in which
    the symbols are to be given in order: each lies `distance` + `length` steps back. Solved means
    that `THRESHOLD` of the symbols are right; guessing gets 1 / `alphabet`.

    Paper: Arjovsky et al. (2016), "Unitary Evolution Recurrent Neural Networks", after Hochreiter
    and Schmidhuber (1997), "Long Short-Term Memory".
    Differs from the paper: the loss is that of the symbols alone, not of the blanks before them.

    Args:
        length: How many symbols are to be remembered.
        alphabet: How many different ones there are.
    """

    length: int = 1
    alphabet: int = 8

    name: ClassVar[str] = "copying"
    measure: ClassVar[str] = "accuracy"
    THRESHOLD: ClassVar[float] = 0.9

    @property
    def input_size(self) -> int:
        """One column a symbol, one for the blank, one for the signal."""
        return self.alphabet + 2

    @property
    def output_size(self) -> int:
        """One score a symbol."""
        return self.alphabet

    def draw(self, distance: int, rows: int, generator: Generator) -> Sequences:
        """Make sequences at random; inputs are one-hot."""
        _check_distance(distance, 1)
        symbols = torch.randint(self.alphabet, (rows, self.length), generator=generator)
        blank, signal = self.alphabet, self.alphabet + 1
        ids = torch.full((rows, distance + 2 * self.length), blank)
        ids[:, : self.length] = symbols
        ids[:, self.length + distance - 1] = signal
        inputs = functional.one_hot(ids, self.input_size).to(torch.get_default_dtype())
        return Sequences(inputs, symbols)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of the symbols, its mean a row."""
        recalled = outputs[:, -self.length :].transpose(1, 2)  # (rows, alphabet, length)
        return functional.cross_entropy(recalled, targets, reduction="none").mean(1)

    def score(self, outputs: Tensor, targets: Tensor) -> float:
        """The share of symbols recalled."""
        return (outputs[:, -self.length :].argmax(-1) == targets).double().mean().item()

    def is_solved(self, score: float) -> bool:
        """Whether enough symbols are right."""
        return score >= self.THRESHOLD


@dataclass(frozen=True)
class Adding:
    """Add the two numbers that are marked in a sequence of `distance` numbers.

    A step's input is a number between 0 and 1 and a mark; one mark lies in the first half, one in
    the second, and the last step is to give the sum of the marked numbers. Always saying 1 has a
    mean squared error of `BASELINE`; solved is below `THRESHOLD`.

    Paper: Hochreiter and Schmidhuber (1997), "Long Short-Term Memory", experiment 4; marks by
    halves as in Arjovsky et al. (2016).
    """

    name: ClassVar[str] = "adding"
    measure: ClassVar[str] = "mean squared error"
    THRESHOLD: ClassVar[float] = 0.05
    BASELINE: ClassVar[float] = 1 / 6  # the variance of the sum of two uniform numbers

    @property
    def input_size(self) -> int:
        """The number and the mark."""
        return 2

    @property
    def output_size(self) -> int:
        """The sum."""
        return 1

    def draw(self, distance: int, rows: int, generator: Generator) -> Sequences:
        """Make sequences at random."""
        _check_distance(distance, 2)
        half = distance // 2
        numbers = torch.rand(rows, distance, generator=generator)
        first = torch.randint(half, (rows, 1), generator=generator)
        second = torch.randint(half, distance, (rows, 1), generator=generator)
        places = torch.cat([first, second], 1)
        marks = torch.zeros_like(numbers).scatter_(1, places, 1.0)
        targets = numbers.gather(1, places).sum(1, keepdim=True)
        return Sequences(torch.stack([numbers, marks], -1), targets)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The squared error of the last step, by row."""
        return (outputs[:, -1] - targets).square().sum(1)

    def score(self, outputs: Tensor, targets: Tensor) -> float:
        """The mean squared error."""
        return self.loss(outputs, targets).double().mean().item()

    def is_solved(self, score: float) -> bool:
        """Whether the error is small enough."""
        return score < self.THRESHOLD


def _check_distance(distance: int, least: int) -> None:
    if distance < least:
        raise ConfigError(f"distance must be at least {least}, got {distance}")
