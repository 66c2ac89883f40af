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
from frontend.query import Asked, canonical_query, read_query
from frontend.run_asked import CAPACITY, SIMULATION
from frontend.sentences import shown
from frontend.simulation_fields import (
    CHANGES,
    FLEET,
    MORE,
    PARTS,
    TRAFFIC,
    as_before,
    as_typed,
    boxes,
    fields_of,
    filled,
    hidden,
    hidden_words,
    in_address,
    on_page,
    plans_load,
    read_part,
    spec_of,
    typed_fields,
)
from frontend.simulation_params import fitted_traffic, lost_trace, regions_of, run_before, sources, trace_of
from frontend.stated import option_words, stated, unit_of
from frontend.tenancy import active_scope
from frontend.views.guard import limited, needs_catalog
from frontend.views.runs import typed_question
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.simulate.autoscaling import UNITS
from planner.engine.workload import InferenceQuestion
from planner.models import Run
from planner.services.planned_load import planned_load
from planner.services.runs import create_run
from planner.services.simulated_job import sized_for
from planner.services.stored_traces import MAX_TRACE_BYTES, delete_trace


@require_http_methods(["GET", "HEAD", "POST"])
@limited("page_run", "POST")
@needs_catalog
def new_simulation(request: HttpRequest) -> HttpResponse:
    """The form, filled in from the plan's question; a post starts the job and leads to its page."""
    if request.method == "POST":
        asked = _asked(QueryDict(request.POST.get("question", "")[:20_000]))
        typed = typed_fields(request.POST)
        if not request.POST.get("keep"):
            typed |= dict.fromkeys(hidden(typed), "")
        if request.POST.get("goal") == "fit":
            return _fitted(request, asked, typed)
        try:
            run = _start(request, asked, typed)
        except InvalidQuestion as invalid:
            return _form(request, asked, typed, invalid.errors, status=400)
        other = _uuid(request.POST.get("from", ""))
        return HttpResponseRedirect(reverse("run", args=[run.uuid]) + (f"?with={other}" if other else ""))
    asked = _asked(request.GET)
    before = run_before(request, request.GET.get("from", ""))
    typed = filled(asked, fields_of(before) | typed_fields(request.GET), with_regions=bool(regions_of(before)))
    return _form(request, asked, typed, asked.errors)


def _fitted(request: HttpRequest, asked: Asked, typed: Mapping[str, str]) -> HttpResponse:
    """The form with traffic like the trace's in place of what was typed."""
    try:
        found = fitted_traffic(request)
    except InvalidQuestion as invalid:
        return _form(request, asked, typed, invalid.errors, status=400)
    traffic = filled(asked, as_typed("traffic", found))
    others = {name: text for name, text in typed.items() if not name.startswith("traffic-")}
    return _form(request, asked, others | traffic, (), fitted=True)


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


def _unless_the_plans(typed: Mapping[str, str], asked: Asked, before: Run | None) -> dict[str, str]:
    """What was typed, without the plan's mean load: a fleet is sized for what the plan is sized for.

    A search that stated its load keeps it when it is run again.
    """
    load = "traffic-requests_per_second"
    stated_before = before is not None and before.kind == CAPACITY and load in fields_of(before)
    if typed.get(load) != plans_load(asked) or stated_before:
        return dict(typed)
    return {name: text for name, text in typed.items() if name != load}


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
    before = run_before(request, request.POST.get("from", ""))
    kind = CAPACITY if request.POST.get("goal") == "smallest" else SIMULATION
    if kind == CAPACITY:
        typed = _unless_the_plans(typed, asked, before)
    params: dict[str, Any] = {"question": typed_question(asked)}
    read = {part: read_part(part, typed, faults) for part in PARTS}
    if faults:
        raise InvalidQuestion(faults)
    if before is not None:
        read = {part: as_before(part, before, asked, typed, values) for part, values in read.items()}
    params |= sources(request, read["traffic"], read["fleet"])
    if kind == CAPACITY and read["search"]:
        params["search"] = read["search"]
    try:
        owner = request.user if request.user.is_authenticated else None
        return create_run(kind=kind, params=params, owner=owner, scope=active_scope(request))
    except InvalidQuestion as invalid:
        if "trace" in request.FILES:
            delete_trace(params["trace"])
        raise InvalidQuestion([on_page(fault) for fault in invalid.errors]) from invalid


def _form(
    request: HttpRequest,
    asked: Asked,
    typed: Mapping[str, str],
    errors: Sequence[FieldError],
    *,
    status: int = 200,
    fitted: bool = False,
) -> HttpResponse:
    faults = {error.field: error for error in reversed(errors)}
    query = canonical_query(asked.given, InferenceQuestion)
    before = _uuid((request.POST if request.method == "POST" else request.GET).get("from", ""))
    before_run = run_before(request, before)
    fields = {name: _field(name, typed, faults.get(name), query, before_run) for name in boxes()}
    shown = [name for name in fields if name != "fleet-option"]
    kept = hidden(typed)
    groups = [
        ("traffic", _("Traffic"), [fields[f"traffic-{name}"] for name in TRAFFIC], False),
        ("more", _("Traffic in more detail"), [fields[f"traffic-{name}"] for name in MORE], True),
        ("fleet", _("Fleet and gateway"), [fields[f"fleet-{name}"] for name in FLEET], False),
        ("changes", _("Scaling, failures, upgrades"), [fields[f"fleet-{name}"] for name in CHANGES], True),
    ]
    context = {
        "nav": "",
        "query": query,
        "option": typed.get("fleet-option", ""),
        "asked": stated(InferenceQuestion, asked.given),
        "asked_option": option_words(typed.get("fleet-option", "")),
        "before": before,
        "has_trace": bool(trace_of(request, before_run)),
        "lost_trace": lost_trace(request, before_run),
        "kept": kept,
        "kept_words": hidden_words(kept),
        "regions_before": ", ".join(str(region.get("name", "")) for region in regions_of(before_run)),
        "scenario_error": _line(faults["scenario"]) if "scenario" in faults else "",
        "has_limits": any(asked.given.get(name) for name in ("ttft_ms", "tpot_ms", "offline_requests")),
        "sized_for": _sized_for(asked),
        "groups": [(*group, any(field.error or not field.is_default for field in group[2])) for group in groups],
        "fitted": fitted,
        "target_units": {metric: _(unit) for metric, unit in UNITS.items()},
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


def _field(name: str, typed: Mapping[str, str], fault: FieldError | None, query: str, before: Run | None) -> FormField:
    part, _dash, own_name = name.partition("-")
    spec, default = spec_of(name)
    shown = form_field(name, spec, default, typed, fault, ())
    if own_name == "scaling_target":
        shown = replace(shown, unit=unit_of(own_name, spec, {"scaling_metric": typed.get("fleet-scaling_metric")}))
    if fault is None:
        return shown
    own_fault = replace(fault, field=own_name)
    found = fixes(PARTS[part][0], own_fault, {own_name: typed.get(name, "")})
    links = tuple((fix.label, _with_fix(query, {**typed, name: fix.value}, before)) for fix in found)
    return replace(shown, fixes=links)


def _with_fix(query: str, typed: Mapping[str, str], before: Run | None) -> str:
    """The form's address with all that was typed; what was emptied of the run before is said too."""
    extra = in_address(typed, emptied=fields_of(before))
    return f"{query}&{urlencode(extra | ({} if before is None else {'from': str(before.uuid)}))}"
