"""What is asked of a loaded model before anybody else asks it."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from seqloom.errors import SeqloomError


def describe(model: Any) -> dict[str, Any]:
    """What a client may want to know of a loaded model, besides what its header says."""
    labels = None
    if model.task in ("classify", "relate"):
        labels = [str(label) for label in model.classes_]
    elif model.task == "tag":
        labels = [str(name) for name in model.tags_.names]
    sizes = model.shapes().values()
    return {
        "parameters": sum(math.prod(shape) for shape in sizes),
        "reverse": bool(getattr(model, "reverse", False)),
        "explains": _explains(model),
        "labels": labels,
    }


def reads_text(model: Any) -> bool:
    """Whether a model takes text; some were fitted to vectors."""
    if model.task == "tag":
        return model.reader_ is not None
    if model.task == "classify":
        return hasattr(model, "pipeline_")
    return True


PROBES = {"classify": "a b", "relate": "<e1>a</e1> b <e2>c</e2>", "tag": "a b"}
WARM = 8  # texts of a batch to warm up with; a large batch may be computed by other code than one


def warm_up(model: Any) -> None:
    """Ask a model something, alone and as a batch, so that what is compiled on first use is."""
    with suppress(SeqloomError):
        if model.task == "lm":
            model.score("a")
            model.score(_uneven("a"))
            model.next("a", 1)
        elif model.task == "summarize":
            model.summarize("A cat sat. A dog ran. The cat saw the dog.", **_short(model))
        elif model.task == "tag":
            model.tag(PROBES["tag"], probabilities=True, best=2)
            model.tag(_uneven(PROBES["tag"]))
            model.cut_all(["a"])
        elif model.task == "translate":
            model.translate("a", max_length=2)
            model.translate(_uneven("a"), max_length=2)
        elif model.task == "answer":
            model.answer_all([("a b", "a")])
            model.answer_all([(text, "a b") for text in _uneven("a")])
        elif model.task in ("classify", "relate"):
            answer = getattr(model, model.task)
            answer(PROBES[model.task])
            answer(_uneven(PROBES[model.task]))


def _uneven(text: str) -> list[str]:
    """A batch of texts of several lengths."""
    return [" ".join([text, *["a"] * (4 * number)]) for number in range(1, WARM + 1)]


def _short(model: Any) -> dict[str, int]:
    return {"sentences": 1} if model.writer_ is None else {"max_length": 2}


def _explains(model: Any) -> bool:
    """Whether a model can say which words counted: it has an attention over them."""
    if model.task == "summarize":
        return model.writer_ is None
    if model.task not in ("classify", "relate"):
        return model.task in ("translate", "answer")
    with suppress(SeqloomError):
        found = getattr(model, model.task)(PROBES[model.task], explain=True)
        return found.explanation is not None
    return False
