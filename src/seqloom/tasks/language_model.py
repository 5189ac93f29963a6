"""Language models: fit one to text, score and generate with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.architectures import load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.data.prepared import PrepareConfig, PreparedData
from seqloom.data.windows import Windows
from seqloom.decoding import sample
from seqloom.errors import ConfigError, DataError, SeqloomError
from seqloom.metrics import perplexity
from seqloom.tasks.corpus import (
    TextSource,
    already_prepared,
    prepared_text,
    text_examples,
    working_folder,
)
from seqloom.tasks.directory import (
    TRAINING,
    ModelHeader,
    StoredModel,
    discard_unbegun,
    prepare_place,
    provenance,
    reopen,
    write_model,
)
from seqloom.tasks.estimator import Estimator
from seqloom.tasks.language_objective import LanguageModelObjective, stream_loss
from seqloom.tasks.notebook import html_words
from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline, Vocabulary

if TYPE_CHECKING:
    from seqloom.training import StepReport, TrainConfig, TrainResult

EVALUATION_WINDOW = 256
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

    A text is read as one stream of sentences, each closed by the end-of-sentence word; the model
    carries its state from one to the next.

    Args:
        arch: "nnlm", "rnn" or "lstm".
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` and `max_size` of the vocabulary.
        window: Tokens a step of truncated back-propagation through time.
        training: Settings of the loop; `batch.batch_size` is the number of parallel lanes.
        options: Settings of the architecture, such as `hidden_size`.

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

    def __init__(
        self,
        arch: str = "lstm",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        window: int = 35,
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
            valid: What decides which weights are best, and when to stop.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        from seqloom.training.runtime import Runtime

        training = self.build_training()
        self._check_settings(training, valid)
        runtime = Runtime(training.device, training.precision)
        place = None if out is None else Path(out)
        if place is not None and runtime.is_main:
            prepare_place(place, resume=resume)
        runtime.wait()
        try:
            with working_folder(place and place / TRAINING, is_main=runtime.is_main) as folder:
                with runtime.main_first():
                    data, checked = self._prepare(train, valid, folder)
                model, result = self._train(
                    data, checked, training, place, resume=resume, callbacks=callbacks
                )
        except SeqloomError:
            if place is not None and runtime.is_main:
                discard_unbegun(place)
            raise
        # Only now, so that a run that failed leaves the estimator as it was.
        self.vocabulary_, self.pipeline_ = data.vocabularies["words"], data.pipeline
        self.model_ = model.cpu()
        self._remember(result, train, valid, training)
        if place is not None and runtime.is_main:
            reopen(place)
            self.save(place)
        runtime.wait()
        return self

    def _check_settings(self, training: TrainConfig, valid: TextSource | None) -> None:
        """Refuse what can be refused before any text is read."""
        self.build_config(vocab_size=1)
        if not isinstance(self.window, int) or self.window < 1:
            raise ConfigError(f"window must be a whole number of at least 1, got {self.window!r}")
        if training.needs_validation and valid is None:
            raise ConfigError(
                "training.patience and schedule 'plateau' need validation data, got valid=None"
            )

    def _train(
        self,
        data: PreparedData,
        valid: PreparedData | None,
        training: TrainConfig,
        place: Path | None,
        *,
        resume: bool,
        callbacks: Sequence[Callable[[StepReport], object]],
    ) -> tuple[nn.Module, TrainResult]:
        from seqloom.training import train

        vocabulary = data.vocabularies["words"]
        config = self.build_config(vocab_size=len(vocabulary))
        facts = {
            "model": to_dict(config),
            "window": self.window,
            "vocabulary": vocabulary.hash,
            "train_tokens": len(data.data.sequences["ids"].flat),
            "valid_tokens": None if valid is None else len(valid.data.sequences["ids"].flat),
        }
        with torch.random.fork_rng():
            torch.manual_seed(training.seed)
            model = load_model_class(self.architecture)(config)
            objective = LanguageModelObjective(
                model, data, valid, lanes=training.batch.batch_size, window=self.window
            )
            result = train(
                model,
                objective,
                training,
                place and place / TRAINING,
                resume=resume,
                facts=facts,
                callbacks=callbacks,
            )
        return model, result

    def _prepare(
        self, train: TextSource, valid: TextSource | None, folder: Path
    ) -> tuple[PreparedData, PreparedData | None]:
        settings = {**(self.vocabulary or {}), "text": self.text or {}}
        config = from_dict(PrepareConfig, settings)
        data = prepared_text(train, folder / "train", config)
        checked = None if valid is None else prepared_text(valid, folder / "valid", like=data)
        return data, checked

    def _remember(self, result: TrainResult, train: Any, valid: Any, training: TrainConfig) -> None:
        self.metrics_ = {f"valid_{name}": value for name, value in result.metrics.items()}
        self.provenance_ = provenance(
            train=_origin(train),
            valid=None if valid is None else _origin(valid),
            training=to_dict(training),
            updates=result.steps,
            epochs=result.epochs,
            seconds=round(result.seconds, 1),
        )

    # -- use -------------------------------------------------------------------------------------

    def evaluate(self, data: TextSource) -> dict[str, float]:
        """Return the perplexity of a text, every token of it scored, read as one stream.

        Returns:
            `perplexity`, `loss` (nats a token), `tokens`, and `unknown`, the share of tokens
            that are unknown words.
        """
        self.require_fitted()
        ids = self._stream(data)
        loss, items = self._loss_of(ids)
        unk = self.vocabulary_[self.vocabulary_.specials.unk]
        return {
            "perplexity": perplexity(loss, items),
            "loss": loss / items,
            "tokens": float(items),
            "unknown": float((ids == unk).mean()),
        }

    def _stream(self, data: TextSource) -> np.ndarray[Any, np.dtype[np.int32]]:
        prepared = already_prepared(data, self.vocabulary_)
        if prepared is not None:
            return prepared.data.sequences["ids"].flat
        end = self.vocabulary_.specials.eos
        encoded = [
            self.vocabulary_.encode([*self.pipeline_.words(example.text), end])
            for example in text_examples(data)
        ]
        if not encoded:
            raise DataError("there must be a text to evaluate, got none")
        return np.concatenate(encoded)

    def _loss_of(self, ids: Any) -> tuple[float, int]:
        windows = Windows(
            ids, batch_size=1, window=EVALUATION_WINDOW, before=self._end, keep_rest=True
        )
        return stream_loss(self.model_, windows)

    @property
    def _end(self) -> int:
        return self.vocabulary_[self.vocabulary_.specials.eos]

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

    @torch.no_grad()
    def _score(self, texts: Sequence[str]) -> list[TextScore]:
        specials = self.vocabulary_.specials
        words = [[*self.pipeline_.words(text), specials.eos] for text in texts]
        ids = [torch.from_numpy(self.vocabulary_.encode(each)).long() for each in words]
        lengths = torch.tensor([len(each) for each in ids])
        targets = nn.utils.rnn.pad_sequence(ids, batch_first=True)  # (B, T)
        first = targets.new_full((len(texts), 1), self._end)
        inputs = torch.cat([first, targets[:, :-1]], dim=1)
        logits = self.model_(inputs, lengths).logits
        log_probs = logits.log_softmax(dim=-1).gather(2, targets[:, :, None])[:, :, 0]
        unk = self.vocabulary_[specials.unk]
        return [
            TextScore(text, tuple(w), tuple(row[: len(w)].tolist()), tuple((i == unk).tolist()))
            for text, w, row, i in zip(texts, words, log_probs, ids, strict=True)
        ]

    @torch.no_grad()
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
        last, state = self._end, self.model_.initial_state(1)
        for id_ in self.vocabulary_.encode(known).tolist():
            _, state = self._step(torch.tensor([last]), state)
            last = id_
        specials = self.vocabulary_.specials
        never = {self.vocabulary_[word] for word in specials.names() if word != specials.eos}
        drawn = sample(
            self._step,
            state,
            last,
            max_length=max_words,
            temperature=temperature,
            top_k=top_k,
            stop=self._end,
            forbidden=never,
            generator=torch.Generator().manual_seed(seed),
        )
        return self.pipeline_.detokenize([*known, *self.vocabulary_.decode(drawn)])

    @torch.no_grad()
    def next_words(self, prompt: str = "", k: int = 5) -> list[tuple[str, float]]:
        """Return the k likeliest next words after a prompt, with their probabilities."""
        self.require_fitted()
        last, state = self._end, self.model_.initial_state(1)
        for id_ in self.vocabulary_.encode(self.pipeline_.words(prompt)).tolist():
            _, state = self._step(torch.tensor([last]), state)
            last = id_
        log_probs, _ = self._step(torch.tensor([last]), state)
        best = log_probs[0].topk(min(k, len(self.vocabulary_)))
        words = self.vocabulary_.decode(best.indices.numpy())
        return list(zip(words, best.values.exp().tolist(), strict=True))

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the likeliest next word of each line."""
        for line in lines:
            ((word, chance),) = self.next_words(line, k=1)
            yield {"next": word, "probability": chance, "text": line}

    def _step(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        output = self.model_(ids[:, None], None, state)
        return output.logits[:, -1].log_softmax(dim=-1), output.state

    # -- saving ----------------------------------------------------------------------------------

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        header = ModelHeader(
            task=self.task,
            architecture=self.arch,
            config=to_dict(self.model_.config),
            settings={"text": to_dict(self.pipeline_.config), "window": self.window},
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        files: dict[str, Any] = {VOCABULARY: self.vocabulary_.to_dict()}
        if self.pipeline_.subword is not None:
            files[SUBWORD] = self.pipeline_.subword.to_bytes()
        return write_model(directory, header, self.model_.state_dict(), files)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the model a directory describes."""
        header = stored.header
        text = from_dict(TextConfig, header.settings["text"])
        model = cls(header.architecture, text=text, window=header.settings["window"])
        subword = SubwordTokenizer.load(stored.place / SUBWORD) if text.unit == "subword" else None
        model.pipeline_ = TextPipeline(text, subword=subword)
        model.vocabulary_ = Vocabulary.load(stored.place / VOCABULARY)
        if header.config["vocab_size"] != len(model.vocabulary_):
            raise DataError(
                f"must hold {header.config['vocab_size']} words, got {len(model.vocabulary_)}",
                stored.place / VOCABULARY,
            )
        model._restore(stored)
        return model


def _origin(source: Any) -> str:
    return str(source) if isinstance(source, (str, PathLike)) else "given in Python"
