"""Who works together: an organization, its members and their roles, and how people join."""

from __future__ import annotations

import uuid
from datetime import datetime

from auditlog.registry import auditlog
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """What a member may do; each may do all that the ones before it may."""

    VIEWER = "viewer", _("Viewer")
    PLANNER = "planner", _("Planner")
    BUYER = "buyer", _("Buyer")
    OWNER = "owner", _("Owner")

    def includes(self, other: str) -> bool:
        """Whether this role may do what ``other`` may.

        >>> Role.BUYER.includes("planner"), Role.VIEWER.includes("planner")
        (True, False)
        """
        return Role.values.index(self.value) >= Role.values.index(other)


class Tier(models.TextChoices):
    """How much an organization may keep and call: ``planner.services.tiers``."""

    FREE = "free", _("Free")
    TEAM = "team", _("Team")


@auditlog.register(include_fields=["name", "slug", "tier"])
class Organization(models.Model):
    """A tenant: every row of its own names it."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    slug = models.SlugField(max_length=60, unique=True)
    """Its name in addresses: ends in random letters, so that nobody can learn which organizations exist."""
    name = models.CharField(_("name"), max_length=100)
    tier = models.CharField(_("tier"), max_length=10, choices=Tier, default=Tier.FREE, db_default=Tier.FREE)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class TenantRow(models.Model):
    """What every row of a tenant has; read through ``planner.selectors.scope`` alone."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    """The public name."""
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


@auditlog.register(include_fields=["user", "role"])
class Membership(TenantRow):
    """A person, or a service account, in an organization."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(_("role"), max_length=10, choices=Role)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "user"], name="membership_once"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user.email or self.user.first_name or self.user.username}: {self.role}"


@auditlog.register(include_fields=["name"])
class ServiceAccount(TenantRow):
    """A user that is no person: it has API keys instead of a password."""

    name = models.CharField(_("name"), max_length=100)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="service_account")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="service_account_name_once")]

    def __str__(self) -> str:
        return self.name


@auditlog.register(include_fields=["email", "role", "expires_at", "revoked_at", "accepted_at"])
class Invitation(TenantRow):
    """An offer to join, good for one person and once; only the hash of its secret is kept."""

    email = models.EmailField(_("email address"))
    role = models.CharField(_("role"), max_length=10, choices=Role)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    """SHA-256 of the secret in the link."""
    expires_at = models.DateTimeField()
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_known"),
            models.CheckConstraint(
                condition=Q(accepted_at__isnull=True) | Q(revoked_at__isnull=True), name="invitation_one_end"
            ),
            models.UniqueConstraint(
                fields=["organization", "email"],
                condition=Q(accepted_at__isnull=True, revoked_at__isnull=True),
                name="invitation_open_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email}: {self.role}"

    def status(self, now: datetime) -> str:
        """``accepted``, ``revoked``, ``expired`` or ``open``."""
        if self.accepted_at is not None:
            return "accepted"
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at <= now else "open"
