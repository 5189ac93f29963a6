"""Training a classifier from a table of one's own, with a report after every few updates."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqloom.architectures import find_architecture
from seqloom.errors import DataError, InputError, SeqloomError

MAX_RUNS = 100
CONVEX = ("softmax", "logistic")  # solved to the end, so that epochs mean nothing
_NAME = re.compile(r"[^\w-]+")


def new_place(folder: Path, name: str) -> Path:
    """A directory for a run that is not there yet; `name` is made fit to be a folder's.

    Raises:
        InputError: If there are too many runs already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = {child.name for child in folder.iterdir()}
    if len(taken) >= MAX_RUNS:
        raise InputError(
            f"there may be {MAX_RUNS} runs at most, got one more; remove some from the folder"
        )
    plain = _NAME.sub("-", name).strip("-_")[:40] or "classifier"
    number = next(n for n in range(1, MAX_RUNS + 2) if f"{plain}-{n}" not in taken)
    return folder / f"{plain}-{number}"


def find_run(folder: Path, name: str) -> Path:
    """The directory of a run by its name, which must be one of those there are.

    Raises:
        InputError: If there is none of that name.
    """
    places = {child.name: child for child in folder.iterdir()} if folder.is_dir() else {}
    if name not in places:
        raise InputError("there must be a run of that name, got another; see /studio/runs")
    return places[name]


def train_classifier(
    payload: Mapping[str, Any], send: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Fit a classifier and save it; tell how it goes.

    Args:
        payload: "table" (the text of a CSV or TSV file with a header), "text" and "label" (its
            columns), "architecture", "epochs" (None for the architecture's own) and "place", the
            directory to write, which the server chooses.
        send: Is given {"event": "begin"} with the examples there are, and {"event": "step"} with
            every `StepReport`.

    Returns:
        {"event": "end"} with the metrics of the validation examples and the place; or
        {"event": "refused"} with what must be different, as whoever asks owns the table and may
        see it quoted.
    """
    place = Path(payload["place"])
    try:
        examples = _read(payload, place)
        labels = sorted({example.label for example in examples})
        send({"event": "begin", "examples": len(examples), "labels": labels, "run": place.name})
        model = _classifier(str(payload["architecture"]), payload.get("epochs"))
        model.fit(examples, out=place, callbacks=[_Teller(send)])
    except SeqloomError as error:
        return {"event": "refused", "message": str(error)}
    metrics = dict(model.metrics_)
    return {"event": "end", "run": place.name, "place": str(place), "metrics": metrics}


def _read(payload: Mapping[str, Any], place: Path) -> list[Any]:
    """The examples of a table; an error names the line, not our file."""
    from seqloom.data.fields import read_labeled

    table = str(payload["table"])
    kind = "tsv" if "\t" in table.partition("\n")[0] else "csv"
    source = place.parent / f".{place.name}.{kind}"
    source.write_text(table, encoding="utf-8")
    try:
        text, label = str(payload["text"]), str(payload["label"])
        return list(read_labeled(source, text=text, label=label, format=kind))
    except DataError as error:
        where = f"line {error.line}: " if error.line else ""
        raise InputError(f"{where}{error.message}") from None
    finally:
        source.unlink(missing_ok=True)


def _classifier(arch: str, epochs: int | None) -> Any:
    from seqloom.tasks.classifier import Classifier

    find_architecture("classify", arch)
    training: dict[str, Any] = {} if arch == "perceptron" else {"log_every": 1, "device": "cpu"}
    if epochs is not None and arch not in CONVEX:
        training["epochs"] = epochs
    return Classifier(arch, training=training)


class _Teller:
    """Sends a few reports a second, and all that bring metrics or are the last."""

    EVERY = 0.2

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send, self._last = send, 0.0

    def __call__(self, report: Any) -> None:
        now = time.monotonic()
        if report.metrics or report.share >= 1 or now - self._last >= self.EVERY:
            self._last = now
            self._send({"event": "step", **asdict(report), "metrics": dict(report.metrics)})


def classify_with(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a classifier that was trained here says of a text.

    Args:
        payload: "place", the directory, which the server chooses, and "text".
    """
    from seqloom.tasks.classifier import Classifier

    model = Classifier.load(payload["place"])
    found = model.classify(str(payload["text"]))
    return {
        "label": str(found.label),
        "probability": found.probability,
        "probabilities": [
            {"label": str(label), "probability": share}
            for label, share in found.probabilities.items()
        ],
    }
