"""The family of exceptions, and the words that help with a wrong name."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from seqloom import errors
from seqloom.errors import DataError, SeqloomError, nearest, one_of


def test_every_exception_is_of_the_family():
    for thing in vars(errors).values():
        if isinstance(thing, type) and issubclass(thing, Exception):
            assert issubclass(thing, (SeqloomError, Warning))
            assert thing.__doc__


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((), "it is wrong"),
        (("a.txt",), "a.txt: it is wrong"),
        (("a.txt", 3), "a.txt:3: it is wrong"),
        ((Path("b") / "a.txt", 3), "b/a.txt:3: it is wrong"),
    ],
)
def test_a_data_error_says_where(place, expected):
    error = DataError("it is wrong", *place)
    assert str(error) == expected
    assert error.message == "it is wrong"
    assert error.path == (str(place[0]) if place else None)
    assert error.line == (place[1] if len(place) > 1 else None)


def test_a_data_error_survives_the_way_to_another_process():
    error = pickle.loads(pickle.dumps(DataError("wrong", "a.txt", 3)))
    assert str(error) == "a.txt:3: wrong"


def test_the_nearest_name():
    assert nearest("hiden_size", ["hidden_size", "input_size"]) == "; did you mean 'hidden_size'?"
    assert nearest("zzz", ["hidden_size"]) == ""
    assert nearest("a", []) == ""


@pytest.mark.parametrize("name", [None, 3, 1.5, ["a"], {"a": 1}, b"a"])
def test_what_is_no_name_has_no_nearest(name):
    assert nearest(name, ["a"]) == ""
    assert one_of("letter", name, ["b", "a"]) == f"unknown letter {name!r} (known: a, b)"


def test_one_of():
    message = "unknown fruit 'aple'; did you mean 'apple'? (known: apple, pear)"
    assert one_of("fruit", "aple", {"pear", "apple"}) == message
    assert one_of("fruit", "x", []) == "unknown fruit 'x' (known: none)"
