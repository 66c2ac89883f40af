"""A quote's codes in words: kinds of line, what they count, where it is in its life."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from frontend.words import named

QUOTE_CATEGORIES: dict[str, str | Promise] = {
    "compute": _("Compute"),
    "networking": _("Networking"),
    "storage": _("Storage"),
    "egress": _("Data transfer out"),
    "licences": _("Licences"),
    "services": _("Services"),
    "support": _("Support"),
    "contingency": _("Contingency"),
    "mark_up": _("Mark-up"),
    "discount": _("Discount"),
    "tax": _("Tax"),
}
QUOTE_UNITS: dict[str, str | Promise] = {
    "node_hour": _("node-hours"),
    "gpu_hour": _("GPU-hours"),
    "node_month": _("node-months"),
    "gpu_month": _("GPU-months"),
    "gib_month": _("GiB-months"),
    "gb": _("GB"),
    "hour": _("hours"),
    "day": _("days"),
    "month": _("months"),
    "piece": _("pieces"),
}
QUOTE_STATUSES: dict[str, str | Promise] = {
    "draft": _("Draft"),
    "issued": _("Issued"),
    "accepted": _("Accepted"),
    "expired": _("Expired"),
    "superseded": _("Superseded"),
}


def quote_category(code: str) -> str:
    """A kind of line of a quote."""
    return named(QUOTE_CATEGORIES, code)


def quote_unit(code: str) -> str:
    """What a line counts."""
    return named(QUOTE_UNITS, code)


def quote_status(code: str) -> str:
    """Where a quote is in its life."""
    return named(QUOTE_STATUSES, code)


def document_language() -> str:
    """The language of documents that the page's own is, English for one that none is written in."""
    return "id" if (get_language() or "en").startswith("id") else "en"
