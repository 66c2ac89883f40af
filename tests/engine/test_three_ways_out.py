"""Nothing fits: three ways out with numbers, each of which leads to an option by itself."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.advice import Advice
from planner.engine.checked_advice import checked
from planner.engine.workload import InferenceQuestion
from tests.engine.test_inference_plan import plan


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({"budget_usd_per_month": 1000}, ["budget_usd_per_month", "purchase_options"]),
        ({"ttft_ms": 1}, ["ttft_ms", "ttft_ms", "input_tokens"]),
        ({"tpot_ms": 0.5}, ["tpot_ms", "tpot_ms", "slo_percentile"]),
        ({"budget_usd_per_month": 1, "ttft_ms": 1}, ["ttft_ms", "input_tokens", "slo_percentile"]),
        ({"max_nodes": 1, "requests_per_second": 1e5}, ["max_nodes", "requests_per_second"]),
        ({"max_nodes": 1, "concurrency": 100_000, "requests_per_second": None}, ["max_nodes", "concurrency"]),
    ],
)
def test_three_ways_out_each_lead_to_an_option(asked: dict[str, Any], fields: list[str]) -> None:
    answer = plan(**asked)
    assert not answer.options
    ways = [advice for advice in answer.advice if not advice.is_warning]
    assert [way.field for way in ways] == fields
    assert len({str(way.changes) for way in ways}) == len(ways)
    for way in ways:
        assert plan(**asked | way.changes).options, way.suggestion


def test_two_limits_in_the_way_are_raised_together_to_what_the_cheapest_needs() -> None:
    cheapest = plan().options[0]
    way = plan(budget_usd_per_month=1, ttft_ms=1).advice[0]
    assert way.changes["budget_usd_per_month"] == pytest.approx(float(cheapest.price.usd_per_month), abs=1)
    # The limit is to hold beyond the peak too, as far as headroom goes.
    (stretched, *_) = plan(peak_factor=2 / 0.8, headroom=0).options
    assert stretched.id == cheapest.id
    assert way.changes["ttft_ms"] == pytest.approx(stretched.speed.ttft_ms["p95"], abs=1)
    assert cheapest.cluster.accelerator_name in way.suggestion


def question(**fields: Any) -> InferenceQuestion:
    return InferenceQuestion(model="x", requests_per_second=8.0, **fields)


def test_more_is_only_asked_for_where_it_is_less_than_by_itself() -> None:
    """A change that leads to a limit raised as far as without it is of no use."""
    by_itself = Advice(field="max_nodes", suggestion="", value=100)
    smaller, larger = (Advice(field="max_nodes", suggestion="", value=nodes) for nodes in (60, 100))
    lighter = Advice(field="weight_formats", suggestion="", value=("fp8",))
    asked = question(max_nodes=50)
    for second, count in ((smaller, 2), (larger, 1)):

        def planned(changed: InferenceQuestion, second: Advice = second) -> tuple[bool, list[Advice]]:
            needed = int(str(second.value)) if changed.weight_formats == ("fp8",) else 100
            return changed.max_nodes >= needed, [second]

        found = checked(asked, [by_itself], planned, [lighter])
        assert len(found) == count
    assert found == (by_itself,)


def test_no_more_plans_are_made_than_three_ways_need() -> None:
    made: list[InferenceQuestion] = []

    def planned(changed: InferenceQuestion) -> tuple[bool, list[Advice]]:
        made.append(changed)
        return True, []

    others = [Advice(field="max_nodes", suggestion="", value=nodes) for nodes in range(100, 120)]
    assert len(checked(question(), [], planned, others)) == 3
    assert len(made) == 3
