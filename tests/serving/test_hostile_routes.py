"""Hostile input on every route of the OpenAPI document, the studio's too."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from served import PATIENCE, Server, head

SECRET = "xyzzyplugh"
DEEP = b"[" * 100_000 + b"]" * 100_000
WHOLE = json.dumps(SECRET).encode()
# What stands in place of every text, or of the whole body; none of it may be answered with 200.
TEXTS: dict[str, tuple[bytes, set[int]]] = {
    "not UTF-8": (b'"xyzzyplugh \xff\xfe"', {400}),
    "a surrogate as bytes": (b'"xyzzyplugh \xed\xa0\x80"', {400}),
    "half a pair": (b'"xyzzyplugh \\ud800"', {400}),
    "the other half": (b'"xyzzyplugh \\udc00 x"', {400}),
    "NaN": (b"NaN", {400}),
    "infinity": (b"-Infinity", {400}),
    "too large a number": (b"1e999", {422}),
    "deep": (DEEP, {400}),
    "a million tokens": (json.dumps("a " * 1_000_000).encode(), {413}),
    "an open string": (b'"xyzzyplugh', {400}),
}
BODIES: dict[str, tuple[bytes, set[int]]] = {
    "empty": (b"", {422}),
    "a string": (WHOLE, {422}),
    "deep": (DEEP, {400}),
    "cut": (b'{"text": "xyzzyplugh"', {400}),
    "unknown field": (json.dumps({SECRET: SECRET}).encode(), {422}),
    "bytes": (bytes(range(256)), {400}),
}


@pytest.fixture(scope="module")
def fields(server: Server) -> dict[str, dict[str, Any]]:
    """The fields of the body of every route that takes one."""
    document = server.ask("/openapi.json").value
    found = {}
    for path, item in document["paths"].items():
        if "post" in item:
            body = item["post"]["requestBody"]["content"]["application/json"]["schema"]
            name = body["$ref"].rpartition("/")[2]
            found[path] = document["components"]["schemas"][name]["properties"]
    assert len(found) >= 15
    assert {"/v1/answer", "/v1/generate", "/studio/steps", "/studio/train"} <= set(found)
    return found


def text_fields(fields: dict[str, Any]) -> list[str]:
    """The names of the fields that hold text or words."""
    return [name for name, kind in fields.items() if kind.get("type") in ("string", "array")]


def refused(server: Server, path: str, body: bytes, statuses: set[int], what: str) -> None:
    reply = server.ask(path, body=body)
    assert reply.status in statuses, (path, what, reply.status, reply.body[:200])
    assert reply.code
    assert SECRET.encode() not in reply.body, (path, what)


@pytest.mark.parametrize("what", BODIES)
def test_no_route_takes_what_is_no_request(server: Server, fields: dict[str, Any], what: str):
    body, statuses = BODIES[what]
    for path in fields:
        # Some routes take an empty object, none takes an empty body.
        refused(server, path, body, statuses, what)


@pytest.mark.parametrize("what", TEXTS)
def test_no_field_of_a_route_takes_what_is_no_text(
    server: Server, fields: dict[str, Any], what: str
):
    value, statuses = TEXTS[what]
    for path, known in fields.items():
        for name in text_fields(known):
            body = b'{"' + name.encode() + b'": ' + value + b"}"
            refused(server, path, body, statuses, f"{name}: {what}")


def test_every_route_waits_for_a_body_a_while_only(server: Server, fields: dict[str, Any]):
    """All at once; the server of the tests waits a second."""
    with ExitStack() as stack:
        half = {}
        for path in fields:
            address = ("127.0.0.1", server.port)
            half[path] = stack.enter_context(socket.create_connection(address, timeout=PATIENCE))
            half[path].sendall(head(path, "Content-Length: 100") + b'{"text": "xyzzyplugh')
        assert server.ask("/v1/score", {"text": "the cat"}).status == 200  # others are served
        for path, connection in half.items():
            reply = b"".join(pieces(connection))
            assert reply.startswith(b"HTTP/1.1 408 "), path
            assert SECRET.encode() not in reply


def test_every_route_reads_chunks_of_one_byte(server: Server, fields: dict[str, Any]):
    chunks = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in WHOLE) + b"0\r\n\r\n"
    for path in fields:
        lines = "Transfer-Encoding: chunked", "Connection: close"
        reply = server.raw(head(path, *lines), chunks)
        assert reply.startswith(b"HTTP/1.1 422 "), path
        assert SECRET.encode() not in reply


def pieces(connection: socket.socket) -> Iterator[bytes]:
    while piece := connection.recv(1 << 16):
        yield piece


def test_who_does_not_read_the_answers_is_let_go(server: Server):
    """They are asked for until the server can send no more; after its second it closes."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.settimeout(0.1)
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
        until = time.monotonic() + PATIENCE
        with pytest.raises(ConnectionError):
            while time.monotonic() < until:
                try:
                    connection.send(asked)
                except TimeoutError:
                    continue
    assert server.ask("/health").status == 200


@pytest.mark.parametrize("name", ["path", "query", "header", "method"])
def test_nothing_of_the_rest_of_a_request_comes_back(server: Server, name: str):
    path = {"path": f"/v1/{SECRET}", "query": f"/v1/score?{SECRET}={SECRET}"}.get(name, "/v1/score")
    headers = {SECRET: SECRET, "content-type": SECRET} if name == "header" else {}
    method = SECRET.upper() if name == "method" else "POST"
    reply = server.ask(path, body=WHOLE, headers=headers, method=method)
    assert reply.status in {404, 405, 415, 422}
    assert SECRET not in (reply.body.decode() + json.dumps(reply.headers)).lower()
