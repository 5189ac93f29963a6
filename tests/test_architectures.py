"""The table of architectures: looked up by name, imported late."""

from __future__ import annotations

import fractions
import importlib.util
import subprocess
import sys
from collections import Counter

import pytest

from seqloom import architectures as module
from seqloom.architectures import (
    ARCHITECTURES,
    EXTRAS,
    Architecture,
    architectures,
    find_architecture,
    load_config_class,
    load_model_class,
    missing_extra,
)
from seqloom.errors import BackendError, ConfigError

COUNTS = Architecture("lm", "counts", "counted", "fractions:Fraction", "collections:Counter")
NEURAL = Architecture("lm", "lstm", "learned", "fractions:Fraction", "colorsys:hsv", extra="neural")
OTHER = Architecture("classify", "counts", "other", "datetime:date", "datetime:time")


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(module, "ARCHITECTURES", (COUNTS, NEURAL, OTHER))


def test_the_table_and_its_parts(table):
    assert architectures() == [COUNTS, NEURAL, OTHER]
    assert architectures("lm") == [COUNTS, NEURAL]
    assert find_architecture("lm", "counts") is COUNTS
    assert find_architecture("classify", "counts") is OTHER


def test_classes_are_imported_from_their_place(table):
    assert load_config_class(COUNTS) is fractions.Fraction
    assert load_model_class(COUNTS) is Counter


def test_unknown_names_are_refused(table):
    with pytest.raises(ConfigError, match=r"unknown task 'classfy'; did you mean 'classify'\?"):
        architectures("classfy")
    with pytest.raises(ConfigError, match=r"architecture for task 'lm' 'lst'; did you mean 'lstm'"):
        find_architecture("lm", "lst")
    with pytest.raises(ConfigError, match=r"unknown task 'x' \(known: classify, lm\)"):
        find_architecture("x", "lstm")


def test_a_missing_extra_is_named(table, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert missing_extra(COUNTS) is None
    assert missing_extra(NEURAL) == "neural"
    for load in (load_config_class, load_model_class):
        with pytest.raises(BackendError, match=r"'lstm' needs torch.*'seqloom\[neural\]'"):
            load(NEURAL)


def test_an_extra_that_is_there_is_not_missing(table, monkeypatch):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: "found" if name == "torch" else None
    )
    assert missing_extra(NEURAL) is None
    assert load_config_class(NEURAL) is fractions.Fraction


def test_the_real_table_is_sound():
    assert len({(entry.task, entry.name) for entry in ARCHITECTURES}) == len(ARCHITECTURES)
    for entry in ARCHITECTURES:
        assert entry.extra is None or entry.extra in EXTRAS
        assert entry.summary and "\n" not in entry.summary
        if missing_extra(entry) is None:
            assert load_config_class(entry).__dataclass_fields__ is not None
            assert isinstance(load_model_class(entry), type)


def test_the_table_imports_nothing_heavy():
    code = (
        "import sys, seqloom.architectures; print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
