"""The API's own exceptions, each one HTTP status."""

from __future__ import annotations

from collections.abc import Sequence

from rest_framework import exceptions, status

from planner.engine.errors import FieldError
from planner.services.json_input import MAX_BODY_BYTES


class Rejected(exceptions.APIException):
    """400 with what is wrong, field by field."""

    status_code = status.HTTP_400_BAD_REQUEST

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


class TooLarge(exceptions.APIException):
    """413: the body is longer than what it should hold ever is."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self, length_bytes: int | None = None, most_bytes: int = MAX_BODY_BYTES) -> None:
        super().__init__("The body is too long.")
        self.value = length_bytes
        self.allowed = f"up to {most_bytes} bytes"


class NoSuchPath(exceptions.NotFound):
    """404: the address is none of the API's; ``nearest`` is the one probably meant."""

    def __init__(self, path: str, nearest: str | None) -> None:
        super().__init__("No such path.")
        self.value = path
        self.allowed = nearest or "the paths listed at /api/schema/"


class KeyConflict(exceptions.APIException):
    """422: the Idempotency-Key came before, with another request."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_code = "key_reused"
    default_detail = "This Idempotency-Key came before with another request."

    def __init__(self, key: str) -> None:
        super().__init__()
        self.value = key
        self.allowed = "a new key for a new request"


class Unavailable(exceptions.APIException):
    """503: try again later."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "unavailable"
    default_detail = "The service can't answer now."


class NotThere(exceptions.NotFound):
    """404: there is no such row, or none that the caller may know of."""


class NotAllowed(exceptions.PermissionDenied):
    """403: a member, but role or key do not reach that far."""

    def __init__(self, needed: str) -> None:
        super().__init__(f"Needs {needed}.")
        self.value = None
        self.allowed = needed


class Contradiction(exceptions.APIException):
    """409: what is asked contradicts how things stand."""

    status_code = status.HTTP_409_CONFLICT

    def __init__(self, code: str, message: str, allowed: str) -> None:
        super().__init__(message, code)
        self.value = None
        self.allowed = allowed or None


class Outdated(exceptions.APIException):
    """412: the row has changed since it was read."""

    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_code = "outdated"
    default_detail = "It has changed since it was read."

    def __init__(self, given: str, current: str) -> None:
        super().__init__()
        self.value = given
        self.allowed = current
