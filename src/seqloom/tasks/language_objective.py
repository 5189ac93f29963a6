"""What a language model is trained for: the cross-entropy of the next word, state carried along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.data.batches import Batch
from seqloom.data.prepared import PreparedData
from seqloom.data.windows import Windows
from seqloom.errors import ConfigError
from seqloom.metrics import perplexity
from seqloom.nn.masking import lengths_to_mask
from seqloom.text.spellings import SENTENCE_END, UNKNOWN, spell_words
from seqloom.text.vocabulary import Vocabulary

EVALUATION_LANES = 16  # while training; a model's own `evaluate` reads a text in one lane


def inform_model(model: Any, data: PreparedData) -> None:
    """Tell a new model what it keeps of the training data.

    Its output layer learns how often each word occurs, and a model that asks for it which word is
    the unknown one (`set_unknown`), or how each is spelled (`set_spellings`).
    """
    vocabulary = data.vocabularies["words"]
    counts = np.bincount(data.data.sequences["ids"].flat, minlength=len(vocabulary))
    model.output.set_counts(torch.from_numpy(counts))
    if vocabulary.specials.unk and hasattr(model, "set_unknown"):
        model.set_unknown(vocabulary[vocabulary.specials.unk])
    if hasattr(model, "set_spellings"):
        spelled = spell_vocabulary(vocabulary, model.config.max_characters)
        model.set_spellings(torch.from_numpy(spelled))


def spell_vocabulary(vocabulary: Vocabulary, size: int) -> NDArray[np.int16]:
    """How each word is spelled (V, size); the special ones have symbols of their own."""
    specials = vocabulary.specials
    marks = dict.fromkeys(specials.names(), UNKNOWN)
    marks |= dict.fromkeys([specials.bos, specials.eos], SENTENCE_END)
    spelled = spell_words(list(vocabulary.words), size, marks)
    more = np.repeat(spell_words([""], size), len(vocabulary) - len(spelled), axis=0)
    return np.concatenate([spelled, more])


class WindowLoss(NamedTuple):
    """The loss of one window, how many words were predicted, and the state after it."""

    total: Tensor
    items: int
    state: Any


def window_loss(model: Any, batch: Batch, state: Any) -> WindowLoss:
    """Return the summed loss of the words of a window, each given those before it.

    In evaluation it is the cross-entropy; in training what the model's output layer minimizes.
    """
    ids = batch["ids"]
    inputs, targets = ids.values[:, :-1], ids.values[:, 1:]  # (B, T)
    items = int(np.maximum(np.asarray(batch.host["ids"].lengths) - 1, 0).sum())
    lengths = None
    if items != targets.numel():
        lengths = (ids.lengths - 1).clamp(min=0)
    output = model(inputs, lengths, state)
    features = output.features
    if lengths is None:
        features, targets = features.flatten(0, 1), targets.flatten()
    else:
        mask = lengths_to_mask(lengths, targets.shape[1])
        features, targets = features[mask], targets[mask]
    total = model.output.loss(features, targets)
    if model.training:
        total = total + items * activation_penalty(model, features, output.activations, lengths)
    return WindowLoss(total, items, output.state)


def activation_penalty(
    model: Any, features: Tensor, activations: Tensor | None, lengths: Tensor | None
) -> Tensor | float:
    r"""What keeps the outputs of the last layer small and slow, if the model's settings ask for it.

    $$\alpha\, \mathrm{mean}(f^2) + \beta\, \mathrm{mean}((h_{t+1} - h_t)^2)$$

    for the features f, which dropout has passed over, and the outputs h before it, over the words
    of a window.
    Paper: Merity et al. (2017), "Revisiting Activation Regularization for Language RNNs".

    Args:
        model: Whose settings have `activation_reg` $= \alpha$ and `temporal_reg` $= \beta$.
        features: f of all words, (N, D) without padding.
        activations: h, (B, T, H) with padding.
        lengths: How many words of each row are real, (B,); all if None.
    """
    alpha = getattr(model.config, "activation_reg", 0.0)
    beta = getattr(model.config, "temporal_reg", 0.0)
    found: Tensor | float = 0.0
    if alpha and len(features):
        found = alpha * features.float().square().mean()
    if beta and activations is not None and activations.shape[1] > 1:
        change = (activations[:, 1:] - activations[:, :-1]).float().square()
        if lengths is None:
            return found + beta * change.mean()
        pairs = lengths_to_mask(lengths - 1, activations.shape[1] - 1)
        found = found + beta * change[pairs].sum() / (pairs.sum() * change.shape[2]).clamp(min=1)
    return found


@torch.no_grad()
def stream_loss(model: Any, windows: Windows) -> tuple[float, int]:
    """Return the loss in nats, summed over a whole stream, and how many words it is summed over."""
    device = next(model.parameters()).device
    total, items, state = torch.zeros((), dtype=torch.float64, device=device), 0, None
    for batch in windows.batches():
        result = window_loss(model, batch.tensors(device), state)
        total, items, state = total + result.total, items + result.items, result.state
    return float(total), items


class LanguageModelObjective:
    """Windows of text in, cross-entropy out; the state goes from window to window.

    Args:
        model: Whose kind of state is carried.
        train: The training text.
        valid: The validation text, if there is one.
        lanes: Parallel streams of training text.
        window: Words a window; its model's setting `window_spread` says by how much they differ.
        seed: Of their lengths.
    """

    metric = "perplexity"
    higher_is_better = False

    def __init__(
        self,
        model: Any,
        train: PreparedData,
        valid: PreparedData | None,
        *,
        lanes: int,
        window: int,
        seed: int = 0,
    ) -> None:
        vocabulary = train.vocabularies["words"]
        before = vocabulary[vocabulary.specials.eos]
        ids = train.data.sequences["ids"].flat
        self.windows = Windows(
            ids,
            batch_size=lanes,
            window=window,
            before=before,
            spread=getattr(model.config, "window_spread", 0.0),
            seed=seed,
        )
        self.valid = None
        if valid is not None:
            self.valid = Windows(
                valid.data.sequences["ids"].flat,
                batch_size=EVALUATION_LANES,
                window=window,
                before=before,
                keep_rest=True,
            )
        self.state_type: Any = type(model.initial_state(1))
        self.state: Any = None

    def num_batches(self, epoch: int) -> int:
        """How many windows an epoch has."""
        return self.windows.steps(epoch)

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        """The windows from number `start` on; a process gets its share of the lanes."""
        if self.windows.lanes < world_size:
            raise ConfigError(
                f"there must be a lane for each process, got {self.windows.lanes} lanes and "
                f"{world_size} processes"
            )
        return self.windows.batches(start, epoch=epoch, rank=rank, world_size=world_size)

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        """The loss of a window, from where the window before it ended.

        Where windows differ in length, a shorter one moves the weights by as much less.
        """
        from seqloom.training import LossOutput

        state = None if bool(batch.host.values["begins"].all()) else self.state
        result = window_loss(model, batch, state)
        self.state = self.state_type(*(part.detach() for part in result.state))
        if not self.windows.spread:
            return LossOutput(result.total, result.items)
        steps = batch["ids"].values.shape[1] - 1
        return LossOutput(result.total, result.items, steps / self.windows.window)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The perplexity of the validation text."""
        if self.valid is None:
            return {}
        return {"perplexity": perplexity(*stream_loss(model, self.valid))}

    def carry(self) -> Mapping[str, Tensor]:
        """The state, for a checkpoint."""
        return {} if self.state is None else self.state._asdict()

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Go on with the state of a checkpoint."""
        self.state = self.state_type(**carried) if carried else None
