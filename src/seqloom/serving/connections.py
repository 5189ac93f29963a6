"""Connections with bounds: how many, how long a request's head may take, how long a stall."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from seqloom.serving.errors import error_body

READ_BYTES = 8192
"""How much is read of a connection at a time. Chunks of one byte cost some microseconds each, and
while they are parsed nobody else is served."""
LINGER = 1.0  # seconds in which the rest of what is refused is let pass


def bounded_protocol(max_connections: int, seconds: float) -> type[H11Protocol]:
    """Uvicorn's protocol with bounds.

    Args:
        max_connections: How many may be open; a further one is told so and closed.
        seconds: How long the head of a request may take to arrive, and how long a client may leave
            its answer unread, before its connection is closed.
    """

    class BoundedProtocol(H11Protocol):
        """A connection."""

        _is_refused = False
        _head: asyncio.TimerHandle | None = None
        _stall: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if hasattr(transport, "max_size"):  # asyncio's own; others keep theirs
                transport.max_size = READ_BYTES
            if len(self.connections) > max_connections:
                self._refuse(_plain_answer(503, "overloaded", "too many connections are open"))
                return
            self._head = self.loop.call_later(seconds, self._abort)

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_head()
            self._cancel_stall()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._is_refused or self.transport.is_closing():
                return
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._cancel_head()
            elif self._head is None and (before is None or before.response_complete):
                self._head = self.loop.call_later(seconds, self._abort)

        def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (uvicorn's words)
            """Answer what is no HTTP in our own shape."""
            self._refuse(_plain_answer(400, "bad_request", "this is no HTTP request"))

        def _refuse(self, answer: bytes) -> None:
            """Answer and close, but let pass for a while what the client still sends.

            A connection that is closed with bytes unread is reset, and its answer is lost.
            """
            self._is_refused = True
            self.connections.discard(self)
            if self.cycle is not None and not self.cycle.response_complete:
                self.cycle.disconnected = True  # nothing more may be written
                self.cycle.message_event.set()
            self._cancel_head()
            self._head = self.loop.call_later(LINGER, self._abort)
            self.transport.write(answer)
            self.transport.write_eof()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._cancel_stall()
            self._stall = self.loop.call_later(seconds, self._abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._cancel_stall()

        def _abort(self) -> None:
            self.transport.abort()

        def _cancel_head(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

        def _cancel_stall(self) -> None:
            if self._stall is not None:
                self._stall.cancel()
                self._stall = None

    return BoundedProtocol


def _plain_answer(status: int, code: str, message: str) -> bytes:
    body = error_body(code, message)
    phrase = HTTPStatus(status).phrase
    retry = "retry-after: 1\r\n" if status == 503 else ""
    head = (
        f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\n{retry}"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
