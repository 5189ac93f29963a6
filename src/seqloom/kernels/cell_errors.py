"""What is wrong with a cell, and the line of its step that is."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from seqloom.errors import ConfigError


class CellError(ConfigError):
    """A cell's definition cannot be understood; the message names the operation and the line."""


def at_line(message: str) -> str:
    """The message with the line of the step that did it."""
    frame = last_of_user(traceback.extract_stack()[:-1])
    where = f"{frame.filename}:{frame.lineno}"
    return f"{message} (in {frame.name}, {where}: {(frame.line or '').strip()})"


def last_of_user(frames: Sequence[traceback.FrameSummary]) -> traceback.FrameSummary:
    """The last frame outside this package and torch, or the last one if there is none."""
    files = [__file__, getattr(sys.modules.get("torch"), "__file__", None)]
    inside = tuple(f"{Path(file).parent}{os.sep}" for file in files if file)
    outside = [frame for frame in frames if not frame.filename.startswith(inside)]
    return (outside or frames)[-1]
