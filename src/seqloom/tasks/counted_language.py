"""Language models that are counted: n-grams, without torch."""

from __future__ import annotations

import math
import mmap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import Architecture
from seqloom.config import to_dict
from seqloom.data.prepared import PreparedData
from seqloom.errors import ConfigError, DataError
from seqloom.metrics import perplexity
from seqloom.ngram.config import NgramConfig
from seqloom.ngram.estimation import estimate
from seqloom.ngram.model import NgramModel
from seqloom.ngram.store_file import is_store
from seqloom.ngram.stores import write_store
from seqloom.ngram.words import EOS, UNK, encoded
from seqloom.ngram.workspace import Workspace, parse_size
from seqloom.tasks.corpus import working_folder
from seqloom.tasks.directory import (
    TRAINING,
    StoredModel,
    discard_unbegun,
    prepare_place,
    provenance,
)
from seqloom.tasks.language_engine import (
    WINDOW,
    FitRequest,
    Fitted,
    Floats,
    Ids,
    Reading,
    origin,
)
from seqloom.tasks.spelling import Spelling
from seqloom.text.vocabulary import Vocabulary

STORE = "model.ngram"


class CountedState(NamedTuple):
    """The last words of each text that matter, as `NgramModel` has them."""

    context: NDArray[np.uint32]  # (B, order)


class CountedLanguage:
    """The engine of n-grams. Each sentence is read on its own, from its beginning.

    Args:
        store: The file of the model, which is mapped: it may be removed afterwards.
        config: The settings it was made with.
        vocabulary: What the estimator's ids mean.
    """

    def __init__(self, store: Path, config: NgramConfig, vocabulary: Vocabulary) -> None:
        if not is_store(store):  # else it would be read as text
            raise DataError("is not a Seqloom n-gram store (the first bytes differ)", store)
        self.model = NgramModel.load(store, verify=False)
        with store.open("rb") as file:
            self._store = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._config, self._spelling = config, Spelling(vocabulary)
        self._numbers = _numbers(self.model, self._spelling, store)

    # -- fitting ---------------------------------------------------------------------------------

    @classmethod
    def fit(cls, request: FitRequest) -> Fitted:
        """Count and smooth; a run that fails leaves nothing."""
        config = _check_settings(request)
        began = time.monotonic()
        place = request.place
        if place is not None:
            prepare_place(place)
        try:
            with working_folder(place and place / TRAINING) as folder:
                data, valid = request.prepared(folder)
                _estimate(config, data, valid, folder / STORE)
                vocabulary = data.vocabularies["words"]
                engine = cls(folder / STORE, config, vocabulary)
                metrics = {}
                if valid is not None and engine.model.is_distribution:
                    loss, items = engine.loss(_ids(valid))
                    metrics["valid_perplexity"] = perplexity(loss, items)
        except BaseException:
            if place is not None:
                discard_unbegun(place)
            raise
        if place is not None:
            (place / TRAINING).rmdir()
        return Fitted(
            engine=engine,
            vocabulary=vocabulary,
            pipeline=data.pipeline,
            metrics=metrics,
            provenance=provenance(
                "numba",
                train=origin(request.train),
                valid=origin(request.valid),
                tokens=len(_ids(data)),
                seconds=round(time.monotonic() - began, 1),
            ),
            writes=True,
            wait=lambda: None,
        )

    # -- use -------------------------------------------------------------------------------------

    def loss(self, ids: Ids) -> tuple[float, int]:
        """Read sentence by sentence; nothing is carried from one to the next."""
        self._check_distribution()
        found = self.model.perplexity(self._spelling.lines(ids))
        return -found.log_prob, found.words

    def _check_distribution(self) -> None:
        if not self.model.is_distribution:
            raise ConfigError(
                f"a perplexity needs probabilities, got smoothing={self._config.smoothing!r}, "
                "whose scores do not sum to 1; use score, or another smoothing"
            )

    def log_probs(self, sequences: Sequence[Ids]) -> list[tuple[float, ...]]:
        """The natural log-probability of each id, sequence by sequence."""
        return [
            tuple(
                word.log_prob
                for line in self._spelling.lines(ids)
                for word in self.model.score_words(line)
            )
            for ids in sequences
        ]

    def stream(self, ids: Ids, reading: Reading | None = None) -> tuple[Floats, Reading]:
        """Read sentence by sentence; nothing is carried from one to the next."""
        self._check_distribution()
        # A sentence that has begun, or does not end here, is read word by word.
        ends = np.flatnonzero(np.asarray(ids) == self._spelling.end)
        first = 0
        if reading is not None and int(reading.last[0]) != self._spelling.end:
            first = int(ends[0]) + 1 if len(ends) else len(ids)
        last = int(ends[-1]) + 1 if len(ends) else first
        begun, reading = self._slowly(ids[:first], reading)
        whole = np.empty(0)
        if last > first:
            lines = "".join(f"{line}\n" for line in self._spelling.lines(ids[first:last]))
            found = self.model.score_lines(encoded(lines), by_word=True)
            whole, reading = found.values[found.orders > 0], None
        rest, reading = self._slowly(ids[max(first, last) :], reading)
        return np.concatenate([begun, whole, rest]), reading

    def _slowly(self, ids: Ids, reading: Reading | None) -> tuple[Floats, Reading]:
        last, state = reading or self.read(np.array([[self._spelling.end]]))
        found = np.empty(len(ids))
        for place, id_ in enumerate(ids.tolist()):
            values, state = self.step(last, state)
            found[place], last = values[0, self._predicted(id_)], np.array([id_])
        return found, Reading(last, state)

    def _predicted(self, id_: int) -> int:
        return id_ if self._numbers[id_] >= 0 else self._spelling.unknown

    def read(self, ids: NDArray[Any]) -> Reading:
        """Read texts, all but the last id of each."""
        states = []
        for row in ids[:, :-1].tolist():
            state = self.model.empty()
            for id_ in row:
                state = self._step(state, id_)
            states.append(state)
        return Reading(np.asarray(ids[:, -1], np.int64), CountedState(np.stack(states)))

    def step(self, ids: NDArray[Any], state: CountedState) -> tuple[Floats, CountedState]:
        """Read one more id of each text; ids that are never predicted have probability 0."""
        after = [self._step(row, id_) for row, id_ in zip(state.context, ids.tolist(), strict=True)]
        values = np.stack([self._next(row) for row in after])
        return values, CountedState(np.stack(after))

    def _step(self, state: NDArray[np.uint32], id_: int) -> NDArray[np.uint32]:
        if id_ == self._spelling.end:
            return self.model.start()
        return self.model.step(state, self._spelling.by_id[id_])[1]

    def _next(self, state: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The log-probability of each id; of special words, `<unk>` and `</s>` have one."""
        values = self.model.next(state=state)
        found = np.full(len(self._numbers), -math.inf)
        predicted = self._numbers >= 0
        found[predicted] = values[self._numbers[predicted]]
        return found

    # -- saving ----------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """The settings the model was made with."""
        return to_dict(self._config)

    def weights(self) -> None:
        """None: what there is lies in the store."""
        return

    def files(self) -> dict[str, Any]:
        """The store, copied as it is."""
        return {STORE: self._write}

    def _write(self, path: Path) -> None:
        path.write_bytes(self._store)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """How many n-grams there are of each order."""
        return {f"{order}-grams": (size,) for order, size in enumerate(self.model.sizes, 1)}

    @classmethod
    def restore(
        cls,
        architecture: Architecture,  # noqa: ARG003 (there is but one)
        config: NgramConfig,
        vocabulary: Vocabulary,
        stored: StoredModel,
    ) -> Self:
        """The model of a directory, whose files were found whole."""
        engine = cls(stored.place / STORE, config, vocabulary)
        if engine.model.order != config.order:
            raise DataError(
                f"must be of order {config.order}, got {engine.model.order}", stored.place / STORE
            )
        return engine


def _check_settings(request: FitRequest) -> NgramConfig:
    """Refuse what can be refused before any text is read."""
    config: NgramConfig = request.build_config()
    for name, given in (
        ("training", bool(request.training)),
        ("window", request.window != WINDOW),
        ("resume", request.resume),
        ("callbacks", bool(request.callbacks)),
    ):
        if given:
            raise ConfigError(
                f"{name} belongs to models trained by gradients, got it with arch='ngram', which "
                f"is counted in one go; leave {name} out"
            )
    if config.smoothing == "jelinek-mercer" and config.weights is None and request.valid is None:
        raise ConfigError(
            "jelinek-mercer finds the weights of its orders on validation text, got valid=None; "
            "give valid or weights"
        )
    return config


def _estimate(
    config: NgramConfig, data: PreparedData, valid: PreparedData | None, path: Path
) -> None:
    """Count, smooth and write the store; what does not fit in memory goes to files beside it."""
    memory = None if config.memory is None else parse_size(config.memory)
    place = Workspace(memory, str(path.parent))
    spelling = Spelling(data.vocabularies["words"])
    weigh = config.smoothing == "jelinek-mercer" and config.weights is None and valid is not None
    ngrams = estimate(
        spelling.lines(_ids(data)),
        order=config.order,
        smoothing=config.method(),
        prune=config.prune,
        vocabulary=spelling.plain,
        held_out=spelling.lines(_ids(valid)) if weigh and valid is not None else None,
        place=place,
    )
    write_store(ngrams, path, "hashed", place)


def _ids(data: PreparedData) -> Ids:
    ids: Ids = data.data.sequences["ids"].flat
    return ids


def _numbers(model: NgramModel, spelling: Spelling, store: Path) -> NDArray[np.int64]:
    """The model's number of each id, -1 for those it never predicts."""
    plain = model.words.numbers(" ".join(spelling.plain).encode())
    if len(plain) + EOS + 1 != len(model.words) or (plain == UNK).any():
        raise DataError("does not hold the words of the vocabulary beside it", store)
    numbers = np.full(len(spelling.by_id), -1)
    numbers[len(numbers) - len(plain) :] = plain
    numbers[spelling.end] = EOS
    numbers[spelling.unknown] = UNK
    return numbers
