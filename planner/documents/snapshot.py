"""What a quote says, frozen: the one value that every document is made from, and its JSON.

The JSON's shape is named by ``schema``. Money, quantities and rates are decimal texts, dates ISO texts; a value that
isn't known is null. Words that depend on the language are codes (``Statement``, ``Fact``), so that one snapshot reads
in every language; what people wrote stays as they wrote it.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from planner.engine.answers import Term
from planner.engine.money import Currency
from planner.engine.quote_math import Amounts, Line

SCHEMA: Final = "takar.quote/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """Who sells or who buys."""

    name: str
    address: str = ""
    """Lines as on an envelope."""
    tax_id: str = ""
    """NPWP, VAT number ..."""
    contact: str = ""
    email: str = ""
    reference: str = ""
    """Its own number for this business: a request, a purchase order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FxRate:
    """One unit of ``base`` is ``rate`` units of ``quote``."""

    base: str
    quote: str
    rate: Decimal
    rate_date: date
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tax:
    """The sales tax of the tax line: ``rate`` on ``base_numerator / base_denominator`` of the net price."""

    name: str
    country: str
    """ISO 3166 alpha-2, or empty."""
    rate: Decimal
    """As a fraction."""
    base_numerator: int
    base_denominator: int
    valid_from: date | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withholding:
    """Tax that the buyer keeps back and pays itself: stated, not subtracted from the total."""

    name: str
    rate: Decimal
    """As a fraction of the net price."""
    amounts: Amounts
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence: a code with its values, or the words as written."""

    code: str = ""
    values: dict[str, str]
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One property of what is planned: a code for its name, and a number with its unit or a text."""

    code: str
    number: float | None = None
    unit: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """How far to trust the speed: in 90 % of measured cases it was ``low`` to ``high`` times the stated one."""

    kind: Literal["exact", "calibrated", "extrapolated"]
    low: float
    high: float | None
    """Null: no measured case bounds it."""
    basis: str
    """The nearest measurements, in words."""
    cases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan behind the quote."""

    kind: Literal["inference", "training"]
    scenario: str
    """Name of the saved plan, and its version."""
    version: int
    option: str
    """Id of the option in that plan."""
    catalog_version: str
    engine_version: str
    priced_on: date
    facts: tuple[Fact, ...]
    """What was asked and what answers it."""
    working: tuple[Term, ...]
    """Every term of the sums, by group."""
    assumptions: tuple[str, ...]
    """The engine's own."""
    confidence: Band | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteSnapshot:
    """A quote, whole."""

    schema: Literal["takar.quote/1"] = SCHEMA
    number: str
    """Empty while it is a draft."""
    title: str
    language: str
    """Of the documents, where none is asked for: en or id."""
    made_at: datetime
    """When it was issued, or a draft last changed: the time in the documents."""
    issued_on: date | None
    valid_until: date | None
    supersedes: str
    """Number of the quote that this one replaces, or empty."""
    seller: Party
    buyer: Party
    currency: Currency
    months: int
    """The term."""
    lines: tuple[Line, ...]
    net: Amounts
    tax_total: Amounts
    total: Amounts
    tax: Tax | None
    withholding: Withholding | None
    fx: tuple[FxRate, ...]
    """Every rate used, with its date and source."""
    plan: Plan | None
    assumptions: tuple[Statement, ...]
    exclusions: tuple[Statement, ...]
    terms: tuple[Statement, ...]
    """Payment, delivery, and whatever else was agreed."""

    @property
    def is_draft(self) -> bool:
        """True until it has a number."""
        return not self.number


def snapshot_to_json(snapshot: QuoteSnapshot) -> dict[str, Any]:
    """The snapshot as plain JSON values, members in the order of the fields."""
    document: dict[str, Any] = _plain(snapshot)
    return document


def snapshot_from_json(document: Mapping[str, Any]) -> QuoteSnapshot:
    """The snapshot of that JSON; raises ``ValueError`` for another schema or a missing member."""
    if document.get("schema") != SCHEMA:
        raise ValueError(f"schema is {document.get('schema')!r}, not {SCHEMA!r}")
    try:
        snapshot: QuoteSnapshot = from_plain(QuoteSnapshot, document)
    except (KeyError, TypeError, ArithmeticError) as error:
        raise ValueError(f"not a quote: {error!r}") from error
    return snapshot


def render_json(snapshot: QuoteSnapshot) -> bytes:
    """The snapshot as a JSON file: UTF-8, two spaces, members in a fixed order."""
    return (json.dumps(snapshot_to_json(snapshot), ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    match value:
        case Decimal():
            return format(value, "f")
        case date():
            return value.isoformat()
        case tuple() | list():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case _:
            return value


@lru_cache(maxsize=64)
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def from_plain(hint: Any, value: Any) -> Any:
    """``value`` from JSON as the type ``hint`` says: dataclasses, tuples, Decimal and dates; others as they are."""
    if isinstance(hint, type) and is_dataclass(hint):
        optional = {field.name for field in fields(hint) if {field.default, field.default_factory} != {MISSING}}
        # A member with a default may be younger than what was written.
        return hint(
            **{
                name: from_plain(inner, value[name])
                for name, inner in _hints(hint).items()
                if name in value or name not in optional
            }
        )
    if get_origin(hint) in (Union, types.UnionType):
        inner = [argument for argument in get_args(hint) if argument is not types.NoneType]
        # Of several types JSON tells by itself which one it is.
        return value if value is None or len(inner) > 1 else from_plain(inner[0], value)
    if get_origin(hint) is tuple:
        return tuple(from_plain(get_args(hint)[0], item) for item in value)
    if hint is Decimal:
        return Decimal(value)
    if hint in (date, datetime):
        return hint.fromisoformat(value)
    if hint is float:
        # JSON has no infinity: an unbounded figure of a plan is written as null.
        return math.inf if value is None else float(value)
    return value
