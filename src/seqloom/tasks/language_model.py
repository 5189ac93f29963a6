"""Language models: fit one to text, score and generate with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from seqloom.config import from_dict, to_dict
from seqloom.data.prepared import PrepareConfig
from seqloom.errors import ConfigError
from seqloom.tasks.corpus import TextSource
from seqloom.tasks.directory import ModelHeader, StoredModel, reopen, write_model
from seqloom.tasks.estimator import Estimator
from seqloom.tasks.filling import Filling, fill
from seqloom.tasks.generation import Writing, next_log_probs, write
from seqloom.tasks.language_engine import (
    WINDOW,
    FitRequest,
    LanguageEngine,
    engine_class,
)
from seqloom.tasks.measuring import TextReader, evaluated
from seqloom.tasks.parts import saved_parts
from seqloom.tasks.rescoring import Rescored, rescore
from seqloom.tasks.setting_checks import check_count
from seqloom.tasks.text_score import TextScore, scored
from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline, Vocabulary
from seqloom.text.pipeline import Unit

if TYPE_CHECKING:
    from seqloom.tasks.pretrained import VectorSource
    from seqloom.training import StepReport, TrainConfig

VOCABULARY, SUBWORD = "vocabulary.json", "subword.json"


class LanguageModel(Estimator):
    """Learns which word follows which.

    A text is read as sentences, each closed by the end-of-sentence word. A network reads them as
    one stream and carries its state from one to the next; a counted model ("ngram") reads each on
    its own. Otherwise all are measured alike, on the same words, so their figures compare.

    A counted model needs no torch and is not trained by the loop: `training`, `resume`,
    `callbacks` and a `window` other than the default are refused.

    Args:
        arch: "ngram", "nnlm", "rnn", "lstm", "gru", "peephole", "recurrent" with any `cell`,
            "attention", "cnn", "elmo" or "transformer"; `objective="masked"` of the last restores
            words.
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` and `max_size` of the vocabulary.
        window: Tokens a step of truncated back-propagation through time.
        reverse: Whether to read sentences from right to left, each word from those after it.
        vectors: Word vectors a network begins with: a file, a store, the name of a data set, a
            model of task "embed", an `Embedder` or `WordVectors`; see `seqloom.tasks.pretrained`.
        tune_vectors: Whether they are trained further; words without one are trained anyway.
        training: Settings of the loop; `batch.batch_size` is the number of parallel lanes.
        options: Settings of the architecture, such as `hidden_size` or `order`.

    Attributes:
        arch_, window_, reverse_: The settings it was fitted with, which use and `save` go by.

    Examples:
        >>> model = LanguageModel("rnn", hidden_size=8, training={"epochs": 2})
        >>> model.fit(["a rose is a rose"] * 20).score("a rose").total < 0
        True
    """

    task: ClassVar[str] = "lm"
    settings: ClassVar[tuple[str, ...]] = (
        "text",
        "vocabulary",
        "window",
        "reverse",
        "vectors",
        "tune_vectors",
        "training",
    )
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    window: int
    reverse: bool
    vectors: VectorSource | None
    tune_vectors: bool
    vocabulary_: Vocabulary
    pipeline_: TextPipeline
    engine_: LanguageEngine
    window_: int
    reverse_: bool

    def __init__(
        self,
        arch: str = "lstm",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        window: int = WINDOW,
        reverse: bool = False,
        vectors: VectorSource | None = None,
        tune_vectors: bool = True,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            arch,
            options,
            text=text,
            vocabulary=vocabulary,
            window=window,
            reverse=reverse,
            vectors=vectors,
            tune_vectors=tune_vectors,
            training=training,
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
        if not isinstance(self.reverse, bool):
            raise ConfigError(f"reverse must be True or False, got {self.reverse!r}")
        if self.vectors is not None and self.architecture.is_counted:
            raise ConfigError(
                f"vectors belong to networks, got them with arch={self.arch!r}; leave vectors out"
            )
        place = None if out is None else Path(out)
        asked = {**(self.vocabulary or {}), "text": self.text or {}}
        request = FitRequest(
            architecture=self.architecture,
            build_config=self.build_config,
            build_training=self.build_training,
            training=self.training,
            window=self.window,
            prepare=from_dict(PrepareConfig, asked),
            asked=asked,
            train=train,
            valid=valid,
            place=place,
            resume=resume,
            callbacks=callbacks,
            reverse=self.reverse,
            vectors=self.vectors,
            tune_vectors=self.tune_vectors,
        )
        fitted = engine_class(self.architecture).fit(request)
        # Only now, so that a run that failed leaves the estimator as it was.
        self.vocabulary_, self.pipeline_ = fitted.vocabulary, fitted.pipeline
        self.engine_, self.model_ = fitted.engine, fitted.engine.model
        self.metrics_, self.provenance_ = fitted.metrics, fitted.provenance
        self.arch_, self.window_, self.reverse_ = self.arch, self.window, self.reverse
        if place is not None and fitted.writes:
            reopen(place)
            self.save(place)
        fitted.wait()
        return self

    # -- use -------------------------------------------------------------------------------------

    def evaluate(self, data: TextSource, *, words: Unit | None = None) -> dict[str, float]:
        r"""Measure the model on a text, every token of it predicted.

        A network reads the text as one stream; a counted model reads each sentence on its own.
        With $L$ the loss in nats summed over all tokens, of which the end of each sentence is one:

        $$PP = e^{L / \text{tokens}}, \quad PP_w = e^{L / \text{words}}, \quad
        BPC = \frac{L}{\ln 2 \cdot \text{characters}}$$

        Words and characters are counted on the text as it was given, with one more of each for
        the end of every sentence, so that models with different units compare.

        A masked model sees both sides of what it predicts; the same of it is `pseudo_perplexity`
        (see `seqloom.tasks.masked_objective`), which does not compare with a perplexity.

        Args:
            data: A file, "NAME:SPLIT" of a named data set, a prepared directory, or texts.
            words: The unit that `word_perplexity` is a word of; by default the model's own if it
                is "word" or "space", else "word".

        Returns:
            `perplexity`, `loss` (nats a token), `tokens`, and `unknown`, the share of tokens
            that are unknown words; of a text that is not prepared, `word_perplexity` and
            `bits_per_character` too. Of a masked model, `pseudo_perplexity` in place of the three;
            of one of two directions, these of the forward one, and `backward_perplexity`.
        """
        self.require_fitted()
        return evaluated(self.engine_, self.reader, data, words)

    def to(self, device: str) -> Self:
        """Move the network to a device, "cpu" or "cuda"; it reads from there.

        Raises:
            ConfigError: If the model is counted, and there is no network.
        """
        self.require_fitted()
        if not hasattr(self.model_, "to"):
            raise ConfigError(f"architecture {self.arch_!r} has no network to move to {device!r}")
        self.model_.to(device)
        return self

    @property
    def reader(self) -> TextReader:
        """How text becomes ids."""
        return TextReader(self.pipeline_, self.vocabulary_, self.reverse_)

    @overload
    def score(self, texts: str) -> TextScore: ...
    @overload
    def score(self, texts: list[str]) -> list[TextScore]: ...
    def score(self, texts: str | list[str]) -> TextScore | list[TextScore]:
        """Return the log-probability of each word of a text, or of each of several texts.

        Each text is scored on its own, as if a sentence had just ended before it. A word the model
        does not know is scored as the unknown word, also where a text has no other.
        """
        self.require_fitted()
        if isinstance(texts, str):
            return scored(self.engine_, self.reader, [texts])[0]
        pieces = (texts[begin : begin + 64] for begin in range(0, len(texts), 64))
        return [each for piece in pieces for each in scored(self.engine_, self.reader, piece)]

    def perplexity(self, text: str) -> float:
        """Return the perplexity of one text on its own, a word, its end counted as one."""
        return self.score(text).perplexity

    def next(self, prompt: str = "", k: int | None = None) -> list[tuple[str, float]]:
        """Return the words that may come after a prompt with their probabilities, likeliest first.

        With `reverse`, the words that may come before it. Words of probability 0 are left out.

        Args:
            prompt: The beginning of a sentence; empty for its first word. Of a prompt longer than
                the model remembers (an n-gram, the window of a network), the last words count.
            k: How many words; all if not given.
        """
        self.require_fitted()
        if k is not None:
            check_count("k", k)
        logs = next_log_probs(self.engine_, self.reader.encode(prompt), self.reader.end)
        best = np.argsort(-logs, kind="stable")[:k]
        best = best[logs[best] > -np.inf]
        return list(zip(self.vocabulary_.decode(best), np.exp(logs[best]).tolist(), strict=True))

    def generate(
        self,
        prompt: str = "",
        *,
        max_words: int = 50,
        min_words: int = 0,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        beam: int | None = None,
        length_penalty: float = 0.0,
        no_repeat: int = 0,
        seed: int = 0,
    ) -> str:
        """Go on from a prompt until a sentence ends; the prompt is part of what is returned.

        With `reverse` the prompt is the end of the sentence, and what comes before it is written.
        `seqloom.decoding` has the equations.

        Args:
            prompt: The beginning; empty for a new sentence.
            max_words: How many words to add at most.
            min_words: How many words to add at least.
            temperature: Below 1 for likelier words, 0 for the likeliest each time.
            top_k: Choose among the k likeliest words only; 0 for all.
            top_p: Choose among the likeliest words that together have this probability.
            beam: Search for the likeliest text instead, this many texts kept alive.
            length_penalty: Of the search: above 0 favours longer texts.
            no_repeat: The length of runs of words that may occur only once, prompt included; 0 for
                no such rule.
            seed: Of chance.
        """
        self.require_fitted()
        writing = Writing(
            max_words=max_words,
            min_words=min_words,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            beam=beam,
            length_penalty=length_penalty,
            no_repeat=no_repeat,
            seed=seed,
        )
        known = self.reader.words(prompt)
        specials = self.vocabulary_.specials
        drawn = write(
            self.engine_,
            self.vocabulary_.encode(known),
            writing,
            end=self.reader.end,
            forbidden={self.vocabulary_[word] for word in specials.names() if word != specials.eos},
        )
        words = [*known, *self.vocabulary_.decode(drawn)]
        return self.pipeline_.detokenize(words[::-1] if self.reverse_ else words)

    def fill(
        self, text: str, k: int = 5, *, right: LanguageModel | None = None, candidates: int = 200
    ) -> list[Filling]:
        """Return the k likeliest words for the blank `___` of a text; see `seqloom.tasks.filling`.

        Args:
            text: A sentence with one blank, which stands for one word.
            k: How many words.
            right: A model of the same words that was fitted with `reverse=True`.
            candidates: How many words are tried in the whole sentence.
        """
        self.require_fitted()
        return fill(self, text, k, right=right, candidates=candidates)

    def rescore(
        self,
        lists: Sequence[Sequence[tuple[str, float]]],
        *,
        weight: float = 1.0,
        length_bonus: float = 0.0,
    ) -> list[list[Rescored]]:
        """Reorder n-best lists, best first; see `seqloom.tasks.rescoring`.

        Args:
            lists: Of each input the candidates: a text and its score by another model (acoustic,
                translation), a natural logarithm, the higher the better.
            weight: Of this model's log-probability.
            length_bonus: Added for each word.
        """
        self.require_fitted()
        return rescore(self, lists, weight=weight, length_bonus=length_bonus)

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the likeliest next word of each line."""
        for line in lines:
            ((word, chance),) = self.next(line, k=1)
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
            architecture=self.arch_,
            config=self.engine_.config(),
            settings={
                "text": to_dict(self.pipeline_.config),
                "window": self.window_,
                "reverse": self.reverse_,
            },
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        files: dict[str, Any] = {VOCABULARY: self.vocabulary_.to_dict(), **self.engine_.files()}
        if self.pipeline_.subword is not None:
            files[SUBWORD] = self.pipeline_.subword.to_bytes()
        numbers = sum(math.prod(shape) for shape in self.shapes().values())
        weights = self.engine_.weights()
        with saved_parts(self.engine_) as models:
            return write_model(directory, header, weights, files, models, numbers=numbers)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the model a directory describes."""
        header = stored.header
        text = from_dict(TextConfig, header.settings["text"])
        model = cls(
            header.architecture,
            text=text,
            window=header.settings["window"],
            reverse=header.settings.get("reverse", False),
        )
        model.window_, model.reverse_ = model.window, model.reverse
        subword = SubwordTokenizer.load(stored.place / SUBWORD) if text.unit == "subword" else None
        model.pipeline_ = TextPipeline(text, subword=subword)
        model.vocabulary_ = Vocabulary.load(stored.place / VOCABULARY)
        model.engine_ = engine_class(model.architecture).restore(
            model.architecture, model._take_over(stored), model.vocabulary_, stored
        )
        model.model_ = model.engine_.model
        return model
