"""The URL holds the question: reading it, and writing it in its shortest form."""

from __future__ import annotations

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from frontend.query import canonical_query, read_query, traffic_way
from planner.engine.workload import InferenceQuestion


def read(query: str):
    return read_query(QueryDict(query), InferenceQuestion)


def test_blank_boxes_are_not_part_of_the_question() -> None:
    asked = read("model=Qwen3+8B&users=&requests_per_second=3&config=")
    assert asked.given == {"model": "Qwen3 8B", "requests_per_second": "3"}
    assert not asked.is_empty


def test_ticked_boxes_come_as_one_list() -> None:
    asked = read("purchase_options=on_demand&purchase_options=spot&purchase_options=")
    assert asked.raw == {"purchase_options": "on_demand,spot"}


def test_a_value_given_twice_is_a_fault_that_names_both() -> None:
    (error,) = read("users=1&users=2").errors
    assert (error.field, error.value, error.allowed) == ("users", "1, 2", "one value")


def test_a_control_character_is_a_fault() -> None:
    (error,) = read("model=a%00b").errors
    assert (error.field, error.message) == ("model", "Control characters are not allowed.")


def test_unknown_names_go_on_to_the_engine_which_names_them() -> None:
    assert read("modle=x").raw == {"modle": "x"}


@pytest.mark.parametrize(
    ("query", "way"),
    [
        ("requests_per_second=3", "rate"),
        ("users=100&requests_per_user_per_day=5", "users"),
        ("concurrency=8", "clients"),
        ("traffic_by=clients", "clients"),
        ("", "rate"),
    ],
)
def test_the_way_the_traffic_is_stated(query: str, way: str) -> None:
    asked = read(query)
    assert traffic_way(asked.given, asked.page) == way


def test_a_value_left_in_a_hidden_traffic_box_is_dropped() -> None:
    asked = read("traffic_by=users&users=10&requests_per_user_per_day=5&requests_per_second=3&concurrency=8")
    assert asked.raw == {"users": "10", "requests_per_user_per_day": "5"}


def test_defaults_are_left_out_and_fields_come_in_their_order() -> None:
    given_fields = {"tpot_ms": "40", "input_tokens": "1000", "model": "Qwen3 8B", "purchase_options": "on_demand"}
    assert canonical_query(given_fields, InferenceQuestion) == "model=Qwen3+8B&tpot_ms=40"


@given(
    st.dictionaries(
        st.sampled_from(["model", "users", "ttft_ms", "providers", "max_nodes", "nonsense"]),
        st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=20),
    )
)
def test_the_canonical_form_reads_back_as_itself(fields: dict[str, str]) -> None:
    first = canonical_query({name: value for name, value in fields.items() if value.strip()}, InferenceQuestion)
    assert canonical_query(read(first).given, InferenceQuestion) == first
