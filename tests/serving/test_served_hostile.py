"""Hostile input: bounded time and memory, an error in our shape, and nothing of the input in it."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
from served import PATIENCE, Server, head

from seqloom.serving.guard import Guard
from seqloom.serving.metrics import Metrics
from seqloom.serving.settings import ServeConfig

SECRET = "xyzzyplugh"
SCORE = "/v1/score"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "invalid"),
        (b"{", 400, "bad_json"),
        (f'{{"text": "{SECRET}'.encode(), 400, "bad_json"),
        (b'{"text": "\xff\xfe xyzzyplugh"}', 400, "bad_json"),
        (b'{"text": "xyzzyplugh \\ud800"}', 400, "bad_json"),
        (b'{"text": "xyzzyplugh", "k": NaN}', 400, "bad_json"),
        (b'{"text": 1e999}', 422, "invalid"),
        (b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "bad_json"),
        (json.dumps([SECRET]).encode(), 422, "invalid"),
        (json.dumps({SECRET: 1, "text": "a"}).encode(), 422, "invalid"),
        (json.dumps({"text": [SECRET]}).encode(), 422, "invalid"),
        (json.dumps({"text": "a", "model": SECRET}).encode(), 404, "unknown_model"),
        (json.dumps({"text": "a", "model": "../../" + SECRET}).encode(), 404, "unknown_model"),
        (json.dumps({"text": "a", "model": "/etc/passwd"}).encode(), 404, "unknown_model"),
        (json.dumps({"text": "a", "model": f"http://{SECRET}/"}).encode(), 404, "unknown_model"),
        (json.dumps({"text": SECRET * 2001}).encode(), 422, "invalid"),
        (json.dumps({"text": f"{SECRET} " * 1_000_000}).encode(), 413, "too_large"),
    ],
    ids=str,
)
def test_bad_bodies_are_refused_without_being_repeated(
    server: Server, body: bytes, status: int, code: str
):
    reply = server.ask(SCORE, body=body)
    assert (reply.status, reply.code) == (status, code)
    assert SECRET.encode() not in reply.body
    assert b"passwd" not in reply.body


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/v1/fill", {"text": f"{SECRET} without a blank"}),
        ("/v1/fill", {"text": f"{SECRET} ___ and ___"}),
        ("/v1/relate", {"text": f"{SECRET} without marks"}),
        ("/v1/summarize", {"text": "A cat sat. A dog ran.", "query": SECRET}),
        ("/v1/summarize", {"text": "   "}),
        ("/v1/summarize", {"text": "A cat.", "words": 5, "characters": 5}),
        ("/v1/summarize", {"text": "A cat.", "beam": 3}),
        ("/v1/translate", {"text": "  "}),
        ("/v1/answer", {"passage": SECRET, "question": " "}),
        ("/v1/generate", {"prompt": SECRET, "beam": 2, "temperature": 0.5}),
        ("/v1/generate", {"prompt": SECRET, "max_words": 1, "min_words": 2}),
        ("/v1/classify", {"text": SECRET, "model": "kinds", "explain": 1}),
    ],
)
def test_what_a_model_cannot_use_is_told_without_being_repeated(server, path, value):
    reply = server.ask(path, value)
    assert reply.status == 422
    assert reply.code in ("unusable_input", "invalid")
    assert SECRET.encode() not in reply.body
    assert len(reply.value["error"]["message"]) > 10


def test_a_model_says_what_must_hold(server: Server):
    message = server.ask("/v1/fill", {"text": f"no {SECRET}"}).value["error"]["message"]
    assert message == "a text to fill must hold one blank, written ___"


@pytest.mark.parametrize(
    "text", ["\x00", "\x00\x01\x02", " ", "\u202e", "\ufeff", "🦊" * 500, "\n"]
)
@pytest.mark.parametrize("name", ["score", "classify", "tag"])
def test_odd_texts_are_answered(server: Server, name: str, text: str):
    assert server.ask(f"/v1/{name}", {"text": text}).status in (200, 422)


def test_a_body_of_100_mb_is_refused_in_bounded_memory(server: Server):
    before = server.memory()
    reply = server.ask(SCORE, body=b" " * 100_000_000)
    assert (reply.status, reply.code) == (413, "too_large")
    assert server.memory() - before < 20 << 20


def test_a_body_of_unknown_length_is_cut_off_as_soon_as_it_is_too_long(server: Server):
    before = server.memory()
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    reply = server.raw(head(SCORE, "Transfer-Encoding: chunked"), *[chunk] * 160)
    assert reply.startswith(b"HTTP/1.1 413 ")
    assert server.memory() - before < 20 << 20


def test_chunks_of_one_byte_are_one_body(server: Server):
    body = b'{"text": "the cat"}'
    chunks = [b"1\r\n" + bytes([byte]) + b"\r\n" for byte in body]
    lines = "Transfer-Encoding: chunked", "Connection: close"
    reply = server.raw(head(SCORE, *lines), *chunks, b"0\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200 ") and b'"log_probs"' in reply


def test_a_body_that_does_not_come_is_waited_for_a_while_only(server: Server):
    """The server of the tests waits a second; without an end of its own this would never return."""
    reply = server.raw(head(SCORE, "Content-Length: 20"), b'{"text": ')
    assert reply.startswith(b"HTTP/1.1 408 ") and b'"too_slow"' in reply


def test_a_head_that_does_not_come_has_its_connection_closed(server: Server):
    assert server.raw(b"POST /v1/score HTTP/1.1\r\nHost: lo") == b""
    assert server.raw() == b""


def test_a_client_that_goes_away_in_its_body_harms_nobody(server: Server):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
            connection.sendall(head(SCORE, "Content-Length: 1000") + b'{"text": "')
    assert server.ask(SCORE, {"text": "the cat"}).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ],
    ids=["bytes", "length", "path"],
)
def test_what_is_no_http_is_told_so_in_our_shape(server: Server, sent: bytes):
    reply = server.raw(sent)
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"


def test_a_chunk_that_is_none_is_told_so(server: Server):
    reply = server.raw(head(SCORE, "Transfer-Encoding: chunked"), b"zz\r\nxyzzyplugh\r\n")
    assert reply.startswith(b"HTTP/1.1 400 ") and reply.count(b"HTTP/1.1") == 1
    assert SECRET.encode() not in reply


@pytest.mark.parametrize(
    "path",
    [
        "/../app.py",
        "/..%2fapp.py",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/css/../../app.py",
        "/js/..%5c..%5capp.py",
        "/index.html%00.py",
        "/v1/../../app.py",
        "/proc/self/environ",
    ],
)
def test_no_path_leads_to_another_file(server: Server, path: str):
    reply = server.ask(path)
    assert (reply.status, reply.code) == (404, "not_found")


def test_other_sites_and_other_names_may_not_ask(server: Server):
    asked = {"text": "a"}
    evil = server.ask(SCORE, asked, headers={"Origin": "http://evil.example"})
    assert (evil.status, evil.code) == (403, "cross_origin")
    for malformed in ("http://[::1", "http://[evil]", "null", "http://]"):
        reply = server.ask(SCORE, asked, headers={"Origin": malformed})
        assert (reply.status, reply.code) == (403, "cross_origin"), malformed
    named = server.ask(SCORE, asked, headers={"Host": "evil.example"})
    assert (named.status, named.code) == (421, "wrong_host")
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    assert server.ask(SCORE, asked, headers=own).status == 200
    plain = server.ask(SCORE, asked, headers={"content-type": "text/plain"})
    assert (plain.status, plain.code) == (415, "not_json")


def test_every_answer_bears_the_policy_of_its_pages(server: Server):
    for reply in (server.ask("/health"), server.ask(SCORE, {"text": 1}), server.ask("/nowhere")):
        assert reply.headers["content-security-policy"].startswith("default-src 'self';")
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in server.ask("/health").headers


def test_a_wrong_method_is_told_which_is_right(server: Server):
    reply = server.ask(SCORE)
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert reply.code == "method_not_allowed"


async def through_guard(path: str, header: bytes | None) -> int:
    """The status a guard with the token abc-123 lets a GET request have."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    guard = Guard(app, ServeConfig(host="0.0.0.0", token="abc-123"), Metrics(), {"/"})
    headers = [(b"host", b"anything")] + ([] if header is None else [(b"authorization", header)])
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers}
    await guard(scope, receive, send)
    if sent[0]["status"] == 401:
        assert (b"www-authenticate", b"Bearer") in sent[0]["headers"]
    return sent[0]["status"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        (b"", 401),
        (b"Bearer", 401),
        (b"Bearer abc-12", 401),
        (b"Bearer abc-1234", 401),
        (b"Basic abc-123", 401),
        (b"Bearer \xff\xfe", 401),
        (b"Bearer abc-123", 200),
        (b"bearer abc-123", 200),
    ],
)
def test_a_token_is_asked_for_but_on_pages_and_of_probes(header: bytes | None, status: int):
    for path in ("/v1/models", "/metrics", "/openapi.json", "/studio/runs", "/nowhere"):
        assert asyncio.run(through_guard(path, header)) == status
    for path in ("/health", "/ready", "/"):
        assert asyncio.run(through_guard(path, header)) == 200
