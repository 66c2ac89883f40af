"""Invitations by the secret of their link: the one read of a tenant's row by somebody who is no member yet."""

from __future__ import annotations

from planner.models import Invitation


def find_invitation(token_hash: str) -> Invitation | None:
    """The invitation whose link has the secret of that hash."""
    return Invitation.objects.select_related("organization", "invited_by").filter(token_hash=token_hash).first()
