"""Who calls: a program with an organization's key, or a person with the session of the pages."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.request import Request

from planner.engine.errors import FieldError, InvalidQuestion
from planner.models import User
from planner.selectors.scope import NotFound, Scope, scope_of, scopes_of
from planner.services.api_keys import scope_of_key

ORGANIZATION_HEADER = "Takar-Organization"
_SCHEME = "Bearer"


class KeyAuthentication(BaseAuthentication):
    """``Authorization: Bearer takar_...``; ``request.auth`` is the scope that the key opens."""

    def authenticate(self, request: Request) -> tuple[User, Scope] | None:
        given = get_authorization_header(request)
        if not given:
            return None
        # Anything else in this header is a mistake: answering it as nobody's would hide that.
        scheme, _, key = given.decode("latin-1").partition(" ")
        scope = scope_of_key(key=key.strip()) if scheme.lower() == _SCHEME.lower() else None
        if scope is None:
            raise AuthenticationFailed("Not a key that is good now: Authorization must be Bearer and an API key.")
        return scope.user, scope

    def authenticate_header(self, request: Request) -> str:
        return f'{_SCHEME} realm="Takar"'


class PageSessionAuthentication(SessionAuthentication):
    """The session of the pages, for people; what changes something needs the CSRF token too."""


class _KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    target_class = "planner.api.auth.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key of a service account, made on the organization's keys page.",
        }


class _SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "planner.api.auth.PageSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "The session of the pages; POST, PUT, PATCH and DELETE send `X-CSRFToken` too.",
        }


def person(request: Request) -> User:
    """The person who calls; raises 401 for nobody, and for a key, which belongs to a program."""
    if not isinstance(request.user, User) or request.auth is not None:
        raise NotAuthenticated("This is for people: sign in, and call with the session.")
    return request.user


def request_scope(request: Request) -> Scope:
    """The scope that the caller acts in: the key's organization, or the one that the header names.

    Raises 401 for nobody, 404 where the caller is no member, 400 where it is not said which of several.
    """
    named = request.headers.get(ORGANIZATION_HEADER, "")
    if isinstance(request.auth, Scope):
        organization = request.auth.organization
        if named and named not in (organization.slug, str(organization.uuid)):
            raise NotFound("No such organization.")
        return request.auth
    if not request.user.is_authenticated:
        raise NotAuthenticated
    if named:
        return scope_of(user=request.user, organization=named)
    scopes = scopes_of(user=request.user)
    if len(scopes) == 1:
        return scopes[0]
    allowed = ", ".join(scope.organization.slug for scope in scopes) or "a member of an organization"
    message = "Which organization?" if scopes else "You are in no organization."
    raise InvalidQuestion([FieldError(field=ORGANIZATION_HEADER, value=None, message=message, allowed=allowed)])


def prices_scope(request: Request) -> Scope | None:
    """The scope whose prices a plan is asked for: a key's, or a named organization's; None: list prices."""
    if isinstance(request.auth, Scope) or request.headers.get(ORGANIZATION_HEADER):
        return request_scope(request)
    return None


def caller(request: HttpRequest | Request) -> str | None:
    """Who calls, for counting; None for nobody in particular."""
    auth = getattr(request, "auth", None)
    if isinstance(auth, Scope) and auth.key is not None:
        return f"key-{auth.key.uuid}"
    user = getattr(request, "user", None)
    return f"user-{user.pk}" if isinstance(user, User) else None
