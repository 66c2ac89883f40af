"""Scenarios in pages: saving a plan, the list, one with its versions, several side by side."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend.answers.comparison import comparison
from frontend.answers.saved import present_saved, question_link
from frontend.forms import allowed_text, error_text
from frontend.kinds import KINDS
from frontend.once import made_once
from frontend.query import Asked, canonical_query, read_query
from frontend.quote_words import document_language
from frontend.tenancy import active_scope, my_scopes
from frontend.typed_numbers import whole_number
from frontend.views.guard import needs_catalog, organization_page, signed_in
from frontend.views.shared import NEW_LINK, new_link
from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import Quote, Run, Scenario, ScenarioComment, ShareLink, User
from planner.selectors import scenarios as read
from planner.selectors.runs import find_run
from planner.selectors.scope import NotFound, Scope, scope_of, scopes_of
from planner.services import quotes, scenarios
from planner.services.organizations import create_organization
from planner.services.quote_fleet import fleet_terms, is_quotable
from planner.services.scenario_changes import what_changed
from planner.services.share_links import revoke_link
from planner.services.tenancy import Conflict

PAGE_SIZE = 50


@signed_in
@needs_catalog
@require_http_methods(["GET", "HEAD", "POST"])
def save_plan(request: HttpRequest, kind: str) -> HttpResponse:
    """Keep the plan of the question in the address: as a new scenario, or as the next version of one."""
    this = KINDS[kind]
    source = QueryDict(request.POST.get("question", "")[:20_000]) if request.method == "POST" else request.GET
    asked = read_query(_without(source, "then", "run"), this.question_type)
    sent = request.POST if request.method == "POST" else request.GET
    then, search = sent.get("then", ""), _search(request, sent.get("run", ""))
    scopes = [scope for scope in my_scopes(request) if scope.allows("planner.change_scenario")]
    errors: list[FieldError] = list(asked.errors)
    if request.method == "POST" and not errors:
        try:
            return _saved(request, scopes, kind, asked, then, search)
        except InvalidQuestion as invalid:
            errors = invalid.errors
        except Conflict as conflict:
            errors = [FieldError(field="", value=None, message=conflict.message, allowed=conflict.allowed)]
        except NotFound as missing:
            raise Http404 from missing
    active = active_scope(request)
    context = {
        "kind": kind,
        "scopes": scopes,
        "chosen": active.organization.slug if active is not None else "",
        "name": request.POST.get("name", "") or _default_name(asked),
        "note": request.POST.get("note", ""),
        "organization_name": request.POST.get("organization_name", ""),
        "existing": _existing(scopes, kind),
        "scenario": request.POST.get("scenario", ""),
        "then": then,
        "run": search.uuid if search is not None else "",
        "question": canonical_query(asked.given, this.question_type, option=asked.page.get("option", "")),
        "problems": [f"{error_text(error)} {allowed_text(error)}" for error in errors],
        "back": f"{reverse(f'plan-{kind}')}?{canonical_query(asked.given, this.question_type)}",
    }
    return render(request, "frontend/scenario/save.html", context, status=400 if errors else 200)


@organization_page("planner.view_scenario")
@require_safe
def scenario_list(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The organization's scenarios, the last changed first."""
    archived = request.GET.get("archived") == "1"
    page = Paginator(read.scenarios(scope, archived=archived), PAGE_SIZE).get_page(request.GET.get("page"))
    latest = read.latest_versions(list(page.object_list))
    context = {
        "scope": scope,
        "tab": "scenarios",
        "page": page,
        "lines": [(found, latest.get(found.pk)) for found in page.object_list],
        "archived": archived,
        "can_change": scope.allows("planner.change_scenario"),
    }
    return render(request, "frontend/scenario/list.html", context)


@organization_page("planner.view_scenario")
@require_safe
def scenario_page(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """One scenario: what a version says, its other versions, comments and links."""
    found = read.scenario(scope, uuid)
    version = read.version_of(found, whole_number(request.GET.get("version", "")))
    can_change = scope.allows("planner.change_scenario")
    context = {
        "scope": scope,
        "tab": "scenarios",
        "scenario": found,
        "version": version,
        "answer": present_saved(version),
        "planner_link": question_link(version),
        "versions": read.versions_of(found),
        "comments": read.comments_on(found),
        "links": read.links_to(scope, found) if can_change else (),
        "new_link": request.session.pop(NEW_LINK, "") if can_change else "",
        "can_change": can_change,
        "can_quote": scope.allows("planner.change_quote"),
    }
    return render(request, "frontend/scenario/scenario.html", context)


@organization_page("planner.view_scenario")
@needs_catalog
@require_safe
def changes(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """What has changed since a version was saved; asked for by the page, because it plans again."""
    found = read.scenario(scope, uuid)
    version = read.version_of(found, whole_number(request.GET.get("version", "")))
    context = {
        "changes": what_changed(scope=scope, version=version),
        "version": version,
        "planner_link": question_link(version),
        "is_training": found.kind == "training",
        "is_job": version.job is not None,
        "scope": scope,
        "tab": "scenarios",
        "scenario": found,
    }
    is_fragment = request.headers.get("HX-Request") == "true"
    template = "frontend/scenario/changes.html" if is_fragment else "frontend/scenario/changes_page.html"
    response = render(request, template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response


@organization_page("planner.view_scenario")
@require_safe
def compare(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Up to five scenarios side by side."""
    wanted = [_uuid(text) for text in request.GET.getlist("id")]
    sides = read.side_by_side(scope, wanted)
    context = {"scope": scope, "tab": "scenarios", "sides": sides, "comparison": comparison(sides)}
    return render(request, "frontend/scenario/compare.html", context)


@organization_page("planner.view_scenario")
@require_POST
def act(request: HttpRequest, scope: Scope, uuid: UUID, action: str) -> HttpResponse:
    """Rename, clone, archive, comment, make or revoke a link."""
    found = read.scenario(scope, uuid)
    try:
        found = _done(request, scope, found, action)
    except InvalidQuestion as invalid:
        for error in invalid.errors:
            messages.error(request, f"{error_text(error)} {allowed_text(error)}")
    return redirect("scenario", slug=scope.organization.slug, uuid=found.uuid)


def _done(request: HttpRequest, scope: Scope, found: Scenario, action: str) -> Scenario:
    post = request.POST
    match action:
        case "rename":
            return scenarios.rename_scenario(scope=scope, scenario=found, name=post.get("name", ""))
        case "clone":
            copy = made_once(
                request,
                f"clone:{found.pk}",
                lambda: scenarios.clone_scenario(scope=scope, scenario=found, name=post.get("name", "")).uuid,
                lambda uuid: scope.rows(Scenario).filter(uuid=uuid).exists(),
            )
            return read.scenario(scope, copy)
        case "archive" | "restore":
            return scenarios.archive_scenario(scope=scope, scenario=found, archived=action == "archive")
        case "comment":
            made_once(
                request,
                f"comment:{found.pk}",
                lambda: scenarios.comment_on(scope=scope, scenario=found, text=post.get("text", "")).uuid,
                lambda uuid: scope.rows(ScenarioComment).filter(uuid=uuid).exists(),
            )
        case "share":
            made_once(
                request,
                f"link:{found.pk}",
                lambda: new_link(request, scope, found),
                lambda uuid: scope.rows(ShareLink).filter(uuid=uuid).exists(),
            )
        case "revoke":
            link = scope.get_in(ShareLink, _uuid(post.get("link", "")), scenario=found)
            revoke_link(scope=scope, link=link)
            messages.success(request, _("The link finds nothing from now on."))
        case _:
            raise Http404
    return found


def _chosen_scope(request: HttpRequest, scopes: list[Scope]) -> Scope:
    """The organization to save to: the one chosen; the first plan of who has none founds one."""
    if not scopes:
        assert isinstance(request.user, User)
        made = create_organization(user=request.user, name=request.POST.get("organization_name", ""))
        return scope_of(user=request.user, organization=made.uuid)
    return next((each for each in scopes if each.organization.slug == request.POST.get("organization")), scopes[0])


def _saved(
    request: HttpRequest, scopes: list[Scope], kind: str, asked: Asked, then: str, search: Run | None
) -> HttpResponse:
    """Keep the plan, once however often its form is sent; then to what was made."""
    option, note = asked.page.get("option", ""), request.POST.get("note", "")
    existing = request.POST.get("scenario", "")

    def make() -> UUID:
        scope = _chosen_scope(request, scopes)
        if existing:
            found = read.scenario(scope, _uuid(existing))
            scenarios.add_version(scope=scope, scenario=found, question=asked.raw, option=option, note=note)
        else:
            found = scenarios.save_scenario(
                scope=scope, name=request.POST.get("name", ""), kind=kind, question=asked.raw, option=option, note=note
            )
        if then != "quote" or not scope.allows("planner.change_quote"):
            return found.uuid
        found.refresh_from_db()
        version, language = read.version_of(found), document_language()
        fleet = fleet_terms(version, search, language) if search is not None else {}
        return quotes.create_quote(scope=scope, version=version, terms={"language": language, **fleet}).uuid

    made = made_once(request, "save-plan", make, lambda uuid: _page_of(request, uuid) is not None)
    page, slug = _page_of(request, made) or ("", "")
    if not page:
        raise Http404
    if page == "scenario":
        messages.success(request, _("Saved."))
    return redirect(page, slug=slug, uuid=made)


def _search(request: HttpRequest, name: str) -> Run | None:
    """The search whose fleet is to be quoted; raises ``Http404`` for one that isn't there for the visitor."""
    if not name:
        return None
    run = find_run(uuid=_uuid(name), user=request.user)
    if run is None or not is_quotable(run):
        raise Http404
    return run


def _page_of(request: HttpRequest, uuid: UUID) -> tuple[str, str] | None:
    """Which page shows the quote or scenario of that name, in which of the visitor's organizations as they are now."""
    for scope in scopes_of(user=request.user):
        for page, rows in (("quote", scope.rows(Quote)), ("scenario", scope.rows(Scenario))):
            if rows.filter(uuid=uuid).exists():
                return page, scope.organization.slug
    return None


def _existing(scopes: list[Scope], kind: str) -> list[tuple[str, str]]:
    """Scenarios that a next version could be saved to; with several organizations, by name of both."""
    many = len(scopes) > 1
    return [
        (str(found.uuid), f"{scope.organization.name}: {found.name}" if many else found.name)
        for scope in scopes
        for found in read.scenarios(scope).filter(kind=kind)[:100]
    ]


def _default_name(asked: Asked) -> str:
    model = asked.given.get("model", "").rsplit("/", 1)[-1]
    return model[: scenarios.NAME_LENGTH]


def _without(query: QueryDict, *names: str) -> QueryDict:
    copy = query.copy()
    for name in names:
        copy.pop(name, None)
    return copy


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None
