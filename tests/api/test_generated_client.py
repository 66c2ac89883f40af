"""A Python client generated from the OpenAPI document works against a running server, from a plan to the cart."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest
from django.core.cache import cache
from pytest_django.live_server_helper import LiveServer

from catalog.services import load_catalog
from planner.api.documents import openapi_document
from planner.permissions import KEY_SCOPES
from planner.services.api_keys import create_key
from planner.services.organization_inputs import KeyInput
from tests.planner.organizations import tenant_factory

NAME = "takar_generated_client"
# The generator knows JSON, plain text and plain bytes: everything else is bytes to it.
BYTES = (
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "text/csv",
    "application/x-ndjson",
    "application/gzip",
)
CONFIG = {"content_type_overrides": dict.fromkeys(BYTES, "application/octet-stream"), "post_hooks": []}
GENERATE = f"generate --path schema.json --config config.json --output-path {NAME} --meta none --fail-on-warning"
pytestmark = [pytest.mark.xdist_group("generated-client")]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a client made from the document, importable as ``NAME``."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "schema.json").write_text(json.dumps(openapi_document(), default=str))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *GENERATE.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        # The generator looks for a formatter beside itself.
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr[-2000:]
    sys.path.insert(0, str(folder))
    yield folder / NAME
    sys.path.remove(str(folder))
    for module in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[module]


def test_every_operation_is_in_the_client(generated: Path) -> None:
    documented = {
        f"{operation['tags'][0].replace(' ', '_')}/{operation['operationId']}"
        for operations in openapi_document()["paths"].values()
        for operation in operations.values()
    }
    made = {f"{path.parent.name}/{path.stem}" for path in generated.glob("api/*/*.py") if path.stem != "__init__"}
    assert made == documented
    assert len(made) > 80


class Api:
    """The generated client, by names of operations."""

    def __init__(self, address: str, key: str) -> None:
        self.models: ModuleType = importlib.import_module(f"{NAME}.models")
        made = importlib.import_module(f"{NAME}.client")
        self.client = made.AuthenticatedClient(base_url=address, token=key, raise_on_unexpected_status=True, timeout=60)

    def __call__(self, operation: str, *names: Any, status: int = 200, **given: Any) -> Any:
        module = importlib.import_module(f"{NAME}.api.{operation}")
        answer = module.sync_detailed(*names, client=self.client, **given)
        assert answer.status_code == status, answer.content
        return answer.parsed


@pytest.fixture
def api(generated: Path, transactional_db: None, live_server: LiveServer) -> Iterator[Api]:
    """The client of a service account that may do everything, and a running site."""
    cache.clear()
    values = KeyInput(name="all", service_account="ERP", role="buyer", scopes=KEY_SCOPES)
    made = Api(live_server.url, create_key(scope=tenant_factory().scope(), values=values).key)
    yield made
    made.client.get_httpx_client().close()


def test_from_a_plan_to_the_cart(api: Api) -> None:
    load_catalog()
    models = api.models
    question = models.InferenceQuestion(
        model="Llama 3.1 8B", requests_per_second=5.0, accelerators=["h100-sxm"], max_options=3
    )
    plan = api("plans.plan_inference", body=question)
    best = next(option for option in plan.options if option.id == plan.recommended)

    scenario = api(
        "scenarios.save_scenario",
        body=models.ScenarioInput(name="Chat", kind=models.ScenarioInputKind("inference"), question=question),
        status=201,
    )
    version = api("scenarios.read_version", scenario.id, 1)
    assert version.plan.options[0].id == version.option_id == best.id
    assert Decimal(version.usd) == Decimal(best.price.usd_per_month)

    terms = models.QuoteTerms(
        buyer=models.PartyTerms(name="PT Buyer"),
        tax=models.TaxTerms(country="ID"),
        shares=[models.ShareTerms(category=models.ShareTermsCategory("discount"), percent="5")],
    )
    key = str(uuid4())
    asked = models.QuoteInput(scenario=str(scenario.id), terms=terms)
    draft, again = (api("quotes.create_quote", body=asked, idempotency_key=key, status=201) for _ in range(2))
    assert draft.id == again.id
    assert draft.problems == []
    changed = api("quotes.change_quote", draft.id, body=models.QuoteTerms(title="Chat for PT Buyer"))
    refused = api("quotes.change_quote", draft.id, body=models.QuoteTerms(months=2), if_match='"old"', status=412)
    assert refused.errors[0].code == "outdated"
    issued = api("quotes.issue_quote", draft.id, idempotency_key=str(uuid4()))
    assert (issued.title, issued.status.value) == ("Chat for PT Buyer", "issued")
    assert changed.snapshot.total.term == issued.snapshot.total.term
    lines = [Decimal(line.term) for line in issued.snapshot.lines]
    assert sum(lines) == Decimal(issued.snapshot.total.term)

    documents = {form: api(f"quotes.download_quote_{form}", draft.id) for form in ("pdf", "csv", "xlsx", "json")}
    assert documents["pdf"].payload.read(5) == b"%PDF-"
    assert documents["xlsx"].payload.read(2) == b"PK"
    assert b"compute" in documents["csv"].payload.read()
    assert documents["json"].number == issued.number
    cart = api("quotes.transfer_quote", draft.id, body=models.TransferInput(buyer_cookie="cookie"))
    assert cart.cxml.startswith("<?xml")
    assert cart.net == issued.snapshot.net.term
    assert api("quotes.accept_quote", draft.id).status.value == "accepted"

    # Lists page, and what is wrong is an envelope.
    first = api("catalog.list_gpus", limit=1)
    cursor = first.next_.partition("cursor=")[2].partition("&")[0].replace("%3D", "=")
    second = api("catalog.list_gpus", limit=1, cursor=cursor)
    assert first.results[0].key != second.results[0].key
    assert api("quotes.read_quote", uuid4(), status=404).errors[0].code == "not_found"
    wrong = api(
        "plans.plan_inference",
        body=api.models.InferenceQuestion(model="Llama 3.1 8B", concurrency=1, headroom=2.0),
        status=400,
    )
    assert [(error.code, error.attr) for error in wrong.errors] == [("out_of_range", "headroom")]


def test_a_webhook_and_its_log(api: Api) -> None:
    body = api.models.WebhookInput(
        name="ERP", url="https://erp.example/hook", events=[api.models.WebhookInputEventsType0Item("quote.issued")]
    )
    made = api("webhooks.create_webhook", body=body, status=201)
    assert made.secret.startswith("whsec_")
    sent = api("webhooks.ping_webhook", made.id, status=201)
    listed = api("webhooks.list_webhook_deliveries", made.id)
    assert [row.id for row in listed.results] == [sent.id]
