"""Models packed for asking: the fast store and the small one, in memory or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, DataError, one_of
from seqloom.files import Source, written_beside
from seqloom.ngram import hashed, trie
from seqloom.ngram.levels import Ngrams
from seqloom.ngram.store_file import StoreWriter, open_store
from seqloom.ngram.words import EOS, SPECIALS, Words
from seqloom.ngram.workspace import Workspace

Kind = Literal["hashed", "trie"]
KINDS = ("hashed", "trie")


class PackedModel(NamedTuple):
    """A model's vocabulary and tables, and what its header says."""

    words: Words
    tables: hashed.Hashed | trie.Packed
    order: int
    missing_backoff: float
    suffixes: bool
    about: dict[str, Any]


class _Memory:
    """Arrays in memory, filled piece by piece."""

    def __init__(self, shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> None:
        self.arrays = {name: np.empty(shape, kind) for name, (kind, shape) in shapes.items()}

    def write(self, name: str, values: NDArray[Any], start: int = 0) -> None:
        self.arrays[name][start : start + len(values)] = values


def pack(ngrams: Ngrams, place: Workspace) -> PackedModel:
    """A fast store in memory."""
    memory = _Memory(hashed.shapes(ngrams.sizes))
    hashed.pack_hashed(ngrams, memory, place)
    tables = hashed.of_cells(**memory.arrays, exact=hashed.is_exact(ngrams.sizes))
    return PackedModel(
        ngrams.words, tables, ngrams.order, ngrams.missing_backoff, ngrams.suffixes,
        ngrams.about | {"sizes": ngrams.sizes, "kind": hashed.KIND},
    )  # fmt: skip


def write_store(ngrams: Ngrams, path: Source, kind: Kind, place: Workspace) -> None:
    """Write a model as a store; a kill in the middle leaves what was there before.

    Args:
        ngrams: The model.
        path: The file.
        kind: "hashed" for speed, "trie" for size.
        place: The memory that may be used.
    """
    if kind not in KINDS:
        raise ConfigError(one_of("kind of store", kind, KINDS))
    words = ngrams.words
    about = {
        "kind": kind,
        "order": ngrams.order,
        "sizes": ngrams.sizes,
        "missing_backoff": ngrams.missing_backoff,
        "suffixes": ngrams.suffixes,
        "about": ngrams.about,
    }
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "pool": (np.uint8, (int(words.offsets[-1]),)),
        "offsets": (np.int64, (len(words) + 1,)),
    }
    if kind == hashed.KIND:
        shapes |= {"table": (np.uint64, words.table.shape)} | hashed.shapes(ngrams.sizes)
    else:
        plan = trie.TriePlan(ngrams, place)
        shapes |= plan.shapes
    with written_beside(Path(path), flush=False) as beside, beside.open("r+b") as file:
        sink = StoreWriter(file, about, shapes)
        sink.write("pool", words.pool[: words.offsets[-1]])
        sink.write("offsets", words.offsets)
        if kind == hashed.KIND:
            sink.write("table", words.table)
            hashed.pack_hashed(ngrams, sink, place)
        else:
            plan.write(sink)
        sink.finish()


def open_packed(path: Source, *, verify: bool = True) -> PackedModel:
    """Open a store, memory-mapped.

    Raises:
        DataError: If it is damaged, or its arrays do not fit together.
    """
    header, arrays = open_store(path, verify=verify)
    try:
        return _fit_together(header, arrays)
    except (KeyError, TypeError, ValueError):
        raise DataError("the store lacks an array or a field; build it again", path) from None
    except DataError as error:
        raise DataError(error.message, path) from None


def _fit_together(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> PackedModel:
    kind, order = header["kind"], int(header["order"])
    words = _words(arrays.pop("pool"), arrays.pop("offsets"), arrays.pop("table", None))
    tables: hashed.Hashed | trie.Packed
    if kind == hashed.KIND:
        exact = hashed.is_exact(list(map(int, header["sizes"])))
        tables = hashed.of_cells(**arrays, exact=exact)
        hashed.check(tables, len(words))
        levels = len(tables.homes)
    elif kind == trie.KIND:
        tables = trie.Packed(**arrays)
        trie.check(tables, len(words))
        levels = len(tables.layout) - 1
    else:
        raise DataError(f"the store is of an unknown kind, {kind!r}; update Seqloom")
    sizes = [int(size) for size in header["sizes"]]
    if not order == levels == len(sizes) or sizes[0] != len(words):
        raise DataError("the store's header does not fit its tables; build it again")
    about = dict(header["about"]) | {"sizes": sizes, "kind": kind}
    missing, suffixes = float(header["missing_backoff"]), bool(header["suffixes"])
    return PackedModel(words, tables, order, missing, suffixes, about)


def _words(pool: Any, offsets: Any, table: Any) -> Words:
    """The vocabulary, once its arrays are known to stay within themselves."""
    good = (
        len(offsets) > len(SPECIALS)
        and offsets[0] == 0
        and offsets[-1] == len(pool)
        and bool(np.all(np.diff(offsets) > 0))
    )
    if good and table is not None:
        numbers = table[1::2] & np.uint64(0xFFFFFFFF)
        size = len(table)
        good = size & (size - 1) == 0 and size >= 4 and numbers.max() < len(offsets)
        good = good and bool((table[1::2] == 0).any())
    if not good or len(offsets) >= 1 << 31:
        raise DataError("the store's vocabulary does not fit together; build it again")
    words = Words(pool, offsets, table)
    if [words[i] for i in range(EOS + 1)] != list(SPECIALS):
        raise DataError(f"the store's first words are not {', '.join(SPECIALS)}; build it again")
    return words
