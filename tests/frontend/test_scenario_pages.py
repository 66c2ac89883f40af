"""Scenarios in pages: saved, told, compared, cloned and shared."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from frontend.templatetags.saved import scenario_cost
from planner.models import Role, Scenario, ScenarioComment, ShareLink
from planner.services.price_book_inputs import DiscountInput, PriceBookInput
from planner.services.price_books import add_entry, create_price_book
from planner.services.scenarios import save_scenario
from tests.frontend.quote_pages import QUERY, address, signed_in
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.quote_terms import QUESTION, TRAINING


@pytest.mark.usefixtures("catalog")
def test_save_asks_to_sign_in_and_then_for_an_organization(db: None) -> None:
    answer = Client().get(f"/save/inference/?{QUERY}")
    assert answer.status_code == 302
    assert "login" in answer["Location"]
    viewer = signed_in(tenant_factory("Elsewhere"), Role.VIEWER)
    assert "Your organization" in viewer.get(f"/save/inference/?{QUERY}").content.decode()
    posted = {"question": QUERY, "name": "Chat", "organization_name": ""}
    assert viewer.post("/save/inference/", posted).status_code == 400
    saved = viewer.post("/save/inference/", posted | {"organization_name": "Mine"})
    assert saved.status_code == 302
    assert Scenario.objects.get().organization.name == "Mine"


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(("kind", "question"), [("inference", QUESTION), ("training", TRAINING)])
def test_a_scenario_page_tells_the_plan_and_what_changed(tenant: Tenant, kind: str, question: dict[str, Any]) -> None:
    found = save_scenario(scope=tenant.scope(), name="<b>Chat</b>", kind=kind, question=question)
    client = signed_in(tenant, Role.PLANNER)
    page = client.get(address("scenario", tenant, found.uuid)).content.decode()
    assert "&lt;b&gt;Chat&lt;/b&gt;" in page
    # Formats and engines by their names, as on the page that the plan was made on.
    assert not re.search(r"\b(?:vllm|megatron|fp8|bf16)\b", re.sub(r"<[^>]*>", "", page))
    assert "<b>Chat</b>" not in page
    changes = client.get(
        address("scenario-changes", tenant, found.uuid), headers={"HX-Request": "true"}
    ).content.decode()
    assert "Nothing: the same question" in changes
    assert "<html" not in changes
    whole = client.get(address("scenario-changes", tenant, found.uuid))
    assert "HX-Request" in whole["Vary"]
    assert changes.strip() in whole.content.decode()
    assert address("scenario", tenant, found.uuid) in whole.content.decode()
    assert "css/tokens.css" in whole.content.decode()
    opened = client.get(re.search(r'primary" href="(/[^"]*)"', page)[1].replace("&amp;", "&"))  # type: ignore[index]
    assert opened.status_code == 200
    assert f"{address('scenarios', tenant)}" in client.get(address("scenarios", tenant)).content.decode()


@pytest.mark.usefixtures("catalog")
def test_amounts_that_are_compared_subtract(tenant: Tenant) -> None:
    scope = tenant.scope()
    found = save_scenario(scope=scope, name="Chat", kind="inference", question=QUESTION)
    book = create_price_book(scope=scope, values=PriceBookInput(name="Contract"))
    add_entry(scope=scope, book=book, values=DiscountInput(provider="", percent=Decimal(10)))
    page = signed_in(tenant, Role.PLANNER).get(address("scenario-changes", tenant, found.uuid)).content.decode()
    less = re.search(r"costs \$([\d,.]+) less", page)
    row = re.search(r"Cost a month</th><td>\$([\d,.]+)</td><td>\$([\d,.]+)</td>", page)
    assert less is not None
    assert row is not None
    then, now, difference = (Decimal(text.replace(",", "")) for text in (*row.groups(), less[1]))
    assert then - now == difference > 0


@pytest.mark.usefixtures("catalog")
def test_clone_compare_comment_share_and_revoke(tenant: Tenant) -> None:
    found = save_scenario(scope=tenant.scope(), name="Chat", kind="inference", question=QUESTION)
    client = signed_in(tenant, Role.PLANNER)

    def act(action: str, **post: Any) -> str:
        done = client.post(address("scenario-act", tenant, found.uuid, action), post, follow=True)
        return done.content.decode()

    act("clone", name="Chat (copy)")
    copy = Scenario.objects.get(name="Chat (copy)")
    compared = client.get(address("compare-scenarios", tenant) + f"?id={found.uuid}&id={copy.uuid}").content.decode()
    assert "Chat (copy)" in compared
    assert "figure-comparison" in compared
    assert "has the first token soonest" in compared
    act("comment", text="<script>alert(1)</script>")
    assert "<script>alert" not in client.get(address("scenario", tenant, found.uuid)).content.decode()
    assert ScenarioComment.objects.get().text.startswith("<script>")
    page = act("share", name="Board", days="7")
    link = re.search(r"http://testserver(/shared/[\w-]+/)", page)
    assert link is not None
    assert link[1] not in client.get(address("scenario", tenant, found.uuid)).content.decode()
    anonymous = Client().get(link[1])
    assert "Chat" in anonymous.content.decode()
    assert anonymous["Referrer-Policy"] == "no-referrer"
    assert ShareLink.objects.get().last_used_at is not None
    act("revoke", link=ShareLink.objects.get().uuid)
    assert Client().get(link[1]).status_code == 404
    assert Client().get("/shared/guess/").status_code == 404
    assert Client().get(f"{link[1]}quote.pdf").status_code == 404
    act("rename", name="")
    found.refresh_from_db()
    assert found.name == "Chat"
    act("archive")
    assert "Chat (copy)" in client.get(address("scenarios", tenant)).content.decode()
    assert client.post(address("scenario-act", tenant, found.uuid, "dance")).status_code == 404


@pytest.mark.usefixtures("catalog")
def test_a_link_is_made_and_revoked_as_its_form_says_or_not_at_all(tenant: Tenant) -> None:
    found = save_scenario(scope=tenant.scope(), name="Chat", kind="inference", question=QUESTION)
    other = save_scenario(scope=tenant.scope(), name="Search", kind="inference", question=QUESTION)
    client = signed_in(tenant, Role.PLANNER)
    for days in ("a month", "-7", "0", "366", "9" * 5000, "\u0663"):
        page = client.post(address("scenario-act", tenant, found.uuid, "share"), {"days": days}, follow=True)
        assert "1 to 365 days" in page.content.decode(), days
    assert not ShareLink.objects.exists()
    client.post(address("scenario-act", tenant, found.uuid, "share"), {"days": ""})
    link = ShareLink.objects.get()
    assert link.expires_at is None
    elsewhere = client.post(address("scenario-act", tenant, other.uuid, "revoke"), {"link": str(link.uuid)})
    link.refresh_from_db()
    assert (elsewhere.status_code, link.revoked_at) == (404, None)


@pytest.mark.usefixtures("catalog")
def test_an_offline_jobs_scenario_costs_what_the_job_does(tenant: Tenant) -> None:
    scope = tenant.scope()
    question = {name: QUESTION[name] for name in ("model", "input_tokens", "output_tokens", "accelerators")}
    jobs = [
        save_scenario(
            scope=scope,
            name=f"Batch {hours}",
            kind="inference",
            question={**question, "offline_requests": 2_000_000, "offline_hours": hours},
        )
        for hours in (12, 48)
    ]
    service = save_scenario(scope=scope, name="Chat", kind="inference", question=QUESTION)
    version = jobs[0].versions.get()
    assert f"{version.usd}" == version.plan["options"][0]["job"]["usd"]
    client = signed_in(tenant, Role.PLANNER)
    listed = client.get(address("scenarios", tenant)).content.decode()
    assert re.findall(r"<td>(\$[\d,.]+(?: a month)?)</td>", listed) == [
        cost for found in (service, *reversed(jobs)) for cost in (scenario_cost(found.versions.get()),)
    ]
    assert " a month" not in scenario_cost(version)
    changes = client.get(address("scenario-changes", tenant, jobs[0].uuid), headers={"HX-Request": "true"})
    assert "Nothing: the same question" in changes.content.decode()
    query = "&".join(f"id={found.uuid}" for found in jobs)
    compared = client.get(f"{address('compare-scenarios', tenant)}?{query}").content.decode()
    assert "Duration" in compared
    assert "TTFT" not in compared
    assert "is done soonest" in compared
    assert "a month" not in compared


@pytest.mark.usefixtures("catalog")
def test_a_months_rent_and_the_cost_of_a_whole_run_are_not_ranked(tenant: Tenant) -> None:
    served = save_scenario(scope=tenant.scope(), name="Chat", kind="inference", question=QUESTION)
    trained = save_scenario(scope=tenant.scope(), name="Run", kind="training", question=TRAINING)
    again = save_scenario(scope=tenant.scope(), name="Again", kind="training", question=TRAINING)
    client, compare = signed_in(tenant, Role.VIEWER), address("compare-scenarios", tenant)
    mixed = client.get(compare, {"id": [str(served.uuid), str(trained.uuid)]}).content.decode()
    assert "a month</td>" in mixed
    assert "costs least" not in mixed
    alike = client.get(compare, {"id": [str(trained.uuid), str(again.uuid)]}).content.decode()
    assert "Run costs least" in alike
