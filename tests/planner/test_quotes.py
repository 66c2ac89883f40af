"""Quotes: drafted from a plan, priced in any currency, issued once, and unchanged for good."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from catalog.models import FxRate, PriceObservation, TaxRule
from planner.documents.cart import Visit, cxml_cart, flat_cart
from planner.documents.printed import printed
from planner.documents.tables import read_csv
from planner.documents.wording import wording
from planner.engine.errors import InvalidQuestion
from planner.models import AuditEntry, Quote, Role
from planner.selectors import quotes as read
from planner.selectors.scenarios import version_of
from planner.selectors.scope import Forbidden, NotFound
from planner.services import quotes, scenarios
from planner.services.plan_json import plain
from planner.services.price_book_inputs import DiscountInput, ExchangeRateInput, PriceBookInput
from planner.services.price_books import (
    add_entry,
    change_entry,
    change_price_book,
    create_price_book,
    set_exchange_rate,
)
from planner.services.quote_plan import plan_items, suggested_items
from planner.services.tenancy import Conflict
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.test_scenarios import QUESTION, TRAINING

ITEM = {"category": "compute", "label": "Node", "quantity": "730", "unit": "node_hour", "unit_price": "53.52"}
BUYER = {"name": "Acme Pte. Ltd."}
TERMS: dict[str, Any] = {"title": "Capacity", "buyer": BUYER, "items": [ITEM]}
RUPIAH = {"base": "USD", "quote": "IDR", "rate": "16300", "rate_date": "2026-11-28", "source": "our bank"}


@pytest.fixture
def tenant(db: None) -> Tenant:
    return tenant_factory()


def issued(tenant: Tenant, **terms: Any) -> Quote:
    return quotes.create_quote(scope=tenant.scope(Role.BUYER), terms=TERMS | terms, issue=True)


def test_numbers_count_from_one_in_each_organization(tenant: Tenant) -> None:
    year = timezone.localdate().year
    other = tenant_factory("Other")
    assert [issued(tenant).number, issued(tenant).number, issued(other).number] == [
        f"{year}-0001",
        f"{year}-0002",
        f"{year}-0001",
    ]


def test_a_refused_issue_uses_no_number(tenant: Tenant) -> None:
    issued(tenant)
    with pytest.raises(InvalidQuestion):
        issued(tenant, items=[ITEM | {"unit_price": None}])
    assert issued(tenant).sequence == 2
    assert Quote.objects.count() == 2


def test_unknown_prices_rates_and_taxes_block_and_are_named(tenant: Tenant) -> None:
    lines = [
        ITEM,
        {"category": "storage", "label": "Weights", "quantity": 10, "unit": "gib_month"},
        {"category": "egress", "unit": "gb", "unit_price": "0.05"},
        ITEM | {"label": "Link", "currency": "SGD"},
    ]
    with pytest.raises(InvalidQuestion) as refused:
        issued(tenant, items=lines, buyer={}, tax={"country": "SG"}, currency="IDR", fx=[RUPIAH])
    assert [(error.field, error.code) for error in refused.value.errors] == [
        ("fx", "unknown_rate"),
        ("tax.country", "unknown_tax"),
        ("items.1.unit_price", "unknown_price"),
        ("items.2.quantity", "unknown_quantity"),
        ("buyer.name", "required"),
    ]
    assert "Weights" in str(refused.value)


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
    assert quotes.render(snapshot, "pdf").startswith(b"%PDF-")


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
    told = {form: quotes.render(snapshot, form).decode() for form in ("csv", "json")}
    for language in ("en", "id"):
        # What the PDF is set from, and every part of the workbook.
        told[f"pdf {language}"] = json.dumps(printed(snapshot, wording(language)), ensure_ascii=False)
        with zipfile.ZipFile(io.BytesIO(quotes.render(snapshot, "xlsx", language))) as book_file:
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
    assert quotes.render(snapshot, "pdf", "id").startswith(b"%PDF-")
    labels = {item.label: item.unit_price for item in suggested_items(version)}
    assert "Bobot model" in {item.label for item in suggested_items(version, "id")}
    assert labels.keys() >= {"Model weights", "Checkpoints", "Training data"}
    assert set(labels.values()) == {None}


@pytest.mark.usefixtures("catalog")
def test_rupiah_at_a_stated_rate_with_indonesian_tax(tenant: Tenant) -> None:
    quote = issued(
        tenant,
        items=[ITEM | {"currency": "USD"}],
        currency="IDR",
        language="id",
        fx=[RUPIAH],
        tax={"country": "ID"},
        withholding={"name": "PPh 23", "rate": "0.02", "source": "UU PPh pasal 23"},
    )
    snapshot = quotes.priced(quote).snapshot
    compute, tax = snapshot.lines
    assert (compute.unit_price, compute.monthly) == (Decimal(872_376), Decimal(636_834_480))
    assert tax.monthly == Decimal(70_051_793)  # 12 % x 11/12 of 636,834,480
    assert (tax.percent, tax.detail) == (Decimal(12), "x 11/12")
    assert ",PPN,x 11/12," in quotes.render(snapshot, "csv").decode()
    assert snapshot.withholding is not None
    assert snapshot.withholding.amounts.monthly == Decimal(12_736_690)
    assert [(rate.base, rate.quote, rate.source) for rate in snapshot.fx] == [("USD", "IDR", "our bank")]
    assert snapshot.tax is not None
    assert "131/2024" in snapshot.tax.source
    assert all(not (amount or 0) % 1 for line in snapshot.lines for amount in (line.once, line.monthly, line.term))


@pytest.mark.parametrize(
    ("days_ago", "problems", "warnings"),
    [
        (-1, ["fx.0.rate_date"], []),
        (0, [], []),
        (90, [], []),
        (91, [], ["fx"]),
        (3600, [], ["fx"]),
        (3700, ["fx.0.rate_date"], ["fx"]),
        (45_000, ["fx.0.rate_date"], ["fx"]),
    ],
)
def test_a_rate_to_come_or_of_another_age_blocks_and_an_old_one_is_told(
    tenant: Tenant, days_ago: int, problems: list[str], warnings: list[str]
) -> None:
    day = (timezone.localdate() - timedelta(days=days_ago)).isoformat()
    terms = TERMS | {"currency": "IDR", "items": [ITEM | {"currency": "USD"}], "fx": [RUPIAH | {"rate_date": day}]}
    draft = quotes.priced(quotes.create_quote(scope=tenant.scope(), terms=terms), timezone.now())
    assert [problem.field for problem in draft.problems] == problems
    assert [warning.field for warning in draft.warnings] == warnings
    stated = ExchangeRateInput(
        base="USD", quote="IDR", rate=Decimal(16300), rate_date=date.fromisoformat(day), source="our bank"
    )
    if problems:
        with pytest.raises(InvalidQuestion) as refused:
            set_exchange_rate(scope=tenant.scope(), values=stated)
        assert [error.field for error in refused.value.errors] == ["rate_date"]
    else:
        assert set_exchange_rate(scope=tenant.scope(), values=stated).rate_date.isoformat() == day


@pytest.mark.parametrize(
    ("discounts", "field"),
    [
        ([("100", [])], ""),
        ([("100.0001", [])], "shares.0.percent"),
        ([("60", []), ("40", [])], ""),
        ([("60", []), ("41", ["compute"])], "shares.1.percent"),
        ([("100", ["compute"]), ("100", ["storage"])], ""),
    ],
)
def test_no_more_than_all_of_a_line_is_taken_off(
    tenant: Tenant, discounts: list[tuple[str, list[str]]], field: str
) -> None:
    shares = [{"category": "discount", "percent": percent, "of": of} for percent, of in discounts]
    terms = TERMS | {"shares": [{"category": "mark_up", "percent": "300"}, *shares]}
    if field:
        field = field.replace(field[7], str(int(field[7]) + 1))
        with pytest.raises(InvalidQuestion) as refused:
            quotes.create_quote(scope=tenant.scope(), terms=terms)
        assert [error.field for error in refused.value.errors] == [field]
    else:
        draft = quotes.create_quote(scope=tenant.scope(), terms=terms)
        assert (quotes.priced(draft).snapshot.total.term or 0) >= 0


@pytest.mark.usefixtures("catalog")
def test_euro_at_the_catalogs_dated_rate_in_either_direction(tenant: Tenant) -> None:
    snapshot = quotes.priced(issued(tenant, currency="EUR", items=[ITEM | {"currency": "USD"}])).snapshot
    rate = FxRate.objects.get(base="EUR", retired=False)
    assert snapshot.lines[0].unit_price == (Decimal("53.52") / rate.rate).quantize(Decimal("0.000001"))
    assert snapshot.fx[0].rate_date == rate.rate_date


@pytest.mark.usefixtures("catalog")
def test_an_issued_quote_outlives_every_change(tenant: Tenant) -> None:
    scope = tenant.scope()
    book = create_price_book(scope=scope, values=PriceBookInput(name="Contract", markup_percent=Decimal("12.5")))
    discount = DiscountInput(provider="", percent=Decimal(20))
    entry = add_entry(scope=scope, book=book, values=discount)
    scenario = scenarios.save_scenario(scope=scope, name="Chat", kind="inference", question=QUESTION)
    quote = quotes.create_quote(
        scope=scope,
        version=version_of(scenario),
        terms={"buyer": BUYER, "currency": "EUR", "tax": {"country": "ID"}},
        issue=True,
    )
    before = {form: quotes.render(quotes.priced(quote).snapshot, form) for form in quotes.FORMATS}
    FxRate.objects.update(rate=9)
    TaxRule.objects.update(rate=Decimal("0.5"))
    PriceObservation.objects.update(usd_per_node_hour=1)
    change_price_book(scope=scope, book=book, values=PriceBookInput(name="Next", markup_percent=Decimal(50)))
    change_entry(scope=scope, entry=entry, values=replace(discount, percent=Decimal(1)))
    scenarios.rename_scenario(scope=scope, scenario=scenario, name="Other")
    quote = Quote.objects.get(pk=quote.pk)
    assert {form: quotes.render(quotes.priced(quote).snapshot, form) for form in quotes.FORMATS} == before
    with pytest.raises(Conflict):
        quotes.change_quote(scope=scope, quote=quote, changes={"title": "Other"})
    with pytest.raises(Conflict):
        quotes.delete_draft(scope=scope, quote=quote)
    with pytest.raises(Conflict):
        quotes.issue_quote(scope=scope, quote=quote)


def test_the_database_refuses_a_number_without_a_snapshot(tenant: Tenant) -> None:
    quote = issued(tenant)
    with pytest.raises(IntegrityError):
        Quote.objects.filter(pk=quote.pk).update(snapshot=None)


def test_a_draft_changes_member_by_member(tenant: Tenant) -> None:
    scope = tenant.scope(Role.BUYER)
    quote = quotes.create_quote(scope=scope, terms=TERMS)
    shares = [{"category": "discount", "percent": 10}, {"category": "support", "percent": "5.5", "of": ["compute"]}]
    quote = quotes.change_quote(scope=scope, quote=quote, changes={"shares": shares, "months": 3})
    snapshot = quotes.priced(quote).snapshot
    assert [(line.category, line.monthly) for line in snapshot.lines] == [
        ("compute", Decimal("39069.60")),
        ("support", Decimal("2148.83")),
        ("discount", Decimal("-4121.84")),
    ]
    assert snapshot.is_draft
    assert snapshot.months == 3
    assert quotes.issue_quote(scope=scope, quote=quote).sequence == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"months": 0}, "months"),
        ({"currency": "XXZ"}, "currency"),
        ({"items": [ITEM | {"quantity": "1e9"}]}, "items.0.quantity"),
        ({"items": [ITEM | {"unit_price": -1}]}, "items.0.unit_price"),
        ({"items": [{"label": "x"}]}, "items.0.category"),
        ({"items": [ITEM | {"label": "a\nb"}]}, "items.0.label"),
        ({"items": {}}, "items"),
        ({"gold": 1}, "gold"),
        ({"buyer": {"name": "a\x07"}}, "buyer.name"),
        ({"shares": [{"category": "discount"}]}, "shares.0.percent"),
        ({"fx": [RUPIAH | {"rate": 0}]}, "fx.0.rate"),
        ({"fx": [RUPIAH | {"rate_date": "yesterday"}]}, "fx.0.rate_date"),
        ({"tax": {"country": "id"}}, "tax.country"),
        ({"language": "de"}, "language"),
    ],
)
def test_wrong_terms_are_named(tenant: Tenant, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidQuestion) as refused:
        quotes.create_quote(scope=tenant.scope(), terms=TERMS | changes)
    assert field in [error.field for error in refused.value.errors]


def test_accepting_ends_at_the_last_day(tenant: Tenant) -> None:
    scope = tenant.scope(Role.BUYER)
    good, late = issued(tenant), issued(tenant)
    Quote.objects.filter(pk=late.pk).update(valid_until=timezone.localdate() - timedelta(days=1))
    assert quotes.accept_quote(scope=scope, quote=good).shown_status(timezone.localdate()) == "accepted"
    with pytest.raises(Conflict, match="expired"):
        quotes.accept_quote(scope=scope, quote=late)
    shown = {status: read.quotes(scope).filter(read.with_status(status, timezone.localdate())).count()
             for status in ("draft", "issued", "accepted", "expired", "superseded")}  # fmt: skip
    assert shown == {"draft": 0, "issued": 0, "accepted": 1, "expired": 1, "superseded": 0}


def test_a_revision_takes_the_quotes_place_when_it_is_issued(tenant: Tenant) -> None:
    scope = tenant.scope(Role.BUYER)
    first = issued(tenant)
    second = quotes.revise_quote(scope=scope, quote=first)
    assert quotes.revise_quote(scope=scope, quote=first) == second
    rival = Quote.objects.create(organization=first.organization, terms=first.terms, replaces=first)
    second = quotes.issue_quote(scope=scope, quote=second)
    first.refresh_from_db()
    assert (first.status, first.superseded_by) == ("superseded", second)
    assert quotes.priced(second).snapshot.supersedes == first.number
    with pytest.raises(Conflict, match="superseded"):
        quotes.issue_quote(scope=scope, quote=rival)
    with pytest.raises(Conflict):
        quotes.accept_quote(scope=scope, quote=first)


def test_roles_and_organizations_are_kept_apart(tenant: Tenant) -> None:
    quote = issued(tenant)
    other = tenant_factory("Other").scope()
    for scope in (tenant.scope(Role.VIEWER), tenant.scope(Role.PLANNER)):
        assert read.quote(scope, quote.uuid) == quote
        with pytest.raises(Forbidden):
            quotes.create_quote(scope=scope, terms=TERMS)
        with pytest.raises(Forbidden):
            quotes.accept_quote(scope=scope, quote=quote)
    with pytest.raises(NotFound):
        read.quote(other, quote.uuid)
    with pytest.raises(NotFound):
        quotes.accept_quote(scope=other, quote=quote)


def test_exports_are_in_the_audit_log_and_read_back(tenant: Tenant) -> None:
    quote, scope = issued(tenant), tenant.scope(Role.VIEWER)
    data = quotes.export_quote(scope=scope, quote=quote, form="csv")
    assert read_csv(data) == quotes.priced(quote).snapshot.lines
    entry = AuditEntry.objects.filter(organization=tenant.organization).latest("id")
    assert entry.changes["export"] == ["", "csv"]
    assert entry.actor_email == scope.user.email


def test_valid_until_counts_from_the_day_of_issue(tenant: Tenant) -> None:
    quote = issued(tenant, valid_days=10)
    assert quote.valid_until == timezone.localdate() + timedelta(days=10)
    assert quotes.priced(quote).snapshot.valid_until == quote.valid_until
