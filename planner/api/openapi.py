"""The parts of the OpenAPI document that many operations share."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.serializers import BaseSerializer

from planner.api.components import ref

_ERROR_WORDS = {
    400: "What is wrong, field by field.",
    404: "There is no such thing, or none that you may know of.",
    409: "It contradicts what was done before.",
    412: "It has changed since it was read.",
    413: "The body is too long.",
    415: "The body is not `application/json` in UTF-8.",
    422: "It can't be done as things stand.",
}
_ALWAYS = {
    401: "Nobody is signed in, or the key is not good.",
    403: "Role or key do not reach that far; `allowed` says what would.",
    405: "The address has no such method; `Allow` lists those it has.",
    406: "Only `application/json` can be answered.",
    429: "Too many calls: `Retry-After` says how many seconds to wait.",
    503: "The service can't answer now.",
}


def response_header(
    name: str, words: str, kind: OpenApiTypes | dict[str, str] = OpenApiTypes.INT, *statuses: int
) -> OpenApiParameter:
    """A header of the answers with one of ``statuses``, or of every answer."""
    where = [str(status) for status in statuses] or True
    return OpenApiParameter(name, kind, OpenApiParameter.HEADER, description=words, response=where)


RATE_HEADERS = [
    response_header("RateLimit-Limit", "Calls allowed in a window: of one key, person or address."),
    response_header("RateLimit-Remaining", "Calls left in the window."),
    response_header("RateLimit-Reset", "Seconds until the oldest call leaves the window."),
    response_header("Takar-Tier", "The caller's tier: `anonymous`, `free` or `team`.", OpenApiTypes.STR),
    response_header("Retry-After", "Seconds to wait.", OpenApiTypes.INT, 429),
]


def answer(component: str | type, words: str) -> OpenApiResponse:
    """An answer of one component, or of what a serializer writes; ``words`` say what it is."""
    is_serializer = isinstance(component, type) and issubclass(component, BaseSerializer)
    return OpenApiResponse(response=component if is_serializer else ref(component), description=words)


def error_responses(*statuses: int) -> dict[int, OpenApiResponse]:
    """The error answers of an operation: those of ``statuses``, and those that every operation may give."""
    words = {status: _ERROR_WORDS[status] for status in statuses if status not in _ALWAYS} | _ALWAYS
    return {status: answer("ErrorEnvelope", words[status]) for status in sorted(words)}
