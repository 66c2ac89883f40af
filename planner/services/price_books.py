"""Writing price books: the book, its entries, the one that plans use."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from django.db.models import F
from django.utils import timezone

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.models import (
    Commitment,
    Discount,
    ExchangeRate,
    NegotiatedPrice,
    PriceBook,
    PriceBookFile,
    PrivateInstanceType,
)
from planner.models.pricebook import PriceBookRow
from planner.selectors.scope import Scope
from planner.services.organizations import checked_name
from planner.services.price_book_checks import check_commitment, check_discount, check_negotiated, check_private
from planner.services.price_book_inputs import (
    CommitmentInput,
    DiscountInput,
    ExchangeRateInput,
    NegotiatedPriceInput,
    PriceBookInput,
    PrivateInstanceTypeInput,
)
from planner.services.rate_days import day_fault
from planner.services.tenancy import Conflict, lock, tenant_write
from planner.services.tiers import require_room

MOST_ENTRIES = 2000
"""Of one kind in one book."""
EntryInput = DiscountInput | NegotiatedPriceInput | CommitmentInput | PrivateInstanceTypeInput
Entry = TypeVar("Entry", bound=PriceBookRow)
CHECKS: dict[type, Any] = {
    DiscountInput: (Discount, check_discount),
    NegotiatedPriceInput: (NegotiatedPrice, check_negotiated),
    CommitmentInput: (Commitment, check_commitment),
    PrivateInstanceTypeInput: (PrivateInstanceType, check_private),
}
"""By input: the row it becomes, and what reads it into columns or refuses it."""


@tenant_write
def create_price_book(*, scope: Scope, values: PriceBookInput) -> PriceBook:
    """Start an empty price book; the organization's first is in use at once.

    Raises ``InvalidQuestion`` for a name that is none, ``Conflict`` for one that is taken.
    """
    scope.require("planner.change_price_book")
    lock(scope.organization)
    books = scope.rows(PriceBook)
    require_room(scope.organization, "price_books")
    return PriceBook.objects.create(
        organization=scope.organization, in_use=not books.exists(), **_book_columns(scope, values, None)
    )


@tenant_write
def change_price_book(*, scope: Scope, book: PriceBook, values: PriceBookInput) -> PriceBook:
    """Give the book another name, mark-up or notes."""
    scope.require("planner.change_price_book")
    lock(scope.organization)
    book = scope.get(PriceBook, book.uuid, lock=True)
    _set_changed(book, _book_columns(scope, values, book))
    book.version += 1
    book.save()
    return book


@tenant_write
def use_price_book(*, scope: Scope, book: PriceBook | None) -> None:
    """Let plans use this book; None: the list prices."""
    scope.require("planner.change_price_book")
    lock(scope.organization)
    chosen = None if book is None else scope.get(PriceBook, book.uuid, lock=True)
    for other in scope.rows(PriceBook).filter(in_use=True):
        if other != chosen:
            other.in_use = False
            other.save(update_fields=["in_use", "updated_at"])
    if chosen is not None and not chosen.in_use:
        chosen.in_use = True
        chosen.save(update_fields=["in_use", "updated_at"])


@tenant_write
def delete_price_book(*, scope: Scope, book: PriceBook) -> None:
    """Delete the book with all that is in it."""
    scope.require("planner.change_price_book")
    scope.get(PriceBook, book.uuid, lock=True).delete()


@tenant_write
def add_entry(*, scope: Scope, book: PriceBook, values: EntryInput) -> PriceBookRow:
    """Add an entry of the kind that ``values`` is of; raises ``InvalidQuestion`` naming every field at fault."""
    scope.require("planner.change_price_book")
    book = scope.get(PriceBook, book.uuid, lock=True)
    model, check = CHECKS[type(values)]
    if scope.rows(model).filter(price_book=book).count() >= MOST_ENTRIES:
        raise Conflict(
            "too_many",
            say("The price book has {most} such entries.", most=MOST_ENTRIES),
            say("another price book"),
        )
    columns = _entry_columns(scope, book, values, check)
    _refuse_twin(scope, model, columns, None)
    entry: PriceBookRow = model.objects.create(organization=scope.organization, **columns)
    _touch(book)
    return entry


@tenant_write
def change_entry(*, scope: Scope, entry: PriceBookRow, values: EntryInput) -> PriceBookRow:
    """Write an entry anew."""
    scope.require("planner.change_price_book")
    model, check = CHECKS[type(values)]
    entry = scope.get(model, entry.uuid, lock=True)
    columns = _entry_columns(scope, entry.price_book, values, check)
    _refuse_twin(scope, model, columns, entry)
    _set_changed(entry, columns)
    entry.save()
    _touch(entry.price_book)
    return entry


@tenant_write
def remove_entry(*, scope: Scope, entry: PriceBookRow) -> None:
    """Take an entry out of its book."""
    scope.require("planner.change_price_book")
    entry = scope.get(type(entry), entry.uuid, lock=True)
    book = entry.price_book
    entry.delete()
    _touch(book)


@tenant_write
def set_exchange_rate(*, scope: Scope, values: ExchangeRateInput) -> ExchangeRate:
    """State a rate, of today or earlier; one of the same currencies and day is written anew."""
    scope.require("planner.change_price_book")
    lock(scope.organization)
    base, quote = values.base.upper(), values.quote.upper()
    wrong = [name for name, code in (("base", base), ("quote", quote)) if not _is_currency(code)]
    if not wrong and (base == quote or "USD" not in (base, quote)):
        wrong = ["quote"]
    if wrong:
        raise InvalidQuestion(
            [
                FieldError(
                    field=name,
                    value=getattr(values, name),
                    message="Not a usable currency.",
                    allowed=say("two ISO 4217 codes, one of them USD"),
                )
                for name in wrong
            ]
        )
    today = timezone.localdate()
    day = values.rate_date or today
    if fault := day_fault("rate_date", day, today):
        raise InvalidQuestion([fault])
    row, _ = ExchangeRate.objects.update_or_create(
        organization=scope.organization,
        base=base,
        quote=quote,
        rate_date=day,
        defaults={"rate": values.rate, "source": checked_name(values.source, field="source", longest=200)},
    )
    _touch_all(scope)
    return row


@tenant_write
def remove_exchange_rate(*, scope: Scope, rate: ExchangeRate) -> None:
    """Take a rate back."""
    scope.require("planner.change_price_book")
    scope.get(ExchangeRate, rate.uuid, lock=True).delete()
    _touch_all(scope)


def _book_columns(scope: Scope, values: PriceBookInput, book: PriceBook | None) -> dict[str, Any]:
    name = checked_name(values.name)
    if scope.rows(PriceBook).filter(name=name).exclude(pk=book.pk if book is not None else 0).exists():
        raise InvalidQuestion([FieldError(field="name", value=name, message="Another price book has this name.")])
    return {"name": name, "markup_percent": values.markup_percent or 0, "notes": values.notes}


def _entry_columns(scope: Scope, book: PriceBook, values: EntryInput, check: Any) -> dict[str, Any]:
    """The input as columns of its row; raises ``InvalidQuestion`` with every fault."""
    columns = {field.name: getattr(values, field.name) for field in fields(values)}
    columns["price_book"] = book
    faults: list[FieldError] = []
    if values.valid_from and values.valid_until and values.valid_until < values.valid_from:
        faults.append(
            FieldError(
                field="valid_until",
                value=values.valid_until.isoformat(),
                message="Before the first day.",
                allowed=say("{day} or later", day=values.valid_from.isoformat()),
            )
        )
    columns["attachment"] = None
    if values.attachment:
        columns["attachment"] = scope.rows(PriceBookFile).filter(price_book=book, name=values.attachment).first()
        if columns["attachment"] is None:
            known = ", ".join(book.files.values_list("name", flat=True)[:20]) or "no file is uploaded yet"
            faults.append(
                FieldError(field="attachment", value=values.attachment, message="No such file.", allowed=known)
            )
    faults += check(scope, columns)
    if faults:
        raise InvalidQuestion(faults)
    return columns


def _refuse_twin(scope: Scope, model: type[PriceBookRow], columns: dict[str, Any], entry: PriceBookRow | None) -> None:
    if model is not PrivateInstanceType:
        return
    names = ("price_book", "provider", "name", "region", "purchase_option")
    twins = scope.rows(model).filter(**{name: columns[name] for name in names})
    if twins.exclude(pk=entry.pk if entry is not None else 0).exists():
        raise InvalidQuestion(
            [FieldError(field="name", value=columns["name"], message="There is one of this name at this place.")]
        )


def _set_changed(row: PriceBook | PriceBookRow, columns: dict[str, Any]) -> None:
    """Set what differs: 10 for 10.0000 is no change to log."""
    for name, value in columns.items():
        if getattr(row, name) != value:
            setattr(row, name, value)


def _is_currency(code: str) -> bool:
    return len(code) == 3 and code.isascii() and code.isalpha()


def _touch(book: PriceBook) -> None:
    PriceBook.objects.filter(pk=book.pk).update(version=F("version") + 1, updated_at=timezone.now())


def _touch_all(scope: Scope) -> None:
    scope.rows(PriceBook).update(version=F("version") + 1, updated_at=timezone.now())
