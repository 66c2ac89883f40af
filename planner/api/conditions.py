"""Conditional requests: every answer to GET has an ``ETag``; with it, unchanged answers are not sent again, and
changes are refused where the row is no longer what the caller read."""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.services.plan_json import encode

Schema = dict[str, Any]
READS = ("GET", "HEAD")
CHANGES = ("PUT", "PATCH", "DELETE")
IF_NONE_MATCH_WORDS = "The `ETag` of an earlier answer: 304 without a body where it is the same still."
IF_MATCH_WORDS = "The `ETag` read: 412 where it has changed since."
ETAG_WORDS = "Changes with the answer."


def tag_of(response: HttpResponse) -> str:
    """The entity tag of an answer: its own, or one made from its content."""
    given: str | None = response.headers.get("ETag")
    if given:
        return given
    content = encode(response.data).encode() if isinstance(response, Response) else response.content
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def matches(header: str, tags: set[str]) -> bool:
    """Whether a list of entity tags names one of ``tags``; weak and strong ones compare alike.

    >>> matches('W/"a", "b"', {'"a"'}), matches('"c"', {'"a"'}), matches("*", {'"a"'})
    (True, False, True)
    """
    given = {part.strip().removeprefix("W/") for part in header.split(",")}
    return header.strip() == "*" or bool(given & {tag.removeprefix("W/") for tag in tags})


def conditional(request: Request, response: HttpResponse) -> None:
    """Give a good answer to a read its tag, and empty it where the caller has it already."""
    if request.method not in READS or response.status_code != 200:
        return
    tag = tag_of(response)
    response.headers["ETag"] = tag
    if not matches(request.headers.get("If-None-Match", ""), {tag}):
        return
    response.status_code = 304
    if isinstance(response, Response):
        response.data = None
    else:
        response.content = b""
        del response.headers["Content-Type"]


def add_conditions(result: Schema, **_: Any) -> Schema:
    """A drf-spectacular hook: documents on every operation what ``conditional`` and ``If-Match`` do."""
    for operations in result["paths"].values():
        for method, operation in operations.items():
            if method == "get":
                _describe_read(operation)
            elif method.upper() in CHANGES and "get" in operations:
                _add_parameter(operation, "If-Match", IF_MATCH_WORDS)
                operation["responses"]["412"] = _error("It has changed since it was read.")
                _finish(operation)
    return result


def _finish(operation: Schema) -> None:
    """Answers in order, those added with the headers that every answer has."""
    answers = dict(sorted(operation["responses"].items()))
    rates = {
        name: header
        for answer in answers.values()
        for name, header in answer.get("headers", {}).items()
        if name.startswith(("RateLimit-", "Takar-Tier"))
    }
    for answer in answers.values():
        answer["headers"] = rates | answer.get("headers", {})
    operation["responses"] = answers


def _describe_read(operation: Schema) -> None:
    _add_parameter(operation, "If-None-Match", IF_NONE_MATCH_WORDS)
    answers = operation["responses"]
    answers.setdefault("304", {"description": "Nothing has changed since the answer with that `ETag`."})
    for status in ("200", "304"):
        answers[status].setdefault("headers", {}).setdefault(
            "ETag", {"schema": {"type": "string"}, "description": ETAG_WORDS}
        )
    _finish(operation)


def _add_parameter(operation: Schema, name: str, words: str) -> None:
    parameters = operation.setdefault("parameters", [])
    if all(each["name"] != name for each in parameters):
        parameters.append({"in": "header", "name": name, "schema": {"type": "string"}, "description": words})


def _error(words: str) -> Schema:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorEnvelope"}}}
    return {"content": content, "description": words}
