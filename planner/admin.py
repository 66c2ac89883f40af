"""What an operator does with organizations: another tier, or an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from planner.models import Organization
from planner.services.organizations import delete_organization

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

    def delete_model(self, request: HttpRequest, obj: Organization) -> None:
        delete_organization(organization=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Organization]) -> None:
        for organization in queryset:
            delete_organization(organization=organization)
