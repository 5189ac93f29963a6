"""Output layers of decoders: from what a decoder gives to words.

Each has three methods, and whoever trains or searches needs no more of it:

- `log_probs(output, memory)`: the log-probability of every word after each one that was read;
- `target_log_probs(output, memory, targets)`: of one word each;
- `loss(output, memory, targets, real, smoothing)`: what training minimizes, summed.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.models.seq2seq_parts import DecoderOutput, Memory, known_ids
from seqloom.nn.softmax import FullSoftmax, exact

SMALLEST = 1e-12  # of a probability whose logarithm is taken in training
NONE = -100  # the word that is wanted on padding


class WordOutput(nn.Module):
    r"""A softmax over the vocabulary.

    $$p(y_t = w) = \mathrm{softmax}(V f_t + b)_w$$

    In training with label smoothing $\epsilon$,

    $$L = -\sum_t \Bigl((1 - \epsilon) \log p(y_t) + \frac{\epsilon}{|V|} \sum_w \log p(w)\Bigr)$$

    Paper: Szegedy et al. (2016), "Rethinking the Inception Architecture for Computer Vision",
    section 7, for the smoothing.
    Parameters: V and b = softmax.

    Args:
        in_features: Width of the features.
        vocab_size: Words.
    """

    def __init__(self, in_features: int, vocab_size: int) -> None:
        super().__init__()
        self.softmax = FullSoftmax(in_features, vocab_size)

    def log_probs(self, output: DecoderOutput, memory: Memory) -> Float[Tensor, "B T V"]:  # noqa: ARG002
        """The log-probability of every word."""
        return self.softmax.log_probs(output.features)

    def target_log_probs(
        self,
        output: DecoderOutput,
        memory: Memory,  # noqa: ARG002
        targets: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T"]:
        """The log-probability of one word each."""
        flat = self.softmax.target_log_probs(output.features.flatten(0, 1), targets.flatten())
        return flat.view(targets.shape)

    def loss(
        self,
        output: DecoderOutput,
        memory: Memory,  # noqa: ARG002
        targets: Int[Tensor, "B T"],
        real: Bool[Tensor, "B T"],
        smoothing: float = 0.0,
    ) -> Float[Tensor, ""]:
        """The cross-entropy of the real words with softened targets, summed."""
        features, wanted = output.features.flatten(0, 1), targets.masked_fill(~real, NONE).flatten()
        if not features.is_cuda:  # to ask a card how many are real is to wait for it
            features, wanted = features[real.flatten()], wanted[real.flatten()]
        return self.wanted_loss(features, wanted, smoothing)

    def wanted_loss(
        self, features: Float[Tensor, "N D"], wanted: Int[Tensor, " N"], smoothing: float = 0.0
    ) -> Float[Tensor, ""]:
        """The same of rows of which some may want no word."""
        scores = exact(functional.linear(features, self.softmax.weight, self.softmax.bias))
        return functional.cross_entropy(
            scores, wanted, ignore_index=NONE, label_smoothing=smoothing, reduction="sum"
        )


class PointerOutput(nn.Module):
    r"""A softmax over the vocabulary, mixed with the attention to the words of the source.

    $$p(y_t = w) = g_t \, p_{vocab}(w) + (1 - g_t) \sum_{i : x_i = w} \alpha_{ti}$$

    In training, with coverage, $\lambda \sum_i \min(\alpha_{ti}, \sum_{t' < t} \alpha_{t'i})$ is
    added to the loss.

    Paper: See et al. (2017), "Get To The Point: Summarization with Pointer-Generator Networks",
    ACL, equations 9, 12 and 13.

    Args:
        in_features: Width of the features.
        vocab_size: Words known.
        coverage_weight: Lambda.
    """

    def __init__(self, in_features: int, vocab_size: int, coverage_weight: float) -> None:
        super().__init__()
        self.softmax = FullSoftmax(in_features, vocab_size)
        self.vocab_size, self.coverage_weight = vocab_size, coverage_weight

    def log_probs(self, output: DecoderOutput, memory: Memory) -> Float[Tensor, "B T W"]:
        """The log-probability of every word, those of the sources alone after the vocabulary."""
        assert memory.copies is not None and output.attention is not None
        assert output.switch is not None
        write = output.switch[..., None]  # (B, T, 1)
        known = self.softmax.log_probs(output.features).exp() * write  # (B, T, V)
        B, T, V = known.shape
        more = max(int(memory.copies.max()) + 1 - V, 0)
        both = torch.cat([known, known.new_zeros(B, T, more)], dim=-1)
        copied = exact(output.attention).to(both.dtype) * (1 - write)  # (B, T, S)
        places = memory.copies[:, None].expand(B, T, -1)
        return both.scatter_add(2, places, copied).log()

    def target_log_probs(
        self, output: DecoderOutput, memory: Memory, targets: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T"]:
        """The log-probability of one word each."""
        assert memory.copies is not None and output.attention is not None
        assert output.switch is not None
        known = known_ids(targets, self.vocab_size).flatten()
        logs = self.softmax.target_log_probs(output.features.flatten(0, 1), known)
        written = logs.view(targets.shape).exp() * (targets < self.vocab_size)
        here = memory.copies[:, None] == targets[:, :, None]  # (B, T, S)
        copied = (exact(output.attention) * here).sum(dim=-1)
        both = output.switch * written + (1 - output.switch) * copied
        return both.clamp(min=SMALLEST).log()

    def loss(
        self,
        output: DecoderOutput,
        memory: Memory,
        targets: Int[Tensor, "B T"],
        real: Bool[Tensor, "B T"],
        smoothing: float = 0.0,
    ) -> Float[Tensor, ""]:
        """The cross-entropy of the real words, and what attending twice costs, summed."""
        if smoothing:
            raise ConfigError(
                "label smoothing is of a softmax over one vocabulary, got "
                f"{smoothing} with a pointer; set label_smoothing=0"
            )
        total = -self.target_log_probs(output, memory, targets)[real].sum()
        if output.covered is not None and self.coverage_weight:
            assert output.attention is not None
            twice = torch.minimum(output.attention, output.covered).sum(dim=-1)  # (B, T)
            total = total + self.coverage_weight * twice[real].sum()
        return total
