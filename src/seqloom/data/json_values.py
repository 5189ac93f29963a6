"""JSON text to Python values, with messages that say where it is broken."""

from __future__ import annotations

import json
import re

from seqloom.data.problems import shown
from seqloom.errors import DataError
from seqloom.files import Source

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str, path: Source, first_line: int = 1) -> object:
    """Return the value of a JSON text that begins at `first_line` of a file.

    Raises:
        DataError: If it is not JSON, is nested too deeply, or escapes half a surrogate pair
            (which no UTF-8 file, and so no vocabulary, could hold).
    """
    try:
        value: object = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        near = shown(text[max(0, error.pos - 15) : error.pos + 15])
        raise DataError(
            f"is not JSON: {error.msg} at column {error.colno}, near {near}",
            path,
            first_line + error.lineno - 1,
        ) from None
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise DataError(
            f"holds half a surrogate pair ({half}); was a text cut?", path, first_line
        ) from None
    except RecursionError:
        raise DataError("is nested too deeply to be data", path, first_line) from None
    except ValueError as error:  # a number of thousands of digits
        raise DataError(f"is not JSON we can hold: {error}", path, first_line) from None
    return value
