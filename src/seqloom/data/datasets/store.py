"""Where data sets lie on this machine: found, fetched and verified.

A file is looked for in `$SEQLOOM_DATA/NAME/`, which the user fills, then in the cache, which
`get_dataset` fills. It may be plain or end in .xz, .gz or .zst.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

from seqloom.data.datasets.archives import Limits, Member, iter_members
from seqloom.data.datasets.catalog import DataFile, Dataset, find_dataset
from seqloom.data.datasets.download import Expected, Patience, content_digest, download
from seqloom.errors import DataError, DownloadError
from seqloom.files import cache_folder

SUFFIXES = ("", ".xz", ".gz", ".zst")
PACKED_SLACK = 1 << 16  # how much longer than its content a compressed file may be
MAX_ARCHIVE_BYTES = 256 << 20

FileProgress = Callable[[str, int, int | None], None]
"""Called with the name of the file, the bytes fetched so far, and their total if it is known."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What `verify` found about one file.

    Attributes:
        name: The file, as the catalogue calls it.
        state: "ok", "missing", "differs" (another content) or "damaged" (cannot be read).
        path: Where it lies; None if it is missing.
        detail: What is wrong, in words; "" if nothing is.
    """

    name: str
    state: Literal["ok", "missing", "differs", "damaged"]
    path: Path | None = None
    detail: str = ""


def data_folder() -> Path | None:
    """The user's own folder of data sets, from `$SEQLOOM_DATA`; None if that is not set."""
    folder = os.environ.get("SEQLOOM_DATA")
    return Path(folder).expanduser() if folder else None


def dataset_path(name: str) -> Path:
    """Return the folder a data set lies in.

    Raises:
        ConfigError: If the name is unknown.
        DataError: If no file of it is on this machine; the message says how to get it.
    """
    dataset = find_dataset(name)
    for folder in _folders(dataset):
        if any(_present(folder, file) for file in dataset.files):
            return folder
    raise DataError(f"the data set {name} is not on this machine; {_how_to_get(dataset)}")


def dataset_file(name: str, file: str) -> Path:
    """Return the path of one file of a data set, plain or compressed, as it lies there.

    Raises:
        ConfigError: If the data set or the file is unknown.
        DataError: If it is not on this machine; the message says how to get it.
    """
    dataset = find_dataset(name)
    path = _find(dataset, dataset.file(file))
    if path is None:
        raise DataError(f"{file} of {name} is not on this machine; {_how_to_get(dataset)}")
    return path


def verify(name: str) -> list[FileStatus]:
    """Compare the content of every file of a data set with its checksum.

    Raises:
        ConfigError: If the name is unknown.
    """
    dataset = find_dataset(name)
    return [_status(dataset, file) for file in dataset.files]


def get_dataset(
    name: str, *, progress: FileProgress | None = None, patience: Patience | None = None
) -> Path:
    """Fetch the files of a data set that are not on this machine yet, into the cache.

    Args:
        name: The data set.
        progress: Told about the bytes as they come.
        patience: Timeouts and retries.

    Returns:
        The folder the data set lies in.

    Raises:
        ConfigError: If the name is unknown.
        DownloadError: If a file cannot be fetched, or has no address and must be placed by hand;
            files that can be fetched are fetched all the same.
    """
    dataset = find_dataset(name)
    folder = cache_folder() / "data" / name
    archives: dict[tuple[str, ...], list[DataFile]] = {}
    by_hand = []
    for file in dataset.files:
        if _find(dataset, file) is not None:
            continue
        if not file.addresses:
            by_hand.append(file.name)
        elif file.member:
            archives.setdefault(file.addresses, []).append(file)
        else:
            _fetch_file(dataset, file, folder, progress, patience)
    for files in archives.values():
        _fetch_members(dataset, files, folder, progress, patience)
    if by_hand:
        raise DownloadError(
            f"{', '.join(by_hand)} of {name} cannot be fetched; {_place_by_hand(dataset)}"
        )
    return dataset_path(name)


def _folders(dataset: Dataset) -> Iterator[Path]:
    given = data_folder()
    if given is not None:
        yield given / dataset.name
    yield cache_folder() / "data" / dataset.name


def _present(folder: Path, file: DataFile) -> Path | None:
    for suffix in SUFFIXES:
        path = folder / (file.name + suffix)
        if path.is_file():
            return path
    return None


def _find(dataset: Dataset, file: DataFile) -> Path | None:
    for folder in _folders(dataset):
        if path := _present(folder, file):
            return path
    return None


def _place_by_hand(dataset: Dataset) -> str:
    root = data_folder()
    where = "$SEQLOOM_DATA" if root is None else str(root)
    return f"place it under {where}/{dataset.name}/ (source: {dataset.source})"


def _how_to_get(dataset: Dataset) -> str:
    if all(file.addresses for file in dataset.files):
        return f"run `seqloom data get {dataset.name}`, or {_place_by_hand(dataset)}"
    return _place_by_hand(dataset)


def _status(dataset: Dataset, file: DataFile) -> FileStatus:
    path = _find(dataset, file)
    if path is None:
        return FileStatus(file.name, "missing", None, _how_to_get(dataset))
    try:
        sha256, size = content_digest(path)
    except DataError as error:
        return FileStatus(file.name, "damaged", path, error.message)
    if sha256 != file.sha256:
        detail = (
            f"expected sha256 {file.sha256} ({file.size:,} bytes), got {sha256} ({size:,} bytes)"
        )
        return FileStatus(file.name, "differs", path, detail)
    return FileStatus(file.name, "ok", path)


def _fetch_file(
    dataset: Dataset,
    file: DataFile,
    folder: Path,
    progress: FileProgress | None,
    patience: Patience | None,
) -> None:
    suffix = PurePosixPath(urlsplit(file.addresses[0]).path).suffix
    packed = suffix in SUFFIXES and suffix and not file.name.endswith(suffix)
    download(
        file.addresses,
        folder / (file.name + suffix if packed else file.name),
        Expected(
            sha256=file.sha256,
            size=file.size,
            max_bytes=file.size + (PACKED_SLACK if packed else 0),
        ),
        hosts=dataset.hosts,
        progress=progress and (lambda have, total: progress(file.name, have, total)),
        patience=patience,
    )


def _fetch_members(
    dataset: Dataset,
    files: Sequence[DataFile],
    folder: Path,
    progress: FileProgress | None,
    patience: Patience | None,
) -> None:
    """Fetch an archive, take the files out of it, and drop it."""
    failures = []
    for address in files[0].addresses:
        archive = folder / PurePosixPath(urlsplit(address).path).name
        name = archive.name
        try:
            download(
                [address],
                archive,
                Expected(max_bytes=MAX_ARCHIVE_BYTES),
                hosts=dataset.hosts,
                progress=progress and (lambda have, total, name=name: progress(name, have, total)),
                patience=patience,
            )
            _take_members(archive, files, folder)
        except (DownloadError, DataError) as error:
            if all(_present(folder, file) for file in files):
                return  # another process was first, and dropped the archive meanwhile
            failures.append(str(error))
        else:
            return
        finally:
            archive.unlink(missing_ok=True)
    names = ", ".join(file.name for file in files)
    raise DownloadError(
        f"{names} of {dataset.name} could not be fetched: {'; '.join(failures)}; "
        f"{_place_by_hand(dataset)}"
    )


def _take_members(archive: Path, files: Sequence[DataFile], folder: Path) -> None:
    """Write the wanted members of an archive into a folder, each one checked."""
    wanted = {file.member: file for file in files}
    for member in iter_members(archive, Limits(bytes=1 << 30)):
        for end, file in list(wanted.items()):
            if f"/{member.name}".endswith(f"/{end}"):
                _take_member(archive, member, file, folder)
                del wanted[end]
                break
    if wanted:
        raise DataError(f"has no member {', '.join(sorted(wanted))}", archive)


def _take_member(archive: Path, member: Member, file: DataFile, folder: Path) -> None:
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{file.name}-", delete=False) as out:
        path = Path(out.name)
        try:
            for data in member.chunks():
                size += len(data)
                digest.update(data)
                out.write(data)
            if digest.hexdigest() != file.sha256:
                raise DataError(
                    f"{member.name} is another file: expected sha256 {file.sha256} "
                    f"({file.size:,} bytes), got {digest.hexdigest()} ({size:,} bytes)",
                    archive,
                )
        except BaseException:
            out.close()
            path.unlink()
            raise
    path.chmod(0o644)
    path.replace(folder / file.name)
