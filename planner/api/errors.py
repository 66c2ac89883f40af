"""Every failure of the API in one envelope (planner.services.error_envelope), whatever raised it."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError, ProgrammingError
from django.http.request import UnreadablePostError
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from redis.exceptions import RedisError
from rest_framework import exceptions

from catalog.selectors import CatalogNotLoaded
from planner.api.exceptions import (
    Contradiction,
    KeyConflict,
    NoSuchPath,
    NotAllowed,
    NotThere,
    Outdated,
    Rejected,
    TooLarge,
    Unavailable,
)
from planner.engine.errors import InvalidQuestion
from planner.selectors.scope import Forbidden, NotFound
from planner.services.disk import is_out_of_room
from planner.services.error_envelope import envelope, error_entry
from planner.services.tenancy import Conflict


class ApiExceptionHandler(ExceptionHandler):
    """Turns what the layers below raise into the API's own exceptions."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        match exc:
            case InvalidQuestion():
                return Rejected(exc.errors)
            case RequestDataTooBig():
                return TooLarge()
            case SuspiciousOperation() | UnreadablePostError():
                return exceptions.ParseError(str(exc) or None)
            case NotFound():
                return NotThere(str(exc))
            case Forbidden():
                return NotAllowed(exc.needed)
            case Conflict():
                return Contradiction(exc.code, exc.message, exc.allowed)
            case CatalogNotLoaded():
                return Unavailable(str(exc))
            case OperationalError() | ProgrammingError() | RedisError():
                # PostgreSQL calls a table that migrating has yet to make an error of programming.
                return Unavailable()
            case OSError() if is_out_of_room(exc):
                return Unavailable("No room is left to keep this.")
            case _:
                return super().convert_known_exceptions(exc)


class ApiExceptionFormatter(ExceptionFormatter):
    """The envelope, with ``value`` and ``allowed`` where they are known."""

    def run(self) -> Any:
        if isinstance(self.exc, Rejected):
            return envelope(self.exc.errors)
        value, allowed = self._value_and_allowed()
        entries = [
            error_entry(code=error.code, detail=error.detail, attr=error.attr, value=value, allowed=allowed)
            for error in self.get_errors()
        ]
        return {"type": self.get_error_type(), "errors": entries}

    def _value_and_allowed(self) -> tuple[object, str | None]:
        request, view = self.context["request"], self.context["view"]
        match self.exc:
            case TooLarge() | NoSuchPath() | KeyConflict() | NotAllowed() | Contradiction() | Outdated():
                return self.exc.value, self.exc.allowed
            case exceptions.MethodNotAllowed():
                return request and request.method, ", ".join(view.allowed_methods)
            case exceptions.UnsupportedMediaType():
                return request and request.content_type, ", ".join(p.media_type or "" for p in view.parser_classes)
            case exceptions.NotAcceptable():
                given = request and request.META.get("HTTP_ACCEPT")
                return given, ", ".join(renderer.media_type for renderer in view.renderer_classes)
            case exceptions.Throttled():
                return None, ", ".join(getattr(throttle, "described", str)() for throttle in view.get_throttles())
            case _:
                return None, None
