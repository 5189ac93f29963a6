r"""What a language model of two directions is trained for: the next word, and the one before.

$$\ell = \sum_t -\log p(w_t \mid w_{<t}) - \log p(w_t \mid w_{>t})$$

The direction back reads every sentence from its end, one sentence after the other, so that both
directions carry their states through the text. Each word is predicted once by each.

Paper: Peters et al. (2018), "Deep contextualized word representations", NAACL, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.data.batches import Batch
from seqloom.data.prepared import PreparedData
from seqloom.data.windows import Windows
from seqloom.errors import ConfigError
from seqloom.metrics import perplexity
from seqloom.nn.masking import lengths_to_mask
from seqloom.tasks.language_objective import EVALUATION_LANES
from seqloom.tasks.reversal import turned

DIRECTIONS = ("ahead", "back")


class TwoWayLoss(NamedTuple):
    """The summed loss of each direction, how many words each predicted, and the states after."""

    totals: tuple[Tensor, Tensor]
    items: int
    states: tuple[Any, Any]


def two_way_loss(model: Any, batch: Batch, states: tuple[Any, Any]) -> TwoWayLoss:
    """Return the loss of a window of each direction, from the states before it.

    Args:
        model: A model with `read` for both directions, such as `seqloom.models.elmo.Elmo`.
        batch: The windows "ahead" and "back".
        states: Of each direction.
    """
    windows = [batch[name] for name in DIRECTIONS]
    items = int(np.maximum(np.asarray(batch.host["ahead"].lengths) - 1, 0).sum())
    inputs = [each.values[:, :-1] for each in windows]
    lengths, mask = None, None
    if items != inputs[0].numel():
        lengths = (windows[0].lengths - 1).clamp(min=0)
        mask = lengths_to_mask(lengths, inputs[0].shape[1])
    outputs = model.read(inputs, lengths, states)
    totals = []
    for output, window in zip(outputs, windows, strict=True):
        features, targets = output.features, window.values[:, 1:]
        if mask is None:
            features, targets = features.flatten(0, 1), targets.flatten()
        else:
            features, targets = features[mask], targets[mask]
        totals.append(model.output.loss(features, targets))
    return TwoWayLoss((totals[0], totals[1]), items, (outputs[0].state, outputs[1].state))


class BackwardView:
    """A model of two directions as the language model its direction back is."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.output, self.training, self.parameters = model.output, False, model.parameters

    def __call__(self, ids: Tensor, lengths: Tensor | None, state: Any) -> Any:
        """The features of the words before `ids`."""
        return self._model.read_back(ids, lengths, state)


class TwoWayObjective:
    """Windows of text in both directions in, the sum of two cross-entropies out.

    Args:
        model: Whose kind of state is carried; its setting `state_reset` says how often it is not.
        train: The training text.
        valid: The validation text, if there is one.
        lanes: Parallel streams of training text.
        window: Words a window.
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
    ) -> None:
        self.windows = _windows(train, lanes, window)
        self.valid = None if valid is None else _windows(valid, EVALUATION_LANES, window, True)
        self.reset = float(model.config.state_reset)
        self.state_type: Any = type(model.initial_state(1))
        self.states: tuple[Any, Any] = (None, None)

    def num_batches(self, epoch: int) -> int:  # noqa: ARG002 (all epochs are alike)
        """How many windows an epoch has."""
        return len(self.windows["ahead"])

    def batches(
        self,
        epoch: int,  # noqa: ARG002
        start: int,
        *,
        rank: int,
        world_size: int,
    ) -> Iterator[Batch]:
        """The windows from number `start` on; a process gets its share of the lanes."""
        lanes = self.windows["ahead"].lanes
        if lanes < world_size:
            raise ConfigError(
                f"there must be a lane for each process, got {lanes} lanes and {world_size} "
                "processes"
            )
        return _both(self.windows, start, rank=rank, world_size=world_size)

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        """The mean of the two losses of a window, from where the windows before it ended."""
        from seqloom.training import LossOutput

        begins = bool(batch.host.values["begins"].all())
        states = (None, None) if begins or self.reset >= 1 else self._kept()
        result = two_way_loss(model, batch, states)
        self.states = tuple(
            self.state_type(*(part.detach() for part in state)) for state in result.states
        )
        return LossOutput((result.totals[0] + result.totals[1]) / 2, result.items)

    def _kept(self) -> tuple[Any, Any]:
        """The states, some of their rows set to 0 at random."""
        if not self.reset or self.states[0] is None:
            return self.states
        like = self.states[0][0]
        kept = (torch.rand(len(like), 1, 1, device=like.device) >= self.reset).to(like.dtype)
        found = [self.state_type(*(part * kept for part in state)) for state in self.states]
        return found[0], found[1]

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The perplexity of the validation text in each direction, and that of both together."""
        if self.valid is None:
            return {}
        network: Any = model
        device = next(model.parameters()).device
        totals = torch.zeros(2, dtype=torch.float64, device=device)
        items, states = 0, (None, None)
        for batch in _both(self.valid):
            result = two_way_loss(network, batch.tensors(device), states)
            totals += torch.stack(result.totals)
            items, states = items + result.items, result.states
        ahead, back = totals.tolist()
        return {
            "perplexity": perplexity(ahead + back, 2 * items),
            "forward_perplexity": perplexity(ahead, items),
            "backward_perplexity": perplexity(back, items),
        }

    def carry(self) -> Mapping[str, Tensor]:
        """The states, for a checkpoint."""
        found: dict[str, Tensor] = {}
        for name, state in zip(DIRECTIONS, self.states, strict=True):
            if state is not None:
                found |= {f"{name}.{key}": value for key, value in state._asdict().items()}
        return found

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Go on with the states of a checkpoint."""
        if not carried:
            self.states = (None, None)
            return
        fields = self.state_type._fields
        found = [self.state_type(*(carried[f"{n}.{key}"] for key in fields)) for n in DIRECTIONS]
        self.states = (found[0], found[1])


def _windows(
    data: PreparedData, lanes: int, window: int, keep_rest: bool = False
) -> dict[str, Windows]:
    """The windows of each direction; they are equally many and equally long."""
    vocabulary = data.vocabularies["words"]
    texts = {"ahead": data, "back": turned(data)}
    return {
        name: Windows(
            text.data.sequences["ids"].flat,
            batch_size=lanes,
            window=window,
            before=vocabulary[vocabulary.specials.eos],
            keep_rest=keep_rest,
        )
        for name, text in texts.items()
    }


def _both(
    windows: Mapping[str, Windows], start: int = 0, *, rank: int = 0, world_size: int = 1
) -> Iterator[Batch]:
    runs = [windows[name].batches(start, rank=rank, world_size=world_size) for name in DIRECTIONS]
    for ahead, back in zip(*runs, strict=True):
        yield Batch(ahead.index, {"ahead": ahead["ids"], "back": back["ids"]}, ahead.values)
