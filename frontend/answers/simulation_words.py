"""Words that the pages of simulated runs share: times, money, what happened to a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from frontend import numbers
from planner.engine.units import HOURS_PER_MONTH

PERCENTILES = ("p50", "p95", "p99")
INCIDENTS: dict[str, str | Promise] = {
    "scaled": gettext_lazy("Replicas wanted: %(n)s"),
    "failed": gettext_lazy("A node failed"),
    "noticed": gettext_lazy("Notice of a spot interruption"),
    "interrupted": gettext_lazy("Spot node taken away"),
    "repaired": gettext_lazy("Node repaired"),
    "ready": gettext_lazy("Replica ready"),
    "upgraded": gettext_lazy("Replica upgraded"),
}
KINDS: dict[str, str | Promise] = {
    "failed": gettext_lazy("Node failed"),
    "noticed": gettext_lazy("Spot notice"),
    "interrupted": gettext_lazy("Spot taken"),
    "repaired": gettext_lazy("Repaired"),
    "upgraded": gettext_lazy("Upgraded"),
    "scaled": gettext_lazy("Scaled"),
    "ready": gettext_lazy("Ready"),
}
"""The rows of the picture of what happened."""


def incident_cells(incident: Mapping[str, Any]) -> tuple[str, str, str, str]:
    what = str(INCIDENTS.get(incident["kind"], incident["kind"])) % {"n": numbers.fixed(incident["replicas"])}
    replica = numbers.fixed(incident["replica"])
    return hours(incident["at_s"]), what, replica, numbers.fixed(incident["lost_requests"])


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
