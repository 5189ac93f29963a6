"""The cap is kept, the disk may be full, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from seqloom.errors import ConfigError, DataError
from seqloom.ngram import Workspace, estimate, write_store
from seqloom.ngram.model import NgramModel
from seqloom.ngram.workspace import parse_size

LINES = [f"w{i % 97} w{i % 13} w{i % 7} w{i % 31}" for i in range(3000)]


@pytest.mark.parametrize(
    ("text", "size"), [("800M", 800 << 20), ("2g", 2 << 30), ("1.5GB", 3 << 29), (12, 12)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1G", "1X", "G"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ConfigError, match=r"such as 800M or 2G, got"):
        parse_size(text)


def test_too_little_memory_is_said():
    with pytest.raises(ConfigError, match=r"at least 384M.*got 10M"):
        Workspace(10 << 20)


def test_columns_in_files_give_the_same_model(tmp_path):
    plain = estimate(LINES, order=4)
    place = Workspace(folder=str(tmp_path))
    place.spilling = True
    spilled = estimate(LINES, order=4, place=place)
    for one, other in zip(plain.levels, spilled.levels, strict=True):
        np.testing.assert_array_equal(one.word, other.word)
        np.testing.assert_array_equal(one.prob, other.prob)
        np.testing.assert_array_equal(one.backoff, other.backoff)
    for kind in ("hashed", "trie"):
        write_store(spilled, tmp_path / kind, kind, place)
        found, expected = NgramModel.load(tmp_path / kind), NgramModel.of(plain)
        np.testing.assert_allclose(found.score(LINES[:50]), expected.score(LINES[:50]), atol=1e-4)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hashed", "trie"]


def test_zeros_are_zero_also_where_they_are_small():
    place = Workspace()
    place.spilling = True
    for size in (1, 100, 10_000):
        junk = place.empty(size, np.float64)
        junk[:] = 7
        assert not place.zeros(size, np.float64).any()


def test_a_full_disk_is_an_error_not_a_crash(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    place = Workspace(folder=str(tmp_path))
    place.spilling = True
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DataError, match="no room left; name another one or give more memory"):
        estimate(LINES, order=3, place=place)
    assert not list(tmp_path.iterdir())


def test_a_folder_without_room_is_refused_before_the_work(monkeypatch, tmp_path):
    place = Workspace(384 << 20, str(tmp_path))
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(DataError, match=r"may need .* MB, the folder has 0 MB"):
        place.spill_above(1 << 40)


def test_a_missing_folder_for_temporary_files(tmp_path):
    place = Workspace(folder=str(tmp_path / "nowhere"))
    place.spilling = True
    with pytest.raises(DataError, match=r"nowhere.*temporary files fails"):
        estimate(LINES, order=3, place=place)


@pytest.mark.parametrize("moment", [0.5, 1.5])
def test_a_kill_leaves_nothing(tmp_path, moment):
    """Temporary files have no name, and what is half written is cleared by the next attempt."""
    out, temporary = tmp_path / "out", tmp_path / "tmp"
    out.mkdir()
    temporary.mkdir()
    code = f"""
from seqloom.ngram import Workspace, estimate, write_store
import itertools
place = Workspace(folder={str(temporary)!r})
place.spilling = True
lines = [f"w{{i % 9973}} w{{i % 131}} w{{i % 77}} w{{i % 313}}" for i in range(20000)]
print("ready", flush=True)
for _ in itertools.count():
    write_store(estimate(lines, order=4, place=place), {str(out / "model")!r}, "hashed", place)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
    assert not list(temporary.iterdir())
    left = [p for p in out.iterdir() if p.name != "model"]
    if (out / "model").exists():
        assert NgramModel.load(out / "model").order == 4  # a whole one of an earlier round
    write_store(estimate(LINES, order=2), out / "model", "hashed", Workspace())
    assert [p.name for p in out.iterdir()] == ["model"], left


def test_the_cap_is_kept(tmp_path):
    """A text that takes more than half as much again without a cap, in a process of its own."""
    text = tmp_path / "text"
    draw = np.random.default_rng(0)
    with text.open("wb") as out:
        for _ in range(70):
            words = draw.integers(0, 30_000, (5_000, 10))
            out.write(b"\n".join(b" ".join(b"w%d" % w for w in row) for row in words) + b"\n")
    code = f"""
from pathlib import Path
from seqloom.ngram import Workspace, estimate, write_store
place = Workspace(384 << 20, {str(tmp_path)!r})
ngrams = estimate({str(text)!r}, order=5, place=place)
assert place.spilling
write_store(ngrams, {str(tmp_path / "model")!r}, "hashed", place)
status = Path("/proc/self/status").read_text()  # rusage would count the parent's memory too
print(int(status.split("VmHWM:")[1].split()[0]) // 1024, ngrams.sizes)
"""
    command = [sys.executable, "-c", code]
    for _ in range(2):  # the first may compile, which takes memory too
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[0]) < 384, done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "text"]
    assert Path(tmp_path / "model").stat().st_size > 100 << 20
