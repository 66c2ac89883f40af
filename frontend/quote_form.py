"""The form of a draft quote: what was posted as terms, and terms as fields with what is wrong with each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from frontend import quote_words, words
from frontend.forms import allowed_text, error_text
from frontend.typed_numbers import ambiguity, clear_number, plain_number
from planner.engine.errors import FieldError
from planner.engine.quote_math import PRICED_CATEGORIES, SHARE_CATEGORIES

PARTY = ("name", "address", "tax_id", "contact", "email", "reference")
ITEM = ("category", "label", "detail", "source", "quantity", "unit", "unit_price", "currency", "cadence")
SHARE = ("category", "percent", "of", "label")
RATE = ("base", "quote", "rate", "rate_date", "source")
LONG_CHOICES = (("tax", "country"), ("shares", "of"))
"""Of words: they need more room than a code."""
TAX = ("country", "name", "rate", "base_numerator", "base_denominator", "source")
WITHHOLDING = ("name", "rate", "source")
PLAIN = ("title", "language", "currency", "months", "valid_days", "payment_days")
TEXTS = ("assumptions", "exclusions", "terms")
LISTS = {"items": ITEM, "shares": SHARE, "fx": RATE}
WHOLE = frozenset({"months", "valid_days", "payment_days", "base_numerator", "base_denominator"})
DECIMALS = frozenset({"quantity", "unit_price", "percent", "rate"})
UNKNOWN_WHEN_EMPTY = frozenset({"quantity", "unit_price", "payment_days", "rate"})
LEFT_OUT_WHEN_EMPTY = frozenset({"base_numerator", "base_denominator"})
UNITS = ("node_hour", "gpu_hour", "node_month", "gpu_month", "gib_month", "gb", "hour", "day", "month", "piece")
BASES = ("", "compute", "compute networking storage", "services")
MOST_ROWS = 200
_ROW = re.compile(r"(items|shares|fx)-(\d{1,4})-(\w+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One field as shown."""

    name: str
    label: str
    value: str
    error: str
    choices: tuple[tuple[str, str], ...] = ()
    kind: str = "text"
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForm:
    """One line, percentage or rate."""

    place: int
    title: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteForm:
    """The whole form."""

    plain: tuple[Box, ...]
    buyer: tuple[Box, ...]
    seller: tuple[Box, ...]
    items: tuple[RowForm, ...]
    shares: tuple[RowForm, ...]
    fx: tuple[RowForm, ...]
    tax: tuple[Box, ...]
    withholding: tuple[Box, ...]
    texts: tuple[Box, ...]
    unplaced: tuple[str, ...] = field(default=())


def posted_terms(post: Mapping[str, str]) -> dict[str, Any]:
    """What was posted, in the shape of ``QuoteTerms``; an empty section is none."""
    terms: dict[str, Any] = {name: _value(name, post.get(name, "")) for name in PLAIN if name in post}
    for side in ("buyer", "seller"):
        terms[side] = {name: _text(post, f"{side}-{name}") for name in PARTY}
    for section, names in (("tax", TAX), ("withholding", WITHHOLDING)):
        given = {name: _text(post, f"{section}-{name}").strip() for name in names}
        filled = {name: _value(name, text) for name, text in given.items() if text or name not in LEFT_OUT_WHEN_EMPTY}
        terms[section] = (
            filled if any(text for name, text in given.items() if name not in LEFT_OUT_WHEN_EMPTY) else None
        )
    for name in TEXTS:
        terms[name] = [line.strip() for line in _text(post, name).splitlines() if line.strip()]
    rows: dict[str, dict[int, dict[str, str]]] = {section: {} for section in LISTS}
    for key in post:
        found = _ROW.fullmatch(key)
        if found and found[3] in LISTS[found[1]]:
            rows[found[1]].setdefault(int(found[2]), {})[found[3]] = _text(post, key)
    for section, by_place in rows.items():
        terms[section] = [_row(by_place[place]) for place in sorted(by_place)][:MOST_ROWS]
    return terms


def unclear_numbers(terms: Mapping[str, Any]) -> list[FieldError]:
    """The faults of posted numbers that could be read two ways."""
    groups = [(section, terms.get(section) or {}) for section in ("tax", "withholding")]
    groups += [(f"{section}.{place}", row) for section in LISTS for place, row in enumerate(terms.get(section) or ())]
    found = (ambiguity(f"{path}.{name}", str(row[name])) for path, row in groups for name in DECIMALS if name in row)
    return [fault for fault in found if fault is not None]


def build_quote_form(terms: Mapping[str, Any], errors: Sequence[FieldError], countries: Sequence[str]) -> QuoteForm:
    """The form of ``terms`` as stored or as posted."""
    faults = {error.field: f"{error_text(error)} {allowed_text(error)}".strip() for error in reversed(errors)}
    known = set(faults)

    def boxes(prefix: str, path: str, names: Sequence[str], given: Mapping[str, Any]) -> tuple[Box, ...]:
        made = []
        for name in names:
            where = f"{path}.{name}" if path else name
            known.discard(where)
            key = f"{prefix}-{name}" if prefix else name
            made.append(_box(key, name, given.get(name), faults.get(where, ""), prefix, countries))
        return tuple(made)

    def rows(section: str) -> tuple[RowForm, ...]:
        return tuple(
            RowForm(
                place=place,
                title=str(row.get("label") or quote_words.quote_category(str(row.get("category", "")))),
                boxes=boxes(f"{section}-{place}", f"{section}.{place}", LISTS[section], row),
            )
            for place, row in enumerate(terms.get(section) or ())
        )

    form = QuoteForm(
        plain=boxes("", "", PLAIN, terms),
        buyer=boxes("buyer", "buyer", PARTY, terms.get("buyer") or {}),
        seller=boxes("seller", "seller", PARTY, terms.get("seller") or {}),
        items=rows("items"),
        shares=rows("shares"),
        fx=rows("fx"),
        tax=boxes("tax", "tax", TAX, terms.get("tax") or {}),
        withholding=boxes("withholding", "withholding", WITHHOLDING, terms.get("withholding") or {}),
        texts=boxes("", "", TEXTS, terms),
    )
    left = tuple(faults[name] for name in faults if name in known)
    return QuoteForm(**{name: getattr(form, name) for name in QuoteForm.__slots__ if name != "unplaced"}, unplaced=left)


def _text(post: Mapping[str, str], name: str) -> str:
    return str(post.get(name, "")).replace("\x00", "")


def _value(name: str, text: str) -> Any:
    """A posted text in the type that its field wants; what can't be read stays a text, for the reader to refuse."""
    text = text.strip()
    if not text and name in UNKNOWN_WHEN_EMPTY:
        return None
    if name in WHOLE and re.fullmatch(r"\d{1,6}", text, re.ASCII):
        return int(text)
    return plain_number(text) if name in DECIMALS and not ambiguity(name, text) else text


def _row(given: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {name: _value(name, text) for name, text in given.items()}
    if "of" in row:
        row["of"] = str(row["of"]).split()
    return row


def _box(key: str, name: str, value: Any, error: str, prefix: str, countries: Sequence[str]) -> Box:
    text = _shown(value)
    if name in DECIMALS and not error:
        text = clear_number(text)
    return Box(
        name=key,
        label=_label(name, prefix),
        value=text,
        error=error,
        choices=tuple(_choices(name, text, prefix, countries)),
        kind="area" if name in (*TEXTS, "address") else "date" if name == "rate_date" else "text",
        # A choice of words is as long as they are.
        wide=name in (*TEXTS, "address", "label", "detail", "source", "title")
        or (prefix.partition("-")[0], name) in LONG_CHOICES,
    )


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        texts = [str(item) for item in value]
        return "\n".join(texts) if any(" " in text for text in texts) else " ".join(texts)
    return str(value)


def _choices(name: str, value: str, prefix: str, countries: Sequence[str]) -> Iterator[tuple[str, str]]:
    section = prefix.split("-", maxsplit=1)[0]
    match (section, name):
        case ("items", "category"):
            yield from ((code, quote_words.quote_category(code)) for code in PRICED_CATEGORIES)
        case ("shares", "category"):
            yield from ((code, quote_words.quote_category(code)) for code in SHARE_CATEGORIES)
        case ("items", "unit"):
            yield from ((code, quote_words.quote_unit(code)) for code in UNITS)
        case ("items", "cadence"):
            yield from (("monthly", _("each month")), ("once", _("once")))
        case ("shares", "of"):
            bases = BASES if value in BASES else (*BASES, value)
            yield from ((base, _base_words(base)) for base in bases)
        case ("tax", "country"):
            known = [*countries, *([value] if value and value not in countries else [])]
            yield from (("", _("no rule of the catalog")), *((code, words.country(code)) for code in known))
        case (_, "language"):
            yield from (("en", "English"), ("id", "Bahasa Indonesia"))


def _base_words(base: str) -> str:
    return ", ".join(quote_words.quote_category(code) for code in base.split()) if base else _("all lines before it")


def _label(name: str, prefix: str) -> str:
    labels = {
        "title": _("Title"),
        "language": _("Language of the documents"),
        "currency": _("Currency"),
        "months": _("Term in months"),
        "valid_days": _("Valid for days"),
        "payment_days": _("Payable within days"),
        "name": _("Name"),
        "address": _("Address"),
        "tax_id": _("Tax number"),
        "contact": _("Contact"),
        "email": _("Email"),
        "reference": _("Reference"),
        "category": _("Kind"),
        "label": _("Item"),
        "detail": _("Detail"),
        "source": _("Source and date"),
        "quantity": _("Quantity"),
        "unit": _("Unit"),
        "unit_price": _("Unit price"),
        "cadence": _("Charged"),
        "percent": _("Percent"),
        "of": _("Taken of"),
        "base": _("One unit of"),
        "quote": _("is in"),
        "rate": _("Rate, as a fraction") if prefix in ("tax", "withholding") else _("Rate"),
        "rate_date": _("Day of the rate"),
        "country": _("Country"),
        "base_numerator": _("on parts"),
        "base_denominator": _("of parts"),
        "assumptions": _("Further assumptions, one a line"),
        "exclusions": _("Further exclusions, one a line"),
        "terms": _("Further terms, one a line"),
    }
    return labels[name]
