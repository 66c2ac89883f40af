"""Rejections in the order a reader needs them: what stands for most options first, said once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.engine.answers import Rejection


def in_order(rejections: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """Merge rejections that say the same of nodes that differ only in their network; largest count first.

    >>> a = Rejection(subject="1x L4", code="memory", reason="too small", value=9.0, limit=8.0, unit="GiB", count=2)
    >>> [r.count for r in in_order([a, a])]
    [4]
    """
    merged: dict[tuple[str, str, str], Rejection] = {}
    for rejection in rejections:
        key = (rejection.subject, rejection.code, rejection.reason)
        same = merged.get(key)
        merged[key] = replace(same, count=same.count + rejection.count) if same else rejection
    return tuple(sorted(merged.values(), key=lambda r: (-r.count, r.subject, r.code)))
