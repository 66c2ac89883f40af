"""What may limit a training question: a date, a sum, the nodes to use; and what is said when nothing is inside."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from planner.engine.errors import InvalidQuestion
from planner.engine.training_answers import TrainingPlan
from tests.engine.small_catalog import TODAY
from tests.engine.training.test_plan import plan, term


def follow(answer: TrainingPlan, field: str, asked: dict[str, Any]) -> TrainingPlan:
    """The plan of the question as the advice on ``field`` changes it."""
    (advice,) = (advice for advice in answer.advice if advice.field == field)
    return plan(**{**asked, **advice.changes})


def test_a_date_is_a_limit_in_days_from_the_start() -> None:
    by_date = plan(finish_by="2026-12-06")
    assert [option.id for option in by_date.options] == [option.id for option in plan(finish_days=7).options]
    assert max(option.speed.days for option in by_date.options) <= 7
    later = plan(start_on="2026-12-01", finish_by="2026-12-06")
    assert max(option.speed.days for option in later.options) <= 5
    tighter = plan(finish_days=3, finish_by="2026-12-06")
    assert max(option.speed.days for option in tighter.options) <= 3


@pytest.mark.parametrize(
    "asked", [{"finish_by": TODAY.isoformat()}, {"start_on": "2027-02-01", "finish_by": "2027-01-31"}]
)
def test_a_date_that_is_not_after_the_start_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuestion) as refused:
        plan(**asked)
    assert [(error.field, error.code) for error in refused.value.errors] == [("finish_by", "out_of_range")]


def test_exactly_the_nodes_asked_are_used() -> None:
    answer = plan(nodes=3, instance_types="acme/h100-sxmx8")
    assert answer.options
    for option in answer.options:
        assert (option.cluster.instance_type, option.cluster.nodes) == ("h100-sxmx8", 3)
        assert option.cluster.gpus_used == 24
    # More than the limit of nodes: a number that is asked for is the limit.
    assert {option.cluster.nodes for option in plan(nodes=16).options} == {16}


def test_an_unknown_node_and_nodes_beside_gpus_are_refused() -> None:
    with pytest.raises(InvalidQuestion) as unknown:
        plan(instance_types="acme/none")
    assert unknown.value.errors[0].field == "instance_types"
    assert "acme/h100-sxmx8" in unknown.value.errors[0].allowed
    with pytest.raises(InvalidQuestion) as both:
        plan(nodes=2, gpus=16)
    assert both.value.errors[0].field == "gpus"


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({"finish_days": 0.05}, {"finish_days", "tokens", "precision"}),
        ({"finish_days": 0.15}, {"finish_days", "tokens", "max_nodes"}),
        ({"finish_by": "2026-11-30", "tokens": 1e12}, {"finish_by", "tokens", "max_nodes"}),
        ({"budget_usd": 300}, {"budget_usd", "tokens", "precision"}),
        ({"budget_usd_per_month": 1000}, {"budget_usd_per_month", "purchase_options"}),
        ({"finish_days": 0.5, "budget_usd": 750, "nodes": 1}, {"finish_days", "tokens", "precision"}),
        ({"finish_days": 0.5, "budget_usd": 300, "nodes": 1}, {"tokens", "precision"}),
    ],
)
def test_every_way_out_leads_to_an_option(asked: dict[str, Any], fields: set[str]) -> None:
    answer = plan(**asked)
    assert not answer.options
    assert {advice.field for advice in answer.advice} == fields
    for field in fields:
        assert follow(answer, field, asked).options_found, field


def test_what_is_too_late_or_too_dear_names_the_closest() -> None:
    late = next(r for r in plan(finish_days=0.05).rejections if r.code == "finish_days")
    assert late.value is not None
    assert late.value > 0.05
    assert "x 8x H100-SXM" in late.reason
    assert "USD" in late.reason
    dear = next(r for r in plan(budget_usd=300).rejections if r.code == "budget")
    assert dear.value == pytest.approx(float(plan().options[0].usd_total), abs=0.01)


def test_storage_is_part_of_the_bill() -> None:
    asked: dict[str, Any] = {
        "tokens": 1e12,
        "bytes_per_token": 4,
        "checkpoints_kept": 3,
        "storage_usd_per_gib_month": 0.1,
    }
    answer = plan(**asked)
    option = answer.options[0]
    params = 8_030_261_248
    stored_gib = (3 * 14 * params + 4e12) / 2**30
    assert answer.stored_gib == pytest.approx(stored_gib)
    months = term(option, "run", "wall time") / 730
    assert float(option.usd_storage) == pytest.approx(stored_gib * 0.1 * months, abs=0.01)
    assert term(option, "cost", "nodes") + term(option, "cost", "storage") == pytest.approx(float(option.usd_total))
    free = {same.id: same for same in plan(**asked | {"storage_usd_per_gib_month": 0}).options}
    assert free[option.id].usd_total == option.usd_total - option.usd_storage


def test_a_checkpoint_holds_what_is_trained() -> None:
    whole = term(plan().options[0], "run", "checkpoint size")
    adapters = term(plan(method="lora", tokens=1e8, lora_rank=16).options[0], "run", "checkpoint size")
    assert whole == pytest.approx(14 * 8_030_261_248 / 2**30)
    # Rank 16 on every matrix of 32 layers: about 40 million parameters.
    assert adapters == pytest.approx(14 * 40e6 / 2**30, rel=0.1)


def test_the_critical_batch_is_told() -> None:
    answer = plan()
    assert 1e6 < answer.critical_batch_tokens < 1e7
    assert answer.global_batch_tokens <= answer.critical_batch_tokens


def test_a_start_in_the_past_counts_from_there() -> None:
    start = TODAY - timedelta(days=10)
    assert plan(start_on=start.isoformat(), finish_by=date(2026, 12, 6).isoformat()).options
