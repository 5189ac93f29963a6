"""The one shape of errors over HTTP: `{"error": {"code": ..., "message": ...}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.exceptions import HTTPException

from seqloom.errors import SeqloomError

_GOT = re.compile(r",? got .*", re.DOTALL)
SHORTEST = 4  # a shorter string of the input may well be a word of ours


class ServingError(HTTPException):
    """An answer that is an error.

    Args:
        status: The status of HTTP.
        code: What a program looks at.
        message: What a person reads; never anything of the request.
        retry_after: Seconds after which another try makes sense, if it does.
    """

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None
    ) -> None:
        headers = None if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(status, message, headers)
        self.code, self.message = code, message

    def body(self) -> bytes:
        """The JSON that is answered."""
        return error_body(self.code, self.message)


def error_body(code: str, message: str) -> bytes:
    """The JSON of an error."""
    return json.dumps({"error": {"code": code, "message": message}}).encode()


def told_without_input(error: SeqloomError, payload: Mapping[str, Any]) -> str:
    """What is wrong, without the value that was found.

    Our messages are `<what must hold>, got <value>; <what to do>`: the first part is told, unless
    it holds a string of the request too.
    """
    message = _GOT.sub("", str(error)).strip()
    if not message or any(text in message for text in _strings(payload) if len(text) >= SHORTEST):
        return "the model cannot use this input"
    return message


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
        yield from value.split()
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one)
