"""Bytes of files: plain or compressed, whole or damaged, named or standard input."""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys
import time

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import BackendError, DataError
from seqloom.files import open_bytes

ZSTD = zstandard.ZstdCompressor().compress
PACKS = {"plain": bytes, "gz": gzip.compress, "xz": lzma.compress, "zst": ZSTD}
PACKED = [name for name in PACKS if name != "plain"]


def read(path):
    with open_bytes(path) as stream:
        return stream.read()


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="file"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write_file


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
@given(
    content=st.binary(max_size=300) | st.binary(min_size=50, max_size=99).map(lambda b: b * 5000)
)
def test_bytes_come_back(tmp_path_factory, pack, content):
    path = tmp_path_factory.mktemp("files") / "file"
    path.write_bytes(pack(content))
    if pack is not bytes or content[:2] not in (b"\x1f\x8b", b"\xfd7", b"\x28\xb5"):
        assert read(path) == content


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_the_name_does_not_matter(write, pack):
    for name in ("a", "a.txt", "a.gz", "a.zst", "a.xz"):
        assert read(write(pack(b"text\n"), name)) == b"text\n"


@pytest.mark.parametrize("name", PACKED)
def test_several_frames_are_one_stream(write, name):
    pack = PACKS[name]
    parts = [b"one\n", b"", os.urandom(200_000), b"last"]
    path = write(b"".join(map(pack, parts)))
    assert read(path) == b"".join(parts)


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_lines_and_small_reads(write, pack):
    path = write(pack(b"one\ntwo\n" * 1000))
    with open_bytes(path) as stream:
        assert stream.readline() == b"one\n"
        assert stream.read(2) == b"tw"
        assert sum(1 for _ in stream) == 1999


def test_a_stream_of_unknown_size_in_zstandard(write):
    compressor = zstandard.ZstdCompressor().compressobj()  # writes no size into the frame
    path = write(compressor.compress(b"x" * 10**6) + compressor.flush())
    assert read(path) == b"x" * 10**6


@pytest.mark.parametrize("name", PACKED)
def test_a_file_cut_anywhere_is_damaged(write, name):
    whole = PACKS[name](bytes(range(256)) * 20 + b"end")
    for size in range(6, len(whole), max(1, len(whole) // 40)):
        with pytest.raises(DataError, match="file: the compressed data is damaged or cut off"):
            read(write(whole[:size]))


@pytest.mark.parametrize("name", PACKED)
def test_a_cut_after_a_whole_frame_is_found(write, name):
    whole = PACKS[name](b"one") + PACKS[name](os.urandom(5000))
    with pytest.raises(DataError, match="file: the compressed data is damaged or cut off"):
        read(write(whole[:-20]))


@pytest.mark.parametrize("name", PACKED)
def test_altered_bytes_are_damaged(write, name):
    whole = bytearray(PACKS[name](os.urandom(5000)))
    if name == "zst":
        whole[4:12] = b"\xff" * 8
    else:
        whole[2000] ^= 0xFF
    with pytest.raises(DataError, match="file: the compressed data is damaged or cut off"):
        read(write(bytes(whole)))


@pytest.mark.parametrize("head", [b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"])
def test_a_wrong_promise_of_the_first_bytes_is_damage(write, head):
    with pytest.raises(DataError, match="file: the compressed data is damaged or cut off"):
        read(write(head + b"this is no compressed data at all"))


@pytest.mark.parametrize("content", [b"", b"\x1f", b"\xfd7zXZ", b"\x28\xb5\x2f", b"\x1f\x8a12345"])
def test_the_beginning_of_a_magic_number_alone_is_plain(write, content):
    assert read(write(content)) == content


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: no such file"):
        read(tmp_path / "none.txt")
    with pytest.raises(DataError, match=f"{tmp_path.name}: this is a directory"):
        read(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="inner: cannot be read"):
        read(tmp_path / "file" / "inner")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(write):
    path = write(b"x")
    path.chmod(0)
    with pytest.raises(DataError, match="file: may not be read"):
        read(path)


def test_refused_by_the_system(write, monkeypatch):
    def refuse(self, mode):
        raise PermissionError(13, "Permission denied")

    path = write(b"x")
    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(DataError, match="file: may not be read; check its permissions"):
        read(path)


def test_zstandard_that_is_not_installed(write, monkeypatch):
    path = write(ZSTD(b"x"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(BackendError, match="pip install zstandard"):
        read(path)


def test_the_file_is_closed_after_use(write):
    for pack in PACKS.values():
        with open_bytes(write(pack(b"x"))) as stream:
            pass
        assert stream.closed


# Standard input

COPY = (
    "import sys\n"
    "from seqloom.files import open_bytes\n"
    "with open_bytes('-') as stream:\n"
    "    sys.stdout.buffer.write(stream.read())\n"
)


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_standard_input(pack):
    content = "中文\n".encode() * 5000
    run = subprocess.run(
        [sys.executable, "-c", COPY], input=pack(content), capture_output=True, check=True
    )
    assert run.stdout == content


def test_standard_input_that_comes_byte_by_byte():
    with subprocess.Popen(
        [sys.executable, "-c", COPY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        packed = lzma.compress(b"text")
        time.sleep(0.3)
        for i in range(8):
            process.stdin.write(packed[i : i + 1])
            time.sleep(0.02)
        process.stdin.write(packed[8:])
        process.stdin.close()
        assert process.stdout.read() == b"text"


def test_empty_standard_input():
    run = subprocess.run([sys.executable, "-c", COPY], input=b"", capture_output=True, check=True)
    assert run.stdout == b""
