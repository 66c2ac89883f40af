"""What the pages of an organization need: its tabs, and codes in words."""

from __future__ import annotations

from django import template
from django.urls import reverse
from django.utils.translation import gettext as _

from frontend import words
from planner.selectors.scope import Scope

register = template.Library()


@register.simple_tag
def organization_tabs(scope: Scope) -> list[tuple[str, str, str]]:
    """(key, label, address) of each part that the visitor may see."""
    tabs = [
        ("organization", _("Overview"), "planner.view_organization"),
        ("scenarios", _("Scenarios"), "planner.view_scenario"),
        ("quotes", _("Quotes"), "planner.view_quote"),
    ]
    return [
        (key, label, reverse(key, args=[scope.organization.slug]))
        for key, label, permission in tabs
        if scope.allows(permission)
    ]


@register.filter
def choice_words(code: str) -> str:
    """A code of a choice in words."""
    return words.choice(code)
