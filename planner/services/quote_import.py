"""A draft's lines from a table: what was exported, perhaps edited in a spreadsheet, read back."""

from __future__ import annotations

from typing import Any

from planner.documents.tables import TableError, read_table
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.quote_math import PRICED_CATEGORIES, SHARE_CATEGORIES, Line
from planner.engine.sentences import say
from planner.models import Quote
from planner.selectors.scope import Scope
from planner.services.plan_json import plain
from planner.services.quotes import change_quote

MOST_BYTES = 2**20


def import_lines(*, scope: Scope, quote: Quote, data: bytes) -> Quote:
    """Replace a draft's lines, percentages, currency and term by those of a CSV file; its tax stays its own.

    Amounts are reckoned anew from quantities and prices. Raises ``InvalidQuestion`` naming row and column, ``Conflict``
    for an issued quote.
    """
    if len(data) > MOST_BYTES:
        raise _refused(say("The file is too long."), say("up to {most:,} bytes", most=MOST_BYTES))
    try:
        table = read_table(data)
    except TableError as error:
        raise _refused(error.sentence, say("a table as this quote's CSV has it")) from error
    changes: dict[str, Any] = {
        "items": [_item(line) for line in table.lines if line.category in PRICED_CATEGORIES],
        "shares": [_share(line) for line in table.lines if line.category in SHARE_CATEGORIES],
    }
    if table.lines:
        if not (table.months.isascii() and table.months.isdecimal()):
            no_number = say("{given} is no number of months", given=repr(table.months[:40]))
            raise _refused(TableError(2, "months", no_number).sentence, say("such as {example}", example=12))
        changes |= {"currency": table.currency, "months": int(table.months[:9])}
    return change_quote(scope=scope, quote=quote, changes=changes)


def _item(line: Line) -> dict[str, Any]:
    item = {name: plain(getattr(line, name)) for name in ("category", "label", "detail", "source", "unit", "cadence")}
    return {**item, "quantity": plain(line.quantity), "unit_price": plain(line.unit_price)}


def _share(line: Line) -> dict[str, Any]:
    share = {name: plain(getattr(line, name)) for name in ("category", "percent", "label", "source")}
    return {**share, "of": list(line.of)}


def _refused(message: str, allowed: str) -> InvalidQuestion:
    return InvalidQuestion(
        [FieldError(field="lines", value=None, message=message, allowed=allowed, code="invalid_table")]
    )
