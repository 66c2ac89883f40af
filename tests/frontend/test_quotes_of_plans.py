"""Quotes begun from a plan's page: of its own fleet or the one that a simulation found, in the page's language."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from planner.documents.printed import printed
from planner.documents.wording import wording
from planner.engine.quote_math import Line
from planner.models import Quote, Role, Run, RunStatus
from planner.services import planning, quotes
from planner.services.capacity_run import run_capacity_search, serve_capacity_part
from planner.services.quote_fleet import nodes_for
from planner.services.run_kind import in_turn
from tests.frontend.quote_pages import QUERY, signed_in
from tests.planner.organizations import Tenant, tenant_factory


@pytest.mark.usefixtures("catalog")
def test_a_draft_made_on_the_indonesian_page_is_an_indonesian_document(tenant: Tenant) -> None:
    client = signed_in(tenant, Role.BUYER)
    client.cookies["django_language"] = "id"
    client.post("/save/inference/", {"question": QUERY, "then": "quote", "name": "Chat", "scenario": ""})
    quote = Quote.objects.get()
    assert quote.terms["language"] == "id"
    assert re.match(r"\d+ node 1x ", quote.terms["items"][0]["label"])


QUESTION: dict[str, Any] = {
    "model": "Llama 3.1 8B",
    "requests_per_second": 40,
    "accelerators": ["h100-sxm"],
    "ttft_ms": 800,
    "tpot_ms": 40,
}
DAY = {"hours": 0.3, "input_median": 600, "output_median": 150}


def found_by(tenant: Tenant, question: dict[str, Any], **params: Any) -> Run:
    """A finished search of the tenant's buyer, for the question's first option."""
    option = planning.plan_inference(question).options[0].id
    scenario = {"option": option, **params.pop("scenario", {})}
    asked = {"question": question, "scenario": scenario, **params}
    result = run_capacity_search(asked, lambda share, message: None, in_turn(serve_capacity_part, asked))
    owner = tenant.scope(Role.BUYER).user
    return Run.objects.create(
        kind="capacity_search", params=asked, result=result, status=RunStatus.SUCCEEDED, progress=1.0, owner=owner
    )


def result_of(run: Run) -> dict[str, Any]:
    assert isinstance(run.result, dict)
    return run.result


def quoted(tenant: Tenant, run: Run, language: str = "en") -> Quote:
    """The draft that the run's page leads to."""
    client = signed_in(tenant, Role.BUYER)
    client.cookies["django_language"] = language
    link = re.search(r'href="(/save/inference/[^"]*)">', client.get(f"/runs/{run.uuid}/").content.decode())
    assert link is not None
    text = client.get(html.unescape(link[1])).content.decode()
    hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text[text.index('class="panel"') :])
    sent = {name: html.unescape(value) for name, value in hidden} | {"name": "Simulated"}
    assert sent["run"] == str(run.uuid)
    assert client.post("/save/inference/", sent).status_code == 302
    return Quote.objects.latest("created_at")


def lines_of(quote: Quote) -> Sequence[Line]:
    return quotes.priced(quote).snapshot.lines


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("language", ["en", "id"])
def test_the_fixed_fleet_that_a_search_found_is_quoted(tenant: Tenant, language: str) -> None:
    run = found_by(tenant, QUESTION, traffic={**DAY, "hours": 0.05})
    made = quoted(tenant, run, language)
    (line,) = lines_of(made)
    assert result_of(run)["settings"]["replicas"] > 1
    assert line.monthly == Decimal(result_of(run)["usd_per_month"])
    (said,) = made.terms["assumptions"]
    assert ("Sized by simulation" in said) == (language == "en")
    assert str(result_of(run)["settings"]["replicas"]) in said


@pytest.mark.usefixtures("catalog")
def test_a_fleet_that_scales_is_quoted_by_the_hours_of_the_nodes_in_use(tenant: Tenant) -> None:
    run = found_by(tenant, QUESTION, traffic={**DAY, "hours": 0.05})
    chosen = result_of(run)["search"]["tried"][result_of(run)["search"]["chosen"]]
    # As a fleet goes that is in use for less than half of the time.
    in_use = 0.437
    chosen |= {"autoscaled": True, "min_replicas": 1, "max_replicas": 7, "scaling_target": 12.0}
    result_of(run)["settings"] |= {"autoscaler": "hpa", "min_replicas": 1, "max_replicas": 7, "scaling_target": 12.0}
    result_of(run)["gpu_hours"] *= in_use
    run.save()
    for language in ("en", "id"):
        made = quoted(tenant, run, language)
        (line,) = lines_of(made)
        assert line.quantity == round(line.quantity or 0)
        # To half a node and hour.
        billed = in_use * float(result_of(run)["usd_per_month"])
        assert abs(float(line.monthly or 0) - billed) <= float(line.unit_price or 0)
        (said,) = made.terms["assumptions"]
        for number in (chosen["min_replicas"], chosen["max_replicas"]):
            assert str(number) in said
            assert str(number) in line.label
    english = json.dumps(printed(quotes.priced(made).snapshot, wording("en")))
    assert "Sized by simulation of" in english
    assert f"to {chosen['max_replicas']} nodes of" in english
    assert "on average" in english
    assert "of them those are billed that the lines state" in english
    assert "capacity is rented for all of them" not in english


@pytest.mark.usefixtures("catalog")
def test_each_regions_nodes_are_a_line(tenant: Tenant) -> None:
    regions = [
        {"name": "Jakarta", "traffic": {"requests_per_second": 60}},
        {"name": "Batam", "traffic": {"requests_per_second": 15}},
    ]
    run = found_by(tenant, QUESTION, traffic={**DAY, "hours": 0.05}, regions=regions)
    made = quoted(tenant, run)
    lines = lines_of(made)
    assert [line.detail.partition(":")[0] for line in lines] == ["Jakarta", "Batam"]
    assert [text.partition(":")[0] for text in made.terms["assumptions"]] == ["Jakarta", "Batam"]
    assert sum(line.monthly or 0 for line in lines) == Decimal(result_of(run)["usd_per_month"])
    # Which nodes a region with an option of its own rents, the saved plan doesn't say.
    run.params["regions"][1]["scenario"] = {"option": "another"}
    run.save()
    assert "Quote this fleet" not in signed_in(tenant, Role.BUYER).get(f"/runs/{run.uuid}/").content.decode()


@pytest.mark.usefixtures("catalog")
def test_pools_of_two_kinds_are_quoted_as_they_were_billed(tenant: Tenant) -> None:
    run = found_by(tenant, QUESTION, traffic={**DAY, "hours": 0.05}, scenario={"prefill_replicas": 2})
    (line,) = lines_of(quoted(tenant, run))
    assert line.monthly == Decimal(result_of(run)["usd_per_month"])


@pytest.mark.usefixtures("catalog")
def test_an_offline_jobs_fleet_is_quoted_for_its_hours(tenant: Tenant) -> None:
    job = {**QUESTION, "offline_requests": 20_000, "offline_hours": 0.05}
    for name in ("requests_per_second", "ttft_ms", "tpot_ms"):
        del job[name]
    run = found_by(tenant, job)
    (line,) = lines_of(quoted(tenant, run))
    assert line.once == pytest.approx(Decimal(result_of(run)["job"]["usd"]), abs=Decimal("0.01"))
    assert line.monthly == 0


@pytest.mark.usefixtures("catalog")
def test_a_search_of_another_plan_is_not_quoted(tenant: Tenant) -> None:
    run = found_by(tenant, QUESTION, traffic={**DAY, "hours": 0.05})
    client = signed_in(tenant, Role.BUYER)
    sent = {"question": QUERY, "then": "quote", "name": "Other", "run": str(run.uuid)}
    refused = client.post("/save/inference/", sent)
    assert refused.status_code == 400
    assert not Quote.objects.exists()
    stranger = signed_in(tenant_factory("Elsewhere"), Role.OWNER)
    assert stranger.post("/save/inference/", sent).status_code == 404
    assert stranger.get(f"/save/inference/?{QUERY}&run={run.uuid}").status_code == 404
    assert client.get(f"/save/inference/?{QUERY}&run=nothing").status_code == 404


@pytest.mark.parametrize(
    ("tensor", "pipeline", "per_node", "replicas", "nodes"),
    [(1, 1, 8, 9, 2), (8, 2, 8, 3, 6), (4, 1, 8, 3, 2), (1, 1, 1, 6, 6), (3, 1, 8, 4, 2)],
)
def test_replicas_share_a_node_or_take_several(
    tensor: int, pipeline: int, per_node: int, replicas: int, nodes: int
) -> None:
    layout = {"tensor": tensor, "pipeline": pipeline, "expert": 1}
    assert nodes_for({"layout": layout, "cluster": {"gpus_per_node": per_node}}, replicas) == nodes


@pytest.mark.usefixtures("catalog")
def test_a_search_without_any_request_finds_no_fleet_to_quote(tenant: Tenant) -> None:
    run = found_by(tenant, QUESTION, traffic=DAY | {"requests_per_second": 1e-6})
    assert result_of(run)["requests"] == 0
    client = signed_in(tenant, Role.BUYER)
    page = client.get(f"/runs/{run.uuid}/")
    assert page.status_code == 200
    assert "/save/inference/" not in page.content.decode()
    asked = {"model": "Llama 3.1 8B", "requests_per_second": "1", "then": "quote", "run": str(run.uuid)}
    assert client.get("/save/inference/", asked).status_code == 404
