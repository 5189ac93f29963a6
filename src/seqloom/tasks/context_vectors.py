"""Vectors of words in their context: what a network of a contextual embedder makes of sentences.

A reader of context knows how the words of a sentence become what its network reads, and runs it. A
sentence is read on its own, its end before and after it, from a state of zeros: the same sentence
has the same vectors, bit for bit, whatever was read before it. Its vectors do not depend on the
sentences beside it but for the rounding of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.models.elmo import ElmoEncoder
from seqloom.models.transformer_lm import TransformerLM
from seqloom.nn.masking import lengths_to_mask
from seqloom.tasks.supervised_objective import parts_by_length
from seqloom.text.spellings import SENTENCE_END, spell_words
from seqloom.text.vocabulary import Vocabulary

Floats = NDArray[np.float32]
Words = Sequence[str]
MARK = "</s>"
PIECE = 512  # words read at once of a sentence; a longer one is read in pieces, to the same end
ITEMS = 4096  # words of a batch, with the padding


class ContextVectors(Protocol):
    """A network, and how it reads the words of sentences."""

    size: int
    """Width D of a vector."""

    num_layers: int
    """Layers L, that of the words alone included."""

    @property
    def module(self) -> nn.Module:
        """The network."""

    def inputs(self, words: Words) -> NDArray[np.int16 | np.int32]:
        """What the network reads of each word (T, C)."""

    def run(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """The layers (B, L, T, D) of what `inputs` gave, padded (B, T, C); 0 on padding."""

    def piecewise(self, words: Words) -> Floats:
        """The layers (L, T, D) of one sentence of any length, in memory that it is held in."""


@torch.no_grad()
def sentence_layers(vectors: ContextVectors, sentences: Sequence[Words]) -> list[Floats]:
    """Return the layers (L, T, D) of each sentence; one without words has T = 0.

    Args:
        vectors: What makes them.
        sentences: Sentences as lists of words.
    """
    empty = np.zeros((vectors.num_layers, 0, vectors.size), np.float32)
    found: list[Floats] = [empty] * len(sentences)
    lengths = np.array([len(words) for words in sentences], np.int64)
    device = next(vectors.module.parameters()).device
    for place in np.flatnonzero(lengths > PIECE).tolist():
        found[place] = vectors.piecewise(sentences[place])
    short = np.flatnonzero((lengths > 0) & (lengths <= PIECE))
    for part in parts_by_length(lengths[short], ITEMS):
        places = short[part]
        rows = [torch.from_numpy(vectors.inputs(sentences[i])) for i in places.tolist()]
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
        layers = vectors.run(padded, torch.from_numpy(lengths[places]).to(device))
        whole = layers.float().cpu().numpy()
        for row, place in zip(whole, places.tolist(), strict=True):
            found[place] = row[:, : lengths[place]].copy()
    return found


class ElmoVectors:
    """ELMo's layers; words are read by their bytes, so that every word has a vector.

    Args:
        module: The network.
    """

    def __init__(self, module: ElmoEncoder) -> None:
        self.module = module
        self.size, self.num_layers = module.output_size, module.config.num_layers + 1
        self._room = module.config.max_characters
        self._mark = spell_words([MARK], self._room, {MARK: SENTENCE_END})

    def inputs(self, words: Words) -> NDArray[np.int16]:
        """The spelling of each word."""
        return spell_words(words, self._room)

    def run(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """The layers of sentences, each read between two ends."""
        rows, steps, width = inputs.shape
        real = lengths_to_mask(lengths, steps)
        mark = torch.from_numpy(self._mark).to(inputs)
        marked = mark.expand(rows, steps + 2, width).clone()
        marked[:, 1:-1][real] = inputs[real]
        spelled, places = torch.unique(marked.flatten(0, 1), dim=0, return_inverse=True)
        layers, _ = self.module(spelled, places.view(rows, steps + 2), lengths + 2)
        found: Tensor = layers[:, :, 1:-1] * real[:, None, :, None]
        return found

    @torch.no_grad()
    def piecewise(self, words: Words) -> Floats:
        """Back first, keeping the state between pieces alone; then both directions in order."""
        device = next(self.module.parameters()).device
        marked = np.concatenate([self._mark, self.inputs(words), self._mark])
        spelled, places = np.unique(marked, axis=0, return_inverse=True)
        table = torch.from_numpy(spelled).to(device)
        row = torch.from_numpy(places.reshape(1, -1)).to(device)
        pieces = row.split(PIECE, dim=1)
        states: list[Any] = [None] * len(pieces)
        state, vectors = None, self.module.words(table)
        for number in reversed(range(len(pieces))):
            states[number] = state
            turned = nn.functional.embedding(pieces[number].flip(1), vectors)
            _, state = self.module.read(turned, None, state, direction="back")
        found, ahead = [], None
        for piece, back in zip(pieces, states, strict=True):
            layers, (ahead, _) = self.module(table, piece, None, (ahead, back))
            found.append(layers[0].float().cpu().numpy())
        whole = np.concatenate(found, axis=1)
        return whole[:, 1:-1]

    @torch.no_grad()
    def word_vectors(self, words: Words) -> Floats:
        """The vectors of words alone (N, P), from their characters."""
        device = next(self.module.parameters()).device
        found = [
            self.module.words(torch.from_numpy(self.inputs(words[i : i + ITEMS])).to(device))
            for i in range(0, len(words), ITEMS)
        ]
        if not found:
            return np.zeros((0, self.size // 2), np.float32)
        return torch.cat(found).float().cpu().numpy()


class TransformerVectors:
    """The layers of a masked transformer; a word it does not know is the unknown word.

    A sentence longer than the network reads at once is cut into pieces that know nothing of each
    other.

    Args:
        module: The network, with objective="masked".
        vocabulary: Its words.
    """

    def __init__(self, module: TransformerLM, vocabulary: Vocabulary) -> None:
        self.module, self.vocabulary = module, vocabulary
        self.size, self.num_layers = module.config.hidden_size, module.config.num_layers + 1
        self._end = vocabulary[vocabulary.specials.eos]
        self._most = module.config.context_size - 1  # with an end on each side

    def inputs(self, words: Words) -> NDArray[np.int32]:
        """The id of each word."""
        return self.vocabulary.encode(words)[:, None]

    def run(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """The layers of sentences, each read between two ends."""
        steps = inputs.shape[1]
        pieces = [
            self._piece(inputs[:, i : i + self._most, 0].long(), (lengths - i).clamp(min=0))
            for i in range(0, steps, self._most)
        ]
        real = lengths_to_mask(lengths, steps)
        return torch.cat(pieces, dim=2) * real[:, None, :, None]

    def _piece(self, ids: Tensor, lengths: Tensor) -> Tensor:
        rows, steps = ids.shape
        lengths = lengths.clamp(max=steps)
        real = lengths_to_mask(lengths, steps)
        marked = ids.new_full((rows, steps + 2), self._end)
        marked[:, 1:-1][real] = ids[real]
        layers: Tensor = self.module.layers(marked, lengths + 2)
        return layers[:, :, 1:-1]

    @torch.no_grad()
    def piecewise(self, words: Words) -> Floats:
        """Pieces one by one."""
        device = next(self.module.parameters()).device
        found = []
        for i in range(0, len(words), self._most):
            own = torch.from_numpy(self.inputs(words[i : i + self._most]))[None].to(device)
            length = torch.tensor([own.shape[1]], device=device)
            found.append(self.run(own, length)[0].float().cpu().numpy())
        return np.concatenate(found, axis=1)
