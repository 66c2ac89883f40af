"""Changing a run and running it again: it is the same run where nothing was changed, whatever it was started with."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from planner.engine.field_spec import FieldSpec, specs
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import OPEN_ONLY, TrafficQuestion
from planner.models import Run, RunStatus
from planner.services.capacity_job import read_capacity
from planner.services.capacity_question import CapacityQuestion
from planner.services.runs import create_run
from planner.services.simulation_job import read_simulation
from planner.services.stored_traces import delete_trace
from tests.frontend.simulation_pages import FORM, TRACE, post

pytestmark = pytest.mark.django_db
QUESTION = {"model": "Llama 3.1 8B", "requests_per_second": 2, "accelerators": ["h100-sxm"], "ttft_ms": 2000}
CLOSED = ("clients", "think_s", "requests")
BATCHED = ("batching", "batch_ms", "item_ms", "token_us", "preferred_batches", "queue_delay_ms", "instances", "padded")
CHOSEN = {"option": "2", "preferred_batches": ["2", "4"], "autoscaler": "keda", "max_replicas": 9}
"""Where not every other value would do."""


class Form(HTMLParser):
    """What a browser would send of the simulation form."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = {name: value or "" for name, value in attrs}
        name = at.get("name", "")
        if tag == "select":
            self._select = name
        elif tag == "option" and "selected" in at:
            self.fields[self._select] = at["value"]
        elif tag == "input" and at.get("type") == "checkbox" and "checked" in at:
            self.fields[name] = at["value"]
        elif tag == "input" and at.get("type") in ("text", "hidden") and name != "csrfmiddlewaretoken":
            self.fields[name] = at.get("value", "")


def another(name: str, spec: FieldSpec, default: Any) -> Any:
    """A value the field accepts that is not its default: found from its spec, so that no new field is forgotten."""
    if name in CHOSEN:
        return CHOSEN[name]
    match spec.kind:
        case "flag":
            return not default
        case "choice":
            return next(choice for choice in spec.choices if choice != default)
        case "integer":
            return int(spec.minimum or 0) + 3 if default is None else int(default) + 3
        case "number":
            low, high = spec.minimum or 0.0, spec.maximum or 1e9
            found = 2.5 if default is None else (default * 1.5 if default else 0.25)
            return found if low <= found <= high else (default + low) / 2
        case "numbers":
            return [int(spec.minimum or 0) + 3, int(spec.minimum or 0) + 2]
    raise AssertionError(f"{name}: a field of kind {spec.kind} needs a value here")


def others(input_type: type, *, but: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        name: another(name, spec, default)
        for name, (spec, default) in specs(input_type).items()
        if name not in but and (not only or name in only)
    }


STARTED: dict[str, dict[str, Any]] = {
    "a load": {
        "traffic": others(TrafficQuestion, but=CLOSED),
        "scenario": others(SimulationQuestion, but=BATCHED),
    },
    "clients": {
        "traffic": others(TrafficQuestion, but=(*OPEN_ONLY, "requests")),
        "scenario": others(SimulationQuestion, only=("replicas", "seed", *BATCHED)),
    },
    "a job": {"traffic": others(TrafficQuestion, but=(*OPEN_ONLY, "hours", "clients", "think_s")), "scenario": {}},
}


def again(client: Client, run: Run, **changes: str) -> Run:
    """The run that the form starts for another one like it, as a browser sends it."""
    Run.objects.filter(pk=run.pk).update(status=RunStatus.CANCELLED)
    text = client.get(f"/runs/{run.uuid}/").content.decode()
    (link,) = re.findall(r'href="(/simulations/new/[^"]*)"', text)
    form = Form(client.get(link.replace("&amp;", "&")).content.decode())
    sent = {name: value for name, value in {**form.fields, **changes}.items() if value != "-"}
    response = client.post(FORM, sent)
    assert response.status_code == 302, response.content.decode()
    return Run.objects.latest("pk")


def test_every_field_is_tried() -> None:
    for part, input_type in (("traffic", TrafficQuestion), ("scenario", SimulationQuestion)):
        tried = {name for params in STARTED.values() for name in params[part]}
        assert tried == set(specs(input_type)), part


@pytest.mark.parametrize("started", STARTED)
def test_nothing_changed_runs_the_same(client: Client, catalog: object, started: str) -> None:
    run = create_run(kind="simulation", params={"question": QUESTION, **STARTED[started]}, owner=None)
    later = again(client, run)
    assert read_simulation(later.params).regions == read_simulation(run.params).regions
    assert read_simulation(again(client, later).params).regions == read_simulation(run.params).regions


@pytest.mark.parametrize(
    "params",
    [
        {"traffic": {"input_median": 300}},
        {"traffic": {"hours": 0.2}, "question": {**QUESTION, "output_cv": 0.5, "arrival_cv": 2, "input_tokens": 300}},
        {"question": {"model": "Llama 3.1 8B", "concurrency": 16}, "traffic": {"requests_per_second": 3}},
        {"question": {"model": "Llama 3.1 8B", "concurrency": 16}, "traffic": {"gap_cv": 2}},
        {"question": {**QUESTION, "prefix_kind": "shared", "prefix_cache_hit": 0.5}},
        {"regions": [{"name": "a", "traffic": {"clients": 5}}, {"name": "b", "scenario": {"replicas": 4}}]},
        {"regions": [{"name": "a", "fallback": ["b"]}, {"name": "b"}], "traffic": {"input_median": 512}},
        {"question": {"model": "Llama 3.1 8B", "offline_requests": 90, "offline_hours": 1}},
        {"question": {"model": "Llama 3.1 8B", "offline_requests": 90, "offline_hours": 1}, "traffic": {"hours": 2}},
    ],
)
def test_what_was_left_open_stays_open(client: Client, catalog: object, params: dict[str, Any]) -> None:
    run = create_run(kind="simulation", params={"question": QUESTION, **params}, owner=None)
    later = again(client, run)
    assert read_simulation(later.params).regions == read_simulation(run.params).regions


@pytest.mark.parametrize("traffic", [{}, {"requests_per_second": 2}, {"requests_per_second": 5}])
def test_a_search_is_run_again_as_it_was(client: Client, catalog: object, traffic: dict[str, Any]) -> None:
    search = others(CapacityQuestion)
    params = {"question": QUESTION, "traffic": traffic, "search": search, "scenario": {"draft_tokens": 2}}
    run = create_run(kind="capacity_search", params=params, owner=None)
    later = again(client, run, goal="smallest")
    assert later.kind == "capacity_search"
    assert read_capacity(later.params).simulation.regions == read_capacity(run.params).simulation.regions
    assert read_capacity(later.params).search == read_capacity(run.params).search


def test_a_change_changes_that_alone(client: Client, catalog: object) -> None:
    params = {"question": QUESTION, "traffic": {"input_median": 300}, "scenario": {"draft_tokens": 3, "repair_s": 60}}
    run = create_run(kind="simulation", params=params, owner=None)
    later = again(client, run, **{"fleet-replicas": "5", "traffic-input_median": "400", "traffic-output_median": ""})
    assert later.params["scenario"] == {"draft_tokens": 3, "repair_s": 60, "replicas": 5}
    assert later.params["traffic"] == {"input_median": 400}


def test_what_has_no_box_is_named_and_may_be_dropped(client: Client, catalog: object) -> None:
    params = {"question": QUESTION, "scenario": {"draft_tokens": 3, "chunked_prefill": False}}
    run = create_run(kind="simulation", params=params, owner=None)
    text = client.get(f"{FORM}?model=Llama+3.1+8B&requests_per_second=2&from={run.uuid}").content.decode()
    assert "Keep what has no box here: Chunked prefill no · Draft tokens 3 tokens" in text
    assert again(client, run).params["scenario"] == params["scenario"]
    assert "draft_tokens" not in again(client, run, keep="-").params["scenario"]
    assert "Keep what has no box" not in client.get(f"{FORM}?model=Llama+3.1+8B&requests_per_second=2").content.decode()


def test_a_trace_that_is_gone_is_missed(client: Client, catalog: object) -> None:
    post(client, trace=SimpleUploadedFile("day.csv", TRACE))
    run = Run.objects.get()
    assert again(client, run).params["trace"] == run.params["trace"]
    delete_trace(run.params["trace"])
    text = client.get(f"{FORM}?model=Llama+3.1+8B&from={run.uuid}").content.decode()
    assert "no longer kept: send it again" in text
