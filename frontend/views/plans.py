"""The planning pages: the question on the left, its answer on the right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from frontend import presets
from frontend.config_link import ConfigRefused, unpack_config
from frontend.fixes import fix_query, fixes
from frontend.forms import allowed_text, build_form, error_text
from frontend.kinds import KINDS, Kind, Outcome, plan_for
from frontend.listed import listed_choices
from frontend.query import Asked, canonical_query, read_query
from frontend.tenancy import active_scope
from frontend.views.guard import limited, needs_catalog
from planner.engine.field_spec import specs

PAGE_URLS = {"inference": "plan-inference", "training": "plan-training"}
HISTORY_HEADERS = {"push": "HX-Push-Url", "replace": "HX-Replace-Url"}
UNPROCESSABLE = 422


@require_safe
@limited("page_plan", "GET")
@needs_catalog
def plan_page(request: HttpRequest, kind: str) -> HttpResponse:
    """The whole page: works without scripts, and any link to it reproduces its answer."""
    this = KINDS[kind]
    asked = read_query(request.GET, this.question_type)
    preset = presets.preset_by_key(asked.page.get("preset", "")) if "fill" in asked.page else None
    if preset is not None:
        filled = canonical_query({**asked.given, **preset.fields}, this.question_type)
        return HttpResponseRedirect(f"{_page_url(kind)}?{filled}")
    is_example = asked.is_empty
    if is_example:
        example = presets.worked_example(kind)
        asked = Asked(given=example, raw=dict(example), errors=[], page=asked.page)
    outcome = plan_for(this, asked, active_scope(request))
    context = _context(this, asked, outcome) | {"is_example": is_example}
    return render(request, "frontend/plan.html", context, status=400 if outcome.errors else 200)


@require_safe
@limited("page_plan", "GET")
@needs_catalog
def answer_fragment(request: HttpRequest, kind: str) -> HttpResponse:
    """The answer alone, swapped in as the form changes; 422 with the faults where there is none."""
    this = KINDS[kind]
    asked = read_query(request.GET, this.question_type)
    if request.headers.get("Sec-Fetch-Dest") == "document":
        # Opened by itself it would have neither head nor form.
        return HttpResponseRedirect(f"{_page_url(kind)}?{canonical_query(asked.given, this.question_type)}")
    outcome = plan_for(this, asked, active_scope(request))
    context = _context(this, asked, outcome)
    response = (
        render(request, "frontend/problems.html", context, status=UNPROCESSABLE)
        if outcome.errors
        else render(request, "frontend/answer_update.html", context)
    )
    header = HISTORY_HEADERS.get(request.headers.get("X-Takar-History", ""))
    if header is not None:
        response[header] = context["page_link"]
    return response


def _context(kind: Kind, asked: Asked, outcome: Outcome) -> dict[str, Any]:
    form = build_form(kind.question_type, asked.given, errors=outcome.errors, listed=listed_choices(), page=asked.page)
    wanted = asked.page.get("option", "")
    answer = kind.present(outcome.plan, asked.given, wanted, outcome.series_of) if outcome.plan is not None else None
    query = canonical_query(asked.given, kind.question_type)
    option = answer.chosen_id if answer is not None and wanted == answer.chosen_id else ""
    link = canonical_query(asked.given, kind.question_type, option=option)
    return {
        "kind": kind.slug,
        "form": form,
        "answer": answer,
        "plan": outcome.plan,
        "problems": [
            {
                "field": error.field,
                "label": form.field[error.field].label if error.field in form.field else error.field,
                "message": error_text(error),
                "allowed": allowed_text(error),
                "fixes": [
                    (fix.label, fix_query(kind.question_type, error, fix, asked.given))
                    for fix in fixes(kind.question_type, error, asked.given)
                ],
            }
            for error in outcome.errors
        ],
        "query": query,
        "page_link": f"{_page_url(kind.slug)}?{link}",
        "save_link": _save_link(kind, asked, answer.chosen_id if answer is not None else ""),
        "csv_link": f"{reverse('plan-csv', args=[kind.slug])}?{query}",
        "answer_url": reverse("plan-answer", args=[kind.slug]),
        "page_url": _page_url(kind.slug),
        "presets": presets.presets() if kind.slug == "inference" else (),
        "preset": _preset_of(kind, asked.given),
        "config_summary": _config_summary(asked.given.get("config", "")),
    }


def _save_link(kind: Kind, asked: Asked, option: str) -> str:
    """Where the option described is kept; signing in comes in between for who is not."""
    return f"{reverse('save-plan', args=[kind.slug])}?{canonical_query(asked.given, kind.question_type, option=option)}"


def _preset_of(kind: Kind, given: Mapping[str, str]) -> presets.Preset | None:
    """The use case that the question is, defaults included."""
    if kind.slug != "inference":
        return None
    known = specs(kind.question_type)
    return presets.preset_of({name: given.get(name, str(default or "")) for name, (_spec, default) in known.items()})


def _config_summary(packed: str) -> str:
    """What a pasted config is, in a few words."""
    if not packed:
        return ""
    try:
        config = unpack_config(packed)
    except ConfigRefused:
        return _("unreadable")
    architectures = config.get("architectures")
    name = architectures[0] if isinstance(architectures, list) and architectures else config.get("model_type", "")
    return str(name)[:80] or _("a config.json")


def _page_url(kind: str) -> str:
    return reverse(PAGE_URLS[kind])
