"""The runs on this machine that the studio shows: their metrics, settings and learning curves."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seqloom.errors import DataError
from seqloom.files import METRICS_FILE, cache_folder
from seqloom.tasks.directory import HEADER, MAX_HEADER_BYTES, TRAINING

LEAGUE_FILE = "league.json"
MAX_RUNS, MAX_POINTS, MAX_FILE = 200, 400, 16 << 20
NOT_DRAWN = ("step", "epoch", "rate", "seconds", "items_per_second")


def runs_folder() -> Path:
    """Where the studio keeps what it trains, and looks for further runs.

    It is `$SEQLOOM_RUNS`, else a folder of the cache.
    """
    given = os.environ.get("SEQLOOM_RUNS")
    return Path(given).expanduser() if given else cache_folder() / "runs"


def list_runs(served: Iterable[tuple[str, Path]], folder: Path) -> dict[str, Any]:
    """What is known of the models served and of the runs in a folder.

    Args:
        served: Models by name, with their directories.
        folder: A folder of model directories, of runs that go on, and of what `seqloom compare`
            wrote.

    Returns:
        "runs": name, task, architecture, metrics, seconds, and the learning curve of each; and
        "leagues": the tables of `seqloom compare`.
    """
    places = dict(served)
    known = {place.resolve() for place in places.values()}
    children = sorted(folder.iterdir())[:MAX_RUNS] if folder.is_dir() else []
    places |= {child.name: child for child in children if child.resolve() not in known}
    runs = [found for name, place in places.items() if (found := _run(name, place))]
    # `seqloom compare --out X` leaves X/league.json and X/models/NAME.
    folders = {place.parent.parent for place in known} | set(places.values())
    leagues = [
        {"name": each.name, **table}
        for each in sorted(folders)
        if isinstance(table := _json(each / LEAGUE_FILE), dict) and "league" in table
    ]
    return {"runs": runs, "leagues": leagues}


def _run(name: str, place: Path) -> dict[str, Any] | None:
    header = _json(place / HEADER)
    curve = read_curve(place / TRAINING / METRICS_FILE)
    if not isinstance(header, dict) and not curve["points"]:
        return None
    header = header if isinstance(header, dict) else {}
    origin = header.get("provenance") or {}
    return {
        "name": name,
        "task": header.get("task"),
        "architecture": header.get("architecture"),
        "metrics": {
            key: value
            for key, value in (header.get("metrics") or {}).items()
            if isinstance(value, int | float) and math.isfinite(value)
        },
        "data": _plain_text(origin.get("train")),
        "seconds": origin.get("seconds"),
        "epochs": origin.get("epochs"),
        "examples": origin.get("examples"),
        "finished": bool(header),
        "curve": curve,
    }


def _plain_text(value: Any) -> str | None:
    """A data set's name; of a file its name alone, as where it lies is nobody's business."""
    return Path(value).name if isinstance(value, str) else None


def read_curve(path: Path) -> dict[str, Any]:
    """A learning curve as columns: "steps", and by name one number or None a step.

    A file that is not there, or is cut, gives what there is of it.
    """
    rows: list[dict[str, Any]] = []
    try:
        if path.stat().st_size <= MAX_FILE:
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                if isinstance(row, dict) and isinstance(row.get("step"), int):
                    rows.append(row)
    except (OSError, ValueError):
        pass  # the rest of a run that goes on is not written yet
    measured = [row for row in rows if set(row) - {*NOT_DRAWN, "loss"}]
    every = max(1, math.ceil(len(rows) / MAX_POINTS))
    kept = [row for i, row in enumerate(rows) if i % every == 0 or row in measured]
    names = dict.fromkeys(key for row in kept for key in row if key not in NOT_DRAWN)
    return {
        "points": len(kept),
        "steps": [row["step"] for row in kept],
        "series": {name: [_finite(row.get(name)) for row in kept] for name in names},
    }


def _finite(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if is_number else None


def _json(path: Path) -> Any:
    """A small JSON file, or None if there is none that can be read."""
    try:
        if path.stat().st_size > MAX_HEADER_BYTES:
            return None
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, DataError):
        return None
