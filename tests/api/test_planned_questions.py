"""Questions put to the real planner over the project's own catalog."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from catalog.selectors import model_names
from planner.api.plan_views import INFERENCE_EXAMPLE, TRAINING_EXAMPLE
from planner.api.throttles import PlanThrottle
from planner.engine.field_spec import FieldSpec, specs
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion
from planner.models import Run
from planner.services.plan_json import encode, plan_to_json
from planner.services.planning import plan_inference
from planner.services.run_execution import execute_run
from tests.api.conftest import Post
from tests.api.documented import faults

# One worker for the module: each would load the catalog again.
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loaded_catalog"), pytest.mark.xdist_group("api-plans")]
TRAFFIC = {"requests_per_second", "users", "requests_per_user_per_day", "concurrency"}


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlanThrottle, "rate", "100000/min", raising=False)


def test_the_documented_example_is_planned(post: Post) -> None:
    response = post("inference", INFERENCE_EXAMPLE)
    assert response.status_code == 200
    plan = response.json()
    assert faults("InferencePlan", plan) == []
    assert len(plan["options"]) == 10 < plan["options_found"]
    for option in plan["options"]:
        price, cluster = option["price"], option["cluster"]
        assert Decimal(price["usd_per_hour"]) == Decimal(price["usd_per_node_hour"]) * cluster["nodes"]
        assert Decimal(price["usd_per_month"]) == Decimal(price["usd_per_hour"]) * 730
        assert option["speed"]["ttft_ms"]["p95"] <= 2000


def test_the_documented_training_example_is_planned(post: Post) -> None:
    response = post("training", TRAINING_EXAMPLE)
    assert response.status_code == 200
    plan = response.json()
    assert faults("TrainingPlan", plan) == []
    assert len(plan["options"]) == 10 < plan["options_found"]
    for option in plan["options"]:
        assert option["speed"]["days"] <= 30
        assert Decimal(option["usd_total"]) > 0


def test_one_output_token_has_null_for_its_time_and_price(post: Post) -> None:
    plan = post("inference", INFERENCE_EXAMPLE | {"output_tokens": 1}).json()
    assert faults("InferencePlan", plan) == []
    for option in plan["options"]:
        assert option["speed"]["tpot_ms"] == dict.fromkeys(("mean", "p50", "p90", "p95", "p99"))
        assert option["usd_per_million_output"] is None
        assert Decimal(option["usd_per_million_input"]) > 0


def test_a_wrong_type_and_unknown_names_are_told_at_once(post: Post) -> None:
    asked = INFERENCE_EXAMPLE | {"headroom": "0.2", "providers": ["nobody"], "model": "none such", "max_options": 0}
    answer = post("inference", asked)
    assert answer.status_code == 400
    assert {error["attr"]: error["code"] for error in answer.json()["errors"]} == {
        "headroom": "invalid",
        "providers": "unknown_name",
        "model": "unknown_model",
        "max_options": "out_of_range",
    }


def test_the_api_answers_what_the_service_plans(post: Post) -> None:
    planned = encode(plan_to_json(plan_inference(INFERENCE_EXAMPLE)))
    assert post("inference", INFERENCE_EXAMPLE).content.decode() == planned


@pytest.mark.parametrize(("kind", "question"), [("inference", INFERENCE_EXAMPLE), ("training", TRAINING_EXAMPLE)])
def test_the_echoed_question_gives_the_same_plan_again(kind: str, question: dict[str, Any], post: Post) -> None:
    first = post(kind, question)
    again = post(kind, first.json()["question"])
    assert again.content == first.content


def test_an_unknown_model_is_answered_with_near_ones(post: Post) -> None:
    response = post("inference", INFERENCE_EXAMPLE | {"model": "Lama 3.1 70B"})
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert (error["attr"], error["code"], error["value"]) == ("model", "unknown_model", "Lama 3.1 70B")
    assert "Llama 3.1 70B" in error["allowed"]


@pytest.mark.parametrize(
    ("changes", "attr"),
    [
        ({"input_tokens": 10_000_000}, "input_tokens"),
        ({"providers": ["nobody"]}, "providers"),
        ({"countries": ["XX"]}, "countries"),
        ({"accelerators": ["abacus"]}, "accelerators"),
        ({"config": {"architectures": ["ResNetForImageClassification"]}, "model": None}, "config"),
        ({"config": {"hidden_size": 10**300}, "model": None}, "config"),
        ({"tensor_parallel": 7}, "tensor_parallel"),
    ],
)
def test_what_cannot_be_planned_names_the_field(changes: dict[str, Any], attr: str, post: Post) -> None:
    response = post("inference", INFERENCE_EXAMPLE | changes)
    assert response.status_code == 400, response.content[:500]
    errors = response.json()["errors"]
    assert attr in {error["attr"] for error in errors}
    assert all(error["allowed"] for error in errors)


def test_a_filter_that_leaves_nothing_is_named_with_the_ways_back(post: Post) -> None:
    response = post("inference", INFERENCE_EXAMPLE | {"providers": ["nebius"], "countries": ["BR"]})
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert (error["attr"], error["code"], error["value"]) == ("countries", "empty_filter", "BR")
    assert error["detail"].startswith("Leaves no offer: it took out the last")
    assert "Without countries = BR," in error["allowed"]
    assert "Without providers = nebius," in error["allowed"]


def _values(spec: FieldSpec) -> st.SearchStrategy[Any]:
    match spec.kind:
        case "number":
            assert spec.minimum is not None
            assert spec.maximum is not None
            edges = st.sampled_from([spec.minimum, spec.maximum])
            return edges | st.floats(spec.minimum, spec.maximum)
        case "integer":
            assert spec.minimum is not None
            assert spec.maximum is not None
            low, high = int(spec.minimum), int(spec.maximum)
            return st.sampled_from([low, high]) | st.integers(low, high) | st.integers(low, min(high, low + 16))
        case "choice":
            return st.sampled_from(spec.choices)
        case "choices" if spec.choices:
            return st.lists(st.sampled_from(spec.choices), min_size=1, max_size=3)
        case "flag":
            return st.booleans()
        case _:
            return st.none()


def _questions(question_type: type, base: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Well-formed questions on a few fields at a time, their values up to the very bounds."""
    free = {name: _values(spec) for name, (spec, _) in specs(question_type).items() if name not in TRAFFIC}
    chosen = st.lists(st.sampled_from(sorted(free)), max_size=5, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: free[name] for name in names})).map(
        lambda fields: base | {name: value for name, value in fields.items() if value is not None}
    )


TRAFFICS = st.sampled_from(
    [
        {"requests_per_second": 1e-6},
        {"requests_per_second": 3.5},
        {"requests_per_second": 1e7},
        {"concurrency": 1},
        {"concurrency": 10_000_000},
        {"users": 1e10, "requests_per_user_per_day": 1e6},
        {"users": 1, "requests_per_user_per_day": 1e-3},
    ]
)


# Each example plans over the whole catalog: a failing one is shown as it is, not shrunk.
whole_catalog = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def _planned_or_refused(kind: str, response: Any) -> None:
    assert response.status_code in (200, 400)
    component = f"{kind.title()}Plan" if response.status_code == 200 else "ErrorEnvelope"
    assert faults(component, response.json()) == []


@whole_catalog
@given(data=st.data(), traffic=TRAFFICS, fields=_questions(InferenceQuestion, {"max_options": 3}))
def test_any_well_formed_inference_question_is_planned_or_refused(
    data: st.DataObject, traffic: dict[str, Any], fields: dict[str, Any], post: Post
) -> None:
    model = data.draw(st.sampled_from(model_names()))
    _planned_or_refused("inference", post("inference", fields | traffic | {"model": model}))


@whole_catalog
@given(data=st.data(), fields=_questions(TrainingQuestion, {"max_options": 3}))
def test_any_well_formed_training_question_is_planned_or_refused(
    data: st.DataObject, fields: dict[str, Any], post: Post
) -> None:
    model = data.draw(st.sampled_from(model_names()))
    _planned_or_refused("training", post("training", fields | {"model": model}))


def test_a_sweep_started_over_rest_plans_every_load(client: Client) -> None:
    question = {"model": "Llama 3.1 8B", "requests_per_second": 10}
    body = {"kind": "plan_sweep", "params": {"question": question, "lowest": 1, "highest": 4, "points": 3}}
    started = client.post("/api/v1/runs/", data=body, content_type="application/json")
    assert (started.status_code, faults("Run", started.json())) == (202, [])
    execute_run(run_id=Run.objects.get().pk)
    finished = client.get(started.headers["Location"]).json()
    assert (finished["status"], faults("Run", finished)) == ("succeeded", [])
    assert [point["load_factor"] for point in finished["result"]["points"]] == [1.0, 2.0, 4.0]
    costs = [Decimal(point["best"]["usd_per_month"]) for point in finished["result"]["points"]]
    assert costs == sorted(costs)
