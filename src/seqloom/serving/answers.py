"""What is answered: one type a job. They describe what workers send; the app checks none of it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class Answer(BaseModel):
    """What all answers have: the name of the model that gave it."""

    model: str


class ErrorDetail(BaseModel):
    """A code for programs, a message for people."""

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """Every error has this shape and holds nothing of the request."""

    error: ErrorDetail


class ScoreAnswer(Answer):
    """Natural logarithms; null for a probability of 0. The last word is the end of the sentence."""

    words: list[str]
    log_probs: list[float | None]
    unknown: list[bool]
    total: float | None
    perplexity: float | None


class WordChance(BaseModel):
    """A word and its probability."""

    word: str
    probability: float


class NextAnswer(Answer):
    """The likeliest words, the likeliest first."""

    words: list[WordChance]


class GenerateAnswer(Answer):
    """The text, prompt included."""

    text: str


class FilledWord(WordChance):
    """A word for a blank and the text with it."""

    text: str


class FillAnswer(Answer):
    """Words for the blank, the likeliest first."""

    words: list[FilledWord]


class LabelChance(BaseModel):
    """A label and its probability."""

    label: str
    probability: float


class Explanation(BaseModel):
    """How much each word counted, and of self-attention who looked at whom (head, row, column)."""

    words: list[str]
    weights: list[float]
    matrix: list[list[list[float]]] | None


class ClassifyAnswer(Answer):
    """The class of a text."""

    label: str | None
    probability: float | None
    probabilities: list[LabelChance]
    labels: list[str]
    explanation: Explanation | None


class RelateAnswer(Answer):
    """A relation; its arguments stand in its own order."""

    label: str
    relation: str
    probability: float
    probabilities: list[LabelChance]
    first: str
    second: str
    arguments: tuple[str, str]
    explanation: Explanation | None


class Span(BaseModel):
    """What the tags of the words from `start` to before `end` mark."""

    text: str
    type: str
    start: int
    end: int
    offsets: tuple[int, int] | None


class Reading(BaseModel):
    """One reading of a sentence."""

    tags: list[str]
    log_prob: float


class TagAnswer(Answer):
    """A sentence with its tags; of a model that finds words, these as `segments`."""

    words: list[str]
    tags: list[str]
    spans: list[Span]
    probabilities: list[float] | None
    alternatives: list[Reading]
    segments: list[str] | None


class Sentence(BaseModel):
    """A sentence of the text that was summarized."""

    text: str
    start: int
    end: int
    index: int
    score: float | None
    features: dict[str, float | None] | None
    chosen: bool


class SummarizeAnswer(Answer):
    """A summary: sentences of the text, or what a network wrote."""

    kind: Literal["chosen", "written"]
    text: str
    total: int | None
    sentences: list[Sentence]
    all: list[Sentence] | None


class OtherText(BaseModel):
    """A further translation."""

    text: str
    score: float


class TranslateAnswer(Answer):
    """A translation; `attention` has a row a word and a column an item of `source`."""

    text: str
    words: list[str]
    source: list[str]
    score: float
    log_prob: float
    ended: bool
    cut: bool
    attention: list[list[float]] | None
    others: list[OtherText]


class FoundAnswer(BaseModel):
    """An answer: `passage[start:end]`; "" if there is none."""

    answer: str
    probability: float
    start: int
    end: int


class AttentionMap(BaseModel):
    """Which words of the question each word of the passage looked at; a row a word of it."""

    passage: list[str]
    question: list[str]
    weights: list[list[float]]


class AnswerAnswer(Answer, FoundAnswer):
    """The best answer, and the best of all."""

    answers: list[FoundAnswer]
    attention: AttentionMap | None


class NearWord(BaseModel):
    """A word and its cosine with another."""

    word: str
    similarity: float


class EmbedAnswer(Answer):
    """A vector a word, null for a word that has none; its neighbors if they were asked for."""

    size: int
    vectors: list[list[float] | None]
    nearest: list[list[NearWord] | None] | None


class ModelFacts(BaseModel):
    """A model that is served."""

    name: str
    task: str
    architecture: str
    endpoints: list[str]
    default_for: list[str]
    parameters: int | None
    metrics: dict[str, float | str | int | bool | None]
    reverse: bool
    explains: bool
    labels: list[str] | None


class ModelsAnswer(BaseModel):
    """The models that are served."""

    models: list[ModelFacts]


class StatusAnswer(BaseModel):
    """Whether it lives, or is ready."""

    status: str
    workers: int
