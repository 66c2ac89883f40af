"""What every page does with requests that no page is made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

NUL = "\x00"
API_PATH = "/api/"


class PageRequestMiddleware:
    """Refuses texts that no database column can hold, and answers a wrong method with a page.

    The API has its own ways for both, in its own envelope.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code != 405 or response.content or request.path.startswith(API_PATH):
            return response
        page = render(request, "405.html", status=405)
        page["Allow"] = response["Allow"]
        return page

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """PostgreSQL takes no NUL in a text, not even to look for it: here it is refused once for all pages."""
        if request.path.startswith(API_PATH):
            return
        if any(NUL in text for text in _texts(request, kwargs)):
            raise BadRequest("A NUL character was sent.")


def _texts(request: HttpRequest, kwargs: dict[str, Any]) -> Iterator[str]:
    yield from (str(value) for value in kwargs.values())
    for sent in (request.GET, request.POST):
        for name, values in sent.lists():
            yield name
            yield from (value for value in values if isinstance(value, str))
