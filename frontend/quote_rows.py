"""Rows of a draft's form: added, taken out, and not yet faulted while nobody has filled them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frontend.typed_numbers import whole_number
from planner.engine.errors import FieldError
from planner.models import ScenarioVersion
from planner.services.plan_json import plain
from planner.services.quote_plan import suggested_items

NEW_ROWS: dict[str, dict[str, Any]] = {
    "items": {"category": "services", "unit": "piece", "quantity": 1, "cadence": "monthly"},
    "shares": {"category": "discount", "percent": "0", "of": []},
    "fx": {"base": "USD", "quote": "IDR", "rate": "", "rate_date": "", "source": ""},
}


def edit_rows(terms: dict[str, Any], action: str, what: str, version: ScenarioVersion | None, language: str) -> None:
    """What a button does to the rows of ``terms``; ``what`` names section and place, or a suggestion of the plan."""
    section, _sep, text = what.partition("-")
    if action == "add" and section in NEW_ROWS:
        terms[section].append(dict(NEW_ROWS[section]))
    elif action == "remove" and section in NEW_ROWS:
        place = whole_number(text)
        if place is not None:
            del terms[section][place : place + 1]
    elif action == "suggest" and version is not None:
        place = whole_number(what)
        if place is not None:
            chosen = suggested_items(version, language)[place : place + 1]
            terms["items"] += [plain(item) for item in chosen]


def of_filled_rows(errors: Sequence[FieldError], terms: Mapping[str, Any]) -> list[FieldError]:
    """Without the faults of rows that nobody has filled in yet: they stand in the form, to be saved with it."""
    empty = tuple(
        f"{section}.{place}."
        for section, new in NEW_ROWS.items()
        for place, row in enumerate(terms[section])
        if all(str(row.get(name) or "") in ("", str(value)) for name, value in new.items() if name != "of")
    )
    return [error for error in errors if not error.field.startswith(empty)]
