"""Quotes begun from a plan's page: of its own fleet or the one that a simulation found, in the page's language."""

from __future__ import annotations

import html
import math
import re
from decimal import Decimal
from urllib.parse import quote

import pytest

from planner.models import Quote, Role
from planner.services import planning
from planner.services.quote_fleet import nodes_for
from tests.frontend.quote_pages import QUERY, signed_in
from tests.planner.organizations import Tenant


@pytest.mark.usefixtures("catalog")
def test_a_draft_made_on_the_indonesian_page_is_an_indonesian_document(tenant: Tenant) -> None:
    client = signed_in(tenant, Role.BUYER)
    client.cookies["django_language"] = "id"
    client.post("/save/inference/", {"question": QUERY, "then": "quote", "name": "Chat", "scenario": ""})
    quote = Quote.objects.get()
    assert quote.terms["language"] == "id"
    assert re.match(r"\d+ node 1x ", quote.terms["items"][0]["label"])


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(("replicas", "language"), [(5, "en"), (1, "id")])
def test_the_fleet_that_a_simulation_found_is_quoted(tenant: Tenant, replicas: int, language: str) -> None:
    client = signed_in(tenant, Role.OWNER)
    client.cookies["django_language"] = language
    plan = planning.plan_inference({"model": "Llama 3.1 70B", "requests_per_second": 10, "tensor_parallel": 4})
    option = plan.options[0]
    query = f"model=Llama+3.1+70B&requests_per_second=10&tensor_parallel=4&option={quote(option.id)}"
    link = f"/save/inference/?{query}&then=quote&replicas={replicas}"
    page = client.get(link)
    assert page.status_code == 200
    text = page.content.decode()
    hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text[text.index('class="panel"') :])
    sent = {name: html.unescape(value) for name, value in hidden} | {"name": "Simulated"}
    assert sent["replicas"] == str(replicas)
    client.post("/save/inference/", sent)
    made = Quote.objects.get()
    (item,) = made.terms["items"]
    per_node = option.cluster.gpus_per_node // option.layout.gpus_per_replica
    nodes = math.ceil(replicas / per_node)
    assert Decimal(item["quantity"]) == 730 * nodes
    assert item["label"].startswith(str(nodes))
    (said,) = made.terms["assumptions"]
    assert str(replicas) in said
    assert ("Sized by simulation" in said) == (language == "en")


@pytest.mark.parametrize(
    ("tensor", "pipeline", "per_node", "replicas", "nodes"),
    [(1, 1, 8, 9, 2), (8, 2, 8, 3, 6), (4, 1, 8, 3, 2), (1, 1, 1, 6, 6), (3, 1, 8, 4, 2)],
)
def test_replicas_share_a_node_or_take_several(
    tensor: int, pipeline: int, per_node: int, replicas: int, nodes: int
) -> None:
    layout = {"tensor": tensor, "pipeline": pipeline, "expert": 1}
    assert nodes_for({"layout": layout, "cluster": {"gpus_per_node": per_node}}, replicas) == nodes
