"""A worker process: it has the models and answers batches until the app is gone.

`python -m seqloom.serving.worker FD`, where FD is its end of a socket, loads the models it is told
of. Then it is a worker itself, or the template that is forked for each worker. Interrupts and
SIGTERM are the app's business: a process ends when its socket does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from seqloom.errors import DataError, SeqloomError
from seqloom.serving.errors import error_body, told_without_input
from seqloom.serving.framing import FORK, Kind, dump, encode, receive_blocking
from seqloom.serving.jobs import Job, all_jobs
from seqloom.serving.models import ServedModel, check_unchanged
from seqloom.serving.readiness import describe, reads_text, warm_up

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
        models: The models by name.
    """

    def __init__(self, connection: socket.socket, models: Mapping[str, Any]) -> None:
        self.connection, self.models = connection, models
        self.jobs = all_jobs()
        self._unsent = bytearray()

    def run(self, told: Mapping[str, Any]) -> None:
        """Say that it is ready, then answer until the other end is closed."""
        self._send(Kind.READY, dump(told))
        while (message := receive_blocking(self.connection)) is not None:
            batch = json.loads(message.content)
            self._answer(batch["job"], batch["model"], batch["payloads"])
            self._send(Kind.END, b"")

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


def load_all(given: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The models, and what clients may know of them, by name."""
    models, facts = {}, {}
    for each in given:
        model = ServedModel.from_dict(each)
        models[model.name] = load_served(model)
        facts[model.name] = describe(models[model.name])
        warm_up(models[model.name])
    return models, facts


def count_threads() -> int:
    """How many threads this process has, those of libraries too."""
    return len(list(Path("/proc/self/task").iterdir()))


def fork_workers(connection: socket.socket, models: Mapping[str, Any], threads: int) -> None:
    """Fork whenever a socket comes; the child is a worker on it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries them
    gc.collect()
    gc.freeze()  # a worker that collects garbage would copy what it shares
    while True:
        asked, sockets, _, _ = socket.recv_fds(connection, len(FORK), 1)
        if not asked:
            return
        try:
            child = os.fork()
        except OSError as error:  # too many processes, or too little memory
            _log(error)
            child = -1
        if child == 0:
            connection.close()
            _work(sockets[0], models, threads)
        os.close(sockets[0])


def _work(number: int, models: Mapping[str, Any], threads: int) -> NoReturn:
    """Be a worker, in a child; what the parent would do at its end is not the child's business."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)
        with socket.socket(fileno=number) as own:
            Worker(own, models).run({"pid": os.getpid()})
        status = 0
    except BaseException as error:
        if not isinstance(error, ConnectionError):  # else the app is gone
            _log(error)
    finally:
        os._exit(status)


def main() -> int:
    """Load the models, then answer or be forked, on the socket whose number is the argument."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as connection, suppress(ConnectionError):
        message = receive_blocking(connection)
        if message is None:
            return 0
        setup = json.loads(message.content)
        try:
            models, facts = load_all(setup["models"])
        except SeqloomError as error:
            connection.sendall(encode(Kind.FAILED, str(error).encode("utf-8", "replace")))
            return 1
        if setup["forks"]:
            told = {"facts": facts, "threads": count_threads()}
            connection.sendall(encode(Kind.READY, dump(told)))
            fork_workers(connection, models, setup["threads"])
        else:
            Worker(connection, models).run({"facts": facts})
    return 0


if __name__ == "__main__":
    sys.exit(main())
