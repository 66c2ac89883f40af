"""What every endpoint shares: strict query parameters, rate headers, English."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.urls import resolve
from django.utils import translation
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from planner.api.conditions import conditional, matches, tag_of
from planner.api.exceptions import KeyConflict, NoSuchPath, Outdated
from planner.api.throttles import ClientThrottle
from planner.engine.errors import FieldError, InvalidQuestion
from planner.services.idempotency import KEY_FIELD, KeyReused, create_once


class ApiView(APIView):
    """The base of the API's views."""

    query_parameters: tuple[str, ...] = ()
    """The names a request may carry after the ``?``: any other is refused, for a typing slip in a filter must not
    silently widen the answer."""

    def allowed_parameters(self, request: Request) -> tuple[str, ...]:
        """What this request may carry after the ``?``."""
        return self.query_parameters

    def get_throttles(self) -> list[BaseThrottle]:
        """The request's throttles, the same objects at each call: they remember what they counted."""
        if not hasattr(self, "_throttles"):
            self._throttles = super().get_throttles()
        return self._throttles

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Programs read these answers: they don't change with Accept-Language.
        translation.activate("en")
        super().initial(request, *args, **kwargs)
        if request.META.get("HTTP_TRANSFER_ENCODING") and not request.META.get("CONTENT_LENGTH"):
            # It would read as empty: how much of it there is has to be known before any is taken.
            raise ParseError("The body came in chunks: send it whole, with a Content-Length.")
        known = self.allowed_parameters(request)
        unknown = [name for name in request.query_params if name not in known]
        if unknown:
            allowed = ", ".join(known) or "no query parameters"
            raise InvalidQuestion(
                [
                    FieldError(
                        field=name,
                        value=request.query_params[name],
                        message="Unknown query parameter.",
                        allowed=allowed,
                        code="unknown_field",
                    )
                    for name in unknown
                ]
            )

    def require_match(self, request: Request, **names: Any) -> None:
        """Raise 412 where a change is asked for with an ``If-Match`` that is no longer true."""
        given = request.headers.get("If-Match")
        if given is None:
            return
        tags = self.tags_now(request, **names)
        if not matches(given, tags):
            raise Outdated(given, ", ".join(sorted(tags)))

    def tags_now(self, request: Request, **names: Any) -> set[str]:
        """The entity tags that stand for the row as it is: those of what GET answers."""
        return {tag_of(self.get(request, **names))}  # type: ignore[attr-defined]

    def body(self) -> bytes:
        """The request's bytes; an empty body never reaches the parser."""
        return self.request.data if isinstance(self.request.data, bytes) else b""

    def once(self, space: str, make: Callable[[], UUID], asked: Mapping[str, Any]) -> UUID:
        """The public name of what ``make`` made: now, or at the first request with this ``Idempotency-Key``.

        Keys of different ``space`` never meet.
        """
        key = self.request.headers.get(KEY_FIELD)
        if key is None:
            return make()
        try:
            uuid, _ = create_once(scope=space, key=key, request=asked, create=make)
        except KeyReused as error:
            raise KeyConflict(key) from error
        return uuid

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        for throttle in self.get_throttles():
            if isinstance(throttle, ClientThrottle):
                for name, value in throttle.headers().items():
                    response.headers[name] = value
        conditional(request, response)
        return response


class NotFoundView(ApiView):
    """404 in the API's envelope, for every path below ``/api/`` that is none."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NoSuchPath(request.path, _with_slash(request.path_info))


def _with_slash(path: str) -> str | None:
    """The path with the slash at its end that every address of the API has, where that is one of them."""
    match = resolve(f"{path}/")
    return None if getattr(match.func, "cls", None) is NotFoundView else f"{path}/"
