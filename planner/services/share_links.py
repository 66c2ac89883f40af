"""Links for reading a scenario or an issued quote without an account."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import Noun, say
from planner.models import Quote, Scenario, ShareLink
from planner.selectors.scenarios import open_at
from planner.selectors.scope import Scope
from planner.services.organizations import checked_name
from planner.services.tenancy import Conflict, lock, tenant_write

MOST_LINKS = 50
"""That are open, to one scenario or quote."""
LONGEST_LINK_DAYS = 365
TOKEN_BYTES = 32


@tenant_write
def create_link(
    *, scope: Scope, shown: Scenario | Quote, name: str = "", days: int | None = 30
) -> tuple[ShareLink, str]:
    """A link for reading what is ``shown`` without an account, and its secret, which is shown this once.

    Raises ``Conflict`` for a draft of a quote, which says nothing for good yet, and where there are too many.
    """
    scope.require(f"planner.change_{shown_as(shown)}")
    if isinstance(shown, Quote) and shown.is_draft:
        raise Conflict("wrong_status", say("The quote is {status}.", status=Noun(shown.status)), say("an issued quote"))
    if days is not None and (not isinstance(days, int) or not 1 <= days <= LONGEST_LINK_DAYS):
        raise InvalidQuestion(
            [
                FieldError(
                    field="days",
                    value=days,
                    message="Out of range.",
                    allowed=say("1 to {most} days", most=LONGEST_LINK_DAYS),
                )
            ]
        )
    lock(scope.organization)
    if shown.links.filter(open_at(timezone.now())).count() >= MOST_LINKS:
        raise Conflict(
            "too_many",
            say("There are {most} links to it already.", most=MOST_LINKS),
            say("revoke one first"),
        )
    token = secrets.token_urlsafe(TOKEN_BYTES)
    link = ShareLink.objects.create(
        organization=scope.organization,
        **{shown_as(shown): shown},
        name=checked_name(name) if name else "",
        token_hash=token_hash(token),
        created_by=scope.user,
        expires_at=None if days is None else timezone.now() + timedelta(days=days),
    )
    return link, token


@tenant_write
def revoke_link(*, scope: Scope, link: ShareLink) -> ShareLink:
    """From now on the link finds nothing."""
    scope.require(f"planner.change_{'scenario' if link.quote_id is None else 'quote'}")
    link = scope.get(ShareLink, link.uuid, lock=True)
    if link.revoked_at is None:
        link.revoked_at = timezone.now()
        link.save(update_fields=["revoked_at"])
    return link


def shown_as(shown: Scenario | Quote) -> str:
    """The link's field that names what it shows."""
    return "quote" if isinstance(shown, Quote) else "scenario"


def note_use(*, link: ShareLink) -> None:
    """Note that the link was used, to the minute."""
    now = timezone.now()
    minute_ago = now - timedelta(minutes=1)
    unused = Q(last_used_at__isnull=True) | Q(last_used_at__lt=minute_ago)
    ShareLink.objects.filter(unused, pk=link.pk).update(last_used_at=now)


def token_hash(token: str) -> str:
    """How a link's secret is kept. It has 256 random bits: nothing slower is needed.

    >>> token_hash("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(token.encode()).hexdigest()
