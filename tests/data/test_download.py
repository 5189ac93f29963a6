"""Downloads against a server on this machine that cuts, redirects, lies and goes away."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from seqloom.data.datasets.download import (
    Expected,
    Patience,
    _Redirects,
    content_digest,
    download,
)
from seqloom.errors import DataError, DownloadError

BODY = os.urandom(300_000)
SHA = hashlib.sha256(BODY).hexdigest()
WHOLE = Expected(sha256=SHA, size=len(BODY), max_bytes=len(BODY))
HASTE = Patience(timeout=2, retries=3, backoff=0.01)


class Server(ThreadingHTTPServer):
    """What it does with a path is in `behaviour`; what it was asked is in `asked`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None, str | None]] = []
        self.cuts = 0  # how many more times /cut breaks off
        self.body = BODY

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        asked, body = self.headers.get("Range"), self.server.body
        self.server.asked.append((self.path, asked, self.headers.get("If-Range")))
        assert len(self.server.asked) < 50
        name = self.path.removeprefix("/")
        if name.startswith("to-"):
            target = name.removeprefix("to-").replace("-", "/")
            host = "localhost" if target == "other" else "127.0.0.1"
            target = {"other": self.server.url("/file", host), "ftp": "ftp://x/y"}.get(
                target, self.server.url("/" + target)
            )
            return self.answer(302, b"", Location=target)
        if name.isdecimal():
            return self.answer(int(name), b"no")
        if name == "busy" and len(self.server.asked) < 3:
            return self.answer(503, b"later")
        if name == "html":
            return self.answer(200, b"<html>buy this domain</html>")
        if name == "slow":
            threading.Event().wait(1.0)
            return None
        start = 0
        found = re.fullmatch(r"bytes=(\d+)-", asked or "")
        if found and name != "norange":
            start = int(found[1])
            changed = self.headers.get("If-Range") not in (None, '"v1"')
            if start >= len(body):
                return self.answer(416, b"", **{"Content-Range": f"bytes */{len(body)}"})
            start = 0 if changed else start
        extra = {"ETag": '"v1"'}
        if start:
            extra["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        if name == "endless":
            return self.answer(200, body * 2, length=None)
        if name in ("cut", "norange") and self.server.cuts:
            self.server.cuts -= 1
            stop = start + 100_000
            return self.answer(206 if start else 200, body[start:stop], len(body) - start, **extra)
        return self.answer(206 if start else 200, body[start:], **extra)

    def answer(self, code: int, body: bytes, length: int | None = -1, **headers: str) -> None:
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(len(body) if length == -1 else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def fetch(server: Server, target: Path, *paths: str, expected: Expected = WHOLE, **options) -> Path:
    addresses = [path if "://" in path else server.url(path) for path in paths]
    return download(addresses, target, expected, patience=HASTE, **options)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_whole(server, tmp_path):
    seen = []
    target = tmp_path / "new" / "f"
    assert fetch(server, target, "/file", progress=lambda *now: seen.append(now)) == target
    assert target.read_bytes() == BODY
    assert names(target.parent) == ["f"]
    assert seen[-1] == (len(BODY), len(BODY))
    assert seen == sorted(seen)


def test_a_file_already_there_is_not_fetched(server, tmp_path):
    (tmp_path / "f").write_bytes(BODY)
    fetch(server, tmp_path / "f", "/file")
    assert server.asked == []


def test_a_wrong_file_already_there_is_replaced(server, tmp_path):
    (tmp_path / "f").write_bytes(b"something else")
    assert fetch(server, tmp_path / "f", "/file").read_bytes() == BODY


def test_a_cut_is_resumed_where_it_broke(server, tmp_path):
    server.cuts = 2
    assert fetch(server, tmp_path / "f", "/cut").read_bytes() == BODY
    assert server.asked == [
        ("/cut", None, None),
        ("/cut", "bytes=100000-", '"v1"'),
        ("/cut", "bytes=200000-", '"v1"'),
    ]
    assert names(tmp_path) == ["f"]


def test_the_part_of_an_earlier_process_is_resumed(server, tmp_path):
    server.cuts = 99
    with pytest.raises(DownloadError, match=r"failed 1 times .the connection was cut"):
        download(
            [server.url("/cut")], tmp_path / "f", WHOLE, patience=Patience(timeout=2, retries=0)
        )
    assert names(tmp_path) == ["f.part"]
    server.asked.clear()
    assert fetch(server, tmp_path / "f", "/file").read_bytes() == BODY
    assert server.asked == [("/file", "bytes=100000-", None)]
    assert names(tmp_path) == ["f"]


def test_a_server_that_ignores_the_range_starts_anew(server, tmp_path):
    server.cuts = 1
    assert fetch(server, tmp_path / "f", "/norange").read_bytes() == BODY
    assert [asked[1] for asked in server.asked] == [None, "bytes=100000-"]


def test_a_part_of_another_version_is_dropped(server, tmp_path):
    (tmp_path / "f.part").write_bytes(b"an older version of the file")
    assert fetch(server, tmp_path / "f", "/file").read_bytes() == BODY
    assert [asked[1] for asked in server.asked] == ["bytes=28-", None]


def test_a_part_that_is_whole_needs_no_byte(server, tmp_path):
    (tmp_path / "f.part").write_bytes(BODY)
    assert fetch(server, tmp_path / "f", "/file").read_bytes() == BODY
    assert len(server.asked) == 1


def test_a_part_longer_than_the_file_is_dropped(server, tmp_path):
    (tmp_path / "f.part").write_bytes(BODY + b"more")
    wide = Expected(sha256=SHA, size=len(BODY), max_bytes=2 * len(BODY))
    assert fetch(server, tmp_path / "f", "/file", expected=wide).read_bytes() == BODY


def test_a_busy_server_is_asked_again(server, tmp_path):
    assert fetch(server, tmp_path / "f", "/busy").read_bytes() == BODY
    assert len(server.asked) == 3


def test_a_wrong_checksum_states_both_and_leaves_nothing(server, tmp_path):
    wrong = Expected(sha256="0" * 64, size=len(BODY), max_bytes=len(BODY))
    with pytest.raises(DownloadError, match=f"expected sha256 0{{64}}.*got {SHA}"):
        fetch(server, tmp_path / "f", "/file", expected=wrong)
    assert names(tmp_path) == []


def test_a_page_instead_of_the_file_is_noticed(server, tmp_path):
    with pytest.raises(DownloadError, match=r"gave another file.*\(28 bytes\)"):
        fetch(server, tmp_path / "f", "/html")
    assert names(tmp_path) == []


@pytest.mark.parametrize("code", [404, 410])
def test_a_dead_address_is_one_clear_line(server, tmp_path, code):
    with pytest.raises(DownloadError) as caught:
        fetch(server, tmp_path / "f", f"/{code}")
    line = str(caught.value)
    assert f"{server.url(f'/{code}')} is dead (HTTP {code}" in line
    assert f"put it at {tmp_path / 'f'}" in line
    assert "\n" not in line
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_the_next_address_is_tried(server, tmp_path):
    assert fetch(server, tmp_path / "f", "/404", "/html", "/file").read_bytes() == BODY


def test_all_addresses_are_named_when_none_has_it(server, tmp_path):
    with pytest.raises(DownloadError, match=r"/404 is dead .*/403 does not give the file"):
        fetch(server, tmp_path / "f", "/404", "/403")


def test_a_redirect_on_the_same_host_is_followed(server, tmp_path):
    assert fetch(server, tmp_path / "f", "/to-file").read_bytes() == BODY


def test_a_redirect_to_another_host_is_refused(server, tmp_path):
    with pytest.raises(DownloadError, match=r"redirects to another host \(localhost\); refused"):
        fetch(server, tmp_path / "f", "/to-other")
    assert names(tmp_path) == []


def test_a_redirect_to_a_listed_host_is_followed(server, tmp_path):
    assert fetch(server, tmp_path / "f", "/to-other", hosts=["localhost"]).read_bytes() == BODY


def test_a_redirect_to_another_scheme_is_refused(server, tmp_path):
    with pytest.raises(DownloadError, match="redirects from http to ftp; refused"):
        fetch(server, tmp_path / "f", "/to-ftp")


def test_a_redirect_from_https_to_http_is_refused():
    asked = urllib.request.Request("https://example.org/f")
    with pytest.raises(DownloadError, match="redirects from https to http; refused"):
        _Redirects(asked.full_url, {"example.org"}).redirect_request(
            asked, io.BytesIO(), 302, "Found", Message(), "http://example.org/f"
        )


@pytest.mark.parametrize("address", ["ftp://x/f", "file:///etc/passwd", "data:,hello"])
def test_only_http_is_fetched(server, tmp_path, address):
    with pytest.raises(DownloadError, match="neither http nor https"):
        download([address], tmp_path / "f", WHOLE)
    assert names(tmp_path) == []


@pytest.mark.parametrize("path", ["/file", "/endless"], ids=["announced", "unannounced"])
def test_a_body_that_is_too_large_is_stopped(server, tmp_path, path):
    small = Expected(sha256=SHA, size=1000, max_bytes=100_000)
    with pytest.raises(DownloadError, match="more than the 100,000 bytes it may"):
        fetch(server, tmp_path / "f", path, expected=small)
    assert names(tmp_path) == []


def test_a_refused_connection_is_named(server, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/f"
    with pytest.raises(DownloadError, match=rf"{port}/f failed 4 times \(Connection refused\)"):
        fetch(server, tmp_path / "f", address)
    assert fetch(server, tmp_path / "f", address, "/file").read_bytes() == BODY


def test_an_unknown_host_is_named_at_once(tmp_path, monkeypatch):
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(DownloadError, match=r"nowhere.invalid/f cannot be reached .no host of"):
        download(["http://nowhere.invalid/f"], tmp_path / "f", WHOLE)


def test_a_silent_server_times_out(server, tmp_path):
    with pytest.raises(DownloadError, match="timed out"):
        download(
            [server.url("/slow")], tmp_path / "f", WHOLE, patience=Patience(timeout=0.1, retries=0)
        )


def test_no_address_says_where_to_put_the_file(tmp_path):
    with pytest.raises(DownloadError, match=f"no known address; put it by hand at {tmp_path}"):
        download([], tmp_path / "f", WHOLE)


def test_a_compressed_file_is_checked_by_its_content(server, tmp_path):
    text = b"a line\n" * 1000
    server.body = gzip.compress(text)
    expected = Expected(sha256=hashlib.sha256(text).hexdigest(), size=len(text), max_bytes=10_000)
    target = fetch(server, tmp_path / "f.gz", "/file", expected=expected)
    assert content_digest(target) == (expected.sha256, len(text))


def test_a_damaged_compressed_file_is_refused(server, tmp_path):
    server.body = gzip.compress(b"a line\n" * 1000)[:-9]
    with pytest.raises(DownloadError, match="gave a damaged file"):
        fetch(server, tmp_path / "f.gz", "/file")
    assert names(tmp_path) == []


def test_a_folder_that_may_not_be_written_is_named(server, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DownloadError, match="file/f cannot be written"):
        fetch(server, tmp_path / "file" / "f", "/file")


def test_the_digest_of_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        content_digest(tmp_path / "absent")


def test_several_at_once_do_not_disturb_each_other(server, tmp_path):
    server.cuts = 2
    script = (
        "import sys; from pathlib import Path\n"
        "from seqloom.data.datasets.download import *\n"
        "size = int(sys.argv[4])\n"
        "want = Expected(sha256=sys.argv[3], size=size, max_bytes=size)\n"
        "download([sys.argv[1]], Path(sys.argv[2]), want, patience=Patience(backoff=0.05))\n"
    )
    command = [sys.executable, "-c", script, server.url("/cut"), str(tmp_path / "f"), SHA]
    runs = [subprocess.Popen([*command, str(len(BODY))]) for _ in range(3)]
    assert [run.wait(timeout=60) for run in runs] == [0, 0, 0]
    assert (tmp_path / "f").read_bytes() == BODY
    assert names(tmp_path) == ["f"]
    assert len(server.asked) == 3  # one fetched it, resuming twice; the others waited
