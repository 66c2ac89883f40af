"""The day of an exchange rate: none to come, none of another age, and a word where it is old."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Final

from planner.documents.snapshot import FxRate
from planner.engine.errors import FieldError
from planner.engine.sentences import say
from planner.services.quote_terms import QuoteTerms

OLD_DAYS: Final = 90
"""A bank's rate of a quarter ago is said to be old: the price may no longer hold."""
OLDEST_YEARS: Final = 10
"""Contracts fix rates for years; one of a longer time ago is a slip of the pen."""


def day_fault(field: str, day: date, today: date) -> FieldError | None:
    """What is wrong with a rate of ``day``, where something is."""
    oldest = today.replace(year=today.year - OLDEST_YEARS, day=min(today.day, 28))
    if oldest <= day <= today:
        return None
    message = say("A rate can't be of a day to come.") if day > today else say("No rate of so long ago is used.")
    allowed = (
        say("up to {today}", today=today) if day > today else say("{oldest} to {today}", oldest=oldest, today=today)
    )
    return FieldError(field=field, value=day.isoformat(), message=message, allowed=allowed, code="out_of_range")


def stated_day_faults(terms: QuoteTerms, today: date) -> Iterator[FieldError]:
    """Of the rates that a quote's writer states."""
    for place, rate in enumerate(terms.fx):
        if fault := day_fault(f"fx.{place}.rate_date", rate.rate_date, today):
            yield fault


def old_rates(used: Iterable[FxRate], today: date) -> Iterator[FieldError]:
    """Rates that prices rest on and that are old, whoever states them: no fault, but to be known."""
    for rate in used:
        days = (today - rate.rate_date).days
        if days > OLD_DAYS:
            yield FieldError(
                field="fx",
                value=rate.rate_date.isoformat(),
                message=say(
                    "The rate from {base} to {quote} is {days:,} days old.", base=rate.base, quote=rate.quote, days=days
                ),
                allowed=say("a newer one with its day and source, where there is one"),
                code="old_rate",
            )
