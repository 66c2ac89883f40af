"""Quotes drafted from a saved plan: its lines, their words in each language, and what a buyer never sees."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from planner.documents.cart import Visit, cxml_cart, flat_cart
from planner.documents.printed import printed
from planner.documents.wording import wording
from planner.models import Role
from planner.selectors.scenarios import version_of
from planner.services import quote_files, quotes, scenarios
from planner.services.plan_json import plain
from planner.services.price_book_inputs import (
    DiscountInput,
    ExchangeRateInput,
    PriceBookInput,
    PrivateInstanceTypeInput,
)
from planner.services.price_books import (
    add_entry,
    create_price_book,
    set_exchange_rate,
)
from planner.services.quote_plan import plan_items, suggested_items
from tests.planner.organizations import Tenant
from tests.planner.quote_terms import BUYER, QUESTION, TRAINING


@pytest.mark.usefixtures("catalog")
def test_a_plan_becomes_a_quote(tenant: Tenant) -> None:
    scenario = scenarios.save_scenario(scope=tenant.scope(), name="Chat", kind="inference", question=QUESTION)
    version = version_of(scenario)
    quote = quotes.create_quote(scope=tenant.scope(Role.BUYER), version=version, terms={"buyer": BUYER}, issue=True)
    snapshot = quotes.priced(quote).snapshot
    (line,) = snapshot.lines
    option = version.plan["options"][0]
    assert line.quantity == option["cluster"]["nodes"] * 730
    assert line.monthly == version.usd
    assert snapshot.total.term == 12 * version.usd
    assert snapshot.plan is not None
    assert snapshot.plan.confidence is not None
    assert (snapshot.plan.catalog_version, snapshot.plan.engine_version) == (
        version.catalog_version,
        version.engine_version,
    )
    assert len(snapshot.plan.working) == len(option["working"])
    assert option["price"]["as_of"] in line.source
    assert quote_files.render(snapshot, "pdf").startswith(b"%PDF-")


@pytest.mark.usefixtures("catalog")
def test_the_price_books_mark_up_is_a_line_of_its_own(tenant: Tenant) -> None:
    scope = tenant.scope()
    create_price_book(scope=scope, values=PriceBookInput(name="Contract", markup_percent=Decimal("12.5")))
    scenario = scenarios.save_scenario(scope=scope, name="Chat", kind="inference", question=QUESTION)
    quote = quotes.create_quote(scope=scope, version=version_of(scenario), terms={"buyer": BUYER})
    compute, mark_up = quotes.priced(quote).snapshot.lines
    assert compute.monthly is not None
    assert (mark_up.category, mark_up.percent) == ("mark_up", Decimal("12.5"))
    assert mark_up.monthly == (compute.monthly / 8).quantize(Decimal("0.01"), ROUND_HALF_UP)


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(("kind", "question"), [("inference", QUESTION), ("training", TRAINING)])
@pytest.mark.parametrize(("written", "read"), [("en", "id"), ("id", "en")])
def test_a_plans_items_are_said_in_the_documents_language(
    tenant: Tenant, kind: str, question: dict[str, Any], written: str, read: str
) -> None:
    scope = tenant.scope()
    version = version_of(scenarios.save_scenario(scope=scope, name="Plan", kind=kind, question=question))

    def items(language: str) -> list[dict[str, Any]]:
        made = (*plan_items(version, language), *suggested_items(version, language))
        return [plain(replace(item, unit_price=item.unit_price or Decimal(1))) for item in made]

    drafts = [
        quotes.create_quote(scope=scope, terms={"buyer": BUYER, "items": items(language), "language": read})
        for language in (written, read)
    ]
    snapshots = [quotes.priced(draft).snapshot for draft in drafts]
    assert snapshots[0].lines != snapshots[1].lines
    other, own = (printed(snapshot, wording(read))["table"] for snapshot in snapshots)
    assert other == own
    # What people wrote stays as they wrote it, however much it looks like a plan's.
    for text in ("Each node has 8 GPUs", "2 nodes of ours", "Bobot", "rack; 2 x h"):
        assert wording(read).item(text) == text


@pytest.mark.usefixtures("catalog")
def test_what_the_seller_pays_by_is_not_in_the_buyers_documents(tenant: Tenant) -> None:
    scope = tenant.scope()
    book = create_price_book(scope=scope, values=PriceBookInput(name="Buku 2026", markup_percent=Decimal("12.5")))
    add_entry(scope=scope, book=book, values=DiscountInput(provider="", percent=Decimal(10)))
    scenario = scenarios.save_scenario(scope=scope, name="Chat", kind="inference", question=QUESTION)
    version = version_of(scenario)
    assert "Buku 2026" in json.dumps(version.plan)
    quote = quotes.create_quote(scope=scope, version=version, terms={"buyer": BUYER}, issue=True)
    snapshot = quotes.priced(quote).snapshot
    told = {form: quote_files.render(snapshot, form).decode() for form in ("csv", "json")}
    for language in ("en", "id"):
        # What the PDF is set from, and every part of the workbook.
        told[f"pdf {language}"] = json.dumps(printed(snapshot, wording(language)), ensure_ascii=False)
        with zipfile.ZipFile(io.BytesIO(quote_files.render(snapshot, "xlsx", language))) as book_file:
            told[f"xlsx {language}"] = " ".join(book_file.read(name).decode() for name in book_file.namelist())
    told["cart"] = json.dumps(flat_cart(snapshot)) + cxml_cart(snapshot, Visit())
    for form, text in told.items():
        for secret in (
            "Buku 2026",
            "10 % off",
            "10\xa0% off",
            str(book.uuid),
            "price book",
            "list price",
            "harga daftar",
        ):
            assert secret not in text, (form, secret)
    assert snapshot.plan is not None
    assert "+" in version.catalog_version
    assert snapshot.plan.catalog_version == version.catalog_version.partition("+")[0]
    assert "list_price" not in {fact.code for fact in snapshot.plan.facts}


@pytest.mark.usefixtures("catalog")
def test_a_training_run_is_charged_once_by_its_hours(tenant: Tenant) -> None:
    scenario = scenarios.save_scenario(scope=tenant.scope(), name="Tune", kind="training", question=TRAINING)
    version = version_of(scenario)
    quote = quotes.create_quote(scope=tenant.scope(), version=version, terms={"buyer": BUYER}, issue=True)
    snapshot = quotes.priced(quote).snapshot
    assert snapshot.net.once == version.usd
    assert [line.category for line in snapshot.lines] == ["compute", "storage"]
    assert snapshot.net.monthly == 0
    assert quote_files.render(snapshot, "pdf", "id").startswith(b"%PDF-")
    labels = {item.label: item.unit_price for item in suggested_items(version)}
    assert "Bobot model" in {item.label for item in suggested_items(version, "id")}
    assert labels.keys() >= {"Model weights", "Checkpoints", "Training data"}
    assert set(labels.values()) == {None}


@pytest.mark.usefixtures("catalog")
def test_an_offline_job_is_charged_once_by_its_hours(tenant: Tenant) -> None:
    question = {"model": "Llama 3.1 8B", "input_tokens": 1000, "output_tokens": 200, "max_options": 5}
    question |= {"offline_requests": 3_000_000, "offline_hours": 24, "accelerators": ["h100-sxm"]}
    scenario = scenarios.save_scenario(scope=tenant.scope(), name="Batch", kind="inference", question=question)
    version = version_of(scenario)
    job = version.plan["options"][0]["job"]
    quote = quotes.create_quote(scope=tenant.scope(), version=version, terms={"buyer": BUYER}, issue=True)
    snapshot = quotes.priced(quote).snapshot
    (line,) = snapshot.lines
    assert (line.once, line.monthly) == (Decimal(job["usd"]), Decimal(0))
    assert snapshot.months == 1
    assert line.quantity == version.plan["options"][0]["cluster"]["nodes"] * Decimal(repr(job["hours"]))
    assert snapshot.total.term == Decimal(job["usd"])
    said = json.dumps(printed(snapshot, wording("en")), ensure_ascii=False)
    assert f"hours of the job: {wording('en').exact(Decimal(repr(job['hours'])))} h" in said
    assert "the job would take" in said
    # Nothing of a service that goes on.
    for other in ("A month is 730 hours", "invoiced in advance", '"a month"', "Peak load", "TTFT at"):
        assert other not in said, other
    assert "Disewa selama jam pekerjaan." in json.dumps(printed(snapshot, wording("id")), ensure_ascii=False)


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(("kind", "question"), [("inference", QUESTION), ("training", TRAINING)])
@pytest.mark.parametrize("language", ["en", "id"])
def test_what_a_buyer_reads_has_names_not_codes(
    tenant: Tenant, kind: str, question: dict[str, Any], language: str
) -> None:
    version = version_of(scenarios.save_scenario(scope=tenant.scope(), name="Plan", kind=kind, question=question))
    quote = quotes.create_quote(scope=tenant.scope(), version=version, terms={"buyer": BUYER})
    snapshot = quotes.priced(quote).snapshot
    told = json.dumps(printed(snapshot, wording(language)), ensure_ascii=False)
    with zipfile.ZipFile(io.BytesIO(quote_files.render(snapshot, "xlsx", language))) as book:
        told += " ".join(book.read(name).decode() for name in book.namelist() if "worksheets" in name)
    assert not re.findall(r"\b(?:vllm|megatron|fp8|bf16|pretrain|continued(?! pre)|zero1)\b", told)
    expected = {"inference": ("vLLM", "FP8", "BF16"), "training": ("Megatron-LM", "MFU")}[kind]
    for name in expected:
        assert name in told
    if kind == "training":
        assert re.search(r'"MFU", "\d\d([.,]\d)?\u00a0%"', told)


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(("unit", "amount"), [("node_month", "420000000"), ("gpu_hour", "71917.81")])
def test_a_contract_in_rupiah_is_quoted_to_the_rupiah(tenant: Tenant, unit: str, amount: str) -> None:
    scope = tenant.scope()
    book = create_price_book(scope=scope, values=PriceBookInput(name="Kontrak"))
    set_exchange_rate(
        scope=scope, values=ExchangeRateInput(base="USD", quote="IDR", rate=Decimal(16900), source="our bank")
    )
    add_entry(
        scope=scope,
        book=book,
        values=PrivateInstanceTypeInput(
            provider="PT Jakarta", name="rak", accelerator="h100-sxm", gpu_count=8, region="jakarta", country="ID",
            amount=Decimal(amount), currency="IDR", unit=unit,
        ),
    )  # fmt: skip
    question = {**QUESTION, "providers": ["PT Jakarta"]}
    version = version_of(scenarios.save_scenario(scope=scope, name="Chat", kind="inference", question=question))
    quote = quotes.create_quote(scope=tenant.scope(Role.BUYER), version=version, terms={"buyer": BUYER})
    snapshot = quotes.priced(quote).snapshot
    (line,) = snapshot.lines
    nodes = version.plan["options"][0]["cluster"]["nodes"]
    exact = Decimal(amount) * nodes * (1 if unit == "node_month" else 8 * 730)
    assert (snapshot.currency.code, line.unit, snapshot.fx) == ("IDR", unit, ())
    assert line.monthly == exact.quantize(Decimal(1), ROUND_HALF_UP)
    # In dollars it is what the plan says, to the cents that an hour's price is rounded by.
    dollars = quotes.change_quote(scope=tenant.scope(Role.BUYER), quote=quote, changes={"currency": "USD"})
    assert quotes.priced(dollars).snapshot.net.monthly == pytest.approx(version.usd, abs=Decimal("0.05"))
