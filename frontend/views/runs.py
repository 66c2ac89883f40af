"""Long work: start it, watch it, cancel it; leaving the page loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from defusedcsv import csv
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator
from django.views.decorators.http import require_POST, require_safe

from frontend import numbers
from frontend.answers.capacity import csv_of_search, present_capacity
from frontend.answers.compared import compare, named_apart, settings_apart
from frontend.answers.simulation import present_simulation
from frontend.answers.simulation_csv import OTHER_ROWS, csv_rows
from frontend.answers.sweep import csv_of_sweep, present_sweep
from frontend.config_link import pack_config
from frontend.forms import allowed_text, error_text
from frontend.kinds import KINDS
from frontend.progress_words import failure_words, progress_words
from frontend.query import Asked, canonical_query, default_text, read_query
from frontend.run_asked import CAPACITY, SIMULATED, SWEEP, inputs_of, subtitle
from frontend.simulation_fields import fields_of, in_address
from frontend.tenancy import active_scope, my_scopes
from frontend.views.guard import limited
from frontend.words import run_title
from planner.engine.errors import InvalidQuestion
from planner.engine.question_reading import parse_question
from planner.engine.workload import InferenceQuestion
from planner.models import Run, RunStatus
from planner.selectors.runs import find_run, find_run_to_cancel, finished_runs_of
from planner.services.audit import note_export
from planner.services.quote_fleet import is_quotable
from planner.services.runs import cancel_run, create_run

MOST_OTHERS = 20
"""Of a person's own runs, to compare with."""
LONGEST_OTHER = 160
"""Letters of one of them in the list."""
STOP_POLLING = 286
"""htmx stops polling when an answer has this status."""


@require_POST
@limited("page_run", "POST")
def start_sweep(request: HttpRequest) -> HttpResponse:
    """Queue the job that plans the same question at many loads, then show it."""
    asked = read_query(QueryDict(request.POST.get("question", "")[:20_000]), KINDS["inference"].question_type)
    user = request.user if request.user.is_authenticated else None
    try:
        if asked.errors:
            raise InvalidQuestion(asked.errors)
        run = create_run(
            kind=SWEEP, params={"question": typed_question(asked)}, owner=user, scope=active_scope(request)
        )
    except InvalidQuestion as invalid:
        lines = [
            f"{error.field.removeprefix('question.')}: {error_text(error)} {allowed_text(error)}"
            for error in invalid.errors
        ]
        context = {"nav": "", "lines": lines, "back": _question_link(asked.given)}
        return render(request, "frontend/run_refused.html", context, status=400)
    return HttpResponseRedirect(reverse("run", args=[run.uuid]))


@require_safe
def run_page(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Progress, elapsed and estimated time, and the result when it is there; polled by htmx."""
    run = _find(request, uuid)
    context = _context(run) | _beside(request, run)
    if context["can_cancel"]:
        context["can_cancel"] = find_run_to_cancel(uuid=uuid, user=request.user) is not None
    if request.headers.get("HX-Request") != "true":
        return render(request, "frontend/run.html", context)
    return render(request, "frontend/parts/run.html", context, status=STOP_POLLING if run.is_final else 200)


@require_POST
def cancel(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Ask for a stop; a finished run stays as it is."""
    run = find_run_to_cancel(uuid=uuid, user=request.user)
    if run is None:
        raise Http404
    cancel_run(run=run)
    return HttpResponseRedirect(reverse("run", args=[uuid]))


@require_safe
def run_csv(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """The timeline of a finished simulation, one row a time bin, or what else it draws; all that a search or a sweep
    tried.
    """
    run = _find(request, uuid)
    result = run.result
    if run.kind not in (*SIMULATED, SWEEP) or not isinstance(result, dict):
        raise Http404
    rows: Callable[[Mapping[str, Any]], Iterator[Sequence[Any]]] = csv_rows
    name = "simulation"
    other = next((part for part in OTHER_ROWS if part in request.GET), "")
    if run.kind == SWEEP:
        rows, name = csv_of_sweep, "sweep"
    elif "tried" in request.GET and "search" in result:
        rows, name = csv_of_search, "search"
    elif other:
        rows = OTHER_ROWS[other]
    file = f"{name}-{other}" if other and rows is OTHER_ROWS[other] else name
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="takar-{file}-{run.uuid}.csv"'
    csv.writer(response).writerows(rows(result))
    scope = next((each for each in my_scopes(request) if each.organization.pk == run.organization_id), None)
    if scope is not None:
        note_export(scope=scope, subject=scope.organization, what=name, run=run.uuid)
    return response


def typed_question(asked: Asked) -> dict[str, Any]:
    """The question as JSON has it: numbers as numbers, lists as lists, what was not given left out."""
    question = parse_question(InferenceQuestion, asked.raw)
    values = {name: getattr(question, name) for name in asked.raw}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _as_given(question: Any) -> dict[str, str]:
    """A stored question as a person would type it."""
    if not isinstance(question, dict):
        return {}
    given = {}
    for name, value in question.items():
        if isinstance(value, dict):
            given[name] = pack_config(value)
        else:
            given[name] = default_text(tuple(value) if isinstance(value, list) else value)
    return given


def _find(request: HttpRequest, uuid: UUID) -> Run:
    run = find_run(uuid=uuid, user=request.user)
    if run is None:
        raise Http404
    return run


def _context(run: Run) -> dict[str, Any]:
    given = _as_given(run.params.get("question"))
    result = run.result if run.status == RunStatus.SUCCEEDED and isinstance(run.result, dict) else None
    return {
        "nav": "",
        "run": run,
        "title": run_title(run.kind),
        "question": subtitle(run, given),
        "doing": progress_words(run.message),
        "percent": numbers.percent(run.progress),
        "elapsed": _elapsed(run),
        "remaining": _remaining(run),
        "sweep": present_sweep(result, given.get("slo_percentile", "p95")) if result and run.kind == SWEEP else None,
        "capacity": present_capacity(result) if result and run.kind == CAPACITY else None,
        "simulation": present_simulation(result) if result and run.kind in SIMULATED else None,
        "quote_link": _quote_link(run, result, given) if result and run.kind == CAPACITY else "",
        "again": _simulation_link(run, given) if run.kind in SIMULATED else "",
        "inputs": inputs_of(run) if run.kind in SIMULATED else (),
        "errors": failure_words(run.error if isinstance(run.error, dict) else None),
        "can_cancel": not run.is_final and not run.cancel_requested,
        "back": _question_link(given),
    }


def _quote_link(run: Run, result: Mapping[str, Any], given: dict[str, str]) -> str:
    """Where the fleet that a search chose is saved and quoted; none where it can't be."""
    if not is_quotable(run):
        return ""
    query = canonical_query(given, InferenceQuestion, option=str(result["option"]))
    return f"{reverse('save-plan', args=['inference'])}?{query}&{urlencode({'then': 'quote', 'run': run.uuid})}"


def _question_link(given: dict[str, str]) -> str:
    return f"{reverse('plan-inference')}?{canonical_query(given, InferenceQuestion)}"


def _beside(request: HttpRequest, run: Run) -> dict[str, Any]:
    """The other run that the address asks to compare with, where both have a result."""
    try:
        other = find_run(uuid=UUID(request.GET.get("with", "")), user=request.user)
    except ValueError:
        other = None
    others = []
    if run.kind in SIMULATED and run.status == RunStatus.SUCCEEDED:
        found = finished_runs_of(user=request.user, kinds=SIMULATED, but=run, most=MOST_OTHERS)
        others = [(each, _other_name(each, run)) for each in found]
    if other is None or other.kind not in SIMULATED or other.pk == run.pk:
        return {"other": None, "others": others}
    here, there = run.result, other.result
    beside = {"other": other, "others": others}
    if run.kind not in SIMULATED or not isinstance(here, dict) or not isinstance(there, dict):
        return beside
    changed = settings_apart(run.params, other.params, (here, there))
    return beside | {"changed": changed, "compared": compare(here, there)}


def _other_name(run: Run, shown: Run) -> str:
    """When it was started, what it is, of which model, and in what it differs from the run that is shown."""
    question = run.params.get("question")
    model = str(question.get("model") or "") if isinstance(question, dict) else ""
    started = f"{timezone.localtime(run.created_at):%Y-%m-%d %H:%M}"
    parts = (started, run_title(run.kind), model, named_apart(shown.params, run.params))
    return Truncator(" · ".join(part for part in parts if part)).chars(LONGEST_OTHER)


def _simulation_link(run: Run, given: dict[str, str]) -> str:
    """The form this simulation was started from, filled in as it was."""
    extra = urlencode({**in_address(fields_of(run)), "from": run.uuid})
    return f"{reverse('new-simulation')}?{canonical_query(given, InferenceQuestion)}&{extra}"


def _seconds(run: Run) -> float | None:
    if run.started_at is None:
        return None
    return ((run.finished_at or timezone.now()) - run.started_at).total_seconds()


def _elapsed(run: Run) -> str:
    seconds = _seconds(run)
    return numbers.NOTHING if seconds is None else numbers.duration(seconds * 1000)


def _remaining(run: Run) -> str:
    """What is left at the pace so far; unknown until a twentieth is done."""
    seconds = _seconds(run)
    if run.is_final or seconds is None or run.progress < 0.05:
        return numbers.NOTHING
    return numbers.duration(seconds * (1 / run.progress - 1) * 1000)
