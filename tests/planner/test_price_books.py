"""Price books: whose plans see which, who may change them, and what the audit log keeps."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from catalog.selectors import catalog_snapshot
from planner.engine.errors import InvalidQuestion
from planner.models import AuditEntry, Discount, PriceBook, Role
from planner.selectors.price_books import snapshot_for
from planner.selectors.scope import Forbidden, NotFound
from planner.services.json_input import read_form
from planner.services.planning import plan_training
from planner.services.price_book_inputs import (
    DiscountInput,
    ExchangeRateInput,
    PriceBookInput,
)
from planner.services.price_books import (
    add_entry,
    change_entry,
    create_price_book,
    delete_price_book,
    remove_entry,
    set_exchange_rate,
    use_price_book,
)
from tests.planner.contract_prices import faults, negotiated, priced, private, some_offer
from tests.planner.organizations import Tenant, tenant_factory


def test_without_a_price_book_plans_use_the_list_prices(acme: Tenant) -> None:
    assert snapshot_for(acme.scope(), timezone.localdate()) is catalog_snapshot()


def test_the_first_book_is_in_use_and_a_change_shows_in_the_next_snapshot(acme: Tenant, book: PriceBook) -> None:
    scope, listed = acme.scope(Role.BUYER), some_offer()
    assert book.in_use
    entry = add_entry(scope=scope, book=book, values=negotiated(amount="10.5"))
    assert priced(scope, listed).price_usd_per_node_hour == Decimal("10.500000")
    assert priced(scope, listed).flags == ("negotiated_price",)
    change_entry(scope=scope, entry=entry, values=negotiated(amount="9"))
    assert priced(scope, listed).price_usd_per_node_hour == Decimal("9.000000")
    remove_entry(scope=scope, entry=entry)
    assert priced(scope, listed) == listed


def test_a_snapshot_is_made_once_for_a_version(acme: Tenant, book: PriceBook) -> None:
    add_entry(scope=acme.scope(), book=book, values=read_form(DiscountInput, {"percent": "10"}))
    today = timezone.localdate()
    first = snapshot_for(acme.scope(), today)
    assert snapshot_for(acme.scope(Role.VIEWER), today) is first
    assert snapshot_for(acme.scope(), today + timedelta(days=1)) is not first


def test_another_book_or_none_can_be_in_use(acme: Tenant, book: PriceBook) -> None:
    scope = acme.scope()
    other = create_price_book(scope=scope, values=PriceBookInput(name="Draft"))
    assert not other.in_use
    use_price_book(scope=scope, book=other)
    assert list(PriceBook.objects.filter(in_use=True)) == [other]
    use_price_book(scope=scope, book=None)
    assert not PriceBook.objects.filter(in_use=True).exists()


def test_another_organization_sees_the_list_prices(acme: Tenant, book: PriceBook) -> None:
    add_entry(scope=acme.scope(), book=book, values=read_form(DiscountInput, {"percent": "10"}))
    other = tenant_factory("Other")
    assert snapshot_for(other.scope(), timezone.localdate()) is catalog_snapshot()
    with pytest.raises(NotFound, match="No such price book"):
        add_entry(scope=other.scope(), book=book, values=read_form(DiscountInput, {"percent": "10"}))
    with pytest.raises(NotFound):
        delete_price_book(scope=other.scope(), book=book)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.PLANNER])
def test_lower_roles_change_nothing(acme: Tenant, book: PriceBook, role: Role) -> None:
    entry = add_entry(scope=acme.scope(), book=book, values=negotiated())
    scope = acme.scope(role)
    for write in (
        lambda: create_price_book(scope=scope, values=PriceBookInput(name="Mine")),
        lambda: use_price_book(scope=scope, book=None),
        lambda: delete_price_book(scope=scope, book=book),
        lambda: add_entry(scope=scope, book=book, values=negotiated()),
        lambda: change_entry(scope=scope, entry=entry, values=negotiated()),
        lambda: remove_entry(scope=scope, entry=entry),
        lambda: set_exchange_rate(
            scope=scope, values=ExchangeRateInput(base="EUR", rate=Decimal(1), quote="USD", source="bank")
        ),
    ):
        with pytest.raises(Forbidden):
            write()


def test_training_plans_use_the_price_book_too(acme: Tenant, book: PriceBook) -> None:
    add_entry(scope=acme.scope(), book=book, values=private(nodes="8"))
    asked = {"model": "Llama 3.1 8B", "tokens": 1e9, "providers": "Our cellar"}
    plan = plan_training(asked, scope=acme.scope())
    assert {option.cluster.provider for option in plan.options} == {"Our cellar"}
    assert max(option.cluster.nodes for option in plan.options) <= 8
    with pytest.raises(InvalidQuestion):
        plan_training(asked)


def test_names_are_taken_once(acme: Tenant, book: PriceBook) -> None:
    with pytest.raises(InvalidQuestion) as invalid:
        create_price_book(scope=acme.scope(), values=PriceBookInput(name=" Contract "))
    assert set(faults(invalid)) == {"name"}
    add_entry(scope=acme.scope(), book=book, values=private())
    with pytest.raises(InvalidQuestion) as invalid:
        add_entry(scope=acme.scope(), book=book, values=private())
    assert set(faults(invalid)) == {"name"}


def test_every_change_is_in_the_audit_log(acme: Tenant, book: PriceBook) -> None:
    entry = add_entry(scope=acme.scope(Role.BUYER), book=book, values=read_form(DiscountInput, {"percent": "12.5"}))
    change_entry(scope=acme.scope(), entry=entry, values=read_form(DiscountInput, {"percent": "15"}))
    delete_price_book(scope=acme.scope(), book=book)
    logged = [
        (e.content_type.model_class(), e.action, e.actor)
        for e in AuditEntry.objects.filter(organization=acme.organization).order_by("pk")
    ]
    buyer, owner = acme.people[Role.BUYER], acme.people[Role.OWNER]
    assert (PriceBook, 0, buyer) in logged
    assert (Discount, 0, buyer) in logged
    assert (Discount, 1, owner) in logged
    assert (Discount, 2, owner) in logged
    assert (PriceBook, 2, owner) in logged
