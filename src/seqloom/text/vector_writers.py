"""Word vectors to files: GloVe text, word2vec text and binary, NumPy archives."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from seqloom.errors import BackendError, ConfigError, DataError
from seqloom.text.vector_files import Block, Rows, is_number
from seqloom.text.vector_store import BLOCK_ROWS, temporary_beside


def slices(words: Sequence[str], matrix: Rows) -> Iterator[Block]:
    """Yield words and rows a block at a time."""
    for start in range(0, len(words), BLOCK_ROWS):
        stop = start + BLOCK_ROWS
        yield list(words[start:stop]), np.asarray(matrix[start:stop])


def write_file(words: Sequence[str], matrix: Rows, path: Path, format: str, packed: str) -> None:
    """Write a file beside its place and rename it; `packed` is ".gz", ".xz", ".zst" or "".

    Raises:
        ConfigError: If a word cannot be written in this format.
        DataError: If the file cannot be written.
    """
    for word in words:
        if not _fits(word, format):
            raise ConfigError(
                f"a word in {format} format must come back as it is, got {word!r}; "
                "use format='seqloom', which holds any word"
            )
    try:
        with temporary_beside(path) as temporary:
            with _compressing(temporary, packed) as stream:
                _write(words, matrix, stream, format)
            temporary.replace(path)
    except OSError as error:
        raise DataError(f"cannot be written ({error.strerror or error})", path) from None


def _fits(word: str, format: str) -> bool:
    """Tell whether the word would be read as it was written."""
    if format == "npz":
        return not word.endswith("\0")
    try:
        data = word.encode()
    except UnicodeEncodeError:
        return False
    pieces = data.split()
    if not pieces or b" ".join(pieces) != data or word.startswith("\ufeff"):
        return False
    return len(pieces) == 1 or (format != "word2vec-binary" and not is_number(pieces[-1]))


def _write(words: Sequence[str], matrix: Rows, stream: IO[bytes], format: str) -> None:
    if format == "npz":
        np.savez_compressed(stream, words=np.array(words), vectors=matrix)
        return
    if format != "glove":
        stream.write(f"{len(words)} {matrix.shape[1]}\n".encode())
    for names, block in slices(words, matrix):
        for name, row in zip(names, block.astype("<f4"), strict=True):
            if format == "word2vec-binary":
                stream.write(name.encode() + b" " + row.tobytes() + b"\n")
            else:  # as strings, NumPy writes the fewest digits that read back as the same float32
                stream.write(f"{name} {' '.join(row.astype('U').tolist())}\n".encode())


@contextmanager
def _compressing(path: Path, packed: str) -> Iterator[IO[bytes]]:
    if packed == ".gz":
        with gzip.open(path, "wb", compresslevel=6) as stream:
            yield cast(IO[bytes], stream)
    elif packed == ".xz":
        with lzma.open(path, "wb") as stream:
            yield cast(IO[bytes], stream)
    elif packed == ".zst":
        with path.open("wb") as raw, _zstd_writer(raw) as stream:
            yield stream
    else:
        with path.open("wb") as raw:
            yield raw


def _zstd_writer(raw: IO[bytes]) -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise BackendError("a .zst file needs zstandard; pip install zstandard") from None
    return zstandard.ZstdCompressor(level=6).stream_writer(raw)
