"""Quotes: issued once with a number, unchanged for good, accepted or replaced."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from catalog.models import FxRate, PriceObservation, TaxRule
from planner.documents.tables import read_csv
from planner.engine.errors import InvalidQuestion
from planner.models import AuditEntry, Quote, Role
from planner.selectors import quotes as read
from planner.selectors.scenarios import version_of
from planner.selectors.scope import Forbidden, NotFound
from planner.services import quote_files, quotes, scenarios
from planner.services.price_book_inputs import DiscountInput, PriceBookInput
from planner.services.price_books import (
    add_entry,
    change_entry,
    change_price_book,
    create_price_book,
)
from planner.services.tenancy import Conflict
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.quote_terms import BUYER, ITEM, QUESTION, RUPIAH, TERMS, issued


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
    before = {form: quote_files.render(quotes.priced(quote).snapshot, form) for form in quote_files.FORMATS}
    FxRate.objects.update(rate=9)
    TaxRule.objects.update(rate=Decimal("0.5"))
    PriceObservation.objects.update(usd_per_node_hour=1)
    change_price_book(scope=scope, book=book, values=PriceBookInput(name="Next", markup_percent=Decimal(50)))
    change_entry(scope=scope, entry=entry, values=replace(discount, percent=Decimal(1)))
    scenarios.rename_scenario(scope=scope, scenario=scenario, name="Other")
    quote = Quote.objects.get(pk=quote.pk)
    assert {form: quote_files.render(quotes.priced(quote).snapshot, form) for form in quote_files.FORMATS} == before
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
    data = quote_files.export_quote(scope=scope, quote=quote, form="csv")
    assert read_csv(data) == quotes.priced(quote).snapshot.lines
    entry = AuditEntry.objects.filter(organization=tenant.organization).latest("id")
    assert entry.changes["export"] == [None, "csv"]
    assert entry.actor_email == scope.user.email


def test_valid_until_counts_from_the_day_of_issue(tenant: Tenant) -> None:
    quote = issued(tenant, valid_days=10)
    assert quote.valid_until == timezone.localdate() + timedelta(days=10)
    assert quotes.priced(quote).snapshot.valid_until == quote.valid_until
