"""What the pages of an organization need: its tabs, and codes in words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from frontend import organization_words, words
from frontend.once import FIELD
from planner.selectors.scope import Scope
from planner.services.tiers import usage

register = template.Library()


@register.simple_tag
def organization_tabs(scope: Scope) -> list[tuple[str, str, str]]:
    """(key, label, address) of each part that the visitor may see."""
    tabs = [
        ("organization", _("Overview"), "planner.view_organization"),
        ("scenarios", _("Scenarios"), "planner.view_scenario"),
        ("quotes", _("Quotes"), "planner.view_quote"),
        ("members", _("Members"), "planner.view_members"),
        ("price-books", _("Price books"), "planner.view_price_book"),
        ("keys", _("API keys"), "planner.view_keys"),
        ("webhooks", _("Webhooks"), "planner.view_webhook"),
        ("audit", _("Audit log"), "planner.view_audit"),
    ]
    return [
        (key, label, reverse(key, args=[scope.organization.slug]))
        for key, label, permission in tabs
        if scope.allows(permission)
    ]


@register.simple_tag
def once() -> SafeString:
    """The field by which a form that is sent twice is known again."""
    return format_html('<input type="hidden" name="{}" value="{}">', FIELD, uuid4())


TAB_QUOTAS = {
    "scenarios": "scenarios",
    "quotes": "quotes_a_month",
    "members": "members",
    "price-books": "price_books",
    "keys": "keys",
    "webhooks": "webhooks",
}


@register.inclusion_tag("frontend/organization/quota.html")
def quota_line(scope: Scope, tab: str) -> dict[str, Any]:
    """How far the limit of a part is used up, where it has one."""
    name = TAB_QUOTAS.get(tab)
    if name is None:
        return {}
    found = usage(scope.organization, name)
    return {
        "usage": found,
        "what": organization_words.quota(name),
        "tier": organization_words.tier(scope.organization.tier),
    }


@register.filter
def choice_words(code: str) -> str:
    """A code of a choice in words."""
    return words.choice(code)


@register.filter
def state_words(code: str) -> str:
    """What has become of an invitation or a key."""
    return organization_words.state(code)


@register.filter
def amount(value: Decimal) -> str:
    """A decimal without zeros at its end."""
    return f"{value.normalize():f}"
