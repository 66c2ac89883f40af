"""What each tier may keep and call, beside what is used."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from frontend import numbers, organization_words
from frontend.tenancy import active_scope
from planner.services.tiers import QUOTAS, TIERS, rates, tier_of, usages


@require_safe
def limits(request: HttpRequest) -> HttpResponse:
    """Every limit by tier; with an organization chosen, how much of it is used up."""
    scope = active_scope(request)
    by_tier = {tier: rates(tier) for tier in TIERS}
    context = {
        "nav": "limits",
        "tiers": [(tier, organization_words.tier(tier)) for tier in TIERS],
        "own": scope.organization.tier if scope is not None else tier_of(request.user),
        "organization": scope.organization if scope is not None else None,
        "usages": [(organization_words.quota(each.name), each) for each in usages(scope.organization)]
        if scope is not None
        else [],
        "rates": [
            (
                organization_words.rate(rate.name),
                [numbers.fixed(by_tier[tier][place].calls_per_minute) for tier in TIERS],
            )
            for place, rate in enumerate(by_tier[TIERS[0]])
        ],
        "quotas": [
            (organization_words.quota(name), [numbers.fixed(quota.most(tier) or None) for tier in TIERS])
            for name, quota in QUOTAS.items()
        ],
    }
    return render(request, "frontend/limits.html", context)
