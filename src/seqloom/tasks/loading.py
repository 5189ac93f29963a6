"""Opening any model directory."""

from __future__ import annotations

from os import PathLike
from typing import Any

from seqloom.architectures import TASKS, import_place
from seqloom.errors import ConfigError, one_of
from seqloom.tasks.directory import blamed_on, find_model, read_model


def task_class(task: str) -> Any:
    """Return the estimator of a task by its name on the command line."""
    if task not in TASKS:
        raise ConfigError(one_of("task", task, TASKS))
    return import_place(TASKS[task])


def load(directory: str | PathLike[str]) -> Any:
    """Load a model: a directory, or the name of one that comes with the package.

    Returns:
        The fitted estimator of the model's task.

    Raises:
        DataError: If the directory is missing, cut, altered, unfinished or not a model's.
    """
    stored = read_model(find_model(directory))
    with blamed_on(stored):
        return task_class(stored.header.task).from_stored(stored)
