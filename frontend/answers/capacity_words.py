"""Words and money of the fleets that a search tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from frontend import numbers
from frontend.answers.simulation_words import as_number
from planner.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

SHARES = ("kv_use", "utilization")
"""Metrics that are shares."""
TARGETS: dict[str, str | Promise] = {
    "queue": gettext_lazy("%(n)s requests waiting a replica"),
    "concurrency": gettext_lazy("%(n)s requests at once a replica"),
    "kv_use": gettext_lazy("%(n)s of the KV blocks in use"),
    "requests_per_s": gettext_lazy("%(n)s requests/s a replica"),
    "utilization": gettext_lazy("%(n)s of the time busy"),
}


def target_words(metric: str | None, target: float) -> str:
    """An autoscaler's target with what it is of, and its unit; the bare number where that isn't known."""
    shown = numbers.percent(target) if metric in SHARES else numbers.rounded(target)
    return str(TARGETS.get(metric or "", "%(n)s")) % {"n": shown}


def fleet_words(point: Mapping[str, Any]) -> str:
    """A fleet that was tried: its size, and that of each of its regions."""
    regions = point.get("regions")
    if regions:
        named = ", ".join(f"{region['name']}: {_size(region)}" for region in regions)
        return f"{_size(point)} ({named})"
    return _size(point)


def _size(point: Mapping[str, Any]) -> str:
    low, high = point["min_replicas"], point["max_replicas"]
    if low is None:
        return ngettext("%(n)s replica", "%(n)s replicas", point["replicas"]) % {"n": numbers.fixed(point["replicas"])}
    sizes = {"low": numbers.fixed(low), "high": numbers.fixed(high)}
    if point["scaling_target"] is None:
        return _("%(low)s to %(high)s replicas") % sizes
    target = target_words(point.get("scaling_metric"), point["scaling_target"])
    return _("%(low)s to %(high)s replicas, target %(target)s") % {**sizes, "target": target}


def month_usd(point: Mapping[str, Any], duration_s: float) -> float | None:
    """What a tried fleet costs a month; ``duration_s`` is how long its run took, where it doesn't say so itself."""
    if (month := as_number(point.get("usd_per_month"))) is not None:
        return month
    cost, took_s = as_number(point["cost_usd"]), point.get("duration_s") or duration_s
    return None if cost is None or not took_s else cost * SECONDS_PER_HOUR * HOURS_PER_MONTH / took_s
