"""What programs start with an organization's keys is seen by its people, and by nobody else."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from planner.models import Membership, Role, Run, RunStatus, ServiceAccount
from planner.selectors.runs import find_run, find_run_to_cancel
from tests.planner.organizations import Tenant, tenant_factory, user_factory

pytestmark = pytest.mark.django_db


def account(tenant: Tenant, name: str) -> ServiceAccount:
    user = user_factory(f"{name}-{tenant.organization.slug}")
    Membership.objects.create(organization=tenant.organization, user=user, role=Role.PLANNER)
    made: ServiceAccount = ServiceAccount.objects.create(organization=tenant.organization, name=name, user=user)
    return made


def test_people_see_their_keys_runs_and_an_owner_may_stop_them() -> None:
    acme, beta = tenant_factory("Acme"), tenant_factory("Beta")
    bot, other_bot = account(acme, "ci-bot"), account(acme, "cron")
    run = Run.objects.create(kind="simulation", owner=bot.user, organization=acme.organization)
    for role in Role:
        person = acme.people[role]
        assert find_run(uuid=run.uuid, user=person) == run
        assert (find_run_to_cancel(uuid=run.uuid, user=person) is not None) is (role == Role.OWNER)
    for stranger in (beta.people[Role.OWNER], other_bot.user, account(beta, "ci-bot").user):
        assert find_run(uuid=run.uuid, user=stranger) is None
        assert find_run_to_cancel(uuid=run.uuid, user=stranger) is None
    assert find_run_to_cancel(uuid=run.uuid, user=bot.user) == run
    own = Run.objects.create(kind="simulation", owner=acme.people[Role.BUYER], organization=acme.organization)
    assert find_run(uuid=own.uuid, user=acme.people[Role.OWNER]) is None


def test_the_organizations_page_lists_them(client: Client) -> None:
    acme = tenant_factory("Acme")
    run = Run.objects.create(kind="capacity_search", owner=account(acme, "ci-bot").user)
    page = reverse("organization", args=[acme.organization.slug])
    client.force_login(acme.people[Role.VIEWER])
    text = client.get(page).content.decode()
    assert "What programs started" in text
    assert f'href="{reverse("run", args=[run.uuid])}"' in text
    assert "Smallest fleet" in text
    assert "ci-bot" in text
    shown = client.get(reverse("run", args=[run.uuid]))
    assert shown.status_code == 200
    assert reverse("cancel-run", args=[run.uuid]) not in shown.content.decode()
    assert client.post(reverse("cancel-run", args=[run.uuid])).status_code == 404
    client.force_login(acme.people[Role.OWNER])
    assert reverse("cancel-run", args=[run.uuid]) in client.get(reverse("run", args=[run.uuid])).content.decode()
    assert client.post(reverse("cancel-run", args=[run.uuid])).status_code == 302
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED
    client.force_login(tenant_factory("Beta").people[Role.OWNER])
    assert client.get(reverse("run", args=[run.uuid])).status_code == 404
