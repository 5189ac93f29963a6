r"""What a masked language model is trained for: to restore hidden words from both sides.

Of the words of a window 15% are chosen; of these 80% become the blank, 10% another word, 10% stay
as they are. The loss is the cross-entropy of the chosen words.

Paper: Devlin et al. (2019), "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", NAACL, section 3.1 and appendix A.1.

Such a model gives no probability of a text. What stands for it is the pseudo-log-likelihood, each
word given all others:

$$PLL(w) = \sum_t \log p(w_t \mid w_{\setminus t}), \quad PPPL = e^{-PLL / \text{words}}$$

It looks at what it predicts around, so a pseudo-perplexity does not compare with a perplexity.

Paper: Salazar et al. (2020), "Masked Language Model Scoring", ACL, equations 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seqloom.data.batches import Batch
from seqloom.data.prepared import PreparedData
from seqloom.data.windows import Windows
from seqloom.errors import ConfigError
from seqloom.metrics import perplexity
from seqloom.nn.masking import lengths_to_mask
from seqloom.tasks.language_objective import EVALUATION_LANES

CHOSEN, BLANKED, REPLACED = 0.15, 0.8, 0.1
EVERY = 7  # while training is measured, every seventh word is hidden: about as many as in it
PIECE = 8192  # ids read at once when words are hidden one by one


class HiddenWords(NamedTuple):
    """A window with words hidden: what the model reads (B, T), and which words it must restore."""

    inputs: Tensor
    chosen: Tensor


def hide_words(ids: Tensor, lengths: Tensor, blank: int) -> HiddenWords:
    """Hide 15% of the words of a batch, one at least; the first of each row is never chosen.

    Args:
        ids: (B, T) words.
        lengths: (B,) how many of each row are real.
        blank: The id of the blank; words have smaller ones.
    """
    real = lengths_to_mask(lengths, ids.shape[1])
    real[:, 0] = False
    count = max(1, round(CHOSEN * int(real.sum())))
    order = torch.rand(ids.shape, device=ids.device).masked_fill(~real, -1.0)
    chosen = torch.zeros_like(real)
    chosen.view(-1)[order.view(-1).topk(count).indices] = True
    kind = torch.rand(ids.shape, device=ids.device)
    others = torch.randint(blank, ids.shape, device=ids.device, dtype=ids.dtype)
    inputs = torch.where(chosen & (kind < BLANKED), blank, ids)
    replaced = chosen & (kind >= BLANKED) & (kind < BLANKED + REPLACED)
    return HiddenWords(torch.where(replaced, others, inputs), chosen)


class MaskedObjective:
    """Windows of text in, the cross-entropy of hidden words out; nothing is carried.

    Args:
        model: A model with objective="masked".
        train: The training text.
        valid: The validation text, if there is one.
        lanes: Windows a batch.
        window: Words a window.
    """

    metric = "masked_perplexity"
    higher_is_better = False

    def __init__(
        self,
        model: Any,
        train: PreparedData,
        valid: PreparedData | None,
        *,
        lanes: int,
        window: int,
    ) -> None:
        if window > model.config.context_size:
            raise ConfigError(
                "window must be at most context_size for a masked model, got "
                f"{window} and {model.config.context_size}"
            )
        self.blank = model.blank
        self.windows = _windows(train, lanes, window)
        self.valid = None if valid is None else _windows(valid, EVALUATION_LANES, window, True)

    def num_batches(self, epoch: int) -> int:  # noqa: ARG002 (all epochs are alike)
        """How many batches an epoch has."""
        return len(self.windows)

    def batches(
        self,
        epoch: int,  # noqa: ARG002
        start: int,
        *,
        rank: int,
        world_size: int,
    ) -> Iterator[Batch]:
        """The batches from number `start` on; a process gets its share of the windows."""
        if self.windows.lanes < world_size:
            raise ConfigError(
                f"there must be a lane for each process, got {self.windows.lanes} lanes and "
                f"{world_size} processes"
            )
        return self.windows.batches(start, rank=rank, world_size=world_size)

    def loss(self, model: Any, batch: Batch) -> Any:
        """The loss of the words hidden in a window; which they are is drawn anew each time."""
        from seqloom.training import LossOutput

        ids = batch["ids"]
        inputs, chosen = hide_words(ids.values, ids.lengths, self.blank)
        features = model(inputs, ids.lengths).features[chosen]
        return LossOutput(model.output.loss(features, ids.values[chosen]), len(features))

    @torch.no_grad()
    def evaluate(self, model: Any) -> dict[str, float]:
        """The perplexity of the validation words, every seventh hidden at a time."""
        if self.valid is None:
            return {}
        device = next(model.parameters()).device
        total, items = 0.0, 0
        for batch in self.valid.batches():
            ids = batch.tensors(device)["ids"]
            real = lengths_to_mask(ids.lengths, ids.values.shape[1])
            places = torch.arange(ids.values.shape[1], device=device)
            for first in range(EVERY):
                chosen = real & (places % EVERY == first) & (places > 0)
                if bool(chosen.any()):
                    inputs = ids.values.masked_fill(chosen, self.blank)
                    features = model(inputs, ids.lengths).features[chosen]
                    total += float(model.output.loss(features, ids.values[chosen]))
                    items += len(features)
        return {self.metric: perplexity(total, items)}

    def carry(self) -> Mapping[str, Tensor]:
        """Nothing."""
        return {}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Nothing."""


def _windows(data: PreparedData, lanes: int, window: int, keep_rest: bool = False) -> Windows:
    vocabulary = data.vocabularies["words"]
    return Windows(
        data.data.sequences["ids"].flat,
        batch_size=lanes,
        window=window,
        before=vocabulary[vocabulary.specials.eos],
        keep_rest=keep_rest,
    )


@torch.no_grad()
def pseudo_log_probs(model: Any, ids: Tensor) -> Tensor:
    """The log-probability (T - 1,) of each id but the first, given all others.

    A text longer than the model reads at once is cut; each piece reaches back as far as it may.

    Args:
        model: A model with objective="masked".
        ids: (T,) a text.
    """
    size, found = model.config.context_size, []
    for begin in range(1, len(ids), size):
        end = min(begin + size, len(ids))
        first = max(0, end - size - 1)
        piece = ids[first:end]
        places = torch.arange(begin - first, end - first, device=ids.device)
        for some in places.split(max(1, PIECE // len(piece))):
            rows = piece.repeat(len(some), 1)
            own = torch.arange(len(some), device=ids.device)
            rows[own, some] = model.blank
            features = model(rows).features[own, some]
            found.append(model.output.target_log_probs(features, piece[some]))
    return torch.cat(found) if found else torch.empty(0)


@torch.no_grad()
def restored_log_probs(model: nn.Module, ids: Tensor, place: int) -> Tensor:
    """The log-probability (V,) of every word at one place of a text (T,), whatever stands there.

    Of a text longer than the model reads at once, what lies around the place is read.
    """
    network: Any = model
    most = network.config.context_size + 1
    first = max(0, min(place - most // 2, len(ids) - most))
    piece = ids[first : first + most].clone()
    piece[place - first] = network.blank
    features = network(piece[None]).features[0, place - first]
    log_probs: Tensor = network.output.log_probs(features[None])[0]
    return log_probs
