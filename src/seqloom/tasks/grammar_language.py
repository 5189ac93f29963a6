"""Language models that are grammars, read off a treebank, without torch."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import Architecture
from seqloom.config import to_dict
from seqloom.data.examples import Tree
from seqloom.errors import ConfigError, DataError
from seqloom.grammar.arrays import arrays_to_bytes, read_arrays
from seqloom.grammar.config import PcfgConfig
from seqloom.grammar.model import Parse, PcfgModel, Reader
from seqloom.grammar.treebank import open_trees, plain_tree
from seqloom.metrics import perplexity
from seqloom.tasks.corpus import text_examples
from seqloom.tasks.directory import (
    TRAINING,
    StoredModel,
    discard_unbegun,
    prepare_place,
    provenance,
)
from seqloom.tasks.language_engine import WINDOW, FitRequest, Fitted, Floats, Ids, Reading, origin
from seqloom.text.pipeline import TextPipeline
from seqloom.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel

ARRAYS, SYMBOLS = "grammar.safetensors", "symbols.json"


class GrammarState(NamedTuple):
    """How far each text was read."""

    reader: NDArray[Any]  # (B,) of Reader


class GrammarLanguage:
    """The engine of grammars. Each sentence is read on its own, from its beginning.

    The words of a treebank are its leaves, as `plain_tree` types them and the normalizer of the
    text settings leaves them; the vocabulary is built of these. Text is split by the text settings
    as ever: by the Treebank's rules ("word") or at blanks ("space").

    Args:
        model: The grammar.
    """

    def __init__(self, model: PcfgModel) -> None:
        self.model = model

    # -- fitting ---------------------------------------------------------------------------------

    @classmethod
    def fit(cls, request: FitRequest) -> Fitted:
        """Count and smooth; a run that fails leaves nothing."""
        config = _check_settings(request)
        began = time.monotonic()
        pipeline = TextPipeline(request.prepare.text)
        place = request.place
        if place is not None:
            prepare_place(place)
        try:
            trees = list(_plain_trees(request.train, pipeline))
            vocabulary = Vocabulary.build(
                (tree.leaves() for tree in trees),
                min_count=request.prepare.min_count,
                max_size=request.prepare.max_size,
            )
            engine = cls(PcfgModel.estimate(trees, vocabulary, config))
            metrics = {}
            if request.valid is not None:
                metrics["valid_perplexity"] = engine._measure(request.valid, pipeline)
        except BaseException:
            if place is not None:
                discard_unbegun(place)
            raise
        if place is not None:
            (place / TRAINING).rmdir()
        return Fitted(
            engine=engine,
            vocabulary=vocabulary,
            pipeline=pipeline,
            metrics=metrics,
            provenance=provenance(
                "numba",
                train=origin(request.train),
                valid=origin(request.valid),
                tokens=sum(len(tree.leaves()) + 1 for tree in trees),
                seconds=round(time.monotonic() - began, 1),
            ),
            writes=True,
            wait=lambda: None,
        )

    def _measure(self, valid: Any, pipeline: TextPipeline) -> float:
        """The perplexity of validation data: trees, whose words are taken, or texts."""
        items = valid if isinstance(valid, (str, PathLike)) else list(valid)
        if isinstance(items, list) and not any(isinstance(item, Tree) for item in items):
            words = [pipeline.words(example.text) for example in text_examples(items)]
        else:
            words = [tree.leaves() for tree in _plain_trees(items, pipeline)]
        if not words:
            raise DataError("there must be a sentence to validate on, got none")
        vocabulary = self.model.vocabulary
        end = vocabulary.specials.eos
        ids = np.concatenate([vocabulary.encode([*sentence, end]) for sentence in words])
        return perplexity(*self.loss(ids))

    # -- use -------------------------------------------------------------------------------------

    def loss(self, ids: Ids) -> tuple[float, int]:
        """Read sentence by sentence; nothing is carried from one to the next."""
        if len(ids) and ids[-1] != self.model.end_id:
            raise DataError(
                "a grammar reads sentences, each closed by the end-of-sentence word, got a text "
                "that goes on; prepare it with ends=true"
            )
        rows = self.model.score_all(self._sentences(ids))
        return -math.fsum(value for row in rows for value in row), len(ids)

    def _sentences(self, ids: Ids) -> list[list[int]]:
        """The ids cut at the ends of sentences, which are left out."""
        cuts = np.flatnonzero(ids == self.model.end_id)
        pieces = np.split(ids, cuts + 1)
        return [piece[:-1].tolist() for piece in pieces[:-1]]

    def log_probs(self, sequences: Sequence[Ids]) -> list[tuple[float, ...]]:
        """The natural log-probability of each id, sequence by sequence."""
        cut = [self._sentences(ids) for ids in sequences]
        rows = iter(self.model.score_all([sentence for each in cut for sentence in each]))
        return [tuple(value for _ in each for value in next(rows)) for each in cut]

    def stream(self, ids: Ids, reading: Reading | None = None) -> tuple[Floats, Reading]:
        """Read sentence by sentence; nothing is carried from one to the next."""
        end = self.model.end_id
        last, state = reading or self.read(np.array([[end]]))
        if not len(ids):
            return np.empty(0), Reading(last, state)
        # A sentence that has begun, or does not end here, is read word by word.
        ends = np.flatnonzero(np.asarray(ids) == end)
        first = len(ids) if not len(ends) else 0 if last[0] == end else int(ends[0]) + 1
        whole = max(first, int(ends[-1]) + 1 if len(ends) else 0)
        reader = self._step(state.reader[0], int(last[0]))
        begun, before = self._slowly(reader, ids[:first])
        rows = self.model.score_all(self._sentences(ids[first:whole]))
        rest, after = self._slowly(self.model.start(), ids[whole:])
        found = np.array([*begun, *(value for row in rows for value in row), *rest])
        state = _state([after if whole < len(ids) else before])
        return found, Reading(np.array([ids[-1]], np.int64), state)

    def _slowly(self, reader: Reader, ids: Ids) -> tuple[list[float], Reader]:
        """Read at most one sentence; return the reader as it was before the last id, too."""
        found, before = list[float](), reader
        for place, id_ in enumerate(ids.tolist()):
            if place == len(ids) - 1:
                before = reader.copy()
            ends = id_ == self.model.end_id
            found.append(reader.end_log_prob() if ends else reader.advance(id_))
        return found, before

    def read(self, ids: NDArray[Any]) -> Reading:
        """Read texts, all but the last id of each; every text begins a sentence."""
        readers = []
        for row in ids[:, :-1].tolist():
            reader = self.model.start()
            for id_ in row:
                reader = self._step(reader, id_)
            readers.append(reader)
        return Reading(np.asarray(ids[:, -1], np.int64), _state(readers))

    def step(self, ids: NDArray[Any], state: GrammarState) -> tuple[Floats, GrammarState]:
        """Read one more id of each text; ids that are never predicted have probability 0."""
        pairs = zip(state.reader, ids.tolist(), strict=True)
        after = [self._step(reader, id_) for reader, id_ in pairs]
        with np.errstate(divide="ignore"):
            values = np.log(np.stack([reader.next_probs() for reader in after]))
        return values, _state(after)

    def _step(self, reader: Reader, id_: int) -> Reader:
        """A reader that has read one more id; the one given stays as it is."""
        if id_ == self.model.end_id:
            return self.model.start()
        after = reader.copy()
        after.advance(id_)
        return after

    # -- saving ----------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """The settings the model was made with."""
        return to_dict(self.model.config)

    def weights(self) -> None:
        """None: what there is lies in files of its own, which need no torch."""
        return

    def files(self) -> dict[str, Any]:
        """The numbers and the symbols."""
        return {ARRAYS: arrays_to_bytes(self.model.arrays()), SYMBOLS: self.model.symbols()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """How many rules and words under tags there are."""
        rules, lexicon = self.model.rules, self.model.lexicon
        return {
            "binary rules": rules.prob.shape,
            "unary rules": rules.unary_prob.shape,
            "words of tags": lexicon.values.shape,
            "shapes of tags": lexicon.shapes.shape,
        }

    @classmethod
    def restore(
        cls,
        architecture: Architecture,  # noqa: ARG003 (there is but one)
        config: PcfgConfig,
        vocabulary: Vocabulary,
        stored: StoredModel,
    ) -> Self:
        """The model of a directory, whose files were found whole."""
        arrays = read_arrays(stored.place / ARRAYS)
        return cls(PcfgModel.restore(stored.json(SYMBOLS), arrays, vocabulary, config))


def _state(readers: Sequence[Reader]) -> GrammarState:
    found = np.empty(len(readers), object)
    found[:] = readers
    return GrammarState(found)


def parse_text(model: LanguageModel, text: str) -> Parse:
    """The best tree of a text, split into words as the model splits it.

    Raises:
        ConfigError: If the model is no grammar.
    """
    model.require_fitted()
    if not isinstance(model.model_, PcfgModel):
        raise ConfigError(f"trees need a grammar, arch='pcfg', got arch={model.arch_!r}")
    return model.model_.best_tree(model.pipeline_.words(text))


def _check_settings(request: FitRequest) -> PcfgConfig:
    """Refuse what can be refused before any tree is read."""
    config: PcfgConfig = request.build_config()
    for name, given in (
        ("training", bool(request.training)),
        ("window", request.window != WINDOW),
        ("resume", request.resume),
        ("callbacks", bool(request.callbacks)),
    ):
        if given:
            raise ConfigError(
                f"{name} belongs to models trained by gradients, got it with arch='pcfg', which "
                f"is counted in one go; leave {name} out"
            )
    if request.reverse:
        raise ConfigError(
            "a grammar reads from left to right, got reverse=True with arch='pcfg'; leave it out"
        )
    if request.prepare.text.unit not in ("word", "space"):
        raise ConfigError(
            f"the leaves of trees are words, got unit={request.prepare.text.unit!r}; "
            "use unit='word' or unit='space'"
        )
    return config


def _plain_trees(source: Any, pipeline: TextPipeline) -> Iterator[Tree]:
    """The trees of a source, plain, their words normalized."""
    normalize = pipeline.config.normalizer
    for tree in open_trees(source):
        plain = plain_tree(tree, lambda word: normalize(word).text)
        if plain is not None:
            yield plain
