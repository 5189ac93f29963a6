"""The model directory: one form for every model, written whole, checked when read.

```
NAME/
  seqloom.json          format, task, architecture, settings, metrics, provenance, files with hashes
  weights.safetensors   the weights
  ...                   vocabularies and what else the task needs
  README.md             the model card
  NESTED/               a model this one contains, a directory of the same form
```

Nothing in it is ever unpickled. `seqloom.json` lists every file with its size and SHA-256 and
closes with a digest of itself, so a directory that was cut, altered or put together from two is
refused.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom import __version__
from seqloom.errors import ConfigError, DataError, one_of
from seqloom.files import written_beside
from seqloom.tasks.card import model_card

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
HEADER, WEIGHTS, CARD = "seqloom.json", "weights.safetensors", "README.md"
TRAINING = "training"  # the folder of checkpoints inside a model directory
MAX_HEADER_BYTES = 64 << 20
TEXTS, TABLES = ("task", "architecture", "digest"), ("config", "settings", "metrics", "provenance")
KEYS = dict.fromkeys(TEXTS, str) | dict.fromkeys((*TABLES, "files", "models"), dict)


@dataclass(frozen=True, kw_only=True)
class ModelHeader:
    """What `seqloom.json` says besides the list of files.

    Args:
        task: The task, as the command line spells it.
        architecture: The name in the table.
        config: The architecture's full configuration.
        settings: What else the task needs to be built again (text settings, labels, ...).
        metrics: What it reached, by name.
        provenance: Where it comes from: data, versions, seed, command.
    """

    task: str
    architecture: str
    config: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredModel:
    """A model directory that was read and found whole."""

    place: Path
    header: ModelHeader
    models: Mapping[str, Path]

    def json(self, name: str) -> Any:
        """Return one of its JSON files."""
        return json.loads((self.place / name).read_text(encoding="utf-8"))

    def weights(self) -> dict[str, Tensor]:
        """Return its weights by name, as 32-bit numbers if they are stored in fewer bits."""
        from seqloom.tasks.packed_weights import together, unpack_weights

        tensors, metadata = self.stored_weights()
        try:
            return together(unpack_weights(tensors), metadata)
        except DataError as error:
            raise DataError(str(error), self.place / WEIGHTS) from None

    def stored_weights(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Return the tensors of its file of weights, and what the file says besides."""
        from safetensors import SafetensorError, safe_open

        path = self.place / WEIGHTS
        try:
            with safe_open(path, "pt") as file:
                return {n: file.get_tensor(n) for n in file.keys()}, file.metadata() or {}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise DataError(f"is no weights file ({error})", path) from None


def prepare_place(out: str | PathLike[str], *, resume: bool = False) -> Path:
    """Return a directory a model may be trained into: new, empty, or one to resume in.

    Raises:
        DataError: If there is something else in its place, or it cannot be made.
    """
    place = Path(out)
    training = place / TRAINING
    try:
        if place.exists() and not place.is_dir():
            raise DataError("is a file; name a directory", place)
        if place.is_dir() and any(place.iterdir()) and not (resume and training.is_dir()):
            if training.is_dir() and not (place / HEADER).exists():
                raise DataError("holds a run that has not finished; resume it or remove it", place)
            raise DataError("exists already; name a new directory or remove it", place)
        training.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be made ({error.strerror})", place) from None
    return place


def write_model(
    out: str | PathLike[str],
    header: ModelHeader,
    weights: Mapping[str, Tensor] | None,
    files: Mapping[str, Any],
    models: Mapping[str, Path] | None = None,
    *,
    numbers: int | None = None,
) -> Path:
    """Write a model directory; `seqloom.json` comes last, so what is unfinished is never loaded.

    Args:
        out: A new directory, or one that a run was trained in.
        header: What the model is.
        weights: Its tensors, if it has any.
        files: Further files by plain name: bytes, text, anything JSON can hold, or a function
            that writes the file at the path it is given.
        models: Model directories to copy in, by plain name.
        numbers: How many numbers the card speaks of; those of the weights if not given.
    """
    place = Path(out)
    for name in (*files, *(models or {})):
        _check_name(name, place)
    trained_here = (place / TRAINING).is_dir()
    if trained_here and (place / HEADER).exists():
        raise DataError("exists already; name a new directory or remove it", place)
    if not trained_here:
        prepare_place(place)
        (place / TRAINING).rmdir()
    try:
        _write_all(place, header, weights, files, models or {}, numbers=numbers)
    except BaseException as error:
        if not trained_here:  # else the run stays, to be resumed
            shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, OSError):
            raise DataError(f"cannot be written ({error.strerror or error})", place) from None
        raise
    return place


def _write_all(
    place: Path,
    header: ModelHeader,
    weights: Mapping[str, Tensor] | None,
    files: Mapping[str, Any],
    models: Mapping[str, Path],
    *,
    numbers: int | None,
) -> None:
    if weights is not None:
        _write_weights(place / WEIGHTS, weights)
    for name, content in files.items():
        _write_file(place / name, content)
    nested = {}
    for name, source in models.items():
        read_model(source)
        shutil.rmtree(place / name, ignore_errors=True)
        shutil.copytree(source, place / name, ignore=shutil.ignore_patterns(TRAINING))
        nested[name] = json.loads((place / name / HEADER).read_text(encoding="utf-8"))["digest"]
    if numbers is None:
        numbers = sum(tensor.numel() for tensor in (weights or {}).values())
    _write_file(place / CARD, _card(header, numbers).encode(errors="backslashreplace"))
    own = [*([WEIGHTS] if weights is not None else []), *files]
    values: dict[str, Any] = {
        "format": FORMAT,
        "seqloom": __version__,
        "task": header.task,
        "architecture": header.architecture,
        "config": header.config,
        "settings": header.settings,
        "metrics": header.metrics,
        "provenance": header.provenance,
        "files": {name: _describe(place / name) for name in sorted(own)},
        "models": nested,
    }
    values["digest"] = _digest(values)
    _write_file(place / HEADER, _json(values, indent=1))


def _card(header: ModelHeader, numbers: int) -> str:
    origin = dict(header.provenance)
    read = origin.pop("read", {})
    tables = {
        "Metrics": header.metrics,
        "Training text": read if isinstance(read, Mapping) else {},
        "Settings": header.config,
        "Provenance": origin,
    }
    title = origin.pop("title", f"{header.task}: {header.architecture}")
    return model_card(str(title), numbers, tables)


def read_model(directory: str | PathLike[str]) -> StoredModel:
    """Read a model directory's header and check that all it lists is there and unaltered.

    Raises:
        DataError: If anything about it is not right, in one line.
    """
    place = Path(directory)
    values = _read_header(place)
    for name, said in values["files"].items():
        _check_name(name, place)
        path = place / name
        if not path.is_file():
            raise DataError(f"{name} is missing from the model directory", place)
        size = path.stat().st_size
        if size != said["bytes"]:
            raise DataError(f"must hold {said['bytes']:,} bytes, got {size:,}; it was cut", path)
        if _describe(path) != said:
            raise DataError("is not the file the model was saved with; it was altered", path)
    models = {}
    for name, digest in values["models"].items():
        _check_name(name, place)
        if _read_header(place / name)["digest"] != digest:
            raise DataError("is not the model this one was saved with", place / name)
        models[name] = read_model(place / name).place
    header = ModelHeader(
        task=values["task"],
        architecture=values["architecture"],
        config=values["config"],
        settings=values["settings"],
        metrics=values["metrics"],
        provenance=values["provenance"],
    )
    return StoredModel(place, header, models)


def find_model(name: str | PathLike[str]) -> Path:
    """Return the directory of a model: a path, or the name of one that comes with the package."""
    if not isinstance(name, str | PathLike):
        raise ConfigError(f"a model must be named by a directory or a name, got {name!r}")
    place = Path(name)
    text = os.fspath(name)
    if place.exists() or len(place.parts) > 1:
        return place
    shipped = shipped_models()
    if text in shipped:
        return shipped[text]
    raise DataError(
        f"no such directory, and no model of that name comes with the package: "
        f"{one_of('model', text, shipped)}",
        text,
    )


def shipped_models() -> dict[str, Path]:
    """The models that come with the package, by name."""
    root = resources.files("seqloom.resources").joinpath("models")
    if not root.is_dir():
        return {}
    return {child.name: Path(str(child)) for child in root.iterdir() if child.is_dir()}


def provenance(library: str = "torch", /, **facts: Any) -> dict[str, Any]:
    """Return what should be known of how a model came about: versions, and the given facts.

    Args:
        library: What the model runs on, whose version matters too.
        facts: What else there is to say.
    """
    versions = {
        "seqloom": __version__,
        "python": platform.python_version(),
        library: str(importlib.import_module(library).__version__),
    }
    return {"versions": versions, **facts}


def _read_header(place: Path) -> dict[str, Any]:
    path = place / HEADER
    values: dict[str, Any]
    try:
        if path.stat().st_size > MAX_HEADER_BYTES:
            raise DataError(f"is larger than {MAX_HEADER_BYTES:,} bytes", path)
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if (place / TRAINING).is_dir():
            raise DataError("holds a run that has not finished; resume it", place) from None
        what = "is not a model directory" if place.is_dir() else "no such directory"
        raise DataError(f"{what} (there is no {HEADER})", place) from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"is not a model's header ({error})", path) from None
    found = values.get("format") if isinstance(values, dict) else None
    if found != FORMAT:
        raise DataError(
            f"must have format {FORMAT}, got {found!r}; it was written by another version", path
        )
    for name, kind in KEYS.items():
        if not isinstance(values.get(name), kind):
            raise DataError(f"{name} must be {kind.__name__}, got {values.get(name)!r}", path)
    for name, said in values["files"].items():
        if not isinstance(said, dict) or set(said) != {"bytes", "sha256"}:
            raise DataError(f"file {name!r} must have bytes and sha256, got {said!r}", path)
    if _digest(values) != values["digest"]:
        raise DataError("was edited after the model was saved; save the model anew", path)
    return values


def _check_name(name: str, place: Path) -> None:
    if Path(name).name != name or "\\" in name or name in ("", ".", ".."):
        raise DataError(f"{name!r} is not a plain file name; it would leave the directory", place)


def _digest(values: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in values.items() if key != "digest"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": sha256}


def _as_bytes(content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    return _json(content, separators=(",", ":"))


def _json(content: Any, **layout: Any) -> bytes:
    try:
        return json.dumps(content, ensure_ascii=False, **layout).encode()
    except UnicodeEncodeError:  # half a pair of surrogates: only escaped is it valid
        return json.dumps(content, **layout).encode()


def _write_file(path: Path, content: Any) -> None:
    with written_beside(path) as beside:
        if callable(content):
            content(beside)
        else:
            beside.write_bytes(_as_bytes(content))


def _write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    from seqloom.tasks.packed_weights import apart

    once, metadata = apart(weights)
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in once.items()}
    try:
        with written_beside(path) as beside:
            save_file(plain, beside, metadata or None)
    except (OSError, SafetensorError) as error:
        raise DataError(f"cannot be written ({error})", path) from None


def load_weights(model: Any, stored: StoredModel) -> None:
    """Put stored weights into a model that was built from the stored configuration."""
    try:
        model.load_state_dict(stored.weights())
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise DataError(f"does not fit the configuration ({first})", stored.place) from None


@contextmanager
def blamed_on(stored: StoredModel) -> Iterator[None]:
    """Say of which model directory it was that something in it makes no sense."""
    try:
        yield
    except KeyError as error:
        raise DataError(f"lacks the setting {error}", stored.place / HEADER) from None
    except ConfigError as error:
        raise DataError(str(error), stored.place / HEADER) from None


def reopen(place: Path) -> None:
    """Let a finished model be written anew, after the run that made it was resumed."""
    (place / HEADER).unlink(missing_ok=True)


def discard_unbegun(place: Path) -> None:
    """Remove the directory of a run that failed before it had anything to resume from."""
    training = place / TRAINING
    if (place / HEADER).exists() or any(training.glob("*.safetensors")):
        return
    shutil.rmtree(training, ignore_errors=True)
    with suppress(OSError):  # it holds something else
        place.rmdir()


def check_task(stored: StoredModel, task: str) -> None:
    """Refuse a directory that holds a model of another task."""
    if stored.header.task != task:
        raise ConfigError(
            f"{stored.place} holds a model of task {stored.header.task!r}, not {task!r}; "
            "seqloom.load opens any of them"
        )
