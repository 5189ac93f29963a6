"""Counters, gauges and histograms in the text format of Prometheus.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4).
"""

from __future__ import annotations

import bisect
import os
import time
from collections.abc import Callable
from pathlib import Path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)

HELP = {
    "seqloom_requests_total": "Requests answered, by endpoint and status.",
    "seqloom_request_seconds": "Seconds from a request to its answer, by endpoint.",
    "seqloom_refused_total": "Requests refused before they were worked on, by reason.",
    "seqloom_worker_restarts_total": "Workers that ended and were started anew.",
    "seqloom_template_restarts_total": "Templates of workers that ended and were started anew.",
    "seqloom_batches_total": "Batches answered.",
    "seqloom_batch_size": "Requests a batch, by model.",
    "seqloom_batch_seconds": "Seconds a batch took a worker, by model.",
}
BOUNDS: dict[str, tuple[float, ...]] = {
    "seqloom_request_seconds": SECONDS,
    "seqloom_batch_size": COUNTS,
    "seqloom_batch_seconds": SECONDS,
}
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """What is counted and measured. Labels are few: endpoints, statuses, models, reasons."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, list[float]]] = {}
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._began = time.time()
        self.gauge("process_resident_memory_bytes", "Memory of the app process.", _resident)
        self.gauge("process_start_time_seconds", "When it started.", lambda: self._began)

    def gauge(self, name: str, told: str, read: Callable[[], float]) -> None:
        """Show a number that is read when it is asked for."""
        self._gauges[name] = told, read

    def add(self, name: str, amount: float, **labels: str) -> None:
        """Count."""
        row = self._counts.setdefault(name, {})
        key = tuple(labels.items())
        row[key] = row.get(key, 0) + amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Put a value into a histogram."""
        bounds = BOUNDS[name]
        key = tuple(labels.items())
        row = self._histograms.setdefault(name, {}).setdefault(key, [0.0] * (len(bounds) + 2))
        row[bisect.bisect_left(bounds, value)] += 1
        row[-1] += value

    def value(self, name: str, **labels: str) -> float:
        """What was counted so far."""
        return self._counts.get(name, {}).get(tuple(labels.items()), 0)

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        lines: list[str] = []
        for name, (told, read) in self._gauges.items():
            lines += [f"# HELP {name} {told}", f"# TYPE {name} gauge", f"{name} {_number(read())}"]
        for name, rows in self._counts.items():
            lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} counter"]
            lines += [f"{name}{_labels(key)} {_number(value)}" for key, value in rows.items()]
        for name, found in self._histograms.items():
            lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} histogram"]
            for key, row in found.items():
                lines += _histogram(name, key, row)
        return "\n".join(lines) + "\n"


def _histogram(name: str, key: Labels, row: list[float]) -> list[str]:
    lines, total = [], 0.0
    for bound, count in zip((*BOUNDS[name], "+Inf"), row[:-1], strict=True):
        total += count
        labels = _labels((*key, ("le", str(bound))))
        lines.append(f"{name}_bucket{labels} {_number(total)}")
    lines.append(f"{name}_sum{_labels(key)} {_number(row[-1])}")
    lines.append(f"{name}_count{_labels(key)} {_number(total)}")
    return lines


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _resident() -> float:
    """Bytes of memory this process holds; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
