"""A cache over a network: words that came a short while ago in a like place come again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.architectures import Architecture
from seqloom.errors import ConfigError
from seqloom.metrics import perplexity
from seqloom.tasks.corpus import TextSource, text_examples
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.language_engine import FitRequest, Floats, Ids, Reading, origin
from seqloom.tasks.measuring import measured
from seqloom.tasks.mixing import best_shares, composed, stored_parts
from seqloom.tasks.setting_checks import check_number, check_whole
from seqloom.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel

PIECE = 128  # words of a text whose likeness to the cache is computed at once
THETAS = (0.0, *np.geomspace(0.01, 3.0, 11).round(4).tolist())


@runtime_checkable
class HasFeatures(Protocol):
    """An engine that shows what its output layer reads."""

    model: Any

    def features(self, ids: NDArray[Any], state: Any) -> tuple[Tensor, Any]:
        """The features (B, T, H) of texts read on from a state, and the state after them."""


@dataclass(frozen=True, kw_only=True)
class CacheConfig:
    """Settings of a cache.

    Args:
        size: How many of the last words are kept.
        theta: How much likeness counts.
        share: The weight of the cache.
    """

    size: int
    theta: float
    share: float

    def __post_init__(self) -> None:
        check_whole(self, "size", 1)
        for name in ("theta", "share"):
            check_number(name, getattr(self, name))
        if not 0 <= self.share < 1:
            raise ConfigError(f"share must lie in [0, 1), got {self.share}")


class CacheState(NamedTuple):
    """The state of the network and what it kept.

    Args:
        inner: The network's own state.
        keys: The features after which each of the last N words came.
        words: These words, -1 where there is none yet.
        before: The features after the last id read, whose next word is not known yet.
        begun: Whether there is one.
    """

    inner: Any
    keys: Tensor  # (B, N, H)
    words: Tensor  # (B, N)
    before: Tensor  # (B, H)
    begun: Tensor  # (B,)


class CachedLanguage:
    r"""The engine of a network with a cache of its last N words.

    $$p_c(w \mid h_{1..t}) \propto \sum_{i=t-N}^{t-1} 1[w = w_{i+1}] \, e^{\theta h_t \cdot h_i},
    \quad p = (1 - \lambda) \, p_{net} + \lambda \, p_c$$

    where $h_i$ are the features from which the network predicts $w_{i+1}$.

    Paper: Grave et al. (2017), "Improving Neural Language Models with a Continuous Cache",
    equations 3 and 5. With nothing in the cache yet, the network speaks alone.

    Args:
        model: A language model that is a network.
        config: The settings.
    """

    def __init__(self, model: LanguageModel, config: CacheConfig) -> None:
        model.require_fitted()
        if not isinstance(model.engine_, HasFeatures):
            raise ConfigError(
                f"a cache needs the features of a network, got arch={model.arch_!r}; give a model "
                "that is trained by gradients"
            )
        self.model, self._config, self._engine = model, config, model.engine_
        self._network, self._end = model.engine_.model, model.reader.end
        self._vocabulary = len(model.vocabulary_)
        start = model.engine_.read(np.array([[self._end]])).state
        self._width = self._engine.features(np.array([[self._end]]), start)[0].shape[2]

    @classmethod
    def fit(cls, request: FitRequest) -> NoReturn:
        """Refuse: the network is fitted, the cache only measured."""
        raise ConfigError(
            f"a cache is put on a fitted network, got fit of arch={request.architecture.name!r}; "
            "use seqloom.with_cache(model, heldout)"
        )

    # -- use -------------------------------------------------------------------------------------

    def loss(self, ids: Ids) -> tuple[float, int]:
        """Read as one stream, state and cache carried from sentence to sentence."""
        return -math.fsum(self.stream(ids)[0]), len(ids)

    def log_probs(self, sequences: Sequence[Ids]) -> list[tuple[float, ...]]:
        """The natural log-probability of each id; each sequence begins with an empty cache."""
        return [tuple(self.stream(ids)[0].tolist()) for ids in sequences]

    def stream(self, ids: Ids, reading: Reading | None = None) -> tuple[Floats, Reading]:
        """Read as one stream, state and cache carried from sentence to sentence."""
        found = [np.empty(0)]
        theta, share = self._config.theta, self._config.share
        reading = reading or self.read(np.array([[self._end]]))
        for piece in self._pieces(ids, reading):
            cached = piece.log_probs([theta])[0]
            mixed = np.logaddexp(math.log1p(-share) + piece.network, _log(share) + cached)
            found.append(np.where(piece.is_empty, piece.network, mixed))
            reading = piece.reading
        return np.concatenate(found), reading

    @torch.no_grad()
    def _pieces(self, ids: Ids, reading: Reading) -> Iterator[_Piece]:
        """A text piece by piece, each with what is kept before each of its words."""
        last, state = reading
        for begin in range(0, len(ids), PIECE):
            targets = torch.as_tensor(np.asarray(ids[begin : begin + PIECE], np.int64))  # (T,)
            inputs = np.concatenate([last, targets[:-1].numpy()])
            features, inner = self._engine.features(inputs[None], state.inner)
            h = features[0]  # (T, H)
            targets = targets.to(h.device)
            network = self._network.output.target_log_probs(h, targets)
            state = _kept(state, torch.as_tensor(last, device=h.device))
            keys = torch.cat([state.keys[0], h])  # (N + T, H)
            words = torch.cat([state.words[0], targets])
            # Word t of the piece may look at the N keys before its own, which is number N + t.
            place = torch.arange(len(keys), device=h.device)
            own = place[self._config.size :, None]  # (T, 1)
            seen = (place < own) & (place >= own - self._config.size) & (words >= 0)
            likeness = (h @ keys.T).double()  # (T, N + T)
            state = CacheState(
                inner,
                keys[len(h) - 1 : -1][None],
                words[len(h) - 1 : -1][None],
                h[-1:],
                torch.ones_like(state.begun),
            )
            last = targets[-1:].cpu().numpy()
            same = words == targets[:, None]
            logs = network.double().cpu().numpy()
            yield _Piece(logs, likeness, seen, same & seen, Reading(last, state))

    @torch.no_grad()
    def read(self, ids: NDArray[Any]) -> Reading:
        """Read texts in one go, all but the last id of each."""
        rows, size = len(ids), self._config.size
        inner = self.model.engine_.read(np.full((rows, 1), self._end)).state
        weight = next(self._network.parameters())
        keys = weight.new_zeros(rows, size, self._width)
        words = torch.full((rows, size), -1, device=weight.device)
        before = weight.new_zeros(rows, self._width)
        begun = ids.shape[1] > 1
        if begun:
            features, inner = self._engine.features(ids[:, :-1], inner)  # (B, T - 1, H)
            after = torch.as_tensor(np.asarray(ids[:, 1:-1], np.int64), device=weight.device)
            keys = torch.cat([keys, features[:, :-1]], dim=1)[:, -size:]
            words = torch.cat([words, after], dim=1)[:, -size:]
            before = features[:, -1]
        started = torch.full((rows,), begun, device=weight.device)
        state = CacheState(inner, keys, words, before, started)
        return Reading(np.asarray(ids[:, -1], np.int64), state)

    @torch.no_grad()
    def _advance(self, ids: NDArray[np.int64], state: CacheState) -> CacheState:
        features, inner = self._engine.features(ids[:, None], state.inner)
        h = features[:, -1]
        state = _kept(state, torch.as_tensor(ids, device=h.device))
        return state._replace(inner=inner, before=h, begun=torch.ones_like(state.begun))

    @torch.no_grad()
    def step(self, ids: NDArray[Any], state: CacheState) -> tuple[Tensor, CacheState]:
        """Read one more id of each text."""
        state = self._advance(np.asarray(ids, np.int64), state)
        network = self._network.output.log_probs(state.before).double()  # (B, V)
        known = state.words >= 0  # (B, N)
        scores = torch.einsum("bnh,bh->bn", state.keys, state.before).double()
        scores = (self._config.theta * scores).masked_fill(~known, -torch.inf)
        some = known.any(dim=1, keepdim=True)
        shares = torch.where(some, scores, 0.0).softmax(dim=1).masked_fill(~known, 0.0)
        cached = network.new_zeros(len(ids), self._vocabulary)
        cached.scatter_add_(1, state.words.clamp(min=0), shares)
        share = self._config.share
        mixed = torch.logaddexp(math.log1p(-share) + network, _log(share) + cached.log())
        return torch.where(some, mixed, network), state

    # -- saving ----------------------------------------------------------------------------------

    def parts(self) -> Mapping[str, LanguageModel]:
        """The network, by the name of its directory."""
        return {"part-1": self.model}

    def config(self) -> dict[str, Any]:
        """The settings of the cache."""
        config = self._config
        return {"size": config.size, "theta": config.theta, "share": config.share}

    def weights(self) -> None:
        """None of its own."""
        return

    def files(self) -> dict[str, Any]:
        """None of its own."""
        return {}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Those of the network: a cache has no weights."""
        return {f"part-1/{name}": shape for name, shape in self.model.shapes().items()}

    @classmethod
    def restore(
        cls,
        architecture: Architecture,  # noqa: ARG003 (there is but one)
        config: CacheConfig,
        vocabulary: Vocabulary,
        stored: StoredModel,
    ) -> Self:
        """The cached network of a model directory."""
        (model,) = stored_parts(stored, vocabulary)
        return cls(model, config)


class _Piece(NamedTuple):
    """A piece of text and the cache: log-probabilities by the network, likeness to each key."""

    network: Floats  # (T,)
    likeness: Tensor  # (T, M)
    seen: Tensor  # (T, M) which keys each word may look at
    same: Tensor  # (T, M) which of them were followed by that word
    reading: Reading

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Before which words nothing is kept."""
        found: NDArray[np.bool_] = (~self.seen.any(dim=1)).cpu().numpy()
        return found

    def log_probs(self, thetas: Sequence[float]) -> Floats:
        """(K, T) what the cache says of each word by each theta; minus infinity if it is empty."""
        rows = []
        for theta in thetas:
            scores = (theta * self.likeness).masked_fill(~self.seen, -torch.inf)
            total = scores.logsumexp(dim=1).nan_to_num(neginf=0.0)
            right = scores.masked_fill(~self.same, -torch.inf).logsumexp(dim=1)
            rows.append((right - total).cpu().numpy())
        return np.stack(rows)


def _kept(state: CacheState, words: Tensor) -> CacheState:
    """Keep what was read last, now that the word after it is known; the oldest goes."""
    begun = state.begun
    keys = torch.cat([state.keys[:, 1:], state.before[:, None]], dim=1)
    after = torch.cat([state.words[:, 1:], words[:, None]], dim=1)
    return state._replace(
        keys=torch.where(begun[:, None, None], keys, state.keys),
        words=torch.where(begun[:, None], after, state.words),
    )


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf


def with_cache(
    model: LanguageModel,
    heldout: TextSource | None = None,
    *,
    size: int = 500,
    theta: float | None = None,
    share: float | None = None,
) -> LanguageModel:
    """Put a cache on a network; the result is a language model too.

    `theta` is the one of a grid, and `share` the weight, under which a held-out text is most
    probable; the text is read as one stream, so it should be one (documents, not shuffled lines).

    Args:
        model: A fitted network.
        heldout: A text that it was not fitted to.
        size: How many of the last words are kept.
        theta: How much likeness counts, instead of a text.
        share: The weight of the cache, instead of a text.
    """
    given = (theta is not None, share is not None)
    if (heldout is None) != all(given) or any(given) != all(given):
        raise ConfigError(
            "a cache needs either heldout or both theta and share, got "
            f"heldout={'a text' if heldout is not None else None}, theta={theta}, share={share}"
        )
    if theta is not None and share is not None:
        engine = CachedLanguage(model, CacheConfig(size=size, theta=theta, share=share))
        return composed(engine, "cache", model)
    assert heldout is not None
    probe = CachedLanguage(model, CacheConfig(size=size, theta=0.0, share=0.0))
    ids = measured(text_examples(heldout), model.reader, None).ids
    network, cached = _said(probe, ids)
    best = (math.inf, 0.0, 0.0)
    for number, value in enumerate(THETAS):
        weight = best_shares(np.stack([network, cached[number]]))[1]
        weight = min(weight, 0.999)
        logs = np.logaddexp(math.log1p(-weight) + network, _log(weight) + cached[number])
        best = min(best, (-math.fsum(logs), value, weight))
    loss, theta, share = best
    engine = CachedLanguage(model, CacheConfig(size=size, theta=theta, share=share))
    metrics = {"heldout_perplexity": perplexity(loss, len(ids))}
    return composed(engine, "cache", model, metrics=metrics, heldout=origin(heldout))


def _said(engine: CachedLanguage, ids: Ids) -> tuple[Floats, Floats]:
    """What the network and, by theta, the cache say of each word; of an empty one, the same."""
    network, cached = [], []
    for piece in engine._pieces(ids, engine.read(np.array([[engine._end]]))):
        network.append(piece.network)
        logs = piece.log_probs(THETAS)
        cached.append(np.where(piece.is_empty, piece.network, logs))
    return np.concatenate(network), np.concatenate(cached, axis=1)
