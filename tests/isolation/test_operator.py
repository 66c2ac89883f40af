"""The one who runs the site ends an organization: nothing of it stays, and nothing of another goes."""

from __future__ import annotations

import pytest
from django.test import Client

from catalog.services import load_catalog
from planner.models import AuditEntry, Organization, User
from tests.isolation.whole_tenant import furnished_tenant, tenant_models
from tests.planner.organizations import tenant_factory


# A commit is what checks that nothing points to what is gone.
@pytest.mark.django_db(transaction=True)
def test_an_organization_is_deleted_in_the_admin_with_all_that_it_owns(client: Client) -> None:
    load_catalog()
    other = tenant_factory("Other")
    before = {model: model._default_manager.count() for model in tenant_models()}
    people = User.objects.count()
    tenant = furnished_tenant()
    client.force_login(User.objects.create_superuser("root", "root@example.org", "x"))
    address = f"/admin/planner/organization/{tenant.organization.pk}/delete/"
    assert client.post(address, {"post": "yes"}).status_code == 302
    assert list(Organization.objects.all()) == [other.organization]
    assert {model: model._default_manager.count() for model in tenant_models()} == before
    assert not AuditEntry.objects.exclude(organization=other.organization).exists()
    # Members stay, and the operator; the service accounts' users went.
    assert User.objects.count() == people + len(tenant.people) + 1
