"""Every exception Seqloom raises on purpose.

A message says what must hold, what was found and what to do:
`<what must hold>, got <value>; <what to do>`. The command line prints it as one line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from os import PathLike, fspath


class SeqloomError(Exception):
    """Base of the family: catch this to catch everything Seqloom raises on purpose."""


class ConfigError(SeqloomError, ValueError):
    """A setting is unknown, of the wrong type, out of range, or contradicts another.

    It is a `ValueError` as well, which is what scikit-learn's tools look for.
    """


class ShapeError(SeqloomError):
    """An array or tensor does not have the shape the operation needs."""


class BackendError(SeqloomError):
    """A backend or an optional dependency that was asked for cannot run here."""


class NotFittedError(SeqloomError):
    """A model was used before `fit` or `load`."""


class TrainingError(SeqloomError):
    """Training could not go on; the last good state is kept where there is a directory for it."""


class StoppedError(SeqloomError):
    """A signal stopped the training after a checkpoint was written."""


class DownloadError(SeqloomError):
    """A file could not be fetched, or what came is not what was promised."""


class DataError(SeqloomError):
    """Input data is missing, unreadable or malformed.

    Args:
        message: What is wrong, and what to do.
        path: The file it is wrong in, if there is one.
        line: The line (counted from 1) it is wrong at, if it is known.
    """

    def __init__(
        self, message: str, path: str | PathLike[str] | None = None, line: int | None = None
    ) -> None:
        self.message = message
        self.path = None if path is None else fspath(path)
        self.line = line
        super().__init__(message)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line) if part is not None)
        return f"{place}: {self.message}" if place else self.message


class InputError(DataError, ValueError):
    """Data given in Python (an array, texts, labels) cannot be used as it is.

    It is a `ValueError` as well, which is what scikit-learn's tools look for.
    """


class InputTypeError(InputError, TypeError):
    """Data given in Python holds values of a type that cannot be used; a `TypeError` as well."""


class NotSeparableWarning(UserWarning):
    """A perceptron ended without having set the classes apart."""


def nearest(name: object, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the known name nearest to `name`, or "" if none is near."""
    if not isinstance(name, str):
        return ""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def one_of(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the message for an unknown `name`: what it is, the nearest known one, all of them."""
    names = sorted(known)
    return f"unknown {kind} {name!r}{nearest(name, names)} (known: {', '.join(names) or 'none'})"
