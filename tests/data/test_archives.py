"""Archives: good ones unpack, hostile and damaged ones leave nothing behind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from seqloom.data.datasets.archives import Limits, extract, iter_members
from seqloom.errors import DataError

CONTENT = {"set/train.txt": b"one\ntwo\n", "set/sub/dev.txt": "三\n".encode()}


def tar_bytes(members: dict[str, bytes] | list[tarfile.TarInfo]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        if isinstance(members, list):
            for info in members:
                archive.addfile(info)
        else:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_file(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def special(kind: bytes, name: str = "x", target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def refuse(archive: Path, match: str, limits: Limits | None = None) -> None:
    """The archive is refused in words, and nothing is left of the attempt."""
    folder = archive.parent / "out" / "unpacked"
    with pytest.raises(DataError, match=match) as caught:
        extract(archive, folder, limits)
    assert str(archive) in str(caught.value)
    assert list(folder.parent.iterdir()) == []


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress],
    ids=["plain", "gzip", "bzip2", "xz", "zstandard"],
)
def test_a_good_tar_unpacks(tmp_path, pack):
    archive = tmp_path / "a.archive"
    archive.write_bytes(pack(tar_bytes(CONTENT)))
    files = extract(archive, tmp_path / "out")
    assert files == [tmp_path / "out" / name for name in CONTENT]
    assert [file.read_bytes() for file in files] == list(CONTENT.values())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.archive", "out"]


def test_a_good_zip_unpacks(tmp_path):
    files = extract(zip_file(tmp_path / "a.zip", CONTENT), tmp_path / "new" / "out")
    assert {str(f.relative_to(tmp_path / "new" / "out")): f.read_bytes() for f in files} == CONTENT


def test_members_stream_in_order(tmp_path):
    archive = zip_file(tmp_path / "a.zip", CONTENT)
    assert {member.name: member.read() for member in iter_members(archive)} == CONTENT


def test_members_may_be_passed_over(tmp_path):
    (tmp_path / "a.tar").write_bytes(tar_bytes(CONTENT))
    assert [member.name for member in iter_members(tmp_path / "a.tar")] == list(CONTENT)


def test_an_existing_folder_is_not_touched(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="out: already exists"):
        extract(zip_file(tmp_path / "a.zip", CONTENT), tmp_path / "out")


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/evil", "C:evil", "C:/evil", "a\\..\\evil"]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_path_that_leads_out_is_refused(tmp_path, kind, name):
    members = {"fine.txt": b"1", name: b"2"}
    archive = tmp_path / f"a.{kind}"
    if kind == "zip":
        zip_file(archive, members)
    else:
        archive.write_bytes(tar_bytes(members))
    refuse(archive, "must lie below the folder")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
    (tmp_path / "a.tar").write_bytes(tar_bytes([special(kind)]))
    refuse(tmp_path / "a.tar", "'x' is a link or a device")


def test_a_link_in_a_zip_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("x")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    refuse(tmp_path / "a.zip", "'x' is a link or a device")


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.zst"])
def test_a_bomb_is_stopped_while_it_unfolds(tmp_path, kind):
    zeros = {"zeros": bytes(40 << 20)}
    archive = tmp_path / f"a.{kind}"
    if kind == "zip":
        zip_file(archive, zeros)
    elif kind == "tar.gz":
        archive.write_bytes(gzip.compress(tar_bytes(zeros)))
    else:
        archive.write_bytes(zstandard.ZstdCompressor().compress(tar_bytes(zeros)))
    refuse(archive, "200 times its size; refused as a bomb")


def test_a_zip_header_that_lies_about_the_size_does_not_help(tmp_path):
    archive = zip_file(tmp_path / "a.zip", {"zeros": bytes(1 << 20)})
    data = archive.read_bytes()
    archive.write_bytes(data.replace((1 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    refuse(archive, "damaged")


def test_total_size_and_number_of_members_are_limited(tmp_path):
    archive = zip_file(tmp_path / "a.zip", {str(i): os.urandom(1000) for i in range(5)})
    refuse(archive, "more than 4,500 bytes", Limits(bytes=4500))
    refuse(archive, "more than 4 members", Limits(members=4))
    assert len(extract(archive, tmp_path / "fine", Limits(bytes=5000, members=5))) == 5


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.xz", "tar.bz2", "tar.zst"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_a_cut_archive_is_damaged(tmp_path, kind, part):
    members = {str(i): os.urandom(5000) for i in range(10)}
    archive = tmp_path / f"a.{kind}"
    if kind == "zip":
        zip_file(archive, members)
    else:
        pack = {
            "tar": bytes,
            "tar.gz": gzip.compress,
            "tar.xz": lzma.compress,
            "tar.bz2": bz2.compress,
            "tar.zst": zstandard.ZstdCompressor().compress,
        }[kind]
        archive.write_bytes(pack(tar_bytes(members)[: -8 * 512]))
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * part)])
    refuse(archive, "damaged")


def test_a_tar_cut_between_two_members_is_damaged(tmp_path):
    (tmp_path / "a.tar").write_bytes(tar_bytes({"a": b"x" * 512, "b": b"y"})[:1024])
    refuse(tmp_path / "a.tar", "end mark is missing")


def test_a_tar_with_one_bad_header_is_damaged(tmp_path):
    data = bytearray(tar_bytes({"a": b"x" * 512, "b": b"y"}))
    data[1024 + 5] ^= 0xFF
    (tmp_path / "a.tar").write_bytes(data)
    refuse(tmp_path / "a.tar", "end mark is missing")


def test_a_changed_byte_in_a_zip_is_damaged(tmp_path):
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        out.writestr("a", b"hello world")
    archive.write_bytes(archive.read_bytes().replace(b"hello", b"jello"))
    refuse(archive, "damaged .*CRC")


def test_an_encrypted_zip_is_refused(tmp_path):
    archive = zip_file(tmp_path / "a.zip", {"a": b"x"})
    data = bytearray(archive.read_bytes())
    data[6] |= 1  # the flag in the local header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    archive.write_bytes(data)
    refuse(archive, "'a' is encrypted")


def test_the_same_name_twice_is_refused(tmp_path):
    info = tarfile.TarInfo("a")
    (tmp_path / "a.tar").write_bytes(tar_bytes([info, info]))
    refuse(tmp_path / "a.tar", "'a' twice")


@pytest.mark.parametrize("content", [b"", b"this is no archive\n" * 100])
def test_something_else_is_no_archive(tmp_path, content):
    (tmp_path / "a.zip").write_bytes(content)
    refuse(tmp_path / "a.zip", "not an archive, or is damaged")


def test_a_missing_archive_is_named(tmp_path):
    with pytest.raises(DataError, match=r"absent\.zip: no such archive"):
        list(iter_members(tmp_path / "absent.zip"))
