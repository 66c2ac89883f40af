"""The four kinds of entries of a price book as pages show them: words, order of fields, columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog.selectors import catalog_snapshot, list_accelerators, list_countries, list_providers
from frontend import words
from frontend.entry import as_text
from planner.models import Commitment, Discount, NegotiatedPrice, PriceBook, PrivateInstanceType
from planner.models.pricebook import PriceBookRow
from planner.selectors.price_books import known_currencies
from planner.selectors.scope import Scope
from planner.services import price_book_inputs as inputs

_TERM = ("valid_from", "valid_until", "reference", "attachment")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKind:
    """One kind of entry."""

    slug: str
    title: str | Promise
    add: str | Promise
    help: str | Promise
    model: type[PriceBookRow]
    input_type: type
    order: tuple[str, ...]
    columns: Callable[[Any], tuple[tuple[str, str], ...]]
    """(column, text) pairs of one entry."""


def price_text(row: Any) -> str:
    """An amount as the contract states it: ``1,234.5 USD a node and hour, with 11 % tax``."""
    unit = f" / {words.choice(row.unit)}" if row.unit else ""
    tax = _(", %(tax)s %% tax inside") % {"tax": as_text(row.tax_percent)} if row.tax_percent else ""
    return f"{row.amount.normalize():,f} {row.currency}{unit}{tax}"


def term_text(row: Any) -> str:
    """When an entry holds."""
    match row.valid_from, row.valid_until:
        case None, None:
            return _("always")
        case first, None:
            return _("from %(first)s") % {"first": first.isoformat()}
        case None, last:
            return _("until %(last)s") % {"last": last.isoformat()}
        case first, last:
            return f"{first.isoformat()} – {last.isoformat()}"


def _discount(row: Discount) -> tuple[tuple[str, str], ...]:
    bought = ", ".join(words.choice(option) for option in row.purchase_options) or _("every purchase option")
    return (
        (_("Provider"), words.provider(row.provider) if row.provider else _("every provider")),
        (_("Discount"), f"{as_text(row.percent)} %"),
        (_("Covers"), bought),
    )


def _place(row: Any) -> str:
    return ", ".join(part for part in (row.region, words.country(row.country)) if part) or _("every region")


def _accelerator(key: str) -> str:
    """Its name; the key of one that is gone from the catalog."""
    known = catalog_snapshot().accelerators.get(key)
    return key if known is None else known.name


def _negotiated(row: NegotiatedPrice) -> tuple[tuple[str, str], ...]:
    return (
        (_("Instance type"), f"{words.provider(row.provider)} {row.instance_type}"),
        (_("Price"), price_text(row)),
        (_("Bought"), words.choice(row.purchase_option)),
        (_("Where"), _place(row)),
    )


def _commitment(row: Commitment) -> tuple[tuple[str, str], ...]:
    what = f"{row.nodes} × {row.instance_type}" if row.kind == Commitment.Kind.CAPACITY else _("spend")
    return (
        (_("Provider"), words.provider(row.provider)),
        (_("What"), what),
        (_("Price"), price_text(row)),
        (_("Where"), _place(row) if row.kind == Commitment.Kind.CAPACITY else ""),
    )


def _private(row: PrivateInstanceType) -> tuple[tuple[str, str], ...]:
    count = _("any number") if row.nodes is None else str(row.nodes)
    return (
        (_("Instance type"), f"{row.provider} {row.name}"),
        (_("Node"), f"{row.gpu_count} × {_accelerator(row.accelerator)}"),
        (_("Nodes"), count),
        (_("Price"), price_text(row)),
        (_("Where"), _place(row)),
    )


KINDS = {
    kind.slug: kind
    for kind in (
        EntryKind(
            slug="discounts",
            title=gettext_lazy("Discounts"),
            add=gettext_lazy("Add a discount"),
            help=gettext_lazy("Off list prices: of one provider, or of every one that has none of its own."),
            model=Discount,
            input_type=inputs.DiscountInput,
            order=("percent", "provider", "purchase_options", *_TERM),
            columns=_discount,
        ),
        EntryKind(
            slug="negotiated-prices",
            title=gettext_lazy("Negotiated prices"),
            add=gettext_lazy("Add a negotiated price"),
            help=gettext_lazy("Of one instance type; no discount is taken off them."),
            model=NegotiatedPrice,
            input_type=inputs.NegotiatedPriceInput,
            order=(
                *("provider", "instance_type", "amount", "currency", "unit", "tax_percent", "purchase_option"),
                *("region", "country", "agreed_on", *_TERM),
            ),
            columns=_negotiated,
        ),
        EntryKind(
            slug="commitments",
            title=gettext_lazy("Commitments"),
            add=gettext_lazy("Add a commitment"),
            help=gettext_lazy("Nodes bought ahead are offers beside the list's, for that many nodes."),
            model=Commitment,
            input_type=inputs.CommitmentInput,
            order=(
                *("kind", "provider", "instance_type", "nodes", "amount", "currency", "unit", "tax_percent"),
                *("purchase_option", "region", "country", *_TERM),
            ),
            columns=_commitment,
        ),
        EntryKind(
            slug="private-instance-types",
            title=gettext_lazy("Private instance types"),
            add=gettext_lazy("Add a private instance type"),
            help=gettext_lazy("On your premises, or of a local provider: only your plans see them."),
            model=PrivateInstanceType,
            input_type=inputs.PrivateInstanceTypeInput,
            order=(
                *("provider", "name", "accelerator", "gpu_count", "nodes", "region", "country", "amount", "currency"),
                *("unit", "tax_percent", "agreed_on", "purchase_option", "link", "fabric", "network_gbit_s"),
                *("vcpus", "ram_gib", "local_disk_gb", *_TERM),
            ),
            columns=_private,
        ),
    )
}


def listed_for(kind: EntryKind, scope: Scope, book: PriceBook) -> dict[str, list[tuple[str, str]]]:
    """What the text fields may well be, to pick from."""
    listed = {
        "currency": [(code, "") for code in known_currencies(scope)],
        "country": list_countries(),
        "attachment": [(file.name, "") for file in book.files.defer("content")],
    }
    if kind.model is PrivateInstanceType:
        return listed | {"accelerator": [(item.key, item.name) for item in list_accelerators()]}
    names = sorted((name, provider) for provider, name in catalog_snapshot().instance_types)
    return listed | {"provider": [(item.code, item.name) for item in list_providers()], "instance_type": names}


def given_of(kind: EntryKind, row: PriceBookRow) -> dict[str, Any]:
    """An entry as its form holds it."""
    given = {name: getattr(row, name) for name in kind.order}
    given["attachment"] = row.attachment.name if row.attachment is not None else ""
    if given.get("tax_percent") == 0:
        given["tax_percent"] = None
    return given
