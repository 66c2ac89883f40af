"""Filters of the pages of scenarios: money as it is read."""

from __future__ import annotations

from decimal import Decimal

from django import template
from django.utils.translation import gettext as _

from frontend import numbers
from planner.models import Scenario, ScenarioVersion

register = template.Library()


@register.filter
def usd(value: Decimal | None) -> str:
    """US dollars, or the sign of what is not known."""
    return numbers.money(value)


@register.filter
def usd_exact(value: Decimal | None) -> str:
    """US dollars to the cent (a price to all its digits), where amounts are compared: their difference is theirs."""
    if value is None:
        return numbers.NOTHING
    return "$" + numbers.fixed(value, max(2, -int(value.normalize().as_tuple().exponent)))


@register.filter
def usd_less(value: Decimal) -> str:
    """How much less a negative difference is."""
    return usd_exact(-value)


@register.filter
def scenario_cost(version: ScenarioVersion, scenario: Scenario | None = None) -> str:
    """A month of serving, or the whole run or offline job."""
    kind = (scenario or version.scenario).kind
    money = numbers.money(version.usd)
    return money if kind == "training" or version.job else _("%(money)s a month") % {"money": money}
