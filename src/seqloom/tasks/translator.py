"""Translators: one sequence to another, learned from pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from seqloom.config import from_dict
from seqloom.errors import ConfigError, InputError
from seqloom.metrics.translation import bleu, chrf
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.fitting import Callbacks
from seqloom.tasks.seq2seq_fitting import (
    TEXT,
    Data,
    FitOptions,
    fit_pairs,
    load_pairs,
    save_pairs,
    text_settings,
)
from seqloom.tasks.seq2seq_objective import PairGoal, measure_pairs
from seqloom.tasks.seq2seq_results import Written
from seqloom.tasks.seq2seq_search import make_search
from seqloom.tasks.seq2seq_text import PairText, Source, read_pairs, several
from seqloom.tasks.seq2seq_writing import align, encode_sources, write_texts
from seqloom.text import TextConfig
from seqloom.text.language import detect_language

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


class Translator(Estimator):
    """Learns to write one sequence for another.

    A source is a text, or a sequence of vectors (speech, features of a video, a series); a target
    is a text. A source longer than `max_source` is cut there, in training and in use; what is
    returned says so.

    Args:
        arch: "seq2seq", "pointer" or "transformer".
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        target_text: The same of the targets, if it is other than of the sources.
        vocabulary: Which words are known, as `PairVocabulary` has it: `min_count`, `max_size`,
            `shared`, and with unit "subword" `pieces`, which are learned from the training pairs.
        max_source: How many items of a source are read; all if None.
        label_smoothing: Share of a target that is spread over all words.
        own_words: Share of the decoder's own words that it is fed in training, in the end.
        own_words_epochs: Epochs over which that share grows from 0.
        consistency: Times how far apart two passes of training with other units dropped are
            (R-Drop, Liang et al. 2021); not for "pointer".
        contextual: Vectors of words in context beside those of the source: an `Embedder` of arch
            "elmo" or "transformer", its directory, or a table with more settings; see
            `seqloom.tasks.contextual.ContextualConfig`. Of words, not of pieces.
        training: Settings of the loop.
        options: Settings of the architecture, such as `hidden_size` or `attention`.

    Examples:
        >>> pairs = [("a b", "b a"), ("b c", "c b")] * 8
        >>> model = Translator("seq2seq", embed_size=8, hidden_size=8, training={"epochs": 2})
        >>> isinstance(model.fit(pairs).translate("a b").text, str)
        True
    """

    task: ClassVar[str] = "translate"
    settings: ClassVar[tuple[str, ...]] = (
        "text",
        "target_text",
        "vocabulary",
        "max_source",
        "label_smoothing",
        "own_words",
        "own_words_epochs",
        "consistency",
        "contextual",
        "training",
    )
    text: TextConfig | Mapping[str, Any] | None
    target_text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    max_source: int | None
    label_smoothing: float
    own_words: float
    own_words_epochs: int
    consistency: float
    contextual: Any
    text_: PairText

    def __init__(
        self,
        arch: str = "seq2seq",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        target_text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        max_source: int | None = None,
        label_smoothing: float = 0.0,
        own_words: float = 0.0,
        own_words_epochs: int = 10,
        consistency: float = 0.0,
        contextual: Any = None,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            arch,
            options,
            text=text,
            target_text=target_text,
            vocabulary=vocabulary,
            max_source=max_source,
            label_smoothing=label_smoothing,
            own_words=own_words,
            own_words_epochs=own_words_epochs,
            consistency=consistency,
            contextual=contextual,
            training=training,
        )

    def fit(
        self,
        train: Any,
        valid: Any = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Callbacks = (),
    ) -> Self:
        """Learn from pairs. Progress is shown where there is an `out`.

        Args:
            train: Pairs of a source and a target, `TextPair`s, a file of pairs or "NAME:SPLIT".
            valid: As `train`; what decides which weights are best, and when to stop.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        if self.arch == "pointer" and self.consistency:
            raise ConfigError(
                "consistency compares probabilities over one vocabulary, which a pointer has not; "
                f"set it to 0, got {self.consistency}"
            )
        settings = text_settings(
            self.text,
            self.target_text,
            self.vocabulary,
            self.max_source,
            copying=self.arch == "pointer",
        )
        goal = from_dict(PairGoal, self._goal())
        held = None if valid is None else read_pairs(valid)
        data = Data(read_pairs(train), held, (train, valid))
        self.text_ = fit_pairs(self, settings, goal, data, FitOptions(out, resume, callbacks))
        return self

    # -- use -------------------------------------------------------------------------------------

    @overload
    def translate(self, sources: str, **search: Any) -> Written: ...
    @overload
    def translate(self, sources: Sequence[Source], **search: Any) -> list[Written]: ...
    def translate(self, sources: str | Sequence[Source], **search: Any) -> Written | list[Written]:
        """Write the target of a source, or of each of several.

        Args:
            sources: A text; or texts, or arrays of vectors (S, D).
            search: As `Search` has it: `beam`, `n_best`, `length_penalty`, `attention`, ...

        Raises:
            InputError: If a source is empty, or is none.
        """
        self.require_fitted()
        wanted = make_search(search)
        if isinstance(sources, str):
            return write_texts(self.model_, self.text_, [self.text_.read(sources)], wanted)[0]
        given = several(sources, "sources must be a text or several sources")
        reads = [self.text_.read(source, number) for number, source in enumerate(given)]
        return write_texts(self.model_, self.text_, reads, wanted)

    def score(self, source: Source, target: str) -> float:
        """Return the log-probability of a target, given its source."""
        self.require_fitted()
        read = self.text_.read(source)
        memory = encode_sources(self.model_, self.text_, [read])
        ids = self.text_.target_ids(target, read)[1:-1].tolist()
        return align(self.model_, self.text_, memory, [0], [ids]).log_probs[0]

    def evaluate(self, data: Any, **search: Any) -> dict[str, Any]:
        """Translate sources and compare with their targets.

        Args:
            data: As `train` of `fit`.
            search: As of `translate`.

        Returns:
            `bleu` and `chrf` of the texts as they are, by sacrebleu, with `bleu_signature`;
            `bleu_lowercase`, where case does not count;
            `perplexity` and `accuracy` of the targets' words, each given those before it;
            `examples`.
        """
        self.require_fitted()
        pairs = read_pairs(data)
        found = self.translate([pair.source for pair in pairs], **search)
        texts, references = [each.text for each in found], [pair.target for pair in pairs]
        tokenize = bleu_tokenizer(references)
        scored = bleu(texts, references, tokenize=tokenize)
        return {
            "bleu": scored.score,
            "bleu_lowercase": bleu(texts, references, tokenize=tokenize, lowercase=True).score,
            "chrf": chrf(texts, references).score,
            **measure_pairs(self.model_, self.text_.encode(pairs)),
            "examples": float(len(pairs)),
            "bleu_signature": scored.signature,
        }

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the translation of each line."""
        for found, line in zip(self.translate(list(lines)), lines, strict=True):
            yield {"text": line, "translation": found.text}

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        return save_pairs(self, directory, self._goal())

    def _goal(self) -> dict[str, Any]:
        """The settings of what is learned."""
        return {
            "label_smoothing": self.label_smoothing,
            "own_words": self.own_words,
            "own_words_epochs": self.own_words_epochs,
            "consistency": self.consistency,
        }

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the translator a directory describes."""
        settings = dict(stored.header.settings)
        pairs = settings.pop(TEXT)
        settings.pop("contextual", None)  # `load_pairs` finds its embedder
        model = cls(
            stored.header.architecture,
            text=from_dict(TextConfig, pairs["source"]),
            target_text=from_dict(TextConfig, pairs["target"]),
            vocabulary=pairs["vocabulary"],
            max_source=pairs["max_source"],
            **settings,
        )
        load_pairs(model, stored)
        return model


def bleu_tokenizer(references: Sequence[str]) -> str:
    """How sacrebleu should split texts like these."""
    sample = " ".join(references[:100])
    if not sample.strip():
        raise InputError("references must hold text, got none")
    return "zh" if detect_language(sample) == "zh" else "13a"
