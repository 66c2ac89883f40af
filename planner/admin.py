"""What an operator does with organizations: another tier, or an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest

from planner.models import Organization

if TYPE_CHECKING:
    TableAdmin = admin.ModelAdmin[Organization]
else:
    # At run time the class takes no parameters.
    TableAdmin = admin.ModelAdmin


@admin.register(Organization)
class OrganizationAdmin(TableAdmin):
    """Founded by people on the site; here only the tier is changed."""

    list_display = ("name", "slug", "tier", "created_at")
    list_filter = ("tier",)
    search_fields = ("name", "slug")
    readonly_fields = ("uuid", "slug", "created_at")
    fields = ("name", "slug", "uuid", "tier", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
