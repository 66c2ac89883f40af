"""Scenarios: saved, versioned, cloned, compared, commented, shared, and what changed since."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from planner.engine.errors import InvalidQuestion
from planner.models import AuditEntry, Role, Scenario, ScenarioVersion, ShareLink
from planner.selectors import scenarios as read
from planner.selectors.scope import Forbidden, NotFound
from planner.services import scenarios, share_links
from planner.services.scenario_changes import what_changed
from planner.services.share_links import create_link, revoke_link, token_hash
from planner.services.tenancy import Conflict
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.quote_terms import QUESTION, TRAINING

pytestmark = pytest.mark.usefixtures("catalog")


@pytest.fixture
def saved(tenant: Tenant) -> Scenario:
    return scenarios.save_scenario(
        scope=tenant.scope(Role.PLANNER), name="Chat", kind="inference", question=QUESTION, note="first"
    )


def test_a_saved_plan_is_the_recommended_option_with_what_it_rests_on(saved: Scenario) -> None:
    version = read.version_of(saved)
    option = version.plan["options"][0]
    assert (version.number, version.note, saved.latest) == (1, "first", 1)
    assert option["id"] == version.option_id == version.plan["recommended"]
    assert Decimal(option["price"]["usd_per_month"]) == version.usd
    assert version.plan["catalog_version"] == version.catalog_version
    assert version.question == QUESTION
    assert len(version.plan["options"]) == 1


def test_another_option_can_be_saved_and_one_that_is_not_there_cannot(tenant: Tenant) -> None:
    scope = tenant.scope()
    options = scenarios.make_plan(scope, "inference", QUESTION).options
    scenario = scenarios.save_scenario(
        scope=scope, name="Other", kind="inference", question=QUESTION, option=options[-1].id
    )
    assert read.version_of(scenario).option_id == options[-1].id
    with pytest.raises(InvalidQuestion, match="Not among the options"):
        scenarios.save_scenario(scope=scope, name="None", kind="inference", question=QUESTION, option="nowhere")


def test_a_plan_that_nothing_meets_and_a_wrong_question_are_not_saved(tenant: Tenant) -> None:
    scope = tenant.scope()
    with pytest.raises(InvalidQuestion, match="Nothing meets"):
        scenarios.save_scenario(scope=scope, name="No", kind="inference", question=QUESTION | {"ttft_ms": 1})
    with pytest.raises(InvalidQuestion, match="model"):
        scenarios.save_scenario(scope=scope, name="No", kind="inference", question=QUESTION | {"model": "nothing"})
    with pytest.raises(InvalidQuestion, match="kind"):
        scenarios.save_scenario(scope=scope, name="No", kind="dance", question=QUESTION)
    assert not read.scenarios(scope).exists()


def test_versions_are_numbered_and_kept(tenant: Tenant, saved: Scenario) -> None:
    scope = tenant.scope(Role.PLANNER)
    second = scenarios.add_version(
        scope=scope, scenario=saved, question=QUESTION | {"requests_per_second": 50}, note="launch"
    )
    saved.refresh_from_db()
    assert (second.number, saved.latest) == (2, 2)
    assert second.usd > read.version_of(saved, 1).usd
    assert [version.number for version in read.versions_of(saved)] == [2, 1]
    with pytest.raises(NotFound):
        read.version_of(saved, 3)


def test_a_clone_copies_the_latest_answer_and_goes_its_own_way(tenant: Tenant, saved: Scenario) -> None:
    scope = tenant.scope(Role.PLANNER)
    copy = scenarios.clone_scenario(scope=scope, scenario=saved, name="Chat in Singapore")
    assert read.version_of(copy).plan == read.version_of(saved).plan
    assert read.version_of(copy).note == "Chat, version 1"
    scenarios.add_version(scope=scope, scenario=copy, question=QUESTION)
    saved.refresh_from_db()
    assert saved.latest == 1


def test_up_to_five_stand_side_by_side_in_the_order_asked(tenant: Tenant, saved: Scenario) -> None:
    scope = tenant.scope(Role.VIEWER)
    planner = tenant.scope(Role.PLANNER)
    others = [scenarios.clone_scenario(scope=planner, scenario=saved, name=f"Copy {n}") for n in range(5)]
    wanted = [others[3].uuid, saved.uuid, others[3].uuid, *(other.uuid for other in others)]
    sides = read.side_by_side(scope, wanted)
    assert [side.name for side in sides] == ["Copy 3", "Chat", "Copy 0", "Copy 1"]
    assert sides[0].usd == sides[1].usd
    with pytest.raises(NotFound):
        read.side_by_side(scope, [tenant.organization.uuid])


def test_every_member_comments_and_only_planners_change(tenant: Tenant, saved: Scenario) -> None:
    viewer = tenant.scope(Role.VIEWER)
    comment = scenarios.comment_on(scope=viewer, scenario=saved, text="  Too dear?  ")
    assert (comment.text, comment.version) == ("Too dear?", 1)
    assert [each.text for each in read.comments_on(saved)] == ["Too dear?"]
    for text in ("", " ", "x" * 5000, "a\x00b"):
        with pytest.raises(InvalidQuestion):
            scenarios.comment_on(scope=viewer, scenario=saved, text=text)
    with pytest.raises(Forbidden):
        scenarios.rename_scenario(scope=viewer, scenario=saved, name="Mine")
    with pytest.raises(Forbidden):
        scenarios.save_scenario(scope=viewer, name="Mine", kind="inference", question=QUESTION)


def test_a_link_shows_the_latest_version_until_it_is_revoked_or_late(tenant: Tenant, saved: Scenario) -> None:
    scope = tenant.scope(Role.PLANNER)
    link, token = create_link(scope=scope, shown=saved, name="Board", days=7)
    hashed, now = token_hash(token), timezone.now()
    assert token not in ShareLink.objects.get().token_hash
    assert read.shared_link(hashed, now).scenario == saved
    with pytest.raises(NotFound):
        read.shared_link(hashed, now + timedelta(days=8))
    with pytest.raises(NotFound):
        read.shared_link(token_hash("guess"), now)
    scenarios.archive_scenario(scope=scope, scenario=saved, archived=True)
    with pytest.raises(NotFound):
        read.shared_link(hashed, now)
    scenarios.archive_scenario(scope=scope, scenario=saved, archived=False)
    revoke_link(scope=scope, link=link)
    with pytest.raises(NotFound):
        read.shared_link(hashed, now)


def test_nothing_is_seen_from_another_organization(saved: Scenario) -> None:
    other = tenant_factory("Other").scope()
    with pytest.raises(NotFound):
        read.scenario(other, saved.uuid)
    with pytest.raises(NotFound):
        scenarios.rename_scenario(scope=other, scenario=saved, name="Mine")
    with pytest.raises(NotFound):
        scenarios.add_version(scope=other, scenario=saved, question=QUESTION)
    assert not read.scenarios(other).exists()


def test_nothing_changed_on_the_same_day(tenant: Tenant, saved: Scenario) -> None:
    changes = what_changed(scope=tenant.scope(Role.VIEWER), version=read.version_of(saved))
    assert not changes.is_changed
    assert changes.usd_difference == 0
    assert changes.nodes_now == changes.nodes_then
    assert changes.best_option == read.version_of(saved).option_id


def test_changes_are_told_with_the_difference_in_money(tenant: Tenant, saved: Scenario) -> None:
    version = read.version_of(saved)
    ScenarioVersion.objects.filter(pk=version.pk).update(
        usd=version.usd - 100, catalog_version="2020-01-01-old", engine_version="0"
    )
    changes = what_changed(scope=tenant.scope(), version=read.version_of(saved))
    assert changes.is_changed
    assert changes.usd_difference == 100
    assert (changes.catalog_then, changes.engine_then) == ("2020-01-01-old", "0")


def test_an_option_that_is_gone_has_no_price_today(tenant: Tenant, saved: Scenario) -> None:
    version = read.version_of(saved)
    ScenarioVersion.objects.filter(pk=version.pk).update(option_id="gone/from/sale")
    changes = what_changed(scope=tenant.scope(), version=read.version_of(saved))
    assert (changes.usd_now, changes.usd_difference) == (None, None)
    assert changes.best_usd is not None
    assert changes.is_changed


def test_a_training_run_is_saved_with_its_whole_cost(tenant: Tenant) -> None:
    scenario = scenarios.save_scenario(scope=tenant.scope(), name="Tune", kind="training", question=TRAINING)
    version = read.version_of(scenario)
    assert Decimal(version.plan["options"][0]["usd_total"]) == version.usd
    assert not what_changed(scope=tenant.scope(), version=version).is_changed


def test_the_audit_log_has_every_change(tenant: Tenant, saved: Scenario) -> None:
    scope = tenant.scope(Role.PLANNER)
    scenarios.rename_scenario(scope=scope, scenario=saved, name="Chatting")
    entry = AuditEntry.objects.filter(organization=tenant.organization, object_repr__contains="Chatting").latest("id")
    assert (entry.changes["name"], entry.actor_email) == (["Chat", "Chatting"], scope.user.email)


def test_an_archived_scenario_leaves_the_list_only(tenant: Tenant, saved: Scenario) -> None:
    scope = tenant.scope(Role.PLANNER)
    scenarios.archive_scenario(scope=scope, scenario=saved, archived=True)
    assert not read.scenarios(scope).exists()
    assert read.scenarios(scope, archived=True).get() == saved
    assert read.scenario(scope, saved.uuid) == saved


def test_links_have_a_limit(tenant: Tenant, saved: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_links, "MOST_LINKS", 1)
    scope = tenant.scope(Role.PLANNER)
    link, _token = create_link(scope=scope, shown=saved)
    with pytest.raises(Conflict):
        create_link(scope=scope, shown=saved)
    ShareLink.objects.filter(pk=link.pk).update(expires_at=timezone.now())
    create_link(scope=scope, shown=saved)  # One past its day is no longer open.
    with pytest.raises(InvalidQuestion):
        create_link(scope=scope, shown=saved, days=0)
