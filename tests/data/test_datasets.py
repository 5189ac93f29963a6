"""The catalogue, where files are found, and how they are fetched."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import re
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zstandard

from seqloom.data.datasets import (
    DataFile,
    Dataset,
    Split,
    catalog,
    data_folder,
    dataset_file,
    dataset_names,
    dataset_path,
    find_dataset,
    get_dataset,
    open_dataset,
    verify,
)
from seqloom.data.datasets.download import Patience
from seqloom.data.datasets.reading import READERS
from seqloom.data.examples import Text
from seqloom.errors import ConfigError, DataError, DownloadError
from seqloom.files import cache_folder

HASTE = Patience(timeout=2, retries=0, backoff=0.01)
TEXT = b"one line\nand another\n"
MORE = "第三行\n".encode()


def data_file(name: str, content: bytes, *addresses: str, member: str = "") -> DataFile:
    return DataFile(name, len(content), hashlib.sha256(content).hexdigest(), addresses, member)


def dataset(*files: DataFile, splits: tuple[Split, ...] = ()) -> Dataset:
    return Dataset(
        name="toy",
        title="A toy",
        task="language-model",
        languages=("en",),
        license="public domain",
        redistributable=True,
        citation="none",
        source="example.org/toy",
        notes="",
        hosts=(),
        files=files,
        splits=splits,
    )


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def toy(monkeypatch):
    """Put one data set, made of these files, in the place of the catalogue."""

    def use(*files: DataFile, splits: tuple[Split, ...] = ()) -> Dataset:
        made = dataset(*files, splits=splits)
        monkeypatch.setattr(catalog, "_catalog", lambda: {"toy": made})
        return made

    return use


@pytest.fixture
def site(tmp_path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address it is served at."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def place(name: str, content: bytes, root: Path | None = None) -> Path:
    path = (root or data_folder()) / "toy" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


class TestCatalog:
    @pytest.mark.parametrize("name", dataset_names())
    def test_entries_are_complete(self, name):
        entry = find_dataset(name)
        assert entry.name == name
        for words in (entry.title, entry.task, entry.license, entry.citation, entry.source):
            assert words.strip() == words != ""
        assert "\n" not in entry.title
        names = [file.name for file in entry.files]
        assert len(set(names)) == len(names) > 0
        for file in entry.files:
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert file.size > 0
            assert not file.name.endswith((".xz", ".gz", ".zst"))
            for address in file.addresses:
                assert urlsplit(address).scheme == "https"
            packed = {Path(urlsplit(a).path).suffix in (".gz", ".xz") for a in file.addresses}
            assert len(packed) <= 1

    @pytest.mark.parametrize("name", dataset_names())
    def test_splits_name_readers_and_files(self, name):
        entry = find_dataset(name)
        keys = [(split.name, split.variant) for split in entry.splits]
        assert len(set(keys)) == len(keys)
        for split in entry.splits:
            assert split.reader in READERS
            assert all(entry.file(file) for file in split.files)

    def test_every_reader_is_used(self):
        used = {split.reader for name in dataset_names() for split in find_dataset(name).splits}
        assert used == set(READERS)

    def test_unknown_names_suggest_the_nearest(self):
        with pytest.raises(ConfigError, match="unknown data set 'wikitext2'; did you mean"):
            find_dataset("wikitext2")
        with pytest.raises(ConfigError, match=r"unknown file of ptb 'ptb.trian.txt'; did you"):
            find_dataset("ptb").file("ptb.trian.txt")
        with pytest.raises(ConfigError, match=r"unknown split of ptb 'dev' .known: test, train"):
            find_dataset("ptb").split("dev")
        with pytest.raises(ConfigError, match="unknown variant of sst 'binry'; did you mean"):
            find_dataset("sst").split("train", "binry")

    def test_the_split_may_be_left_out_where_there_is_one(self):
        assert find_dataset("mr").split().name == "all"
        with pytest.raises(ConfigError, match="ptb has several splits; name one of train, valid"):
            find_dataset("ptb").split()

    def test_the_first_variant_is_the_usual_one(self):
        assert find_dataset("sst").variants == ("binary", "fine")
        assert find_dataset("sst").split("train").variant == "binary"

    def test_a_set_of_files_has_no_splits(self):
        with pytest.raises(DataError, match=r"not read as examples; ask for its files .README"):
            open_dataset("lmplz-golden")


class TestFinding:
    @pytest.mark.parametrize(
        ("suffix", "pack"),
        [
            ("", bytes),
            (".xz", lzma.compress),
            (".gz", gzip.compress),
            (".zst", zstandard.ZstdCompressor().compress),
        ],
        ids=["plain", "xz", "gzip", "zstandard"],
    )
    def test_any_copy_is_found_verified_and_read(self, toy, suffix, pack):
        toy(data_file("a.txt", TEXT), splits=(Split("all", "text", ("a.txt",)),))
        path = place("a.txt" + suffix, pack(TEXT))
        assert dataset_path("toy") == path.parent
        assert dataset_file("toy", "a.txt") == path
        assert [status.state for status in verify("toy")] == ["ok"]
        assert list(open_dataset("toy")) == [Text("one line"), Text("and another")]

    def test_the_users_folder_comes_before_the_cache(self, toy):
        toy(data_file("a.txt", TEXT))
        cached = place("a.txt", TEXT, cache_folder() / "data")
        assert dataset_file("toy", "a.txt") == cached
        own = place("a.txt", TEXT)
        assert dataset_file("toy", "a.txt") == own

    def test_a_missing_set_says_how_to_get_it(self, toy, tmp_path, monkeypatch):
        toy(data_file("a.txt", TEXT, "https://example.org/a.txt"))
        with pytest.raises(DataError, match="toy is not on this machine; run `seqloom data get"):
            dataset_path("toy")
        with pytest.raises(DataError, match=r"a.txt of toy .*place it under .*data/toy/"):
            dataset_file("toy", "a.txt")
        toy(data_file("a.txt", TEXT))
        monkeypatch.delenv("SEQLOOM_DATA")
        expected = r"machine; place it under \$SEQLOOM_DATA/toy/ \(source: example.org/toy\)"
        with pytest.raises(DataError, match=expected):
            dataset_path("toy")

    def test_verify_tells_missing_other_and_damaged_files_apart(self, toy):
        toy(*(data_file(name, TEXT) for name in ("good", "gone", "other", "cut")))
        place("good", TEXT)
        place("other", MORE)
        place("cut.gz", gzip.compress(TEXT)[:-5])
        good, gone, other, cut = verify("toy")
        assert (good.state, good.detail) == ("ok", "")
        assert (gone.state, gone.path) == ("missing", None)
        assert other.state == "differs"
        assert hashlib.sha256(MORE).hexdigest() in other.detail
        assert cut.state == "damaged"

    def test_the_cache_follows_the_platform(self, monkeypatch, tmp_path):
        monkeypatch.delenv("SEQLOOM_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        monkeypatch.setattr(sys, "platform", "linux")
        assert cache_folder() == tmp_path / "xdg" / "seqloom"
        monkeypatch.setattr(sys, "platform", "darwin")
        assert cache_folder() == Path.home() / "Library/Caches/seqloom"
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
        assert cache_folder() == tmp_path / "local" / "seqloom"


class TestGetting:
    def test_files_are_fetched_once(self, toy, site):
        folder, address = site
        (folder / "a.txt").write_bytes(TEXT)
        (folder / "b.gz").write_bytes(gzip.compress(MORE))
        toy(data_file("a.txt", TEXT, address + "a.txt"), data_file("b", MORE, address + "b.gz"))
        seen = []
        found = get_dataset("toy", progress=lambda *now: seen.append(now), patience=HASTE)
        assert found == cache_folder() / "data" / "toy"
        assert sorted(path.name for path in found.iterdir()) == ["a.txt", "b.gz"]
        assert seen[0] == ("a.txt", len(TEXT), len(TEXT))
        (folder / "a.txt").unlink()
        assert get_dataset("toy", patience=HASTE) == found

    def test_what_the_user_has_is_not_fetched(self, toy):
        toy(data_file("a.txt", TEXT, "http://127.0.0.1:9/a.txt"))
        own = place("a.txt.xz", lzma.compress(TEXT))
        assert get_dataset("toy", patience=HASTE) == own.parent

    @pytest.mark.parametrize("kind", ["zip", "tar.gz"])
    def test_members_are_taken_out_of_an_archive(self, toy, site, kind):
        folder, address = site
        members = {"toy/sub/a.txt": TEXT, "toy/b.txt": MORE, "toy/c.txt": b"not wanted"}
        if kind == "zip":
            with zipfile.ZipFile(folder / "toy.zip", "w") as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
        else:
            with tarfile.open(folder / "toy.tar.gz", "w:gz") as archive:
                for name, content in members.items():
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
        urls = (address + "gone.zip", address + f"toy.{kind}")
        toy(
            data_file("a.txt", TEXT, *urls, member="a.txt"),
            data_file("b.txt", MORE, *urls, member="toy/b.txt"),
        )
        found = get_dataset("toy", patience=HASTE)
        assert {path.name: path.read_bytes() for path in found.iterdir()} == {
            "a.txt": TEXT,
            "b.txt": MORE,
        }

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ({"a.txt": MORE}, "a.txt is another file: expected sha256"),
            ({"b.txt": TEXT}, "has no member a.txt"),
            (b"<html>", "not an archive, or is damaged"),
        ],
    )
    def test_a_wrong_archive_leaves_nothing(self, toy, site, content, message):
        folder, address = site
        if isinstance(content, bytes):
            (folder / "toy.zip").write_bytes(content)
        else:
            with zipfile.ZipFile(folder / "toy.zip", "w") as archive:
                for name, data in content.items():
                    archive.writestr(name, data)
        toy(data_file("a.txt", TEXT, address + "toy.zip", member="a.txt"))
        with pytest.raises(DownloadError, match=message):
            get_dataset("toy", patience=HASTE)
        assert list((cache_folder() / "data" / "toy").iterdir()) == []

    def test_a_file_without_address_is_placed_by_hand(self, toy, site):
        folder, address = site
        (folder / "a.txt").write_bytes(TEXT)
        toy(data_file("b.txt", MORE), data_file("a.txt", TEXT, address + "a.txt"))
        with pytest.raises(DownloadError, match=r"b.txt of toy cannot be fetched; place it"):
            get_dataset("toy", patience=HASTE)
        assert dataset_file("toy", "a.txt").read_bytes() == TEXT
        place("b.txt", MORE)
        get_dataset("toy", patience=HASTE)

    def test_a_dead_address_is_named(self, toy, site):
        _, address = site
        toy(data_file("a.txt", TEXT, address + "a.txt"))
        with pytest.raises(DownloadError, match=r"a\.txt is dead \(HTTP 404"):
            get_dataset("toy", patience=HASTE)


class TestKnownFaults:
    SPLIT = Split("all", "label-first", ("a",), faults=1)

    def test_as_many_as_are_known_are_left_out(self, toy):
        toy(data_file("a", b""), splits=(self.SPLIT,))
        place("a", b"1 good\nbad\n0 fine\n")
        records = open_dataset("toy")
        assert [example.label for example in records] == ["1", "0"]
        assert records.skipped == 1

    def test_one_more_is_an_error(self, toy):
        toy(data_file("a", b""), splits=(self.SPLIT,))
        place("a", b"1 good\nbad\nworse\n")
        with pytest.raises(
            DataError, match="2 malformed records, and 1 are known; the first: must"
        ):
            list(open_dataset("toy"))
        assert len(list(open_dataset("toy", on_error="skip"))) == 1
