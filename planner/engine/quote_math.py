"""The arithmetic of a quote: lines in one currency, and totals that are the sums of the lines shown.

Money is Decimal. Each amount is rounded once, half up, to the currency's smallest unit, on the line that
shows it; a percentage is taken of the rounded lines it stands under, and the term is the one-time amount
plus whole months of the monthly one. So every total is exactly the sum of what is printed above it.
A price or quantity that is not known is ``None``: it makes every sum that needs it ``None``, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Final, Literal

from planner.engine.money import EXACT, Currency, plain_decimal, to_amount, to_unit_price

Category = Literal[
    "compute",
    "networking",
    "storage",
    "egress",
    "licences",
    "services",
    "support",
    "contingency",
    "mark_up",
    "discount",
    "tax",
]
Cadence = Literal["once", "monthly"]

PRICED_CATEGORIES: Final[tuple[Category, ...]] = (
    "compute",
    "networking",
    "storage",
    "egress",
    "licences",
    "services",
)
"""Lines with a quantity and a unit price, in the order they are printed."""
SHARE_CATEGORIES: Final[tuple[Category, ...]] = ("support", "contingency", "mark_up", "discount")
"""Lines that are a percentage of the lines before them, in the order they are taken and printed."""
CATEGORIES: Final[tuple[Category, ...]] = (*PRICED_CATEGORIES, *SHARE_CATEGORIES, "tax")
PERCENT: Final = Decimal(100)
DISCOUNT: Final = "discount"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What is sold: so many units at a unit price, once or each month."""

    id: str
    category: Category
    cadence: Cadence
    quantity: Decimal | None
    """None: not known."""
    unit: str
    """A code: node_hour, gib_month, gb, gpu_month, piece ..."""
    unit_price: Decimal | None
    """In the quote's currency, before tax; None: not known."""
    label: str = ""
    detail: str = ""
    source: str = ""
    """Where the price is from, and its date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A percentage of the lines printed before it: support, contingency, mark-up or discount."""

    id: str
    category: Category
    percent: Decimal
    """Positive; a discount is subtracted."""
    of: tuple[Category, ...] = ()
    """Categories it is taken of; empty: all lines before it."""
    label: str = ""
    detail: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxRate:
    """A sales tax: ``rate`` on ``base_numerator / base_denominator`` of the net price."""

    id: str
    name: str
    rate: Decimal
    """As a fraction: 0.12."""
    base_numerator: int = 1
    base_denominator: int = 1
    source: str = ""
    """Legal basis and since when it holds."""

    @property
    def percent(self) -> Decimal:
        """The rate in percent, of its own base.

        >>> TaxRate(id="tax", name="PPN", rate=Decimal("0.1200"), base_numerator=11, base_denominator=12).percent
        Decimal('12')
        """
        return plain_decimal(self.rate * PERCENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One printed line; amounts in the quote's currency, None where something isn't known."""

    id: str
    category: Category
    label: str
    """Empty: the category's own name in the document's language."""
    detail: str
    source: str
    quantity: Decimal | None
    unit: str
    unit_price: Decimal | None
    percent: Decimal | None
    """Of a share or a tax; None on a line with a unit price. Where a tax is on a part of the net price, ``detail`` is
    that part, as ``x 11/12``."""
    of: tuple[str, ...]
    """Categories a percentage is taken of."""
    cadence: str
    """once, monthly, or both for a percentage."""
    once: Decimal | None
    monthly: Decimal | None
    term: Decimal | None
    """once + months x monthly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """A sum, by when it is due."""

    once: Decimal | None
    monthly: Decimal | None
    term: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A quote's lines and their sums; ``net`` is before tax."""

    lines: tuple[Line, ...]
    net: Amounts
    tax: Amounts
    total: Amounts
    unknown: tuple[str, ...]
    """Ids of the lines whose price or quantity isn't known."""


def price_quote(
    items: Sequence[Item], shares: Sequence[Share], tax: TaxRate | None, currency: Currency, months: int
) -> Priced:
    """All lines in the order they are printed, and their sums over a term of ``months``.

    Items come by category, then support, contingency, mark-up and discount, each of the lines before it, then
    the tax on the net sum. Raises ``ValueError`` for a term below one month.
    """
    if months < 1:
        raise ValueError("months must be at least 1")
    with localcontext(EXACT):
        lines = [
            _item_line(item, currency, months)
            for category in PRICED_CATEGORIES
            for item in items
            if item.category == category
        ]
        for category in SHARE_CATEGORIES:
            # All of one category have the same base: two discounts don't discount each other.
            before = tuple(lines)
            lines += [_share_line(share, before, currency, months) for share in shares if share.category == category]
        net = _sum(lines, currency)
        if tax is not None:
            lines.append(_tax_line(tax, net, currency, months))
        return Priced(
            lines=tuple(lines),
            net=net,
            tax=_sum((line for line in lines if line.category == "tax"), currency),
            total=_sum(lines, currency),
            unknown=tuple(line.id for line in lines if line.percent is None and line.term is None),
        )


def _item_line(item: Item, currency: Currency, months: int) -> Line:
    price = None if item.unit_price is None else to_unit_price(item.unit_price, currency)
    amount = None if price is None or item.quantity is None else to_amount(item.quantity * price, currency)
    zero = to_amount(Decimal(0), currency)
    is_monthly = item.cadence == "monthly"
    return _line(
        item,
        quantity=item.quantity,
        unit=item.unit,
        unit_price=price,
        cadence=item.cadence,
        once=zero if is_monthly else amount,
        monthly=amount if is_monthly else zero,
        months=months,
    )


def _share_line(share: Share, before: Sequence[Line], currency: Currency, months: int) -> Line:
    base = _sum((line for line in before if not share.of or line.category in share.of), currency)
    factor = (-share.percent if share.category == DISCOUNT else share.percent) / PERCENT
    return _line(
        share,
        percent=share.percent,
        of=share.of,
        cadence="both",
        once=_part(base.once, factor, currency),
        monthly=_part(base.monthly, factor, currency),
        months=months,
    )


def _tax_line(tax: TaxRate, net: Amounts, currency: Currency, months: int) -> Line:
    # With a sign before it: a spreadsheet takes "11/12" alone for a day.
    part = "" if tax.base_numerator == tax.base_denominator else f"x {tax.base_numerator}/{tax.base_denominator}"
    share = Share(id=tax.id, category="tax", percent=tax.percent, label=tax.name, detail=part, source=tax.source)
    factor = tax.rate * tax.base_numerator / tax.base_denominator
    return _line(
        share,
        percent=tax.percent,
        cadence="both",
        once=_part(net.once, factor, currency),
        monthly=_part(net.monthly, factor, currency),
        months=months,
    )


def _part(base: Decimal | None, factor: Decimal, currency: Currency) -> Decimal | None:
    return None if base is None else to_amount(base * factor, currency)


def _line(
    of_what: Item | Share,
    *,
    cadence: str,
    once: Decimal | None,
    monthly: Decimal | None,
    months: int,
    quantity: Decimal | None = None,
    unit: str = "",
    unit_price: Decimal | None = None,
    percent: Decimal | None = None,
    of: tuple[str, ...] = (),
) -> Line:
    return Line(
        id=of_what.id,
        category=of_what.category,
        label=of_what.label,
        detail=of_what.detail,
        source=of_what.source,
        quantity=quantity,
        unit=unit,
        unit_price=unit_price,
        percent=percent,
        of=of,
        cadence=cadence,
        once=once,
        monthly=monthly,
        term=None if once is None or monthly is None else once + months * monthly,
    )


def _sum(lines: Iterable[Line], currency: Currency) -> Amounts:
    rows = tuple(lines)
    return Amounts(
        once=_total((line.once for line in rows), currency),
        monthly=_total((line.monthly for line in rows), currency),
        term=_total((line.term for line in rows), currency),
    )


def _total(amounts: Iterable[Decimal | None], currency: Currency) -> Decimal | None:
    total = to_amount(Decimal(0), currency)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
