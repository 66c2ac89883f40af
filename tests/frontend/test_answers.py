"""What an answer says: the sentence, the figures, the bill's parts, the working, reasons and ways out."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend import numbers
from frontend.answers import explanations, frame
from frontend.answers.inference import present_inference
from frontend.answers.inference_charts import bill_parts
from frontend.answers.training import present_training
from frontend.answers.training_charts import bill_parts as run_bill_parts
from planner.engine.advice import Advice
from planner.engine.answers import Confidence, InferenceOption, OfflineJob, Rejection, Term
from tests.factories import (
    empty_plan_factory,
    inference_option,
    plan_factory,
    training_option,
    training_plan_factory,
)

pytestmark = pytest.mark.django_db


def test_the_sentence_says_what_where_for_how_much_and_how_fast() -> None:
    answer = present_inference(plan_factory(), {"model": "Llama 3.1 70B"}, "option-0")
    assert answer.sentence == (
        "1 node of 8× H200 SXM at nebius, eu-north1: $31,500 a month, $0.61 per million output tokens, "
        "first token in 620 ms (p95)."
    )
    assert answer.detail == (
        "Limited by decode bandwidth · 3 replicas, TP2 · FP8 weights, BF16 KV cache · "
        "estimate ±12 %, calibrated: 34 measured cases: Hopper, vLLM, dense, FP8 · price read 13 days ago"
    )


def test_cost_is_shown_per_gpu_and_per_node_together() -> None:
    cost, speed, room = present_inference(plan_factory(), {}, "option-0").figures
    assert (cost.value, cost.notes[0]) == ("$43.20 /h", "$5.40 per GPU · $43.20 per node")
    assert (speed.value, speed.notes[1]) == ("620 ms · 27 ms", "TTFT likely 434 ms to 930 ms")
    assert (room.value, room.notes[0]) == ("31 %", "20 of 29 requests/s at the peak")


def test_the_first_option_is_shown_unless_a_link_names_another() -> None:
    plan = plan_factory()
    first = present_inference(plan, {}, "")
    assert first.chosen_id == plan.options[0].id
    assert [row.id for row in first.rows if row.is_chosen] == [first.chosen_id]
    gone = present_inference(plan, {}, "no-such-option")
    assert gone.chosen_id == first.chosen_id
    assert "no longer in the list" in gone.notice


def test_a_row_links_to_the_same_question_with_that_option() -> None:
    answer = present_inference(plan_factory(), {"model": "X", "users": "5"}, "")
    assert answer.rows[0].query == f"model=X&users=5&option={answer.rows[0].id}"


def test_an_unmeasured_option_has_no_band() -> None:
    unknown = Confidence(kind="extrapolated", low=0.0, high=math.inf, basis="no measured case", cases=0)
    plan = plan_factory(1, options=(inference_option(0, confidence=unknown, ttft_confidence=unknown),))
    answer = present_inference(plan, {}, "")
    assert answer.detail.endswith("extrapolated: no measured case · price read 13 days ago")
    assert answer.rows[0].cells[-1].text == "–"
    assert answer.figures[1].notes[1] == ""


def test_a_stale_or_flagged_price_is_marked() -> None:
    badges = {
        cell.text: cell.badge for row in present_inference(plan_factory(), {}, "").rows for cell in [row.cells[5]]
    }
    assert badges["13 days"] == "fresh"
    assert badges["131 days"] == badges["164 days"] == "old"


@given(
    st.integers(1, 64), st.integers(0, 64), st.floats(0.001, 1e4), st.floats(1, 10), st.floats(0.5, 5), st.floats(0, 3)
)
def test_the_bills_parts_sum_to_the_bill(
    used: int, unused: int, mean: float, peak_factor: float, room: float, mean_share: float
) -> None:
    option = inference_option(0)
    peak = mean * peak_factor
    option = replace(
        option,
        cluster=replace(option.cluster, gpus_used=used, gpus_billed=used + unused),
        speed=replace(option.speed, peak_requests_s=peak, capacity_requests_s=peak * room),
    )
    bill = bill_parts(option, mean * mean_share)
    assert sum(bill.values()) == pytest.approx(float(option.price.usd_per_month))
    assert min(bill.values()) >= -1e-6


def test_a_runs_bill_parts_sum_to_its_total() -> None:
    option = training_option(0)
    speed = replace(option.speed, goodput=0.9)
    bill = run_bill_parts(replace(option, speed=speed, usd_storage=Decimal(100), spare_nodes=0))
    assert bill["storage"] == 100
    assert sum(bill.values()) == pytest.approx(float(option.usd_total))
    assert bill["lost"] == pytest.approx((bill["steps"] + bill["lost"]) * 0.1)


def test_terms_of_one_unit_have_shares_and_a_sum() -> None:
    groups = explanations.working_groups(plan_factory().options[0].working)
    step = next(group for group in groups if group.title == "Time of one step")
    assert step.total == "18.7 ms"
    assert sum(line.share or 0 for line in step.lines) == pytest.approx(1)
    assert [line.name for line in step.lines] == ["weights", "KV cache", "all-reduce"]


def test_terms_of_different_units_have_no_sum() -> None:
    terms = (
        Term(group="demand", name="peak", value=2.0, unit="req/s", formula=""),
        Term(group="demand", name="replicas", value=3.0, unit="replicas", formula=""),
    )
    (group,) = explanations.working_groups(terms)
    assert (group.total, [line.share for line in group.lines]) == ("", [None, None])


def test_a_trade_is_what_saves_most_for_what_it_costs_more() -> None:
    """A tenth of the money for two thirds of the wait is a better trade than 87 % more for a little less."""
    base = inference_option(0)

    def priced(place: int, name: str, month: int, ttft: float, age: int = 10) -> InferenceOption:
        option = inference_option(place, id=f"o{place}")
        return replace(
            option,
            cluster=replace(base.cluster, nodes=1, accelerator_name=name),
            price=replace(base.price, usd_per_month=Decimal(month), age_days=age),
            speed=replace(base.speed, ttft_ms={"mean": ttft, "p95": ttft}),
        )

    options = (priced(0, "A", 8760, 660), priced(1, "B", 9344, 239), priced(2, "C", 16_400, 200))
    title = present_inference(plan_factory(1, options=options), {}, "").charts[0].title
    assert title.endswith("cuts the wait by 64 % for 7 % more")
    stale = priced(3, "D", 5000, 700, age=698)
    answer = present_inference(plan_factory(1, options=(stale, *options)), {}, "o0")
    assert answer.charts[0].title == title
    assert answer.remarks[-1].startswith("Cheaper, but at a price read 698 days ago:")
    assert "$5,000" in answer.remarks[-1]


def test_a_job_is_shown_by_its_own_cost_and_hours() -> None:
    job = OfflineJob(requests=1000, hours=17.8, usd=Decimal("200.51"))
    options = tuple(replace(inference_option(n, id=f"o{n}"), job=job) for n in range(2))
    answer = present_inference(plan_factory(1, options=options), {}, "")
    assert (answer.bar_cost, answer.bar_speed) == ("$201 for the job", "17.8 hours")
    assert [column.label for column in answer.columns[2:5:2]] == ["$/job", "Time"]
    assert [answer.rows[0].cells[place].text for place in (1, 3)] == ["200.51", "17.8 hours"]
    assert [chart.id for chart in answer.charts] == ["tradeoff", "memory"]
    # Nobody waits for a job's answers, and it has no peak.
    told = json.dumps([asdict(figure) for figure in answer.figures])
    assert "Time left" in told
    assert not re.search("peak|TTFT|Headroom", told)


def test_a_run_of_minutes_is_not_told_in_days() -> None:
    days = (0.0003, 0.0365, 0.42)
    assert [numbers.days(value) for value in days] == ["25.9 s", "53 min", "10.1 hours"]
    assert [frame.time_scale([value, days[2]]).a_day for value in days] == [1440, 24, 24]
    assert frame.time_scale([*days, 2.0]).a_day == 1


def test_the_working_says_money_to_the_cent_and_counts_in_full() -> None:
    asked = [("USD", 45_376.8), ("USD", 8212.0), ("USD", 0.00234), ("tokens", 1_466_416.0), ("ms", 188.4336)]
    terms = [
        Term(group=str(n), name="month", value=value, unit=unit, formula="") for n, (unit, value) in enumerate(asked)
    ]
    shown = [group.lines[0].value for group in explanations.working_groups(terms)]
    assert shown == ["45,376.80 USD", "8,212 USD", "0.00234 USD", "1,466,416 tokens", "188.4 ms"]


def test_rejections_are_grouped_by_reason_the_commonest_first() -> None:
    groups = present_inference(plan_factory(), {}, "").rejected
    assert [(group.title, group.count) for group in groups] == [
        ("Weights do not fit", "1,210"),
        ("Too slow for the TPOT limit", "87"),
    ]
    assert groups[1].lines[0].numbers == "131 ms; limit 100 ms"


def test_all_options_tried_are_accounted_for() -> None:
    plan = plan_factory()
    rejected = sum(rejection.count for rejection in plan.rejections)
    filtered = Rejection(
        subject="122 offers",
        code="filter_countries",
        reason="",
        value=None,
        limit=None,
        unit="",
        count=122,
        tried=False,
    )
    plan = replace(
        plan,
        options_beaten=plan.options_tried - plan.options_found - rejected,
        rejections=(*plan.rejections, filtered),
    )
    assert present_inference(plan, {}, "").accounted == (
        "Tried: 9,412. Of these 8 meet the question, 8,107 would but are neither cheaper nor faster than another on "
        "the same nodes, and 1,297 are rejected. 122 more are ruled out untried, each offer counted once."
    )
    empty = replace(plan, options=(), options_found=0, options_beaten=0, options_tried=rejected, recommended="")
    assert present_inference(empty, {}, "").accounted.startswith(
        "Tried: 1,297. Of these 0 meet the question and 1,297 are rejected. 122 more"
    )
    # A saved plan keeps no rejections.
    assert present_inference(replace(plan, rejections=()), {}, "").accounted == ""


def test_nothing_fits_gives_numeric_ways_out_with_links() -> None:
    answer = present_inference(empty_plan_factory(), {"model": "X", "users": "5", "ttft_ms": "100"}, "")
    assert not answer.has_options
    assert answer.sentence == "Nothing fits: none of 9,412 options tried meets the question."
    assert [way.query for way in answer.ways_out] == [
        "model=X&users=5&ttft_ms=900",
        "model=X&users=5&ttft_ms=100&weight_formats=fp8",
        "model=X&input_tokens=600&users=5&ttft_ms=100",
    ]


def test_what_binds_is_what_the_options_break_on_that_do_run() -> None:
    memory = Rejection(subject="1x L4", code="memory", reason="too small", value=9.0, limit=8.0, unit="GiB", count=9000)
    slow = replace(
        memory, subject="8x H100", code="ttft_slo", reason="116 ms", value=116.0, limit=100.0, unit="ms", count=5
    )
    answer = present_inference(replace(empty_plan_factory(), rejections=(memory, slow)), {"model": "X"}, "")
    assert answer.detail == "Too slow for the TTFT limit (5 options). Closest: 8x H100. 116 ms"
    alone = present_inference(replace(empty_plan_factory(), rejections=(memory,)), {"model": "X"}, "")
    assert "9,000 options" in alone.detail


def test_a_field_to_be_left_open_has_a_link_where_it_holds_something() -> None:
    plan = replace(
        empty_plan_factory(),
        options_tried=0,
        advice=(
            Advice(field="accelerators", suggestion="Leave it open."),
            Advice(field="tensor_parallel", suggestion="Let the search choose."),
        ),
    )
    answer = present_inference(plan, {"model": "X", "users": "5", "accelerators": "h100-sxm"}, "")
    assert answer.sentence == "Nothing fits: every option is ruled out before it is tried."
    assert [way.query for way in answer.ways_out] == ["model=X&users=5", ""]


def test_a_training_answer_says_time_and_total() -> None:
    answer = present_training(training_plan_factory(), {}, "option-0")
    assert answer.sentence == (
        "1 node of 8× H200 SXM at nebius, eu-north1: 15.5 days and $16,100 for 100B tokens, at 40.7 % MFU."
    )
    assert answer.figures[2].value == "40.7 %"
    assert answer.rows[0].cells[1].text == "10,296"


def test_dear_options_are_left_to_the_table() -> None:
    plan = plan_factory()
    dear = inference_option(1, id="dear", price=replace(inference_option(1).price, usd_per_month=Decimal(10_000_000)))
    answer = present_inference(replace(plan, options=(*plan.options, dear)), {}, "")
    assert "Not drawn: 1 option above" in answer.charts[0].note
    drawn = [id for trace in answer.charts[0].figure["data"] for id in trace.get("ids", ())]
    assert "dear" not in drawn
    assert len(drawn) == len(plan.options)


def test_one_output_token_has_no_price_and_no_pace_of_its_own() -> None:
    option = inference_option(0)
    single = replace(
        option,
        usd_per_million_output=Decimal(0),
        speed=replace(option.speed, tpot_ms=dict.fromkeys(option.speed.tpot_ms, 0.0)),
    )
    answer = present_inference(plan_factory(1, options=(single,)), {}, "")
    assert "per million input tokens, answer in" in answer.sentence
    assert "TPOT not applicable: one output token" in answer.figures[1].notes[0]
    assert answer.rows[0].cells[2].text == answer.rows[0].cells[3].sub == "–"


def test_a_warning_stands_before_the_numbers_and_not_among_the_remarks() -> None:
    warning = Advice(field="config", suggestion="Warning: read with care.", is_warning=True)
    remark = Advice(field="", suggestion="A remark.")
    answer = present_inference(plan_factory(advice=(warning, remark)), {}, "")
    assert answer.warnings == ("Warning: read with care.",)
    assert answer.remarks == ("A remark.",)
    nothing = present_inference(plan_factory(0, advice=(warning, remark)), {}, "")
    assert nothing.warnings == ("Warning: read with care.",)
    assert [way.text for way in nothing.ways_out] == ["A remark."]
