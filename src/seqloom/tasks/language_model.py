"""Language models: fit one to text, score and generate with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from seqloom.config import from_dict, to_dict
from seqloom.data.prepared import PrepareConfig
from seqloom.errors import ConfigError, DataError
from seqloom.metrics import perplexity
from seqloom.tasks.corpus import TextSource, already_prepared, text_examples
from seqloom.tasks.directory import ModelHeader, StoredModel, reopen, write_model
from seqloom.tasks.estimator import Estimator
from seqloom.tasks.language_engine import WINDOW, FitRequest, Ids, LanguageEngine, engine_class
from seqloom.tasks.notebook import html_words
from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline, Vocabulary

if TYPE_CHECKING:
    from seqloom.training import StepReport, TrainConfig

SURPRISE = 12.0  # nats at which a word is shown in full red
VOCABULARY, SUBWORD = "vocabulary.json", "subword.json"


@dataclass(frozen=True)
class TextScore:
    """What a language model thinks of a text; it ends with the end-of-sentence word.

    Args:
        text: The text.
        words: Its words.
        log_probs: The natural logarithm of each word's probability, given those before it.
        unknown: Which words the model does not know and scored as the unknown word.
    """

    text: str
    words: tuple[str, ...]
    log_probs: tuple[float, ...]
    unknown: tuple[bool, ...]

    @property
    def total(self) -> float:
        """The log-probability of the text."""
        return math.fsum(self.log_probs)

    @property
    def perplexity(self) -> float:
        """The perplexity a word, the end of the sentence counted as one."""
        return perplexity(-self.total, len(self.log_probs))

    def _repr_html_(self) -> str:
        """What a notebook shows: the words, the more surprising the redder."""
        notes = [f"log-probability {value:.3f}" for value in self.log_probs]
        shades = [min(1.0, -value / SURPRISE) for value in self.log_probs]
        return html_words(self.words, shades, notes)


class LanguageModel(Estimator):
    """Learns which word follows which.

    A text is read as sentences, each closed by the end-of-sentence word. A network reads them as
    one stream and carries its state from one to the next; a counted model ("ngram") reads each on
    its own. Otherwise all are measured alike, on the same words, so their figures compare.

    A counted model needs no torch and is not trained by the loop: `training`, `resume`,
    `callbacks` and a `window` other than the default are refused.

    Args:
        arch: "ngram", "nnlm", "rnn", "lstm", "gru", "peephole", or "recurrent" with any `cell`.
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` and `max_size` of the vocabulary.
        window: Tokens a step of truncated back-propagation through time.
        training: Settings of the loop; `batch.batch_size` is the number of parallel lanes.
        options: Settings of the architecture, such as `hidden_size` or `order`.

    Examples:
        >>> model = LanguageModel("rnn", hidden_size=8, training={"epochs": 2})
        >>> model.fit(["a rose is a rose"] * 20).score("a rose").total < 0
        True
    """

    task: ClassVar[str] = "lm"
    settings: ClassVar[tuple[str, ...]] = ("text", "vocabulary", "window", "training")
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    window: int
    vocabulary_: Vocabulary
    pipeline_: TextPipeline
    engine_: LanguageEngine

    def __init__(
        self,
        arch: str = "lstm",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        window: int = WINDOW,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            arch, options, text=text, vocabulary=vocabulary, window=window, training=training
        )

    def fit(
        self,
        train: TextSource,
        valid: TextSource | None = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Sequence[Callable[[StepReport], object]] = (),
    ) -> Self:
        """Fit the model to text.

        Args:
            train: A file, "NAME:SPLIT" of a named data set, a prepared directory, or texts.
            valid: What decides which weights are best, and when to stop; of a counted model, what
                the weights of Jelinek-Mercer smoothing are found on.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        place = None if out is None else Path(out)
        request = FitRequest(
            architecture=self.architecture,
            build_config=self.build_config,
            build_training=self.build_training,
            training=self.training,
            window=self.window,
            prepare=from_dict(PrepareConfig, {**(self.vocabulary or {}), "text": self.text or {}}),
            train=train,
            valid=valid,
            place=place,
            resume=resume,
            callbacks=callbacks,
        )
        fitted = engine_class(self.architecture).fit(request)
        # Only now, so that a run that failed leaves the estimator as it was.
        self.vocabulary_, self.pipeline_ = fitted.vocabulary, fitted.pipeline
        self.engine_, self.model_ = fitted.engine, fitted.engine.model
        self.metrics_, self.provenance_ = fitted.metrics, fitted.provenance
        if place is not None and fitted.writes:
            reopen(place)
            self.save(place)
        fitted.wait()
        return self

    # -- use -------------------------------------------------------------------------------------

    def evaluate(self, data: TextSource) -> dict[str, float]:
        """Return the perplexity of a text, every token of it scored.

        A network reads the text as one stream; a counted model reads each sentence on its own.

        Returns:
            `perplexity`, `loss` (nats a token), `tokens`, and `unknown`, the share of tokens
            that are unknown words.
        """
        self.require_fitted()
        ids = self._stream(data)
        loss, items = self.engine_.loss(ids)
        unk = self.vocabulary_[self.vocabulary_.specials.unk]
        return {
            "perplexity": perplexity(loss, items),
            "loss": loss / items,
            "tokens": float(items),
            "unknown": float((ids == unk).mean()),
        }

    def _stream(self, data: TextSource) -> Ids:
        prepared = already_prepared(data, self.vocabulary_)
        if prepared is not None:
            ids: Ids = prepared.data.sequences["ids"].flat
            return ids
        end = self.vocabulary_.specials.eos
        encoded = [
            self.vocabulary_.encode([*self.pipeline_.words(example.text), end])
            for example in text_examples(data)
        ]
        if not encoded:
            raise DataError("there must be a text to evaluate, got none")
        return np.concatenate(encoded)

    @overload
    def score(self, texts: str) -> TextScore: ...
    @overload
    def score(self, texts: list[str]) -> list[TextScore]: ...
    def score(self, texts: str | list[str]) -> TextScore | list[TextScore]:
        """Return the log-probability of each word of a text, or of each of several texts.

        Each text is scored on its own, as if a sentence had just ended before it.
        """
        self.require_fitted()
        if isinstance(texts, str):
            return self._score([texts])[0]
        pieces = (texts[begin : begin + 64] for begin in range(0, len(texts), 64))
        return [score for piece in pieces for score in self._score(piece)]

    def _score(self, texts: Sequence[str]) -> list[TextScore]:
        specials = self.vocabulary_.specials
        words = [[*self.pipeline_.words(text), specials.eos] for text in texts]
        ids = [self.vocabulary_.encode(each) for each in words]
        unk = self.vocabulary_[specials.unk]
        return [
            TextScore(text, tuple(w), row, tuple((i == unk).tolist()))
            for text, w, row, i in zip(texts, words, self.engine_.log_probs(ids), ids, strict=True)
        ]

    def generate(
        self,
        prompt: str = "",
        *,
        max_words: int = 50,
        temperature: float = 1.0,
        top_k: int = 0,
        seed: int = 0,
    ) -> str:
        """Go on from a prompt until a sentence ends; the prompt is part of what is returned.

        Args:
            prompt: The beginning; empty for a new sentence.
            max_words: How many words to add at most.
            temperature: Below 1 for likelier words, 0 for the likeliest each time.
            top_k: Choose among the k likeliest words only; 0 for all.
            seed: Of chance.
        """
        self.require_fitted()
        if max_words < 1:
            raise ConfigError(f"max_words must be at least 1, got {max_words}")
        known = self.pipeline_.words(prompt)
        specials = self.vocabulary_.specials
        drawn = self.engine_.draw(
            self.vocabulary_.encode(known),
            max_length=max_words,
            temperature=temperature,
            top_k=top_k,
            forbidden={self.vocabulary_[word] for word in specials.names() if word != specials.eos},
            seed=seed,
        )
        return self.pipeline_.detokenize([*known, *self.vocabulary_.decode(drawn)])

    def next_words(self, prompt: str = "", k: int = 5) -> list[tuple[str, float]]:
        """Return the k likeliest next words after a prompt, with their probabilities."""
        self.require_fitted()
        best = self.engine_.next_ids(self.vocabulary_.encode(self.pipeline_.words(prompt)), k)
        words = self.vocabulary_.decode([id_ for id_, _ in best])
        return list(zip(words, [chance for _, chance in best], strict=True))

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the likeliest next word of each line."""
        for line in lines:
            ((word, chance),) = self.next_words(line, k=1)
            yield {"next": word, "probability": chance, "text": line}

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the fitted model by name, with their shapes."""
        self.require_fitted()
        return self.engine_.shapes()

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        header = ModelHeader(
            task=self.task,
            architecture=self.arch,
            config=self.engine_.config(),
            settings={"text": to_dict(self.pipeline_.config), "window": self.window},
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        files: dict[str, Any] = {VOCABULARY: self.vocabulary_.to_dict(), **self.engine_.files()}
        if self.pipeline_.subword is not None:
            files[SUBWORD] = self.pipeline_.subword.to_bytes()
        numbers = sum(math.prod(shape) for shape in self.shapes().values())
        return write_model(directory, header, self.engine_.weights(), files, numbers=numbers)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the model a directory describes."""
        header = stored.header
        text = from_dict(TextConfig, header.settings["text"])
        model = cls(header.architecture, text=text, window=header.settings["window"])
        subword = SubwordTokenizer.load(stored.place / SUBWORD) if text.unit == "subword" else None
        model.pipeline_ = TextPipeline(text, subword=subword)
        model.vocabulary_ = Vocabulary.load(stored.place / VOCABULARY)
        model.engine_ = engine_class(model.architecture).restore(
            model.architecture, model._take_over(stored), model.vocabulary_, stored
        )
        model.model_ = model.engine_.model
        return model
