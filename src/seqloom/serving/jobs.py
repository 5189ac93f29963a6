"""What a worker does with a model: one job a kind of question.

A job knows nothing of HTTP: it takes requests that were checked, as plain values, and gives plain
values. Those of one batch differ in their items alone; what else was asked is the same for all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from typing import Any

from seqloom.errors import DataError

Payload = Mapping[str, Any]
SEARCH = ("beam", "length_penalty", "min_length", "max_length", "no_repeat")


@dataclass(frozen=True)
class Job:
    """A kind of question.

    Args:
        task: The task of the models that answer it; "" if it needs none.
        function: Answers it: `function(model, payload) -> dict`, with `many` a list of payloads to
            a list of dicts, with `stream` a third argument that sends a piece of the answer.
        items: The fields in which requests of one batch may differ.
        many: Whether it answers several at once.
        stream: Whether its answer comes in pieces.
        models: The fields that name a further model; the function gets the model.
    """

    task: str
    function: Callable[..., Any]
    items: tuple[str, ...] = ()
    many: bool = False
    stream: bool = False
    models: tuple[str, ...] = ()


def score(model: Any, payloads: Sequence[Payload]) -> list[dict[str, Any]]:
    """The log-probability of each word of texts."""
    return [
        {
            "words": found.words,
            "log_probs": found.log_probs,
            "unknown": found.unknown,
            "total": found.total,
            "perplexity": found.perplexity,
        }
        for found in model.score([payload["text"] for payload in payloads])
    ]


def next_words(model: Any, payload: Payload) -> dict[str, Any]:
    """The words that may come after a prompt."""
    found = model.next(payload["prompt"], payload["k"])
    return {"words": [{"word": word, "probability": chance} for word, chance in found]}


WRITING = tuple(
    "max_words min_words temperature top_k top_p beam length_penalty no_repeat seed".split()
)


class _Watched:
    """An engine that tells the words as they are chosen.

    The id a step reads is the one that was chosen after the step before it.
    """

    def __init__(self, engine: Any, tell: Callable[[int], None]) -> None:
        self._engine, self._tell, self._begun = engine, tell, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def step(self, ids: Any, state: Any) -> tuple[Any, Any]:
        if self._begun:
            self._tell(int(ids[0]))
        self._begun = True
        found: tuple[Any, Any] = self._engine.step(ids, state)
        return found


def generate(model: Any, payload: Payload) -> dict[str, Any]:
    """Go on from a prompt."""
    return {"text": model.generate(payload["prompt"], **{name: payload[name] for name in WRITING})}


def generate_stream(
    model: Any, payload: Payload, send: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Go on from a prompt, and send each word as it is chosen; a search has none to send."""
    if payload["beam"] is not None:
        return generate(model, payload)
    words = list(model.reader.words(payload["prompt"]))

    def written() -> str:
        text: str = model.pipeline_.detokenize(words[::-1] if model.reverse else words)
        return text

    def tell(chosen: int) -> None:
        word = model.vocabulary_.decode([chosen])[0]
        words.append(word)
        send({"word": word, "text": written()})

    watched = copy.copy(model)
    watched.engine_ = _Watched(model.engine_, tell)
    answer = generate(watched, payload)
    text, shown = answer["text"], written()
    if text != shown:  # the last of `max_words` words is read by no further step
        send({"word": _added(text, shown, in_front=model.reverse), "text": text})
    return answer


def _added(text: str, shown: str, *, in_front: bool) -> str:
    """What a text has behind what was shown of it, or in front."""
    if in_front:
        return _added(text[::-1], shown[::-1], in_front=False)[::-1]
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(text, shown, strict=False))
    return text[len(list(alike)) :].strip()


def fill(model: Any, payload: Payload) -> dict[str, Any]:
    """Words for the blank of a sentence."""
    found = model.fill(payload["text"], payload["k"], right=payload["right"])
    return {"words": [each._asdict() for each in found]}


def classify(model: Any, payloads: Sequence[Payload]) -> list[dict[str, Any]]:
    """The class of texts."""
    texts = [payload["text"] for payload in payloads]
    return [
        {
            "label": None if found.label is None else str(found.label),
            "probability": found.probability,
            "probabilities": _chances(found.probabilities),
            "labels": [str(label) for label in found.labels],
            "explanation": _explanation(found.explanation),
        }
        for found in model.classify(texts, explain=payloads[0]["explain"])
    ]


def relate(model: Any, payloads: Sequence[Payload]) -> list[dict[str, Any]]:
    """The relation of the marked entities of sentences."""
    texts = [payload["text"] for payload in payloads]
    return [
        {
            "label": found.label,
            "relation": found.relation,
            "probability": found.probability,
            "probabilities": _chances(found.probabilities),
            "first": found.first,
            "second": found.second,
            "arguments": found.arguments,
            "explanation": _explanation(found.explanation),
        }
        for found in model.relate(texts, explain=payloads[0]["explain"])
    ]


def _chances(probabilities: Mapping[Any, float]) -> list[dict[str, Any]]:
    return [{"label": str(k), "probability": v} for k, v in probabilities.items()]


def _explanation(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    matrix = None if found.matrix is None else found.matrix.tolist()
    return {"words": found.words, "weights": found.weights, "matrix": matrix}


def tag(model: Any, payloads: Sequence[Payload]) -> list[dict[str, Any]]:
    """The tags of sentences; of a model that finds words, the words too."""
    texts = [payload["text"] for payload in payloads]
    asked = payloads[0]
    found = model.tag(texts, probabilities=asked["probabilities"], best=asked["best"])
    cuts = model.cut_all(texts) if model.segment else [None] * len(texts)
    return [
        {
            "words": one.words,
            "tags": one.tags,
            "spans": [span._asdict() for span in one.spans],
            "probabilities": one.probabilities,
            "alternatives": [{"tags": tags, "log_prob": p} for tags, p in one.alternatives],
            "segments": cut,
        }
        for one, cut in zip(found, cuts, strict=True)
    ]


LENGTHS = ("sentences", "words", "characters", "ratio", "threshold")


def summarize(model: Any, payload: Payload) -> dict[str, Any]:
    """The main sentences of a text, or what a network writes of it."""
    search = {name: payload[name] for name in SEARCH if payload[name] is not None}
    lengths = {name: payload[name] for name in LENGTHS}
    about = {"query": payload["query"], "query_weight": payload["query_weight"]}
    options = {**lengths, **about, "diversity": payload["diversity"], **search}
    found = model.summarize(payload["text"], **options)
    if model.writer_ is not None:
        return {
            "kind": "written",
            "text": found.text,
            "total": None,
            "sentences": [],
            "all": None,
        }
    explain = payload["explain"]
    chosen = {sentence.index for sentence in found}
    everything = None
    if explain:
        whole = model.every_sentence(payload["text"], **about)
        everything = [_sentence(each, chosen, features=True) for each in whole]
    return {
        "kind": "chosen",
        "text": found.text,
        "total": found.total,
        "sentences": [_sentence(each, chosen, features=explain) for each in found],
        "all": everything,
    }


def _sentence(found: Any, chosen: set[int], *, features: bool) -> dict[str, Any]:
    return {
        "text": found.text,
        "start": found.start,
        "end": found.end,
        "index": found.index,
        "score": found.score,
        "features": dict(found.features) if features else None,
        "chosen": found.index in chosen,
    }


def translate(model: Any, payloads: Sequence[Payload]) -> list[dict[str, Any]]:
    """Translations of texts."""
    asked = payloads[0]
    search = {name: asked[name] for name in SEARCH if asked[name] is not None}
    search |= {"n_best": asked["n_best"], "attention": asked["attention"]}
    found = model.translate([payload["text"] for payload in payloads], **search)
    return [
        {
            "text": one.text,
            "words": one.words,
            "source": one.source,
            "score": one.score,
            "log_prob": one.log_prob,
            "ended": one.ended,
            "cut": one.cut,
            "attention": None if one.attention is None else one.attention.tolist(),
            "others": [{"text": other.text, "score": other.score} for other in one.others],
        }
        for one in found
    ]


def answer(model: Any, payloads: Sequence[Payload]) -> list[dict[str, Any]]:
    """Answers to questions, found in passages."""
    asked = [(payload["passage"], payload["question"]) for payload in payloads]
    options = payloads[0]
    found = model.answer_all(asked, top=options["k"], threshold=options["threshold"])
    maps = [model.attention(*each) if options["attention"] else None for each in asked]
    return [
        {
            **_found_answer(best[0]),
            "answers": [_found_answer(each) for each in best],
            "attention": seen
            and {
                "passage": seen.passage,
                "question": seen.question,
                "weights": seen.weights.tolist(),
            },
        }
        for best, seen in zip(found, maps, strict=True)
    ]


def _found_answer(found: Any) -> dict[str, Any]:
    return {
        "answer": found.text,
        "probability": found.probability,
        "start": found.start,
        "end": found.end,
    }


def embed(model: Any, payload: Payload) -> dict[str, Any]:
    """The vectors of words, alone or in the sentence they make, and words that are alike."""
    if payload["context"]:
        (found,) = model.embed_sentences([payload["words"]])
        mixed = found.mix()
        return {"size": mixed.shape[1], "vectors": mixed.tolist(), "nearest": None}
    vectors: list[list[float] | None] = []
    near: list[list[dict[str, Any]] | None] = []
    for word in payload["words"]:
        try:
            vectors.append(model.embed([word])[0].tolist())
            alike = model.nearest(word, payload["nearest"]) if payload["nearest"] else []
            near.append([{"word": other, "similarity": float(cos)} for other, cos in alike])
        except DataError:  # a word without a vector
            vectors.append(None)
            near.append(None)
    nearest = near if payload["nearest"] else None
    return {"size": model.vectors.size, "vectors": vectors, "nearest": nearest}


JOBS: dict[str, Job] = {
    "score": Job("lm", score, ("text",), many=True),
    "next": Job("lm", next_words),
    "generate": Job("lm", generate),
    "generate_stream": Job("lm", generate_stream, stream=True),
    "fill": Job("lm", fill, models=("right",)),
    "classify": Job("classify", classify, ("text",), many=True),
    "relate": Job("relate", relate, ("text",), many=True),
    "tag": Job("tag", tag, ("text",), many=True),
    "summarize": Job("summarize", summarize),
    "translate": Job("translate", translate, ("text",), many=True),
    "answer": Job("answer", answer, ("passage", "question"), many=True),
    "embed": Job("embed", embed),
}
HIDDEN = ("generate_stream",)


def endpoints(task: str) -> list[str]:
    """The names of the endpoints that a model of a task answers."""
    return [name for name, job in JOBS.items() if job.task == task and name not in HIDDEN]


def all_jobs() -> dict[str, Job]:
    """These jobs, and those of the studio if it is there."""
    if find_spec("seqloom.serving.studio_jobs") is None:
        return JOBS
    found: dict[str, Job] = import_module("seqloom.serving.studio_jobs").JOBS
    return {**JOBS, **found}
