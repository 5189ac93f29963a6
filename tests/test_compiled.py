"""Compiled code is kept on disk where that is possible, and works where it is not."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import pytest

from seqloom.compiled import in_threads

CODE = "from seqloom.ngram.words import Words; print(Words.of(['a', 'b']).number('b'))"


def run(cache, **popen) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=os.environ | {"SEQLOOM_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=True,
        **popen,
    )
    return done.stdout.strip(), done.stderr


def test_the_first_run_says_that_it_compiles_and_later_ones_start_at_once(tmp_path):
    first, second = run(tmp_path), run(tmp_path)
    assert first[0] == second[0] == "4"
    assert first[1].count("compiling for this machine; later runs start at once") == 1
    assert second[1] == ""


def test_without_a_folder_to_write_to_it_compiles_each_time(tmp_path):
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    for _ in range(2):
        out, said = run(tmp_path / "file")
        assert out == "4"
        assert "no folder to keep it was found" in said


def no_disk() -> None:
    """No file may grow: what a full disk is to a process that writes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_on_a_full_disk_it_compiles_and_goes_on(tmp_path):
    assert run(tmp_path, preexec_fn=no_disk)[0] == "4"


def test_results_of_threads_come_in_order_and_errors_come_through():
    assert in_threads(lambda x: x * x, range(20)) == [x * x for x in range(20)]
    assert in_threads(lambda x: x, []) == []
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda x: 1 // x, [1, 0, 2])
