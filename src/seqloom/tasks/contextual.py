"""`contextual=` of a task: an embedder of words in context, read, cached on disk, and kept.

Frozen, the layers of all words are computed once, before training, as halves; with a `cache` they
lie in a file and are found again by the embedder's digest and the sentences. Tuned, the embedder is
trained with the task, and is frozen afterwards. Either way the task's model directory contains it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from seqloom.config import from_dict, to_dict
from seqloom.data.ragged import Ragged
from seqloom.errors import ConfigError, DataError
from seqloom.nn.context import ContextOptions, Place
from seqloom.nn.masking import lengths_to_mask
from seqloom.tasks.context_vectors import ContextVectors, sentence_layers
from seqloom.tasks.directory import StoredModel, find_model, read_model
from seqloom.tasks.embedder import Embedder

EMBEDDER = "embedder"  # the folder in a task's model directory
AT_ONCE = 256  # sentences whose layers are computed at once
Words = Sequence[str]


@dataclass(frozen=True, kw_only=True)
class ContextualConfig:
    """How a task uses words in context.

    Args:
        model: An `Embedder` of arch "elmo" or "transformer", its directory, or that of a language
            model it can be taken out of.
        tuned: Whether it is trained with the task.
        insert: Where its mixes go: "input", "output" or both.
        layer_norm: Whether layers are normalized before they are mixed.
        dropout: Share of the coordinates of a mix dropped.
        cache: A folder for computed layers; None to hold them in memory.
    """

    model: Any
    tuned: bool = False
    insert: tuple[Place, ...] = ("input",)
    layer_norm: bool = False
    dropout: float = 0.5
    cache: str | None = None

    def __post_init__(self) -> None:
        if self.tuned and self.cache is not None:
            raise ConfigError(
                f"layers of a tuned embedder change, so they have no cache, got {self.cache!r}"
            )


def open_embedder(source: Any) -> Embedder:
    """An embedder of words in context, from what a task was given.

    Raises:
        ConfigError: If it has vectors of words alone, or is something else.
        DataError: If the directory is missing or altered.
    """
    if isinstance(source, str | PathLike):
        stored = read_model(find_model(source))
        if stored.header.task == "lm":
            return Embedder.from_language_model(stored.place)
        source = Embedder.load(stored.place)
    if not isinstance(source, Embedder):
        raise ConfigError(
            "contextual must be an Embedder, the directory of one or of a language model, or a "
            f"table with 'model', got {source!r}"
        )
    source.require_fitted()
    if not source.is_contextual:
        raise ConfigError(
            f"words in context are read by arch 'elmo' and 'transformer', got {source.arch_!r}; "
            "give its vectors as vectors="
        )
    return source


def embedder_digest(embedder: Embedder) -> str:
    """What names an embedder: its settings, words and weights."""
    about = {"arch": embedder.arch_, "config": to_dict(embedder.model_.config)}
    if embedder.arch_ == "transformer":
        about["words"] = embedder.vocabulary_.hash
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(embedder.model_.state_dict().items()):
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


class ContextReader:
    """What a task's network reads of the context of words.

    Args:
        settings: How it is used.
        embedder: The embedder.
        passed_over: Words that are no part of the text, such as markers; they have zeros.
    """

    def __init__(
        self, settings: ContextualConfig, embedder: Embedder, passed_over: Collection[str] = ()
    ) -> None:
        self.settings, self.passed_over = settings, frozenset(passed_over)
        self.embedder = copy.deepcopy(embedder) if settings.tuned else embedder
        self.is_training = settings.tuned
        self._digest: str | None = None

    @property
    def vectors(self) -> ContextVectors:
        """The network and how it reads."""
        return self.embedder.engine_.vectors

    @property
    def options(self) -> ContextOptions:
        """What a model's configuration says of it."""
        settings = self.settings
        return ContextOptions(
            size=self.vectors.size,
            num_layers=self.vectors.num_layers,
            insert=settings.insert,
            layer_norm=settings.layer_norm,
            dropout=settings.dropout,
        )

    def to(self, device: Any) -> None:
        """Move the embedder to a device; layers are computed there."""
        self.vectors.module.to(device)

    def attach(self, model: Any) -> None:
        """Let a new model train the embedder, if it is to be tuned."""
        if self.is_training:
            model.input.context.attach(self.vectors.module, self._run)

    def _run(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """The layers of what `_inputs` gave; words that are passed over have zeros."""
        kept = (inputs[..., 0] > 0) & lengths_to_mask(lengths, inputs.shape[1])  # (B, T)
        if bool((kept.sum(dim=1) == lengths).all()):
            return self.vectors.run(inputs[..., 1:], lengths)
        order = (~kept).int().argsort(dim=1, stable=True)  # what is kept first, in its order
        read = inputs[..., 1:].gather(1, order[..., None].expand(-1, -1, inputs.shape[2] - 1))
        layers = self.vectors.run(read, kept.sum(dim=1).clamp(min=1))
        places = order.argsort(dim=1)[:, None, :, None].expand_as(layers)
        return layers.gather(2, places) * kept[:, None, :, None]

    def _inputs(self, words: Words) -> NDArray[np.int32]:
        """What the network reads of each word, and before it 0 where it is passed over, else 1."""
        kept = np.array([[word not in self.passed_over] for word in words], np.int32)
        return np.concatenate([kept, self.vectors.inputs(words)], axis=1)

    def finish(self, model: Any) -> None:
        """After training: the embedder stays as it is from now on."""
        if self.is_training:
            model.input.context.detach()
            self.vectors.module.cpu().eval()
            self.is_training, self._digest = False, None

    def __call__(self, sentences: Sequence[Words]) -> Ragged:
        """Return the layers of each word side by side, halves (T, L D) of each sentence.

        While the embedder is trained, what its network reads of each word, (T, 1 + C).
        """
        if self.is_training:
            return Ragged.of([self._inputs(list(words)) for words in sentences], np.int32)
        offsets = np.zeros(len(sentences) + 1, np.int64)
        np.cumsum([len(words) for words in sentences], out=offsets[1:])
        width = self.vectors.num_layers * self.vectors.size
        shape = (int(offsets[-1]), width)
        if self.settings.cache is None:
            flat = np.zeros(shape, np.float16)
            self._fill(flat, sentences, offsets)
            return Ragged(flat, offsets)
        return Ragged(self._cached(Path(self.settings.cache), shape, sentences, offsets), offsets)

    def _fill(
        self, flat: NDArray[np.float16], sentences: Sequence[Words], offsets: NDArray[np.int64]
    ) -> None:
        for begin in range(0, len(sentences), AT_ONCE):
            some = sentences[begin : begin + AT_ONCE]
            kept = [[w not in self.passed_over for w in words] for words in some]
            read = [
                [word for word, keep in zip(words, keeps, strict=True) if keep]
                for words, keeps in zip(some, kept, strict=True)
            ]
            found = sentence_layers(self.vectors, read)
            for place, (keeps, layers) in enumerate(zip(kept, found, strict=True), begin):
                own = flat[offsets[place] : offsets[place + 1]]
                side_by_side = layers.transpose(1, 0, 2).reshape(sum(keeps), flat.shape[1])
                own[np.array(keeps, bool)] = side_by_side

    def _cached(
        self,
        folder: Path,
        shape: tuple[int, int],
        sentences: Sequence[Words],
        offsets: NDArray[np.int64],
    ) -> NDArray[np.float16]:
        """The layers in a file; another process may have written it, or be about to."""
        path = folder / f"{self._key(sentences)}.npy"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name}.{os.getpid()}")
            flat = np.lib.format.open_memmap(beside, "w+", np.float16, shape)
            try:
                self._fill(flat, sentences, offsets)
                flat.flush()
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"is no cache of layers ({error}); remove it", path) from None
        if found.shape != shape or found.dtype != np.float16:
            raise DataError(
                f"must hold halves of shape {shape}, got {found.dtype} of {found.shape}; remove it",
                path,
            )
        halves: NDArray[np.float16] = found
        return halves

    @property
    def digest(self) -> str:
        """What names the embedder."""
        if self._digest is None:
            self._digest = embedder_digest(self.embedder)
        return self._digest

    def _key(self, sentences: Sequence[Words]) -> str:
        found = hashlib.sha256(self.digest.encode())
        found.update(json.dumps(sorted(self.passed_over)).encode())
        for words in sentences:
            found.update(json.dumps(list(words)).encode() + b"\n")
        return found.hexdigest()

    # -- saving ----------------------------------------------------------------------------------

    def stored(self) -> dict[str, Any]:
        """What the header of a task's model directory says of it."""
        own = to_dict(self.settings)
        return {name: own[name] for name in ("tuned", "insert", "layer_norm", "dropout")}


def read_contextual(given: Any) -> ContextualConfig | None:
    """The setting `contextual` of a task as a whole table.

    Args:
        given: None, what `ContextualConfig.model` takes, or a table of it with other settings.
    """
    if given is None or isinstance(given, ContextualConfig):
        return given
    if isinstance(given, Mapping):
        return from_dict(ContextualConfig, given, where="contextual")
    return ContextualConfig(model=given)


def context_reader(given: Any, passed_over: Collection[str] = ()) -> ContextReader | None:
    """What reads the context of words for a task, by its setting `contextual`."""
    settings = read_contextual(given)
    if settings is None:
        return None
    return ContextReader(settings, open_embedder(settings.model), passed_over)


def stored_context(
    stored: StoredModel, passed_over: Collection[str] = (), *, config: str = "context"
) -> ContextReader | None:
    """The reader of a task's model directory, with the embedder inside it.

    Args:
        stored: The directory.
        passed_over: Words that are no part of the text.
        config: What the network's configuration calls it.

    Raises:
        DataError: If the model needs an embedder and the directory has none.
    """
    said = stored.header.settings.get("contextual")
    if said is None:
        return None
    place = stored.models.get(EMBEDDER)
    if place is None:
        raise DataError("lacks the embedder its model reads words in context with", stored.place)
    embedder = Embedder.load(place)
    wanted = from_dict(ContextOptions, stored.header.config[config])
    settings = from_dict(ContextualConfig, {"model": embedder, **said}, where="contextual")
    reader = ContextReader(settings, embedder, passed_over)
    reader.is_training = False  # it was tuned already, if at all
    if reader.options != wanted:
        raise DataError(
            f"holds an embedder of {reader.vectors.num_layers} layers of {reader.vectors.size}, "
            f"and the model reads {wanted.num_layers} of {wanted.size}",
            stored.place,
        )
    return reader


@contextmanager
def saved_context(reader: ContextReader | None) -> Iterator[dict[str, Path]]:
    """The directory of a reader's embedder, there while the block runs."""
    if reader is None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="seqloom-") as folder:
        yield {EMBEDDER: reader.embedder.save(Path(folder) / EMBEDDER)}
