"""A person's organizations: which there are, a new one, whose prices plans use."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from frontend.entry import Entry, build_entry
from frontend.once import made_once
from frontend.sentences import shown
from frontend.tenancy import choose, my_scopes
from frontend.views.guard import organization_page, signed_in
from frontend.words import run_title
from planner.engine.errors import InvalidQuestion
from planner.models import User
from planner.selectors.runs import runs_of_keys
from planner.selectors.scope import Scope, scope_of, scopes_of
from planner.services.json_input import read_form
from planner.services.organization_inputs import OrganizationInput
from planner.services.organizations import create_organization, rename_organization
from planner.services.tenancy import Conflict

_RUNS_SHOWN = 20


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def organizations(request: HttpRequest) -> HttpResponse:
    """The visitor's organizations, and a form for a new one."""
    entry = build_entry(OrganizationInput, {})
    if request.method == "POST":
        assert isinstance(request.user, User)
        try:
            name = read_form(OrganizationInput, {"name": request.POST.get("name", "")}).name
            user = request.user
            made = made_once(
                request,
                "organization",
                lambda: create_organization(user=user, name=name).uuid,
                lambda uuid: any(scope.organization.uuid == uuid for scope in scopes_of(user=user)),
            )
        except InvalidQuestion as invalid:
            entry = build_entry(OrganizationInput, request.POST.dict(), invalid.errors)
        except Conflict as conflict:
            return _list(request, entry, shown(conflict.message), status=409)
        else:
            scope = scope_of(user=user, organization=made)
            choose(request, scope)
            return redirect("organization", slug=scope.organization.slug)
    return _list(request, entry, "", status=400 if entry.has_errors else 200)


def _list(request: HttpRequest, entry: Entry, problem: str, status: int) -> HttpResponse:
    context = {"nav": "organizations", "scopes": my_scopes(request), "entry": entry, "problem": problem}
    return render(request, "frontend/organization/list.html", context, status=status)


@signed_in
@require_POST
def use_organization(request: HttpRequest) -> HttpResponse:
    """Plan with the prices of the organization named, or with list prices; then back to the page it was asked on."""
    slug = request.POST.get("organization", "")
    scope = next((scope for scope in my_scopes(request) if scope.organization.slug == slug), None)
    if slug and scope is None:
        raise Http404
    choose(request, scope)
    target = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(target if is_ours else "/")


@organization_page("planner.view_organization")
@require_http_methods(["GET", "HEAD", "POST"])
def organization(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The organization's own page: its name, what is in it, and the way to each part."""
    given = {"name": scope.organization.name}
    entry = build_entry(OrganizationInput, given)
    if request.method == "POST":
        try:
            rename_organization(scope=scope, name=request.POST.get("name", ""))
        except InvalidQuestion as invalid:
            entry = build_entry(OrganizationInput, request.POST.dict(), invalid.errors)
        else:
            messages.success(request, _("Saved."))
            return redirect("organization", slug=scope.organization.slug)
    context = {
        "scope": scope,
        "tab": "organization",
        "entry": entry,
        "can_rename": scope.allows("planner.change_organization"),
        "runs": [(run, run_title(run.kind)) for run in runs_of_keys(scope)[:_RUNS_SHOWN]],
    }
    return render(request, "frontend/organization/overview.html", context, status=400 if entry.has_errors else 200)
