"""An organization's codes in words: rows of the audit log, states, tiers and their limits, failed deliveries."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from frontend.words import named

KINDS: dict[str, str | Promise] = {
    "organization": _("organization"),
    "membership": _("membership"),
    "invitation": _("invitation"),
    "serviceaccount": _("service account"),
    "apikey": _("API key"),
    "pricebook": _("price book"),
    "discount": _("discount"),
    "negotiatedprice": _("negotiated price"),
    "commitment": _("commitment"),
    "privateinstancetype": _("private instance type"),
    "pricebookfile": _("price book file"),
    "exchangerate": _("exchange rate"),
    "scenario": _("scenario"),
    "scenariocomment": _("comment"),
    "sharelink": _("link"),
    "quote": _("quote"),
    "webhook": _("webhook"),
}
STATES: dict[str, str | Promise] = {
    "open": _("open"),
    "accepted": _("accepted"),
    "revoked": _("revoked"),
    "expired": _("expired"),
    "active": _("active"),
    "pending": _("pending"),
    "delivered": _("delivered"),
    "failed": _("given up"),
}
TIERS: dict[str, str | Promise] = {"anonymous": _("Without an account"), "free": _("Free"), "team": _("Team")}
QUOTAS: dict[str, str | Promise] = {
    "members": _("members and open invitations"),
    "price_books": _("price books"),
    "scenarios": _("scenarios"),
    "quotes_a_month": _("quotes issued this month"),
    "keys": _("active API keys"),
    "webhooks": _("webhooks"),
}
RATES: dict[str, str | Promise] = {
    "plan": _("API: plans a minute"),
    "read": _("API: reads and changes a minute"),
    "run": _("API: jobs started a minute"),
    "page_plan": _("pages: plans a minute"),
    "page_run": _("pages: jobs started a minute"),
}
DELIVERY_ERRORS: dict[str, str | Promise] = {
    "address": _("no public address"),
    "url": _("not a usable address"),
    "name": _("the name is not known"),
    "connection": _("no connection"),
    "tls": _("the certificate is not good"),
    "timeout": _("no answer in 10 s"),
    "redirect": _("a redirect, not followed"),
    "status": _("not accepted"),
    "secret": _("the secret can't be read: make a new one"),
}


def kind(model: str) -> str:
    """What a row of that model is."""
    return str(KINDS.get(model, model))


def state(code: str) -> str:
    """What has become of an invitation or a key."""
    return str(STATES.get(code, code))


def tier(code: str) -> str:
    """What a tier is called."""
    return str(TIERS[code])


def quota(code: str) -> str:
    """What a tier limits, so many of them."""
    return str(QUOTAS[code])


def rate(code: str) -> str:
    """Which calls a rate counts."""
    return str(RATES[code])


def delivery_error(code: str) -> str:
    """Why a webhook could not be reached."""
    return named(DELIVERY_ERRORS, code)
