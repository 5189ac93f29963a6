"""What every request passes first: who may ask, how much and how slowly."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seqloom.serving.errors import ServingError, error_body
from seqloom.serving.metrics import Metrics
from seqloom.serving.settings import ServeConfig

HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
LINGER = 2.0  # seconds in which the rest of a refused body is let pass, so that its answer is read
OPEN = ("/health", "/ready")


class Guard:
    """Refuses what must not come through, before anything of it is kept.

    Args:
        app: The app.
        config: The settings.
        metrics: Where requests are counted.
        open_paths: What may be read without a token: the pages of the studio.
    """

    def __init__(
        self, app: ASGIApp, config: ServeConfig, metrics: Metrics, open_paths: Collection[str]
    ) -> None:
        self.app, self.config, self.metrics = app, config, metrics
        self._open = {*OPEN, *open_paths}
        self._hosts = {"localhost", "127.0.0.1", "::1", config.host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, await self._receive_body(scope, receive), answer)
        except ServingError as error:
            await self._refuse(error, receive, answer)
        finally:
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.add("seqloom_requests_total", 1, endpoint=path, status=str(status))
            self.metrics.observe(
                "seqloom_request_seconds", time.perf_counter() - began, endpoint=path
            )

    def _check(self, scope: Scope) -> None:
        """Refuse who may not ask, and what is known to be too long."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if self.config.token is not None:
            is_open = scope["method"] in ("GET", "HEAD") and scope["path"] in self._open
            if not is_open:
                self._check_token(headers.get(b"authorization", b""))
        elif host and _name(host) not in self._hosts:
            # A page of another site that had its own name point here.
            raise ServingError(421, "wrong_host", "this server is not known by that name")
        origin = headers.get(b"origin")
        if origin is not None and _place(origin.decode("latin-1")) != host:
            raise ServingError(403, "cross_origin", "pages of other sites may not ask")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.config.max_body:
            raise self._too_large()

    def _check_token(self, given: bytes) -> None:
        assert self.config.token is not None
        scheme, _, token = given.partition(b" ")
        is_right = hmac.compare_digest(token.strip(), self.config.token.encode())
        if scheme.lower() != b"bearer" or not is_right:
            raise ServingError(
                401, "unauthorized", "the header Authorization must be Bearer and the token"
            )

    def _too_large(self) -> ServingError:
        return ServingError(
            413, "too_large", f"a body must have at most {self.config.max_body} bytes"
        )

    async def _receive_body(self, scope: Scope, receive: Receive) -> Receive:
        """Take in the body within its bounds; what is given back hands it out in one piece."""
        if scope["method"] in WITHOUT_BODY:
            return receive
        body = bytearray()
        try:
            async with asyncio.timeout(self.config.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ServingError(400, "cut", "the body ended before its end")
                    body += message.get("body", b"")
                    if len(body) > self.config.max_body:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise ServingError(408, "too_slow", "the body took too long to arrive") from None
        is_told = False

        async def replay() -> Message:
            nonlocal is_told
            if is_told:
                return await receive()
            is_told = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        return replay

    async def _refuse(self, error: ServingError, receive: Receive, send: Send) -> None:
        """Answer, and let the rest of the body pass: who still sends would not read the answer."""
        self.metrics.add("seqloom_refused_total", 1, reason=error.code)
        body = error.body()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if error.status_code == HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": error.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        try:
            async with asyncio.timeout(LINGER):
                while (message := await receive())["type"] == "http.request":
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _place(origin: str) -> str | None:
    """Name and port of an Origin header, None of one that is malformed."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def internal_error() -> bytes:
    """What is told of a fault of ours."""
    return error_body("internal", "the request failed; the fault is ours")
