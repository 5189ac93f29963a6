"""Messages between the app and a worker: length, kind, number of the request, content.

The content is JSON. The worker writes an answer as the very bytes the client gets, so the app never
reads them.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import struct
from enum import IntEnum
from typing import Any, NamedTuple

HEAD = struct.Struct(">IBI")
MAX_BYTES = 256 << 20
FORK = b"F"
"""App to template, with the socket of the new worker: fork."""


class Kind(IntEnum):
    """What a message is."""

    SETUP = 0  # app to template or worker: which models
    READY = 1  # back: they are loaded, and what they are
    FAILED = 2  # back: they cannot be loaded, and why
    BATCH = 3  # app to worker: requests
    ANSWER = 4  # worker to app: the answer to one of them
    ERROR = 5  # worker to app: the error of one of them
    EVENT = 6  # worker to app: a piece of an answer that comes in pieces
    END = 7  # worker to app: the batch is done


class Message(NamedTuple):
    """One message."""

    kind: Kind
    number: int
    content: bytes


def encode(kind: Kind, content: bytes, number: int = 0) -> bytes:
    """The bytes of a message."""
    return HEAD.pack(len(content), kind, number) + content


def dump(value: Any) -> bytes:
    """A value as JSON; numbers that JSON lacks (infinities, NaN) are null."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


async def receive(reader: asyncio.StreamReader) -> Message:
    """The next message a worker sent.

    Raises:
        asyncio.IncompleteReadError: If there will be none.
    """
    size, kind, number = HEAD.unpack(await reader.readexactly(HEAD.size))
    return Message(Kind(kind), number, await reader.readexactly(size))


def receive_blocking(connection: socket.socket) -> Message | None:
    """The next message of the app, or None if there will be none."""
    head = _exactly(connection, HEAD.size)
    if head is None:
        return None
    size, kind, number = HEAD.unpack(head)
    if size > MAX_BYTES:
        return None
    content = _exactly(connection, size)
    return None if content is None else Message(Kind(kind), number, content)


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        piece = connection.recv(min(size - len(found), 1 << 20))
        if not piece:
            return None
        found += piece
    return bytes(found)
