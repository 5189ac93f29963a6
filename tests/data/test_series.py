"""Series are read from tables; what is no number, or not in order, is told with its line."""

from __future__ import annotations

import numpy as np
import pytest

from seqloom.data.series import GapWarning, read_series
from seqloom.errors import DataError


def table(tmp_path, text):
    path = tmp_path / "series.csv"
    path.write_text(text)
    return path


def test_a_first_column_without_numbers_names_the_rows(tmp_path):
    series = read_series(table(tmp_path, "when,a,b\nmon,1,2\ntue,3,\nwed,5,NA\n"))
    assert series.columns == ("a", "b") and series.times == ("mon", "tue", "wed")
    np.testing.assert_array_equal(series.values, [[1, 2], [3, np.nan], [5, np.nan]])
    assert read_series(table(tmp_path, "a\n1\n2\n")).values.tolist() == [[1], [2]]


def test_a_part_of_the_rows(tmp_path):
    path = table(tmp_path, "a\n" + "\n".join(map(str, range(10))) + "\n")
    part = read_series(f"{path}[-4:-1]")
    assert part.values[:, 0].tolist() == [6, 7, 8] and part.start == 6
    with pytest.raises(DataError, match=r"rows \[20:\], got 10 rows"):
        read_series(f"{path}[20:]")


def test_bad_tables_are_told_of_with_their_line(tmp_path):
    with pytest.raises(DataError, match=r"series.csv:3: column 'b' must hold numbers, got 'x'"):
        read_series(table(tmp_path, "a,b\n1,2\n3,x\n"))
    with pytest.raises(DataError, match=r"series.csv:4: times must rise, got '2020-01-02' after"):
        read_series(table(tmp_path, "t,a\n2020-01-01,1\n2020-01-03,2\n2020-01-02,3\n"))
    with pytest.raises(DataError, match=r"series.csv:3: must have 2 fields.*got 1"):
        read_series(table(tmp_path, "a,b\n1,2\n3\n"))


def test_uneven_times_are_told_of(tmp_path):
    text = "t,a\n2020-01-30,1\n2020-01-31,2\n2020-02-02,3\n2020-02-03,4\n"
    with pytest.warns(GapWarning, match=r"1 of 3 steps.*1 day.*2020-01-31 to 2020-02-02"):
        read_series(table(tmp_path, text))
    months = "t,a\n2019-12,1\n2020-01,2\n2020-02,3\n2020-03,4\n"
    assert len(read_series(table(tmp_path, months))) == 4  # 31, 31 and 29 days are a month each


def test_times_with_an_hour_are_checked(tmp_path):
    with pytest.raises(DataError, match=r"series.csv:4: times must rise, got '2020-01-01 01:00'"):
        read_series(
            table(tmp_path, "t,a\n2020-01-01 00:00,1\n2020-01-01 02:00,2\n2020-01-01 01:00,3\n")
        )
    uneven = "t,a\n2020-01-01T22:00,1\n2020-01-01T23:00,2\n2020-01-02T00:00,3\n2020-01-02T03:00,4\n"
    with pytest.warns(GapWarning, match=r"1 of 3 steps are not of 1 hour\(s\).*T00:00 to .*T03:00"):
        read_series(table(tmp_path, uneven))
    even = "t,a\n2020-03-29T01:30:00+01:00,1\n2020-03-29T03:00:00+02:00,2\n2020-03-29T01:30Z,3\n"
    assert len(read_series(table(tmp_path, even))) == 3  # half an hour each


def test_times_that_cannot_be_read_as_dates_are_told_of(tmp_path):
    with pytest.warns(GapWarning, match=r"such as '01/02/2020' are not dates") as told:
        read_series(table(tmp_path, "t,a\n01/02/2020,1\n01/01/2020,2\n"))
    assert len(told) == 1
    with pytest.warns(GapWarning, match=r"such as '2020-13' are not dates"):
        read_series(table(tmp_path, "t,a\n2020-12,1\n2020-13,2\n"))
    with pytest.warns(GapWarning, match=r"partly of a zone"):
        read_series(table(tmp_path, "t,a\n2020-01-01T10:00,1\n2020-01-01T10:00Z,2\n"))


def test_the_three_series(shared_data):
    assert len(read_series("time-series:airline")) == 144
    assert len(read_series("time-series:sunspots[:-60]")) == 2820 - 60
    with pytest.warns(GapWarning, match="2 of 3649 steps"):  # the last days of two leap years
        assert read_series("time-series:temperatures").columns == ("Temp",)
