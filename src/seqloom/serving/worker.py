"""A worker process: it loads the models it is told of and answers batches until the app is gone.

`python -m seqloom.serving.worker FD`, where FD is its end of a socket. Interrupts and SIGTERM are
the app's business: a worker ends when its socket does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqloom.errors import DataError, SeqloomError
from seqloom.serving.errors import error_body, told_without_input
from seqloom.serving.framing import Kind, dump, encode, receive_blocking
from seqloom.serving.jobs import Job, all_jobs, describe, reads_text, warm_up
from seqloom.serving.models import ServedModel, check_unchanged

UNUSABLE = "unusable_input"


def load_served(model: ServedModel) -> Any:
    """Load a model as it was when the server started."""
    if model.place is None:
        from seqloom.tasks.summarizer import Summarizer

        return Summarizer(model.architecture)
    from seqloom.tasks.loading import load

    check_unchanged(model)
    loaded = load(model.place)
    if not reads_text(loaded):
        raise DataError("was fitted to vectors; models that read text are served", model.place)
    return loaded


class Worker:
    """Answers batches.

    Args:
        connection: Its end of the socket.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.models: dict[str, Any] = {}
        self.jobs = all_jobs()
        self._unsent = bytearray()

    def run(self) -> int:
        """Load, then answer until the other end is closed."""
        setup = receive_blocking(self.connection)
        if setup is None:
            return 0
        facts = {}
        try:
            for given in json.loads(setup.content):
                model = ServedModel.from_dict(given)
                self.models[model.name] = load_served(model)
                facts[model.name] = describe(self.models[model.name])
                warm_up(self.models[model.name])
        except SeqloomError as error:
            self._send(Kind.FAILED, str(error).encode("utf-8", "replace"))
            return 1
        self._send(Kind.READY, dump(facts))
        while (message := receive_blocking(self.connection)) is not None:
            batch = json.loads(message.content)
            self._answer(batch["job"], batch["model"], batch["payloads"])
            self._send(Kind.END, b"")
        return 0

    def _send(self, kind: Kind, content: bytes, number: int = 0) -> None:
        """Send a message; answers go with the end of their batch."""
        self._unsent += encode(kind, content, number)
        if kind not in (Kind.ANSWER, Kind.ERROR):
            self.connection.sendall(self._unsent)
            self._unsent.clear()

    def _answer(self, name: str, model_name: str | None, payloads: Sequence[Any]) -> None:
        job = self.jobs[name]
        model = None if model_name is None else self.models[model_name]
        given = [self._with_models(job, payload) for payload in payloads]
        if job.many and len(given) > 1:
            with suppress(Exception):  # one of them is to blame; each is asked alone below
                found = job.function(model, given)
                for number, body in enumerate([dump({"model": model_name, **f}) for f in found]):
                    self._send(Kind.ANSWER, body, number)
                return
        for number, (payload, plain) in enumerate(zip(given, payloads, strict=True)):
            try:
                found = self._found(job, model, payload, number)
                self._send(Kind.ANSWER, dump({"model": model_name, **found}), number)
            except SeqloomError as error:
                body = error_body(UNUSABLE, told_without_input(error, plain))
                self._send(Kind.ERROR, b"422" + body, number)
            except OSError:
                raise  # the app is gone
            except Exception as error:
                _log(error)
                body = error_body("internal", "the model failed on this input; the fault is ours")
                self._send(Kind.ERROR, b"500" + body, number)

    def _found(self, job: Job, model: Any, payload: Mapping[str, Any], number: int) -> Any:
        """The answer to one request."""
        if job.stream:
            return job.function(
                model, payload, lambda piece: self._send(Kind.EVENT, dump(piece), number)
            )
        return job.function(model, [payload])[0] if job.many else job.function(model, payload)

    def _with_models(self, job: Job, payload: dict[str, Any]) -> dict[str, Any]:
        """A request with the models it names in place of their names."""
        named = {field: payload[field] for field in job.models if payload[field] is not None}
        return {**payload, **{field: self.models[name] for field, name in named.items()}}


def _log(error: BaseException) -> None:
    """Where an unexpected error came from; its message may hold input and is left out."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"seqloom worker {os.getpid()}: {type(error).__name__} at {where}\n")
        sys.stderr.flush()


def main() -> int:
    """Run a worker on the socket whose number is the argument."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        try:
            return Worker(connection).run()
        except (BrokenPipeError, ConnectionResetError):
            return 0  # the app is gone


if __name__ == "__main__":
    sys.exit(main())
