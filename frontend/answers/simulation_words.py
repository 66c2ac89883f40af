"""Words that the pages of simulated runs share: times, money, what happened to a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from frontend import numbers
from planner.engine.units import HOURS_PER_MONTH

PERCENTILES = ("p50", "p95", "p99")


def clock(seconds: float) -> str:
    """A time of a run to the second, as hours, minutes and seconds; days before them.

    >>> clock(2247.4), clock(3600.0), clock(93_784.0)
    ('0:37:27', '1:00:00', '1 d 2:03:04')
    """
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    time = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{numbers.fixed(days)} {_('d')} {time}" if days else time


def hours(seconds: float) -> str:
    if seconds < 7200:
        return numbers.duration(seconds * 1000)
    return _("%(n)s h") % {"n": numbers.rounded(seconds / 3600)}


def pace(result: Mapping[str, Any], duration_s: float) -> str:
    """A bill as what it comes to in an hour and in a month; empty where it isn't known.

    >>> pace({"cost_usd": "0.97", "usd_per_hour": "4.8500"}, 720.0)
    '$4.85 an hour, $3,540 a month'
    """
    cost, hour = as_number(result["cost_usd"]), as_number(result.get("usd_per_hour"))
    if hour is None and cost is not None and duration_s > 0:
        # Of a run stored before runs said it themselves.
        hour = cost * 3600 / duration_s
    if hour is None:
        return ""
    return _("%(hour)s an hour, %(month)s a month") % {
        "hour": numbers.money(hour),
        "month": numbers.money(hour * HOURS_PER_MONTH),
    }


def as_number(value: Any) -> float | None:
    """Money travels as text."""
    return None if value is None else float(value)
