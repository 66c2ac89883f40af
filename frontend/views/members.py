"""Members of an organization, and the invitations to it."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend import words
from frontend.entry import Entry, build_entry
from frontend.sentences import shown
from frontend.tenancy import choose
from frontend.views.guard import organization_page, signed_in
from planner.engine.errors import InvalidQuestion
from planner.models import Invitation, Membership, Role, User
from planner.permissions import SERVICE_ACCOUNT_ROLES
from planner.selectors import organizations as selectors
from planner.selectors.invitations import find_invitation
from planner.selectors.scope import Scope, scope_of
from planner.services import invitations
from planner.services.json_input import read_form
from planner.services.organization_inputs import InvitationInput
from planner.services.organizations import change_role, remove_member
from planner.services.tenancy import Conflict

INVITATION = "invitation"
"""Of the session: the link that somebody signs up or in for."""
_SHOWN = 200


@organization_page("planner.view_members")
@require_safe
def members(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Who is in the organization; owners change roles, invite and remove."""
    return _page(request, scope, build_entry(InvitationInput, {"role": Role.VIEWER.value}, order=("email",)))


def _page(request: HttpRequest, scope: Scope, entry: Entry, *, link: str = "", status: int = 200) -> HttpResponse:
    can_change = scope.allows("planner.change_members")
    now = timezone.now()
    context = {
        "scope": scope,
        "tab": "members",
        "members": [_shown(membership, scope) for membership in selectors.members(scope)[:_SHOWN]],
        "invitations": [(row, row.status(now)) for row in selectors.invitations(scope)[:_SHOWN]] if can_change else [],
        "can_change": can_change,
        "entry": entry,
        "link": link,
    }
    return render(request, "frontend/organization/members.html", context, status=status)


def _shown(membership: Membership, scope: Scope) -> dict[str, object]:
    account = getattr(membership.user, "service_account", None)
    choices = SERVICE_ACCOUNT_ROLES if account is not None else tuple(Role)
    return {
        "row": membership,
        "name": account.name if account is not None else membership.user.email or membership.user.username,
        "is_service": account is not None,
        "is_me": membership.user_id == scope.user.pk,
        "roles": [(role.value, words.choice(role.value), role.value == membership.role) for role in choices],
    }


@organization_page("planner.change_members")
@require_POST
def set_role(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """Give a member another role."""
    try:
        change_role(scope=scope, membership=scope.get(Membership, uuid), role=request.POST.get("role", ""))
    except InvalidQuestion as invalid:
        messages.error(request, shown(invalid.errors[0].message))
    else:
        messages.success(request, _("Saved."))
    return redirect("members", slug=scope.organization.slug)


@organization_page("planner.view_members")
@require_POST
def remove(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """Take a member out; everybody may leave."""
    membership = scope.get(Membership, uuid)
    leaves = membership.user_id == scope.user.pk
    remove_member(scope=scope, membership=membership)
    messages.success(request, _("You have left.") if leaves else _("Removed."))
    return redirect("organizations") if leaves else redirect("members", slug=scope.organization.slug)


@organization_page("planner.change_members")
@never_cache
@require_POST
def invite(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Invite somebody; the link is mailed, and shown once to pass it on."""
    given = {name: request.POST.get(name, "") for name in ("email", "role")}
    try:
        invited = invitations.invite(scope=scope, values=read_form(InvitationInput, given))
    except InvalidQuestion as invalid:
        return _page(request, scope, build_entry(InvitationInput, given, invalid.errors, order=("email",)), status=400)
    link = request.build_absolute_uri(reverse("invitation", args=[invited.token]))
    if invitations.send_invitation(scope=scope, invitation=invited.invitation, link=link):
        messages.success(request, _("An invitation was mailed to %(email)s.") % {"email": invited.invitation.email})
    else:
        messages.warning(request, _("The mail server took no message: pass the link on yourself."))
    empty = build_entry(InvitationInput, {"role": given["role"]}, order=("email",))
    return _page(request, scope, empty, link=link)


@organization_page("planner.change_members")
@require_POST
def revoke(request: HttpRequest, scope: Scope, uuid: UUID) -> HttpResponse:
    """Take an invitation back."""
    invitations.revoke_invitation(scope=scope, invitation=scope.get(Invitation, uuid))
    messages.success(request, _("Revoked."))
    return redirect("members", slug=scope.organization.slug)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Where an invitation's link leads: what it is, and the button that accepts it."""
    found = find_invitation(invitations.token_hash(token))
    if found is None:
        raise Http404
    if not isinstance(request.user, User):
        # So that who is invited can sign up where signing up is closed.
        request.session[INVITATION] = token
    elif request.method == "POST":
        return _accept(request, request.user, token)
    context = {
        "invitation": found,
        "status": found.status(timezone.now()),
        "is_mine": isinstance(request.user, User) and invitations.is_addressed_to(found, request.user),
        "token": token,
    }
    return render(request, "frontend/organization/invitation.html", context)


@signed_in
def _accept(request: HttpRequest, user: User, token: str) -> HttpResponse:
    try:
        membership = invitations.accept_invitation(user=user, token=token)
    except Conflict as conflict:
        context = {
            "message": shown(conflict.message),
            "allowed": shown(conflict.allowed),
            "back": reverse("organizations"),
        }
        return render(request, "frontend/organization/conflict.html", context, status=409)
    request.session.pop(INVITATION, None)
    choose(request, scope_of(user=user, organization=membership.organization.uuid))
    return redirect("organization", slug=membership.organization.slug)
