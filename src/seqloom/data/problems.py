"""What happens to a malformed record: it stops the reading, or it is skipped and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from typing import Generic, Literal, TypeVar

from seqloom.errors import ConfigError, DataError, one_of

OnError = Literal["raise", "skip"]
Record = TypeVar("Record")

KEPT_PROBLEMS = 20  # how many skipped records are remembered in full; all of them are counted
SHOWN_CHARACTERS = 60  # how much of an offending value a message repeats


def shown(value: object) -> str:
    """Return a value as a message shows it: on one line, cut when it is long."""
    if isinstance(value, str):
        value = value[: SHOWN_CHARACTERS + 1]  # a long text is not quoted whole only to be cut
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


class Problems:
    """Collects the malformed records of one pass over a file.

    Args:
        on_error: "raise" stops at the first problem; "skip" counts it and goes on.
    """

    def __init__(self, on_error: OnError = "raise") -> None:
        if on_error not in ("raise", "skip"):
            raise ConfigError(one_of("on_error", on_error, ("raise", "skip")))
        self.on_error = on_error
        self.count = 0
        self.mended = 0  # a reader adds to it when it puts a value right (see `read_questions`)
        self.first: list[DataError] = []

    def report(self, message: str, path: str | PathLike[str], line: int | None = None) -> None:
        """Raise the problem, or count it when the caller asked to skip."""
        self.add(DataError(message, path, line))

    def add(self, problem: DataError) -> None:
        """As `report`, for a problem that is an exception already."""
        if self.on_error == "raise":
            raise problem
        self.count += 1
        if len(self.first) < KEPT_PROBLEMS:
            self.first.append(problem)


class Records(Generic[Record]):
    """The records of one or more files, read anew (and streamed) each time it is iterated.

    After a pass, `skipped` tells how many malformed records were left out (always 0 unless
    `on_error="skip"`) and `problems` shows the first of them. A pass that yields no record at all
    raises `DataError`: an empty input is a mistake, not a data set.

    Args:
        read: Starts one pass; it hands malformed records to the `Problems` it is given.
        name: What to call the input in the message about an empty one (usually the path).
        on_error: "raise" or "skip".
    """

    def __init__(
        self, read: Callable[[Problems], Iterator[Record]], name: str, on_error: OnError = "raise"
    ) -> None:
        self._read, self.name, self.on_error = read, name, on_error
        self._problems = Problems(on_error)

    def __iter__(self) -> Iterator[Record]:
        self._problems = Problems(self.on_error)
        problems, found = self._problems, False
        for record in self._read(problems):
            found = True
            yield record
        if not found:
            skipped = f" (all {problems.count} records were malformed)" if problems.count else ""
            raise DataError(
                f"no record was found{skipped}; give a file that holds at least one", self.name
            )

    @property
    def skipped(self) -> int:
        """How many malformed records the latest pass left out."""
        return self._problems.count

    @property
    def mended(self) -> int:
        """How many values the latest pass put right; a reader that does so says it does."""
        return self._problems.mended

    @property
    def problems(self) -> list[DataError]:
        """The first malformed records of the latest pass."""
        return self._problems.first

    def __repr__(self) -> str:
        return f"Records({self.name!r}, on_error={self.on_error!r})"
