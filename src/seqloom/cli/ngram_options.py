"""What the n-gram verbs share: options that take several numbers, and where models come and go."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from seqloom.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqloom.ngram.levels import Ngrams
    from seqloom.ngram.model import NgramModel
    from seqloom.ngram.workspace import Workspace

Kind = Literal["hashed", "trie"]
ModelFile = Annotated[
    str, typer.Argument(help="A store, an ARPA file (compressed or not), or a model directory.")
]
StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Write a store, quick to open and to ask, here.")
]
KindOption = Annotated[
    Kind, typer.Option("--kind", help="The kind of store: hashed is fast, trie is small.")
]
ArpaOption = Annotated[
    str | None,
    typer.Option("--arpa", help="Write ARPA here and not to standard output; .gz .xz .zst too."),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory", "-S", help="The most memory to hold, as 800M, 2G or 50%.", show_default="50%"
    ),
]
TemporaryOption = Annotated[
    Path | None,
    typer.Option("--temporary", "-T", help="The folder for what does not fit into memory."),
]

# Options that take one or more numbers, and what they mean when followed by none.
_NUMBERS = {"--prune": "", "--discounts": "", "--discount-fallback": "0.5 1 1.5", "--weights": ""}
# lmplz's options by our names; those that only steer its sorting change nothing here.
_LMPLZ = {"--temp_prefix": "--temporary", "--discount_fallback": "--discount-fallback"}
_LMPLZ_STEERING = {"--minimum_block", "--sort_block", "--block_count", "--vocab_estimate"}


class NumbersCommand(TyperCommand):
    """A verb that understands `--prune 0 0 1` as well as `--prune "0 0 1"`, as lmplz does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join numbers before the usual parsing."""
        return super().parse_args(ctx, join_numbers(args))


def join_numbers(args: list[str]) -> list[str]:
    """Make one value of the numbers after an option, and our options of lmplz's."""
    joined: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return [*joined, arg, *rest]
        name, equals, value = arg.partition("=")
        if name in _LMPLZ_STEERING:
            if not equals and rest:
                rest.pop(0)
            continue
        if name == "--skip_symbols":
            joined.append("--symbols=skip")
            continue
        if name == "--interpolate_unigrams":
            off = (value or (rest.pop(0) if rest and _is_number(rest[0]) else "1")) == "0"
            joined.append("--no-interpolate-unigrams" if off else "--interpolate-unigrams")
            continue
        name = _LMPLZ.get(name, name)
        joined.append(name + equals + value)
        if name in _NUMBERS and not equals:
            numbers = []
            while rest and _is_number(rest[0]):
                numbers.append(rest.pop(0))
            if numbers or _NUMBERS[name]:
                joined.append(" ".join(numbers) or _NUMBERS[name])
    return joined


def _is_number(text: str) -> bool:
    try:
        return bool([float(part) for part in text.split()])
    except ValueError:
        return False


def numbers(text: str, option: str) -> list[float]:
    """The numbers of an option's value, between blanks or commas."""
    try:
        return [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise ConfigError(f"{option} must be numbers between blanks, got {text!r}") from None


def workspace(memory: str | None = None, temporary: Path | None = None) -> Workspace:
    """The memory and the folder for temporary files that were asked for."""
    from seqloom.ngram.workspace import Workspace, parse_size

    if temporary is not None and not temporary.is_dir():
        raise ConfigError(f"--temporary must be a folder that is there, got {str(temporary)!r}")
    folder = None if temporary is None else str(temporary)
    if memory is None:
        return Workspace(None, folder)
    if memory.endswith("%"):
        share = numbers(memory[:-1], "--memory")
        if len(share) != 1 or not 0 < share[0] <= 100:
            raise ConfigError(f"--memory must lie between 1% and 100%, got {memory!r}")
        return Workspace(int(Workspace().memory * 2 * share[0] / 100), folder)
    return Workspace(parse_size(memory), folder)


def check_outputs(store: Path | None, arpa: str | None) -> None:
    """Refuse, before any work is done, what could not be written after it."""
    if store is None and arpa is None and sys.stdout.isatty():
        raise ConfigError(
            "the model would go to the terminal; redirect it (> model.arpa), or name a file with "
            "--arpa FILE or --store FILE"
        )
    for path in (store, None if arpa in (None, "-") else Path(arpa or "")):
        if path is not None and not path.absolute().parent.is_dir():
            raise DataError("cannot be written, its folder does not exist", path)
        if path is not None and path.is_dir():
            raise DataError("cannot be written, this is a folder; name a file", path)
    if store is not None and store.exists() and not store.is_file():
        # A store takes the place of what has its name, which would unmake a pipe or a device.
        raise DataError("a store must be a plain file, got a pipe or a device", store)


def write_outputs(
    ngrams: Ngrams, store: Path | None, kind: Kind, arpa: str | None, place: Workspace
) -> None:
    """Write a model where it was asked for: a store, an ARPA file, else ARPA to stdout."""
    from seqloom.ngram.arpa import write_arpa
    from seqloom.ngram.stores import write_store

    if store is not None:
        with _file_errors(store):
            write_store(ngrams, store, kind, place)
    if arpa is not None or store is None:
        with output_errors():
            write_arpa(ngrams, arpa or "-", place=place)


@contextmanager
def output_errors() -> Iterator[None]:
    """Make one of our errors of what fails on standard output; a reader that goes away is none."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is still held back cannot be written either; let the flush at exit go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise DataError(f"standard output cannot be written ({error.strerror or error})") from None


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be written ({error.strerror or error})", path) from None


def load_model(name: str) -> NgramModel:
    """The model of a store, an ARPA file or a model directory, ready to be asked."""
    from seqloom.ngram.model import NgramModel

    with _without_scipy():
        return NgramModel.load(find_model(name))


@contextmanager
def _without_scipy() -> Iterator[None]:
    """Keep numba from loading scipy.linalg at its first call, which takes a quarter of a second.

    It looks there for routines of linear algebra, which counted models do not need.
    """
    if "scipy.linalg" in sys.modules:
        yield
        return
    modules: dict[str, Any] = sys.modules
    modules["scipy.linalg"] = None
    try:
        yield
    finally:
        del modules["scipy.linalg"]


def find_model(name: str) -> str:
    """The file of a model: itself, or the store in a model directory.

    Raises:
        DataError: If it is a directory without one, or with several.
    """
    place = Path(name)
    if not place.is_dir():
        return name
    from seqloom.ngram.store_file import is_store

    stores = [path for path in sorted(place.iterdir()) if path.is_file() and is_store(path)]
    if len(stores) != 1:
        raise DataError(
            f"a model directory must hold one n-gram store, got {len(stores)}; name the file", place
        )
    return str(stores[0])
