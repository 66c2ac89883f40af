"""Forms that make something make it once, however often they are sent."""

from __future__ import annotations

import pytest
from django.test import Client

from planner.models import Discount, Organization, PriceBook, Quote, Role, Scenario, ScenarioComment, ShareLink
from planner.services.scenarios import save_scenario
from tests.frontend.quote_pages import QUERY, address, shown_once, signed_in
from tests.planner.organizations import Tenant, tenant_factory, user_factory
from tests.planner.quote_terms import QUESTION


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("then", ["", "quote"])
@pytest.mark.parametrize("has_organization", [True, False])
def test_a_plan_saved_twice_by_one_form_is_saved_once(db: None, then: str, has_organization: bool) -> None:
    client = Client()
    client.force_login(tenant_factory().people[Role.BUYER] if has_organization else user_factory("newcomer"))
    once = shown_once(client.get(f"/save/inference/?{QUERY}").content.decode())
    form = {"question": QUERY, "then": then, "name": "Chat", "organization_name": "Mine", "once": once}
    # Refused, it has made nothing: mended, it is sent with the same token.
    assert client.post("/save/inference/", form | {"name": ""}).status_code == 400
    sent = [client.post("/save/inference/", form) for _ in range(3)]
    assert [answer.status_code for answer in sent] == [302, 302, 302]
    assert len({answer["Location"] for answer in sent}) == 1
    assert client.get(sent[0]["Location"]).status_code == 200
    assert (Scenario.objects.count(), Quote.objects.count()) == (1, 1 if then else 0)
    # Who goes back and writes another name means another plan.
    assert client.post("/save/inference/", form | {"name": "Chat 2"})["Location"] != sent[0]["Location"]
    found = Scenario.objects.get(name="Chat")
    version = form | {"scenario": str(found.uuid), "note": "again"}
    assert len({client.post("/save/inference/", version)["Location"] for _ in range(2)}) == 1
    found.refresh_from_db()
    assert found.latest == 2


@pytest.mark.usefixtures("catalog")
def test_a_quote_begun_twice_by_one_form_is_begun_once(tenant: Tenant) -> None:
    found = save_scenario(scope=tenant.scope(), name="Chat", kind="inference", question=QUESTION)
    client = signed_in(tenant, Role.BUYER)
    for page, scenario in (("quotes", ""), ("scenario", str(found.uuid))):
        shown = client.get(address(page, tenant, *([scenario] if scenario else []))).content.decode()
        form = {"scenario": scenario, "once": shown_once(shown)}
        before = Quote.objects.count()
        made = {client.post(address("new-quote", tenant), form)["Location"] for _ in range(3)}
        assert (len(made), Quote.objects.count()) == (1, before + 1)
        # Gone since, it is begun anew.
        Quote.objects.latest("pk").delete()
        assert client.post(address("new-quote", tenant), form)["Location"] not in made
        assert Quote.objects.count() == before + 1


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("action", "said", "model"),
    [
        ("clone", {"name": "Copy"}, Scenario),
        ("comment", {"text": "Good."}, ScenarioComment),
        ("share", {"days": "7"}, ShareLink),
    ],
)
def test_what_is_done_to_a_scenario_twice_by_one_form_is_done_once(
    tenant: Tenant, action: str, said: dict[str, str], model: type[Scenario | ScenarioComment | ShareLink]
) -> None:
    found = save_scenario(scope=tenant.scope(), name="Chat", kind="inference", question=QUESTION)
    client = signed_in(tenant, Role.PLANNER)
    form = {**said, "once": shown_once(client.get(address("scenario", tenant, found.uuid)).content.decode())}
    before = model.objects.count()
    for _ in range(2):
        client.post(address("scenario-act", tenant, found.uuid, action), form)
    assert model.objects.count() == before + 1


def test_other_forms_that_make_something_make_it_once(tenant: Tenant, catalog: None) -> None:
    client = signed_in(tenant, Role.OWNER)
    form = {"name": "Branch", "once": shown_once(client.get("/organizations/").content.decode())}
    assert len({client.post("/organizations/", form)["Location"] for _ in range(2)}) == 1
    assert Organization.objects.filter(name="Branch").count() == 1
    books = address("price-books", tenant)
    form = {"name": "Contract", "once": shown_once(client.get(books).content.decode())}
    assert [client.post(books, form).status_code for _ in range(2)] == [302, 302]
    new = address("price-book-entry-new", tenant, PriceBook.objects.get().uuid, "discounts")
    form = {"percent": "10", "once": shown_once(client.get(new).content.decode())}
    assert [client.post(new, form).status_code for _ in range(2)] == [302, 302]
    assert Discount.objects.count() == 1
