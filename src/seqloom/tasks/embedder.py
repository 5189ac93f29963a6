"""Word vectors: learn them from text, ask for words that are alike, hand them to other tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.data.prepared import PrepareConfig, PreparedData
from seqloom.errors import ConfigError, DataError, ShapeError
from seqloom.tasks.corpus import TextSource, prepared_text, working_folder
from seqloom.tasks.directory import (
    TRAINING,
    ModelHeader,
    StoredModel,
    discard_unbegun,
    prepare_place,
    provenance,
    write_model,
)
from seqloom.tasks.estimator import Estimator
from seqloom.tasks.language_engine import origin
from seqloom.tasks.word_tests import TestSource, evaluate_vectors, known_word
from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline, Vocabulary
from seqloom.text.vectors import WordVectors, write_vectors
from seqloom.text.vocabulary import Specials

if TYPE_CHECKING:
    from seqloom.word2vec.model import Progress, Word2Vec

VOCABULARY, SUBWORD = "vocabulary.json", "subword.json"
VECTORS, OUTPUT = "vectors.npy", "output.npy"
MIN_COUNT = 5
NO_SPECIALS = Specials(pad="", unk="", bos="", eos="")


class Embedder(Estimator):
    """Learns a vector for each word from the words around it.

    It needs no torch and is not trained by the loop: what there is to set of its training are
    options of the architecture, and `training`, `valid` and `resume` are refused.

    Args:
        arch: "word2vec".
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` (5 if not given) and `max_size`; rarer words are passed over, as if
            the text had not had them.
        training: Refused if it is not empty.
        options: Settings of the architecture, such as `vector_size`, `window` or `epochs`.

    Examples:
        >>> texts = ["the cat sat on the mat", "the dog sat on the rug"] * 20
        >>> model = Embedder(vector_size=8, sample=0).fit(texts)
        >>> len(model.nearest("cat", k=3)), len(model.vectors)
        (3, 7)
    """

    task: ClassVar[str] = "embed"
    settings: ClassVar[tuple[str, ...]] = ("text", "vocabulary", "training")
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    vocabulary_: Vocabulary
    pipeline_: TextPipeline
    model_: Word2Vec

    def __init__(
        self,
        arch: str = "word2vec",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(arch, options, text=text, vocabulary=vocabulary, training=training)

    def fit(
        self,
        train: TextSource,
        valid: None = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Sequence[Callable[[Progress], object]] = (),
    ) -> Self:
        """Learn from text, which is never held in memory.

        Args:
            train: A file, "NAME:SPLIT" of a named data set, a prepared directory, or texts. Words
                of one text are near each other, those of two are not.
            valid: None; word vectors are judged by `evaluate`.
            out: A directory for the model.
            resume: False.
            callbacks: Told how far it is, after each piece of the text.
        """
        for name, given in (("training", self.training), ("valid", valid), ("resume", resume)):
            if given:
                raise ConfigError(
                    f"{name} does not belong to arch={self.arch!r}, got {given!r}; its epochs, "
                    "rate and seed are options, and evaluate measures it"
                )
        config = self.build_config()
        words = {"min_count": MIN_COUNT, **(self.vocabulary or {})}
        limits = from_dict(PrepareConfig, {**words, "text": self.text or {}, "ends": False})
        began, place = time.monotonic(), None if out is None else Path(out)
        if place is not None:
            prepare_place(place)
        try:
            with working_folder(place and place / TRAINING) as folder:
                data = prepared_text(train, folder / "train", limits)
                known, rows = most_frequent(data, limits)
                model = load_model_class(self.architecture).fit(
                    config,
                    data.data.sequences["ids"].flat,
                    data.data.sequences["ids"].offsets,
                    rows,
                    np.array(known.counts),
                    lambda progress: [tell(progress) for tell in callbacks],
                )
                tokens = len(data.data.sequences["ids"].flat)
        except BaseException:
            if place is not None:
                discard_unbegun(place)
            raise
        # Only now, so that a run that failed leaves the estimator as it was.
        self.model_, self.vocabulary_, self.pipeline_ = model, known, data.pipeline
        self._vectors = WordVectors(known.words, model.vectors)
        self.metrics_ = {}
        self.provenance_ = provenance(
            "numba",
            train=origin(train),
            tokens=tokens,
            seconds=round(time.monotonic() - began, 1),
        )
        if place is not None:
            (place / TRAINING).rmdir()
            self.save(place)
        return self

    # -- use -------------------------------------------------------------------------------------

    @property
    def vectors(self) -> WordVectors:
        """The words with a vector each, the most frequent first."""
        self.require_fitted()
        return self._vectors

    def embed(self, words: Iterable[str]) -> NDArray[np.float32]:
        """Return the vectors of words (N, D).

        Raises:
            DataError: If a word has none, with the known word that is spelled most alike.
        """
        vectors = self.vectors
        found = [vectors.vector(self._known(word)) for word in words]
        return np.stack(found) if found else np.zeros((0, vectors.size), np.float32)

    def similarity(self, a: str, b: str) -> float:
        """Return the cosine of two words; `embed` says what of unknown ones."""
        return self.vectors.similarity(self._known(a), self._known(b))

    def nearest(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """Return the k words of greatest cosine with a word, with it."""
        return self.vectors.nearest(self._known(word), k)

    def analogy(self, a: str, b: str, c: str, k: int = 1) -> list[tuple[str, float]]:
        """Return the k words that best complete "a is to b as c is to", with their cosines."""
        return self.vectors.analogy(self._known(a), self._known(b), self._known(c), k)

    def evaluate(self, data: TestSource = "word-similarity") -> dict[str, float]:
        """Measure the vectors on judged similarities or analogies.

        Args:
            data: "word-similarity:wordsim353", "word-similarity:simlex999" or
                "word-similarity:analogies", all three if the split is left out, or a file; see
                `seqloom.tasks.word_tests.evaluate_vectors`.
        """
        return evaluate_vectors(self.vectors, data, self.pipeline_.words)

    def export(self, path: str | PathLike[str], *, format: str = "auto") -> None:
        """Write the vectors for other programs, or as a store; see `seqloom.text.write_vectors`."""
        write_vectors(self.vectors, path, format=format)

    def predict_lines(self, lines: Sequence[str]) -> Iterable[dict[str, Any]]:
        """For the command line: the words nearest to the word of each line."""
        for line in lines:
            near = self.nearest(line.strip(), 5)
            yield {"word": line.strip(), "nearest": " ".join(word for word, _ in near)}

    def _known(self, word: str) -> str:
        return known_word(self.vectors, word, self.pipeline_.words)

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each table."""
        self.require_fitted()
        return self.model_.shapes()

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        header = ModelHeader(
            task=self.task,
            architecture=self.arch,
            config=to_dict(self.model_.config),
            settings={"text": to_dict(self.pipeline_.config)},
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        files: dict[str, Any] = {
            VOCABULARY: self.vocabulary_.to_dict(),
            VECTORS: lambda path: _write_table(path, self.model_.vectors),
            OUTPUT: lambda path: _write_table(path, self.model_.output),
        }
        if self.pipeline_.subword is not None:
            files[SUBWORD] = self.pipeline_.subword.to_bytes()
        numbers = self.model_.vectors.size + self.model_.output.size
        return write_model(directory, header, None, files, numbers=numbers)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the model a directory describes."""
        text = from_dict(TextConfig, stored.header.settings["text"])
        model = cls(stored.header.architecture, text=text)
        subword = SubwordTokenizer.load(stored.place / SUBWORD) if text.unit == "subword" else None
        model.pipeline_ = TextPipeline(text, subword=subword)
        model.vocabulary_ = Vocabulary.load(stored.place / VOCABULARY)
        tables = [_read_table(stored.place / name) for name in (VECTORS, OUTPUT)]
        try:
            model.model_ = load_model_class(model.architecture)(model._take_over(stored), *tables)
            model._vectors = WordVectors(model.vocabulary_.words, tables[0])
        except ShapeError as error:
            raise DataError(f"does not fit the configuration ({error})", stored.place) from None
        return model


def most_frequent(
    data: PreparedData, limits: PrepareConfig
) -> tuple[Vocabulary, NDArray[np.int32]]:
    """The words of a text that are frequent enough, by falling count, and the row of each id."""
    from seqloom.word2vec.model import count_ids

    own = data.vocabularies["words"]
    counts = count_ids(data.data.sequences["ids"].flat, len(own))
    counts[: len(own.specials.names())] = 0
    counts[len(own.words) :] = 0  # buckets of unknown words
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= limits.min_count][: limits.max_size]
    rows = np.full(len(own), -1, np.int32)
    rows[order] = np.arange(len(order))
    words = [own.words[i] for i in order.tolist()]
    known = Vocabulary(
        words, counts[order].tolist(), specials=NO_SPECIALS, out_of_vocabulary="error"
    )
    return known, rows


def _write_table(path: Path, table: NDArray[np.float32]) -> None:
    with path.open("wb") as stream:
        np.save(stream, table, allow_pickle=False)


def _read_table(path: Path) -> NDArray[np.float32]:
    try:
        table = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"is no table of vectors ({error})", path) from None
    if table.dtype != np.float32 or table.ndim != 2:
        raise DataError(f"must be a table of float32, got {table.dtype} {table.shape}", path)
    return np.asarray(table)
