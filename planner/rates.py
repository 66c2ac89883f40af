"""Calls a minute of one caller, by tier and kind of call: defaults, and what the environment makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import environ

TIERS: Final = (("anonymous", "", 1), ("free", "_FREE", 2), ("team", "_TEAM", 10))
"""Each with the end of its variables' names, and how many times the calls of an anonymous caller it has."""
API_CALLS: Final = {"plan": 60, "read": 600, "run": 20}
PAGE_CALLS: Final = {"page_plan": 300, "page_run": 20}
"""Plans drawn (each change of the form asks for one), and jobs started."""


def api_rates(env: environ.Env) -> dict[str, dict[str, int]]:
    """Of the API; ``API_PLAN_RATE_FREE=90/min`` sets one."""
    return _rates(env, API_CALLS, "API_")


def page_rates(env: environ.Env) -> dict[str, dict[str, int]]:
    """Of the pages; ``PAGE_RUN_RATE=10`` sets one."""
    return _rates(env, PAGE_CALLS, "")


def _rates(env: environ.Env, calls: Mapping[str, int], prefix: str) -> dict[str, dict[str, int]]:
    return {
        tier: {
            kind: _calls_a_minute(env, f"{prefix}{kind.upper()}_RATE{suffix}", most * factor)
            for kind, most in calls.items()
        }
        for tier, suffix, factor in TIERS
    }


def _calls_a_minute(env: environ.Env, name: str, default: int) -> int:
    """``60`` or ``60/min``."""
    return int(env.str(name, default=f"{default}/min").removesuffix("/min"))
