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
DROPPED: dict[str, str | Promise] = {
    "queue_full": gettext_lazy("%(n)s refused: too many waited"),
    "queue_timeout": gettext_lazy("%(n)s waited longer than the queue's time-out"),
    "too_long": gettext_lazy("%(n)s longer than a replica can hold"),
    "replica_lost": gettext_lazy("%(n)s lost with their replica"),
    "cancelled": gettext_lazy("%(n)s given up by their clients"),
    "unfinished": gettext_lazy("%(n)s unanswered at the end"),
}
"""Why requests get no full answer."""


def clock(seconds: float) -> str:
    """A time of a run to the second, as hours, minutes and seconds; days before them.

    >>> clock(2247.4), clock(3600.0), clock(93_784.0)
    ('0:37:27', '1:00:00', '1 d 2:03:04')
    """
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    time = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{numbers.fixed(days)} {_('d')} {time}" if days else time


def comes_whole(result: Mapping[str, Any]) -> bool:
    """Whether answers come all at once, without a time between tokens: one token each, or batches of whole requests."""
    return result["tpot_ms"]["p95"] is None and result["ttft_ms"]["p95"] is not None


def has_cache(result: Mapping[str, Any]) -> bool:
    """Whether replicas hold a KV cache and answer in tokens: batches of whole requests do neither."""
    return str(result["settings"].get("batching", "continuous")) == "continuous"


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


def tokens_price(result: Mapping[str, Any]) -> str:
    """What a million tokens cost, of either kind; empty where a run has none."""
    sides = {side: as_number(result.get(f"usd_per_million_{side}_tokens")) for side in ("input", "output")}
    prices = {side: numbers.money(usd) for side, usd in sides.items()}
    if sides["input"] is None:
        return ""
    if sides["output"] is None:
        return _("%(input)s per million input tokens; output: not applicable") % prices
    return _("%(input)s per million input, %(output)s per million output tokens") % prices


def cached_words(result: Mapping[str, Any]) -> str:
    """Prompt tokens that were found in the prefix cache, and their share; nothing where a run doesn't say."""
    found, all_of = result.get("cached_input_tokens"), result.get("input_tokens")
    if found is None or not all_of:
        return numbers.NOTHING
    return f"{numbers.fixed(found)} ({numbers.percent(found / all_of, 1)})"


def dropped_words(result: Mapping[str, Any]) -> str:
    """Why requests were dropped, the most frequent reason first; empty where none was, or a run doesn't say."""
    reasons = result.get("dropped_by_reason") or {}
    most_first = sorted((name for name in reasons if reasons[name]), key=lambda name: -reasons[name])
    return ", ".join(
        str(DROPPED.get(name, f"%(n)s {name}")) % {"n": numbers.fixed(reasons[name])} for name in most_first
    )


def as_number(value: Any) -> float | None:
    """Money travels as text."""
    return None if value is None else float(value)
