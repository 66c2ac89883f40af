"""Simulating a plan's cluster: the form for traffic and fleet, and the job it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from frontend.fixes import fixes
from frontend.form_parts import FormField
from frontend.forms import allowed_text, error_text, form_field
from frontend.kinds import KINDS
from frontend.query import Asked, canonical_query, default_text, read_query
from frontend.sentences import shown
from frontend.simulation_params import regions_of, run_before, sources, trace_of
from frontend.stated import option_words, stated
from frontend.tenancy import active_scope
from frontend.typed_numbers import read_typed
from frontend.views.guard import limited, needs_catalog
from frontend.views.runs import CAPACITY, SIMULATION, typed_question
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import specs
from planner.engine.question_reading import parse_question
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.planned_load import planned_load
from planner.services.planned_traffic import traffic_of_plan
from planner.services.runs import create_run
from planner.services.simulated_job import sized_for
from planner.services.stored_traces import MAX_TRACE_BYTES, delete_trace

TRAFFIC = (
    *(
        "requests_per_second",
        "clients",
        "requests",
        "think_s",
        "hours",
        "gap_cv",
        "daily_peak",
        "peak_hour",
        "weekend",
        "burst_factor",
    ),
    *("input_median", "input_sigma", "output_median", "output_sigma", "seed"),
)
FLEET = ("replicas", "policy", "max_outstanding", "queue_timeout_s", "client_timeout_s")
CHANGES = (
    *("autoscaler", "scaling_metric", "scaling_target", "min_replicas", "max_replicas", "provision_s"),
    *("node_failure_hours", "spot_interruptions_per_hour", "upgrade_at_s"),
)
PARTS: dict[str, tuple[type, Sequence[str]]] = {
    "traffic": (TrafficQuestion, TRAFFIC),
    "fleet": (SimulationQuestion, ("option", *FLEET, *CHANGES)),
}


@require_http_methods(["GET", "HEAD", "POST"])
@limited("page_run", "POST")
@needs_catalog
def new_simulation(request: HttpRequest) -> HttpResponse:
    """The form, filled in from the plan's question; a post starts the job and leads to its page."""
    if request.method == "POST":
        asked = _asked(QueryDict(request.POST.get("question", "")[:20_000]))
        typed = _typed_parts(request.POST)
        try:
            run = _start(request, asked, typed)
        except InvalidQuestion as invalid:
            return _form(request, asked, typed, invalid.errors, status=400)
        before = _uuid(request.POST.get("from", ""))
        return HttpResponseRedirect(reverse("run", args=[run.uuid]) + (f"?with={before}" if before else ""))
    asked = _asked(request.GET)
    return _form(request, asked, _from_plan(asked) | _typed_parts(request.GET), asked.errors)


def _asked(query: QueryDict) -> Asked:
    own = QueryDict(mutable=True)
    for name, values in query.lists():
        if name != "from" and not name.startswith(tuple(f"{part}-" for part in PARTS)):
            own.setlist(name, values)
    return read_query(own, KINDS["inference"].question_type)


def _uuid(text: str) -> str:
    """The text where it is the name of a run, else nothing."""
    try:
        return str(UUID(text))
    except ValueError:
        return ""


def _typed_parts(query: QueryDict) -> dict[str, str]:
    """What was typed into the form's own fields, by field name with its part before it."""
    names = [f"{part}-{name}" for part, (_type, known) in PARTS.items() for name in known]
    return {name: str(query[name])[:200].replace("\0", "") for name in names if query.get(name)}


def _from_plan(asked: Asked) -> dict[str, str]:
    """Traffic like the plan's: its mean load or its clients, and lengths whose mean is the asked one."""
    try:
        like = traffic_of_plan(asked.raw, parse_question(InferenceQuestion, asked.raw), {})
    except InvalidQuestion:
        return {}
    return {f"traffic-{name}": default_text(value) for name, value in like.items() if name in TRAFFIC}


def _unless_the_plans(typed: Mapping[str, str], asked: Asked) -> Mapping[str, str]:
    """What was typed, without the plan's mean load: a fleet is sized for what the plan is sized for."""
    load = "traffic-requests_per_second"
    same = typed.get(load) == _from_plan(asked).get(load)
    return {name: text for name, text in typed.items() if name != load} if same else typed


def _sized_for(asked: Asked) -> str:
    """What the smallest fleet is sized for where nothing else is typed; empty where the question says nothing."""
    try:
        question = parse_question(InferenceQuestion, asked.raw)
    except InvalidQuestion:
        return ""
    if question.offline_requests is not None:
        return shown(sized_for(question))
    load = planned_load(question)
    return "" if load is None else shown(load.sentence)


def _start(request: HttpRequest, asked: Asked, typed: Mapping[str, str]) -> Any:
    if asked.errors:
        raise InvalidQuestion(asked.errors)
    faults: list[FieldError] = []
    kind = CAPACITY if request.POST.get("goal") == "smallest" else SIMULATION
    if kind == CAPACITY:
        typed = _unless_the_plans(typed, asked)
    params: dict[str, Any] = {"question": typed_question(asked)}
    traffic, scenario = _part("traffic", typed, faults), _part("fleet", typed, faults)
    if faults:
        raise InvalidQuestion(faults)
    params |= sources(request, traffic, scenario)
    try:
        owner = request.user if request.user.is_authenticated else None
        return create_run(kind=kind, params=params, owner=owner, scope=active_scope(request))
    except InvalidQuestion as invalid:
        if "trace" in request.FILES:
            delete_trace(params["trace"])
        raise InvalidQuestion([_on_page(fault) for fault in invalid.errors]) from invalid


def _part(part: str, typed: Mapping[str, str], faults: list[FieldError]) -> dict[str, Any]:
    """One part of the form as JSON values, what is default left out."""
    input_type, _names = PARTS[part]
    raw = {name.removeprefix(f"{part}-"): text for name, text in typed.items() if name.startswith(f"{part}-")}
    values, errors = read_typed(input_type, raw)
    faults += [replace(fault, field=f"{part}-{fault.field}") for fault in errors]
    return {name: values[name] for name in raw if name in values}


def _on_page(fault: FieldError) -> FieldError:
    """A job's fault by the name of the form's field."""
    part, dot, name = fault.field.partition(".")
    page_part = {"scenario": "fleet", "traffic": "traffic"}.get(part)
    own = f"{page_part}-{name}"
    return replace(fault, field=own) if dot and own in _all_names() else fault


def _form(
    request: HttpRequest, asked: Asked, typed: Mapping[str, str], errors: Sequence[FieldError], status: int = 200
) -> HttpResponse:
    faults = {error.field: error for error in reversed(errors)}
    if typed.get("traffic-clients") or typed.get("traffic-requests"):
        # Clients that wait, and a job, have no load of their own, not even the default one.
        typed = {"traffic-requests_per_second": "", **typed}
    if typed.get("traffic-requests"):
        typed = {"traffic-hours": "", **typed}
    query = canonical_query(asked.given, InferenceQuestion)
    fields = {name: _field(name, typed, faults.get(name), query) for name in _all_names()}
    shown = [name for name in fields if name != "fleet-option"]
    groups = [
        ("traffic", _("Traffic"), [fields[f"traffic-{name}"] for name in TRAFFIC], False),
        ("fleet", _("Fleet and gateway"), [fields[f"fleet-{name}"] for name in FLEET], False),
        ("changes", _("Scaling, failures, upgrades"), [fields[f"fleet-{name}"] for name in CHANGES], True),
    ]
    before = _uuid((request.POST if request.method == "POST" else request.GET).get("from", ""))
    before_run = run_before(request, before)
    context = {
        "nav": "",
        "query": query,
        "option": typed.get("fleet-option", ""),
        "asked": stated(InferenceQuestion, asked.given),
        "asked_option": option_words(typed.get("fleet-option", "")),
        "before": before,
        "has_trace": bool(trace_of(request, before_run)),
        "regions_before": ", ".join(str(region.get("name", "")) for region in regions_of(before_run)),
        "scenario_error": _line(faults["scenario"]) if "scenario" in faults else "",
        "has_limits": any(asked.given.get(name) for name in ("ttft_ms", "tpot_ms", "offline_requests")),
        "sized_for": _sized_for(asked),
        "groups": groups,
        "trace_error": _line(faults["trace"]) if "trace" in faults else "",
        "lines": [
            f"{error.field.removeprefix('question.')}: {_line(error)}"
            for error in errors
            if error.field not in (*shown, "trace")
        ],
        "largest": f"{MAX_TRACE_BYTES // 2**20} MiB",
        "back": f"{reverse('plan-inference')}?{query}",
    }
    return render(request, "frontend/simulation_form.html", context, status=status)


def _line(error: FieldError) -> str:
    return f"{error_text(error)} {allowed_text(error)}".strip()


def _all_names() -> list[str]:
    return [f"{part}-{name}" for part, (_type, names) in PARTS.items() for name in names]


def _field(name: str, typed: Mapping[str, str], fault: FieldError | None, query: str) -> FormField:
    part, _dash, own_name = name.partition("-")
    spec, default = specs(PARTS[part][0])[own_name]
    shown = form_field(name, spec, default, typed, fault, ())
    if fault is None:
        return shown
    own_fault = replace(fault, field=own_name)
    found = fixes(PARTS[part][0], own_fault, {own_name: typed.get(name, "")})
    links = tuple((fix.label, _with_fix(query, typed, name, fix.value)) for fix in found)
    return replace(shown, fixes=links)


def _with_fix(query: str, typed: Mapping[str, str], name: str, value: str) -> str:
    """The form's address with all that was typed, and ``value`` in one field."""
    return f"{query}&{urlencode({key: text for key, text in {**typed, name: value}.items() if text})}"
