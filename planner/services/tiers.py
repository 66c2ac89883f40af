"""What each tier may keep and call: one table, asked by services, shown by pages, headers and the API.

A tier is the organization's; a person has the best of theirs, who is in none has ``free``, and who is not signed in is
``anonymous``. Limits on calls are in the settings (``API_RATES``,
``PAGE_RATES``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.utils import timezone

from planner.engine.sentences import Noun, say
from planner.models import ApiKey, Invitation, Membership, Organization, PriceBook, Quote, Scenario, Tier, User, Webhook
from planner.services.tenancy import Conflict

ANONYMOUS: Final = "anonymous"
TIERS: Final = (ANONYMOUS, *Tier.values)
NEARLY: Final = 0.8
"""From this share on, pages say that a limit is near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How many of something an organization may have, by tier."""

    free: int
    team: int
    count: Callable[[Organization], int]

    def most(self, tier: str) -> int:
        """Of that tier; nobody signed in keeps nothing."""
        return {Tier.FREE.value: self.free, Tier.TEAM.value: self.team}.get(tier, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How far a limit is used up."""

    name: str
    used: int
    limit: int

    @property
    def is_near(self) -> bool:
        return self.used >= NEARLY * self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How many calls of a kind one caller may make in a minute."""

    name: str
    calls_per_minute: int


def _members(organization: Organization) -> int:
    """People and service accounts, and those invited who may still come."""
    waiting = Invitation.objects.filter(
        organization=organization, accepted_at=None, revoked_at=None, expires_at__gt=timezone.now()
    )
    return Membership.objects.filter(organization=organization).count() + waiting.count()


def _keys(organization: Organization) -> int:
    good = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return ApiKey.objects.filter(good, organization=organization, revoked_at=None).count()


def _quotes(organization: Organization) -> int:
    first = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Quote.objects.filter(organization=organization, issued_at__gte=first).count()


QUOTAS: Final[dict[str, Quota]] = {
    "members": Quota(free=10, team=500, count=_members),
    "price_books": Quota(free=5, team=50, count=lambda of: PriceBook.objects.filter(organization=of).count()),
    "scenarios": Quota(free=500, team=5_000, count=lambda of: Scenario.objects.filter(organization=of).count()),
    "quotes_a_month": Quota(free=500, team=20_000, count=_quotes),
    "keys": Quota(free=10, team=100, count=_keys),
    "webhooks": Quota(free=5, team=50, count=lambda of: Webhook.objects.filter(organization=of).count()),
}
"""What is counted; ``quotes_a_month`` are those issued in the calendar month, UTC."""


def require_room(organization: Organization, name: str) -> None:
    """Raise ``Conflict`` where one more would be too many; the caller holds the organization's lock."""
    found = usage(organization, name)
    if found.used >= found.limit:
        things = name.replace("_", " ")
        message = say(
            "The {tier} tier has {limit:,} {things}, and all are used.",
            tier=Noun(organization.tier),
            limit=found.limit,
            things=Noun(things),
        )
        raise Conflict("too_many", message, say("fewer {things}, or a higher tier", things=Noun(things)))


def usage(organization: Organization, name: str) -> Usage:
    """How far one limit of an organization is used up."""
    quota = QUOTAS[name]
    return Usage(name=name, used=quota.count(organization), limit=quota.most(organization.tier))


def usages(organization: Organization) -> list[Usage]:
    """How far each limit of an organization is used up."""
    return [usage(organization, name) for name in QUOTAS]


def tier_of(user: User | AnonymousUser) -> str:
    """The tier of a person: the best of their organizations'."""
    if not user.is_authenticated:
        return ANONYMOUS
    found = set(Membership.objects.filter(user=user).values_list("organization__tier", flat=True))
    return Tier.TEAM.value if Tier.TEAM in found else Tier.FREE.value


def rates(tier: str) -> list[Rate]:
    """How many calls a tier may make."""
    found = settings.API_RATES[tier] | settings.PAGE_RATES[tier]
    return [Rate(name=name, calls_per_minute=calls) for name, calls in found.items()]
