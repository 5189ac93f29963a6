"""Word vectors as NumPy archives and as stores: folders that are mapped, not read.

A store holds `vectors.npy` (V, D), `words.json` (a list) and `meta.json`. It is written beside its
place and renamed, so that it is whole or absent.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import fspath
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import DataError
from seqloom.files import Source
from seqloom.text.vector_files import Block, Rows, refuse_non_finite

STORE_VERSION = 1
BLOCK_ROWS = 1 << 14
_KIND = "seqloom-vectors"


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Give a free name beside `path` to write to; whatever is left there in the end is removed."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def without_duplicates(blocks: Iterable[Block], index: dict[str, int]) -> Iterator[Rows]:
    """Yield the rows of words not met before, and number the words in `index`."""
    for words, matrix in blocks:
        before = len(index)
        fresh = []
        for row, word in enumerate(words):
            if word not in index:
                index[word] = len(index)
                fresh.append(row)
        yield matrix if len(index) - before == len(words) else matrix[fresh]


def archive_blocks(path: Source) -> Iterator[Block]:
    """Yield the blocks of an .npz with `words` (V,) and `vectors` (V, D); nothing is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if not {"words.npy", "vectors.npy"} <= names:
                found = ", ".join(sorted(name.removesuffix(".npy") for name in names)) or "none"
                raise DataError(
                    f"the archive must hold the arrays 'words' and 'vectors', got {found}", path
                )
            with archive.open("words.npy") as words, archive.open("vectors.npy") as vectors:
                sizes = {name: archive.getinfo(name).file_size for name in names}
                yield from _archive_blocks(words, vectors, sizes, path)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise DataError(f"is no readable .npz ({error})", path) from None


def _archive_blocks(
    words: IO[bytes], vectors: IO[bytes], sizes: dict[str, int], path: Source
) -> Iterator[Block]:
    word_shape, word_type, _ = _array_header(words, "words", sizes["words.npy"], path)
    shape, dtype, by_column = _array_header(vectors, "vectors", sizes["vectors.npy"], path)
    if word_type.kind not in "US" or dtype.kind != "f":
        raise DataError(
            f"'words' must hold strings and 'vectors' floats, got {word_type} and {dtype}", path
        )
    if len(word_shape) != 1 or len(shape) != 2 or word_shape[0] != shape[0] or 0 in shape:
        raise DataError(
            f"'words' must be (V,) and 'vectors' (V, D), got {word_shape} and {shape}", path
        )
    native = np.dtype(np.float16 if dtype.itemsize == 2 else np.float32)
    whole = _read_rows(vectors, shape[0] * shape[1], 1, dtype, path) if by_column else None
    by_row = None if whole is None else whole.reshape(shape, order="F")
    for start in range(0, shape[0], BLOCK_ROWS):
        n = min(BLOCK_ROWS, shape[0] - start)
        names = _read_rows(words, n, 1, word_type, path)[:, 0]
        rows = (
            _read_rows(vectors, n, shape[1], dtype, path)
            if by_row is None
            else by_row[start : start + n]
        )
        refuse_non_finite(rows, range(start + 1, start + n + 1), path)
        with np.errstate(over="ignore"):
            narrow = rows.astype(native)
        refuse_non_finite(narrow, range(start + 1, start + n + 1), path)
        yield _archive_words(names, start, path), narrow


def _array_header(
    stream: IO[bytes], name: str, file_size: int, path: Source
) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"version {version}")
        shape, by_column, dtype = read(stream)
    except ValueError as error:
        raise DataError(f"'{name}' is no NumPy array ({error})", path) from None
    if dtype.hasobject:
        raise DataError(
            f"'{name}' must hold strings or numbers, got Python objects, which are never unpickled",
            path,
        )
    count = 1
    for length in shape:
        count *= length
    if count * dtype.itemsize > file_size:
        raise DataError(
            f"'{name}' says {shape} of {dtype}, got {file_size:,} bytes; the file is damaged", path
        )
    return shape, dtype, by_column


def _read_rows(
    stream: IO[bytes], count: int, size: int, dtype: np.dtype[Any], path: Source
) -> NDArray[Any]:
    need = count * size * dtype.itemsize
    data = stream.read(need)
    if len(data) < need:
        raise DataError(f"an array is cut off: {need:,} bytes expected, got {len(data):,}", path)
    if dtype.itemsize == 0:
        return np.zeros((count, size), dtype=dtype)
    return np.frombuffer(data, dtype=dtype).reshape(count, size)


def _archive_words(names: NDArray[Any], start: int, path: Source) -> list[str]:
    words: list[str] = []
    for row, name in enumerate(names.tolist(), start + 1):
        try:
            words.append(name.decode() if isinstance(name, bytes) else name)
        except UnicodeDecodeError:
            raise DataError(f"row {row}: the word is not UTF-8: {name!r}", path) from None
    return words


def write_store(
    folder: Source,
    blocks: Iterable[Block],
    *,
    duplicates: int = 0,
    source: dict[str, Any] | None = None,
) -> None:
    """Write blocks as a store, a block at a time; a store that is there already is replaced.

    Raises:
        DataError: If the place is taken by something that is not a store, or cannot be written.
    """
    place = Path(folder)
    if place.exists() and not (place / "meta.json").is_file():
        raise DataError("is there and is no store of vectors; choose another name", place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(place) as temporary:
            temporary.mkdir()
            _fill_store(temporary, blocks, duplicates, source)
            _put_in_place(temporary, place)
    except OSError as error:
        raise DataError(f"cannot be written ({error.strerror or error})", place) from None


def _put_in_place(temporary: Path, place: Path) -> None:
    """Rename, also where processes that convert the same file get in each other's way."""
    for attempts_left in (4, 3, 2, 1, 0):
        with temporary_beside(place) as old:
            try:
                if place.exists():
                    place.replace(old)
                temporary.replace(place)
            except OSError:
                if not attempts_left:
                    raise
            else:
                return


def _fill_store(
    folder: Path, blocks: Iterable[Block], duplicates: int, source: dict[str, Any] | None
) -> None:
    index: dict[str, int] = {}
    given = 0

    def counted() -> Iterator[Block]:
        nonlocal given
        for words, matrix in blocks:
            given += len(words)
            yield words, matrix

    shape, dtype = (0, 0), np.dtype(np.float32)
    with (folder / "vectors.npy").open("wb") as stream:
        for rows in without_duplicates(counted(), index):
            if shape[1] == 0:
                shape, dtype = (0, rows.shape[1]), rows.dtype.newbyteorder("<")
                start = _write_header(stream, shape, dtype)
            stream.write(np.ascontiguousarray(rows, dtype=dtype).data)
        shape = (len(index), shape[1])
        stream.seek(0)
        again = _write_header(stream, shape, dtype)
        assert again == start, "NumPy leaves room in the header for more rows"
    words = json.dumps(list(index), ensure_ascii=True).encode()
    (folder / "words.json").write_bytes(words)
    meta = {
        "kind": _KIND,
        "version": STORE_VERSION,
        "words": shape[0],
        "size": shape[1],
        "dtype": dtype.name,
        "duplicates": duplicates + given - len(index),
        "words_sha256": hashlib.sha256(words).hexdigest(),
        "vectors_bytes": (folder / "vectors.npy").stat().st_size,
        "source": source,
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")


def _write_header(stream: IO[bytes], shape: tuple[int, int], dtype: np.dtype[Any]) -> int:
    np.lib.format.write_array_header_1_0(
        stream,
        {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": shape,
        },
    )
    return stream.tell()


def read_meta(folder: Source) -> dict[str, Any]:
    """Return what `meta.json` says.

    Raises:
        DataError: If the folder is no store, or one of another version.
    """
    path = Path(folder) / "meta.json"
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError("is no store of vectors: meta.json is missing", folder) from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read ({error})", path) from None
    if not isinstance(meta, dict) or meta.get("kind") != _KIND:
        raise DataError(f"must say kind {_KIND!r}; this is no store of vectors", path)
    if meta.get("version") != STORE_VERSION:
        raise DataError(
            f"must be of version {STORE_VERSION}, got {meta.get('version')!r}; write it again", path
        )
    return meta


def open_store(folder: Source) -> tuple[list[str], Rows, int]:
    """Return the words, the mapped matrix and the number of duplicates left out.

    Raises:
        DataError: If the store is incomplete or its parts do not belong together.
    """
    place, meta = Path(folder), read_meta(folder)
    try:
        data = (place / "words.json").read_bytes()
        matrix = np.load(place / "vectors.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"the store is incomplete or damaged ({error})", folder) from None
    if hashlib.sha256(data).hexdigest() != meta.get("words_sha256"):
        raise DataError("was altered after the store was written", place / "words.json")
    words = json.loads(data)
    found = (*matrix.shape, matrix.dtype.name, (place / "vectors.npy").stat().st_size)
    said = (meta.get("words"), meta.get("size"), meta.get("dtype"), meta.get("vectors_bytes"))
    if found != said or not isinstance(words, list) or len(words) != matrix.shape[0]:
        raise DataError(f"must hold {said} as meta.json says, got {found}", place / "vectors.npy")
    return words, matrix, int(meta.get("duplicates", 0))


def describe_source(path: Source, format: str) -> dict[str, Any]:
    """Return what tells one state of a file from another, without reading it."""
    status = Path(path).stat()
    return {
        "path": fspath(Path(path).resolve()),
        "format": format,
        "bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
    }


def cached_place(folder: Source, source: dict[str, Any]) -> Path:
    """Return the store of a source in a cache folder: one a path and format."""
    key = hashlib.sha256(f"{source['path']}\0{source['format']}".encode()).hexdigest()[:16]
    return Path(folder) / f"{Path(source['path']).name}-{key}"


def holds_source(store: Path, source: dict[str, Any]) -> bool:
    """Tell whether a store was made from this very state of the source."""
    try:
        return bool(read_meta(store).get("source") == source)
    except DataError:
        return False
