"""Settings from plain values: what is taken, what is refused, and in which words."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config import apply_overrides, from_dict, load_toml, to_dict
from seqloom.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Optim:
    rate: float = 0.1
    steps: int = 10
    name: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise ConfigError(f"rate must not be negative, got {self.rate}")


@dataclass(frozen=True, kw_only=True)
class Run:
    title: str
    optim: Optim = field(default_factory=Optim)
    second: Optim | None = None
    debug: bool = False
    size: int | None = None
    pair: tuple[int, str] = (1, "a")
    many: tuple[float, ...] = ()
    layers: list[int] = field(default_factory=list)
    table: dict[str, int] = field(default_factory=dict)
    place: Path = Path("out")
    level: Literal[1, 2, "max"] = 1
    either: int | str = 0
    anything: Any = None
    runs: tuple[Optim, ...] = ()
    derived: int = field(init=False, default=7)


numbers = st.floats(allow_nan=False, min_value=0)
optims = st.builds(Optim, rate=numbers, steps=st.integers(), name=st.sampled_from(["sgd", "adam"]))
runs = st.builds(
    Run,
    title=st.text(),
    optim=optims,
    second=st.none() | optims,
    debug=st.booleans(),
    size=st.none() | st.integers(),
    pair=st.tuples(st.integers(), st.text()),
    many=st.lists(numbers).map(tuple),
    layers=st.lists(st.integers()),
    table=st.dictionaries(st.text(), st.integers()),
    place=st.just(Path("a") / "b"),
    level=st.sampled_from([1, 2, "max"]),
    either=st.integers() | st.text(),
    anything=st.none() | st.lists(st.integers()),
    runs=st.lists(optims, max_size=3).map(tuple),
)


@given(runs)
def test_plain_values_and_back(run):
    plain = to_dict(run)
    assert from_dict(Run, plain) == run
    assert from_dict(Run, json.loads(json.dumps(plain))) == run


def test_what_is_left_out_keeps_its_default():
    assert from_dict(Run, {"title": "x"}) == Run(title="x")
    made = from_dict(Run, {"title": "x", "optim": {"steps": 3}})
    assert made.optim == Optim(steps=3)


def test_numbers_are_taken_where_nothing_is_lost():
    made = from_dict(Optim, {"rate": 1, "steps": 5.0})
    assert (made.rate, type(made.rate), made.steps, type(made.steps)) == (1.0, float, 5, int)
    assert from_dict(Optim, {"rate": math.inf}).rate == math.inf


def test_ready_made_parts_are_taken_as_they_are():
    optim = Optim(steps=3)
    assert from_dict(Run, {"title": "x", "optim": optim}).optim is optim
    assert from_dict(Run, {"title": "x", "place": Path("y")}).place == Path("y")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"titel": "x"}, r"unknown setting 'titel'; did you mean 'title'\? \(known here: title, "),
        ({"title": "x", "zzz": 1}, r"unknown setting 'zzz' \(known"),
        ({"title": "x", 3: 1}, r"unknown setting '3' \(known"),
        ({"title": "x", "derived": 1}, "unknown setting 'derived'"),
        ({"title": "x", "optim": {"rat": 1}}, "unknown setting 'optim.rat'; did you mean 'rate'"),
        ({}, "setting 'title' must be given"),
        ({"title": 3}, "'title' must be text, got 3"),
        ({"title": None}, "'title' must be text, got None"),
        ({"title": "x", "size": True}, "'size' must be a whole number, got True"),
        ({"title": "x", "size": "5"}, "'size' must be a whole number, got '5'"),
        ({"title": "x", "size": 5.5}, "'size' must be a whole number, got 5.5"),
        ({"title": "x", "size": math.inf}, "'size' must be a whole number, got inf"),
        ({"title": "x", "size": math.nan}, "'size' must be a whole number, got nan"),
        ({"title": "x", "debug": 1}, "'debug' must be true or false, got 1"),
        ({"title": "x", "debug": "true"}, "'debug' must be true or false, got 'true'"),
        ({"title": "x", "optim": {"rate": "0.1"}}, "'optim.rate' must be a number, got '0.1'"),
        ({"title": "x", "optim": {"rate": True}}, "'optim.rate' must be a number, got True"),
        ({"title": "x", "optim": {"rate": 10**400}}, "'optim.rate' must be a number, got 1000"),
        ({"title": "x", "optim": {"rate": -1.5}}, "rate must not be negative, got -1.5"),
        ({"title": "x", "optim": 3}, "'optim' must be a table, got 3"),
        ({"title": "x", "optim": None}, "'optim' must be a table, got None"),
        ({"title": "x", "second": [1]}, r"'second' must be a table, got \[1\]"),
        ({"title": "x", "optim": {"name": "adma"}}, "'adam', got 'adma'; did you mean 'adam'"),
        ({"title": "x", "optim": {"name": 3}}, "'optim.name' must be one of .*got 3"),
        ({"title": "x", "optim": {"name": None}}, "'optim.name' must be one of .*got None"),
        ({"title": "x", "optim": {"name": []}}, r"'optim.name' must be one of .*got \[\]"),
        ({"title": "x", "level": True}, "'level' must be one of 1, 2, 'max', got True"),
        ({"title": "x", "level": 3}, "'level' must be one of 1, 2, 'max', got 3"),
        ({"title": "x", "pair": [1]}, r"'pair' must hold 2 values, got \[1\]"),
        ({"title": "x", "pair": [1, "a", 2]}, r"'pair' must hold 2 values, got \[1, 'a', 2\]"),
        ({"title": "x", "pair": ["a", 1]}, r"'pair\[0\]' must be a whole number, got 'a'"),
        ({"title": "x", "pair": "1a"}, "'pair' must be a list, got '1a'"),
        ({"title": "x", "many": [1, "b"]}, r"'many\[1\]' must be a number, got 'b'"),
        ({"title": "x", "many": 3}, "'many' must be a list, got 3"),
        ({"title": "x", "layers": [1, 2.5]}, r"'layers\[1\]' must be a whole number, got 2.5"),
        ({"title": "x", "table": [1]}, r"'table' must be a table, got \[1\]"),
        ({"title": "x", "table": {"a": "b"}}, "'table.a' must be a whole number, got 'b'"),
        ({"title": "x", "place": 3}, "'place' must be Path, got 3"),
        ({"title": "x", "either": 1.5}, "'either' must be a whole number, got 1.5"),
        ({"title": "x", "runs": [{}, {"rate": "b"}]}, r"'runs\[1\].rate' must be .*got 'b'"),
        ([("title", "x")], r"settings must be a table, got \[\('title', 'x'\)\]"),
        (None, "settings must be a table, got None"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(Run, values)


def test_the_place_of_a_table_is_part_of_the_message():
    with pytest.raises(ConfigError, match=r"unknown setting 'training\.optim\.x'"):
        from_dict(Run, {"title": "x", "optim": {"x": 1}}, where="training")


def test_only_dataclasses_become_plain_values():
    for wrong in (3, Run, {"a": 1}):
        with pytest.raises(ConfigError, match="takes a dataclass instance, got"):
            to_dict(wrong)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (np.int64(3), int, 3),
        (np.uint8(3), float, 3.0),
        (np.float32(0.5), float, 0.5),
        (np.float64(2.0), int, 2),
        (np.array(4), int, 4),
        (np.bool_(True), bool, True),
        (np.str_("a"), Literal["a", "b"], "a"),
        (np.int64(3), Any, 3),
        ((np.int64(1), np.int32(2)), tuple[int, ...], (1, 2)),
        ({"x": np.float32(0.25)}, dict[str, float], {"x": 0.25}),
        (np.int64(3), int | None, 3),
    ],
)
def test_numbers_of_numpy_become_pythons_own(value, hint, expected):
    config = make_dataclass("One", [("field", hint)])
    found = from_dict(config, {"field": value}).field
    assert (found, type(found)) == (expected, type(expected))
    json.dumps(found)


@pytest.mark.parametrize(
    ("value", "hint"), [(np.bool_(True), int), (np.float32(0.5), int), (np.ones(1), float)]
)
def test_what_is_no_such_number_of_numpy_is_refused(value, hint):
    with pytest.raises(ConfigError, match="'field' must be a"):
        from_dict(make_dataclass("One", [("field", hint)]), {"field": value})


# Overrides


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("a=1", {"a": 1}),
        ("a = 1.5 ", {"a": 1.5}),
        ("a=-2e3", {"a": -2000.0}),
        ("a=inf", {"a": math.inf}),
        ("a=true", {"a": True}),
        ("a=[1, 'b']", {"a": [1, "b"]}),
        ("a={b = 1}", {"a": {"b": 1}}),
        ('a="1"', {"a": "1"}),
        ("a=plain", {"a": "plain"}),
        ("a=True", {"a": True}),
        ("a=False", {"a": False}),
        ("a='False'", {"a": "False"}),
        ("a=[True]", {"a": "[True]"}),
        ("a=None", {"a": "None"}),
        ("a=", {"a": ""}),
        ("a=x=y", {"a": "x=y"}),
        ("a=/tmp/x.txt", {"a": "/tmp/x.txt"}),
        ("a=C:\\x", {"a": "C:\\x"}),
        ("a=1\nb = 2", {"a": "1\nb = 2"}),
        ("a=" + "[" * 10_000, {"a": "[" * 10_000}),
        ("a=" + "9" * 5_000, {"a": "9" * 5_000}),
        ("a.b.c=1", {"a": {"b": {"c": 1}}}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_override_is_toml_or_plain_text(override, expected):
    assert apply_overrides({}, [override]) == expected


def test_overrides_change_a_copy_in_order():
    values = {"model": {"size": 1, "name": "x"}, "seed": 0}
    changed = apply_overrides(values, ["model.size=2", "seed=1", "model.size=3", "model.new.y=4"])
    assert changed == {"model": {"size": 3, "name": "x", "new": {"y": 4}}, "seed": 1}
    assert values == {"model": {"size": 1, "name": "x"}, "seed": 0}


@pytest.mark.parametrize("wrong", ["a", "", "=1", ".a=1", "a.=1", "a..b=1", " =1"])
def test_a_malformed_override_is_refused(wrong):
    with pytest.raises(ConfigError, match=f"must look like key=value, got '{wrong}'"):
        apply_overrides({}, [wrong])


def test_an_override_into_a_value_is_refused():
    with pytest.raises(ConfigError, match=r"'a\.b' is a value, not a table.*'a\.b\.c=1'"):
        apply_overrides({"a": {"b": 5}}, ["a.b.c=1"])


@given(st.dictionaries(st.from_regex("[a-z]{1,5}", fullmatch=True), st.integers(), max_size=5))
def test_overrides_alone_make_a_table(values):
    assert apply_overrides({}, [f"{key}={value}" for key, value in values.items()]) == values


# Files


def test_a_file_is_read_as_toml(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('title = "é"\n[optim]\nsteps = 3\n', encoding="utf-8")
    assert from_dict(Run, load_toml(path)) == Run(title="é", optim=Optim(steps=3))
    assert load_toml(str(path)) == tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = ", "is not TOML"),
        (b"a = 1\na = 2", "is not TOML"),
        (b"\xff\xfe", "cannot be read.*0xff"),
        (b"a = " + b"[" * 100_000, "is not TOML"),
        (b"a = " + b"9" * 5_000, "is not TOML"),
    ],
    ids=["cut", "twice", "not utf-8", "deep", "long number"],
)
def test_a_broken_file_is_refused_with_its_path(tmp_path, content, message):
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"run\.toml: {message}"):
        load_toml(path)


def test_a_missing_file_is_refused_with_its_path(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml: no such file"):
        load_toml(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=f"{tmp_path.name}: cannot be read"):
        load_toml(tmp_path)
