"""The row reader: any text gives a value or one problem, never an exception."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.importers.rows import Row, read_rows


def row(**cells: str) -> Row:
    return Row("file.csv", 7, cells, [])


@given(st.text())
def test_any_text_is_a_number_above_zero_or_one_problem(text):
    read = row(price=text)
    value = read.decimal("price")
    assert (value is None) == (not read.sound) == (len(read.problems) == 1)
    assert value is None or (value.is_finite() and value > 0)


@given(st.text())
def test_any_text_is_a_date_or_one_problem(text):
    read = row(day=text)
    value = read.day("day")
    assert (value is None) == (len(read.problems) == 1)


@given(st.dates())
def test_every_date_reads_back(day):
    assert row(day=day.isoformat()).day("day") == day


@given(st.decimals(min_value="0.000001", max_value="9999999999", places=6, allow_nan=False))
def test_every_price_reads_back_exactly(price):
    assert row(price=str(price)).decimal("price") == price


@given(st.text(max_size=30))
def test_any_text_is_a_whole_number_a_country_and_flags_or_problems(text):
    read = row(cell=text)
    assert read.integer("cell") is not None or not read.sound
    read = row(cell=text)
    assert read.country("cell") == text
    assert read.sound == (len(text) == 2 and text.isascii() and text.isupper() and read.sound)
    read = row(cell=text)
    assert read.flags("cell", {"stale"}) in ([], ["stale"]) or not read.sound


def test_scaling_is_exact():
    assert row(rate="66.9").scaled("rate", 10**12) == 66.9e12
    assert math.isclose(66.9 * 10**12, 66.9e12)


def test_blank_is_unknown_only_where_it_may_be():
    assert row(price="").decimal("price", blank=True) is None
    read = row(price="")
    assert read.decimal("price") is None
    assert str(read.problems[0]) == "file.csv:7:price: '': must be a number, not empty"


def test_a_long_value_is_cut_in_the_message():
    read = row(kind="x" * 500)
    read.choice("kind", ("a",))
    assert len(str(read.problems[0])) < 150


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text('a,b\n1,2\n"3\n4",5\n6,7\n', encoding="utf-8")
    assert [(r.line, r.cells["a"]) for r in read_rows(path, "a,b", [])] == [(2, "1"), (4, "3\n4"), (5, "6")]


@pytest.mark.parametrize(("text", "value"), [("2026-11-29", date(2026, 11, 29)), ("20261129", None), ("", None)])
def test_dates_have_one_form(text, value):
    assert row(day=text).day("day") == value


def test_a_price_may_not_hide_more_digits_than_are_kept():
    assert row(price="0.1234567").decimal("price") is None
    assert row(price="1.500000000").decimal("price") == Decimal("1.5")
