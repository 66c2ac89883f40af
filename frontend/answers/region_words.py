"""What is set of a region beside its traffic and scenario: who takes its requests, and what that costs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from frontend import numbers
from frontend.stated import with_unit


def links_of(region: Mapping[str, Any]) -> dict[str, str]:
    """Each such setting by its label, with its unit; a dash where it is not set."""
    fallback = region.get("fallback") or ()
    return {
        _("Falls back to"): ", ".join(map(str, fallback)) or numbers.NOTHING,
        _("Round trip added"): with_unit(numbers.rounded(region.get("round_trip_ms")), "ms"),
        _("Spills over from"): with_unit(
            numbers.rounded(region.get("spill_outstanding")), _("requests out at every replica")
        ),
    }


def stated_links(region: Mapping[str, Any]) -> str:
    """What is set of it, apart by dots."""
    return " · ".join(f"{label} {text}" for label, text in links_of(region).items() if text != numbers.NOTHING)
