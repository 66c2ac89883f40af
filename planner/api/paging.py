"""Pages by cursor: stable while rows come and go, since a cursor names a row and not a count."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import FieldSpec

LIMIT = FieldSpec(kind="integer", minimum=1, maximum=200, unit="rows", help="Rows on a page; 50 unless given.")
CURSOR_WORDS = "Where the page starts: taken from `next` or `previous`, not made up."
DEFAULT_LIMIT = 50


class ListKeyPagination(CursorPagination):
    """Rows in the order of their unique ``list_key``."""

    ordering: str | tuple[str, ...] = "list_key"

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.page_size = limit

    def decode_cursor(self, request: Request) -> Cursor | None:
        """The cursor given; raises ``InvalidQuestion`` for one that no page gave."""
        given = request.query_params.get(self.cursor_query_param, "")
        try:
            cursor: Cursor | None = super().decode_cursor(request)
        except NotFound:
            raise InvalidQuestion([bad_cursor(given)]) from None
        # What decodes to no position would be the first page: a damaged cursor must not start over in silence.
        if cursor is not None and (cursor.position is None or "\x00" in str(cursor.position)):
            raise InvalidQuestion([bad_cursor(given)])
        return cursor

    def links(self) -> dict[str, Any]:
        """The addresses of the pages before and after, or null."""
        return {"next": self.get_next_link(), "previous": self.get_previous_link()}


def bad_cursor(given: str) -> FieldError:
    return FieldError(
        field="cursor", value=given, message="Not a cursor.", allowed="the cursor of a page's next or previous"
    )
