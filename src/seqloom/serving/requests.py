"""What may be asked: one type a job, checked as it arrives.

Types are strict, unknown fields are refused, and every field has a bound, so that no request can
ask for unbounded work. No field names a file or an address: `model` is one of the names served.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _whole(value: Any) -> Any:
    """To JSON, 5.0 is a whole number too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
LongText = Annotated[str, Field(min_length=1, max_length=100_000)]
Prompt = Annotated[str, Field(max_length=20_000, description="The beginning of a sentence.")]
ModelName = Annotated[
    str | None,
    Field(max_length=100, description="A name that /v1/models lists; the first for the task."),
]
Count = Annotated[Whole, Field(ge=1, le=10_000)]
Share = Annotated[Number, Field(ge=0, le=1)]
Penalty = Annotated[Number, Field(ge=-10, le=10)]


class Ask(BaseModel):
    """What all requests have."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    model: ModelName = None


class ScoreRequest(Ask):
    """How probable is each word of this text?"""

    text: Text


class NextRequest(Ask):
    """Which words may come next?"""

    prompt: Prompt = ""
    k: Annotated[Whole, Field(ge=1, le=1000, description="How many words.")] = 10


class GenerateRequest(Ask):
    """Go on from a prompt until the sentence ends."""

    prompt: Prompt = ""
    max_words: Annotated[Whole, Field(ge=1, le=500)] = 50
    min_words: Annotated[Whole, Field(ge=0, le=500)] = 0
    temperature: Annotated[
        Number, Field(ge=0, le=100, description="0 for the likeliest word each time.")
    ] = 1.0
    top_k: Annotated[Whole, Field(ge=0, le=100_000)] = 0
    top_p: Annotated[Number, Field(gt=0, le=1)] = 1.0
    beam: Annotated[Whole, Field(ge=1, le=16)] | None = None
    length_penalty: Penalty = 0.0
    no_repeat: Annotated[Whole, Field(ge=0, le=100)] = 0
    seed: Annotated[Whole, Field(ge=0, le=(1 << 53) - 1)] = 0
    stream: Annotated[bool, Field(description="Whether words come as server-sent events.")] = False


class FillRequest(Ask):
    """Which words fit into the blank of a sentence?"""

    text: Annotated[
        str, Field(min_length=3, max_length=1000, description="It holds one blank, written ___.")
    ]
    k: Annotated[Whole, Field(ge=1, le=100)] = 5
    right: Annotated[
        str | None,
        Field(max_length=100, description="The name of a model that reads from right to left."),
    ] = None


class ClassifyRequest(Ask):
    """Which class has this text?"""

    text: Text
    explain: Annotated[bool, Field(description="Whether to say which words counted.")] = False


class RelateRequest(Ask):
    """How do the two marked entities of a sentence stand to each other?"""

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=20_000,
            description="The entities stand between <e1> and </e1>, <e2> and </e2>.",
        ),
    ]
    explain: bool = False


class TagRequest(Ask):
    """Which tag has each word of this sentence?"""

    text: Text
    probabilities: bool = False
    best: Annotated[Whole, Field(ge=1, le=20, description="How many readings to give.")] = 1


class SearchRequest(Ask):
    """How a network searches for a text."""

    beam: Annotated[Whole, Field(ge=1, le=16)] | None = None
    length_penalty: Penalty | None = None
    min_length: Annotated[Whole, Field(ge=0, le=512)] | None = None
    max_length: Annotated[Whole, Field(ge=1, le=512)] | None = None
    no_repeat: Annotated[Whole, Field(ge=0, le=100)] | None = None


class SummarizeRequest(SearchRequest):
    """What are the main sentences of this text? A model that writes takes the search's fields."""

    text: LongText
    sentences: Count | None = None
    words: Count | None = None
    characters: Annotated[Whole, Field(ge=1, le=100_000)] | None = None
    ratio: Annotated[Number, Field(gt=0, le=1)] | None = None
    threshold: Annotated[Number, Field(ge=0, le=1000)] | None = None
    diversity: Share = 0.0
    query: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    query_weight: Share = 0.5
    explain: Annotated[
        bool, Field(description="Whether to give every sentence with its score and features.")
    ] = False


class TranslateRequest(SearchRequest):
    """What is this text in the other language?"""

    text: Annotated[str, Field(min_length=1, max_length=5000)]
    n_best: Annotated[Whole, Field(ge=1, le=16)] = 1
    attention: Annotated[bool, Field(description="Whether to say where each word looked.")] = False


class AnswerRequest(Ask):
    """Where in this passage is the answer to the question?"""

    passage: LongText
    question: Annotated[str, Field(min_length=1, max_length=1000)]
    k: Annotated[Whole, Field(ge=1, le=20, description="How many answers.")] = 3
    threshold: Annotated[
        Share, Field(description='A less probable answer is not given; it is "" then.')
    ] = 0.0
    attention: Annotated[
        bool, Field(description="Whether to say which words of the question each word looked at.")
    ] = False


class EmbedRequest(Ask):
    """Which vectors have these words?"""

    words: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(min_length=1, max_length=256),
    ]
    context: Annotated[
        bool,
        Field(
            description="Whether the words are a sentence and each is read in it: the mean of the "
            "layers of a model of words in context, without `nearest`."
        ),
    ] = False
    nearest: Annotated[
        Whole, Field(ge=0, le=100, description="How many words of most alike vectors to give too.")
    ] = 0
