"""The life of a quote: drafted, changed, issued with the next number, accepted or replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, get_args

from django.db.models import F
from django.utils import timezone

from planner.documents.snapshot import (
    snapshot_from_json,
    snapshot_to_json,
)
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.money import plain_decimal
from planner.engine.sentences import Noun, say
from planner.models import Quote, QuoteCounter, QuoteStatus, ScenarioVersion
from planner.selectors.price_books import price_book_in_use
from planner.selectors.scope import Scope
from planner.services.plan_json import plain
from planner.services.quote_contract import as_contracted
from planner.services.quote_plan import default_months, plan_items
from planner.services.quote_pricing import PricedDraft, known_currency, price_draft
from planner.services.quote_terms import BaseCategory, QuoteTerms
from planner.services.tenancy import Conflict, tenant_write
from planner.services.tiers import require_room
from planner.services.typed_json import read_json, without_turns
from planner.services.webhooks import tell

ALL_PERCENT = 100
BASE_CATEGORIES: tuple[str, ...] = get_args(BaseCategory)
NO_TERMS: Mapping[str, Any] = {}


@tenant_write
def create_quote(
    *,
    scope: Scope,
    version: ScenarioVersion | None = None,
    terms: Mapping[str, Any] = NO_TERMS,
    issue: bool = False,
) -> Quote:
    """A draft of ``terms``; what they leave out, a saved plan gives (lines, term) and the price book (mark-up).

    ``issue`` issues it in the same breath. Raises ``InvalidQuestion``.
    """
    scope.require("planner.change_quote")
    given = dict(terms)
    if version is not None:
        language = "id" if given.get("language") == "id" else "en"
        if "items" not in given:
            compute, *others = plan_items(version, language)
            compute = as_contracted(scope, version, compute)
            given["items"] = [plain(item) for item in (compute, *others)]
            given.setdefault("currency", compute.currency)
        given.setdefault("shares", _mark_up(scope))
        given.setdefault("months", default_months(version))
        given.setdefault("title", version.scenario.name[:160])
    read = checked_terms(given)
    quote = Quote.objects.create(
        organization=scope.organization,
        title=read.title,
        terms=plain(read),
        scenario_version=version,
        created_by=scope.user,
    )
    return _issue(scope, quote) if issue else quote


@tenant_write
def change_quote(*, scope: Scope, quote: Quote, changes: Mapping[str, Any]) -> Quote:
    """Put ``changes`` over a draft's terms, member by member; raises ``Conflict`` for an issued one."""
    scope.require("planner.change_quote")
    quote = _draft(scope, quote)
    read = checked_terms({**quote.terms, **changes})
    quote.terms, quote.title = plain(read), read.title
    quote.save(update_fields=["terms", "title", "updated_at"])
    return quote


@tenant_write
def delete_draft(*, scope: Scope, quote: Quote) -> None:
    """Drop a draft; an issued quote stays for good."""
    scope.require("planner.change_quote")
    _draft(scope, quote).delete()


@tenant_write
def issue_quote(*, scope: Scope, quote: Quote) -> Quote:
    """Freeze a draft and give it the next number of the organization and year.

    Raises ``InvalidQuestion`` naming every unknown price, rate or tax, ``Conflict`` where it is no draft.
    """
    scope.require("planner.change_quote")
    return _issue(scope, _draft(scope, quote))


@tenant_write
def accept_quote(*, scope: Scope, quote: Quote) -> Quote:
    """Note that the buyer has accepted; raises ``Conflict`` unless it is issued and still good."""
    scope.require("planner.change_quote")
    quote = scope.get(Quote, quote.uuid, lock=True)
    status = quote.shown_status(timezone.localdate())
    if status != QuoteStatus.ISSUED:
        raise Conflict(
            "wrong_status",
            say("The quote is {status}.", status=Noun(status)),
            say("an issued quote within its validity"),
        )
    quote.status, quote.accepted_at = QuoteStatus.ACCEPTED, timezone.now()
    quote.save(update_fields=["status", "accepted_at", "updated_at"])
    tell_of_quote("quote.accepted", quote)
    return quote


@tenant_write
def revise_quote(*, scope: Scope, quote: Quote) -> Quote:
    """A draft with the same terms, which takes the quote's place when it is issued; one at a time: the one there is."""
    scope.require("planner.change_quote")
    quote = scope.get(Quote, quote.uuid, lock=True)
    if quote.status != QuoteStatus.ISSUED:
        raise Conflict("wrong_status", say("The quote is {status}.", status=Noun(quote.status)), say("an issued quote"))
    drafted = Quote.objects.filter(replaces=quote, status=QuoteStatus.DRAFT).first()
    return drafted or Quote.objects.create(
        organization=scope.organization,
        title=quote.title,
        terms=quote.terms,
        scenario_version=quote.scenario_version,
        replaces=quote,
        created_by=scope.user,
    )


def checked_terms(raw: Mapping[str, Any]) -> QuoteTerms:
    """Terms as values; raises ``InvalidQuestion`` with every fault."""
    terms = read_json(QuoteTerms, raw)
    codes = [("currency", terms.currency)]
    codes += [(f"items.{place}.currency", item.currency) for place, item in enumerate(terms.items) if item.currency]
    codes += [
        (f"fx.{place}.{side}", getattr(rate, side)) for place, rate in enumerate(terms.fx) for side in ("base", "quote")
    ]
    faults = [
        FieldError(field=field, value=code, message=say("Not a currency."), allowed=say("an ISO 4217 code like USD"))
        for field, code in codes
        if not known_currency(code)
    ]
    faults += _too_much_off(terms)
    if faults:
        raise InvalidQuestion(faults)
    return terms


def _too_much_off(terms: QuoteTerms) -> Iterator[FieldError]:
    """Discounts that together take more than all of a line off: not even a draft offers less than nothing."""
    off: dict[str, Decimal] = dict.fromkeys(BASE_CATEGORIES, Decimal(0))
    for place, share in enumerate(terms.shares):
        if share.category != "discount":
            continue
        for category in share.of or BASE_CATEGORIES:
            off[category] += share.percent
        if max(off[category] for category in share.of or BASE_CATEGORIES) > ALL_PERCENT:
            yield FieldError(
                field=f"shares.{place}.percent",
                value=str(share.percent),
                message=say("More than all of a line is taken off."),
                allowed=say("discounts that take {most} percent of a line off at most", most=ALL_PERCENT),
                code="out_of_range",
            )


def priced(quote: Quote, now: datetime | None = None) -> PricedDraft:
    """What the quote says: frozen once it is issued, else as of ``now`` with what still stands in the way."""
    if quote.snapshot is not None:
        return PricedDraft(snapshot=snapshot_from_json(quote.snapshot), problems=())
    return price_draft(
        organization=quote.organization,
        terms=read_json(QuoteTerms, without_turns(quote.terms)),
        version=quote.scenario_version,
        now=now or quote.updated_at,
        supersedes=quote.replaces.number if quote.replaces else "",
    )


def tell_of_quote(event: str, quote: Quote) -> None:
    """Tell the organization's webhooks: enough to find the quote and to book it, not all that it says."""
    tell(organization=quote.organization, event=event, data=partial(_told, quote))


def _told(quote: Quote) -> dict[str, Any]:
    snapshot = priced(quote).snapshot
    version = quote.scenario_version
    said: dict[str, Any] = {
        "id": str(quote.uuid),
        "address": f"/api/v1/quotes/{quote.uuid}/",
        "number": quote.number,
        "title": quote.title,
        "status": quote.status,
        "currency": snapshot.currency.code,
        "net": snapshot.net.term,
        "tax": snapshot.tax_total.term,
        "total": snapshot.total.term,
        "months": snapshot.months,
        "valid_until": quote.valid_until,
        "issued_at": quote.issued_at,
        "accepted_at": quote.accepted_at,
        "scenario": str(version.scenario.uuid) if version else None,
        "replaces": str(quote.replaces.uuid) if quote.replaces else None,
        "superseded_by": str(quote.superseded_by.uuid) if quote.superseded_by else None,
    }
    return {name: plain(value) for name, value in said.items()}


def _mark_up(scope: Scope) -> list[dict[str, str]]:
    """The mark-up of the price book in use, as a line of its own."""
    book = price_book_in_use(scope)
    if book is None or not book.markup_percent:
        return []
    return [{"category": "mark_up", "percent": format(plain_decimal(book.markup_percent), "f")}]


def _draft(scope: Scope, quote: Quote) -> Quote:
    quote = scope.get(Quote, quote.uuid, lock=True)
    if not quote.is_draft:
        raise Conflict(
            "wrong_status",
            say("The quote is {status}: it can't be changed.", status=Noun(quote.status)),
            say("a draft"),
        )
    return quote


def _issue(scope: Scope, quote: Quote) -> Quote:
    now = timezone.now()
    year = timezone.localdate(now).year
    replaced = scope.get(Quote, quote.replaces.uuid, lock=True) if quote.replaces else None
    if replaced is not None and replaced.status != QuoteStatus.ISSUED:
        raise Conflict(
            "wrong_status", say("The quote to replace is {status}.", status=Noun(replaced.status)), say("a new quote")
        )
    draft = priced(quote, now)
    if draft.problems:
        raise InvalidQuestion(list(draft.problems))
    # Last before the write, so that nobody waits longer than for a few rows; a rollback gives the number back.
    sequence = _next_number(scope, year)
    require_room(scope.organization, "quotes_a_month")
    number = f"{year}-{sequence:04d}"
    frozen = replace(draft.snapshot, number=number, issued_on=timezone.localdate(now))
    quote.status, quote.year, quote.sequence, quote.number = QuoteStatus.ISSUED, year, sequence, number
    quote.snapshot, quote.issued_at, quote.issued_by = snapshot_to_json(frozen), now, scope.user
    quote.valid_until = frozen.valid_until
    quote.save()
    if replaced is not None:
        replaced.status, replaced.superseded_by = QuoteStatus.SUPERSEDED, quote
        replaced.save(update_fields=["status", "superseded_by", "updated_at"])
        tell_of_quote("quote.superseded", replaced)
    tell_of_quote("quote.issued", quote)
    return quote


def _next_number(scope: Scope, year: int) -> int:
    """The next of the organization's numbers; whoever else issues waits until this transaction ends."""
    QuoteCounter.objects.get_or_create(organization=scope.organization, year=year)
    counter = QuoteCounter.objects.select_for_update().get(organization=scope.organization, year=year)
    QuoteCounter.objects.filter(pk=counter.pk).update(last=F("last") + 1)
    return counter.last + 1
