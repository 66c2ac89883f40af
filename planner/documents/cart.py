"""A quote as the cart that a buyer's procurement system takes back: flat JSON, and cXML's PunchOutOrderMessage.

One cart item a line, for the whole term: quantity 1 at the line's amount, so that the items sum to the net total to
the cent whatever the line counts. What it counts stands in the description and in extrinsics.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from xml.etree import ElementTree

from planner.documents.printed import line_label
from planner.documents.snapshot import QuoteSnapshot
from planner.documents.wording import wording
from planner.engine.quote_math import Line

CXML_VERSION: Final = "1.2.057"
DOCTYPE: Final = f'<!DOCTYPE cXML SYSTEM "http://xml.cxml.org/schemas/cXML/{CXML_VERSION}/cXML.dtd">'
EACH: Final = "EA"
CLASSIFICATION: Final = "takar"
"""The domain of the categories; no product classification is claimed."""
_CONTROL: Final = {code: None for code in range(32) if code not in (9, 10, 13)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What identifies the two sides and the buyer's visit."""

    buyer_cookie: str = ""
    buyer_domain: str = "NetworkID"
    buyer_identity: str = ""
    supplier_domain: str = "NetworkID"
    supplier_identity: str = ""


def flat_cart(snapshot: QuoteSnapshot) -> list[dict[str, Any]]:
    """One flat object a line, tax apart; raises ``ValueError`` for a quote with an unknown amount."""
    return [_item(number, line, snapshot) for number, line in enumerate(_lines(snapshot), start=1)]


def cxml_cart(snapshot: QuoteSnapshot, visit: Visit) -> str:
    """The PunchOutOrderMessage, as text; the same quote and visit give the same text."""
    root = ElementTree.Element(
        "cXML",
        {
            "payloadID": f"{snapshot.number or 'draft'}.{snapshot.made_at:%Y%m%d%H%M%S%f}@takar",
            "timestamp": snapshot.made_at.isoformat(timespec="seconds"),
            "version": CXML_VERSION,
            "xml:lang": snapshot.language,
        },
    )
    header = ElementTree.SubElement(root, "Header")
    _credential(header, "From", visit.supplier_domain, visit.supplier_identity or snapshot.seller.name)
    _credential(header, "To", visit.buyer_domain, visit.buyer_identity or snapshot.buyer.name)
    sender = _credential(header, "Sender", visit.supplier_domain, visit.supplier_identity or snapshot.seller.name)
    _text(sender, "UserAgent", "Takar")
    message = ElementTree.SubElement(ElementTree.SubElement(root, "Message"), "PunchOutOrderMessage")
    _text(message, "BuyerCookie", visit.buyer_cookie)
    head = ElementTree.SubElement(message, "PunchOutOrderMessageHeader", {"operationAllowed": "create"})
    _money(ElementTree.SubElement(head, "Total"), snapshot.net.term, snapshot)
    if snapshot.tax is not None:
        tax = ElementTree.SubElement(head, "Tax")
        _money(tax, snapshot.tax_total.term, snapshot)
        _description(tax, snapshot.tax.name, snapshot)
    for item in flat_cart(snapshot):
        _item_in(message, item, snapshot)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{DOCTYPE}\n{body}\n'


def _lines(snapshot: QuoteSnapshot) -> list[Line]:
    return [line for line in snapshot.lines if line.category != "tax"]


def _item(number: int, line: Line, snapshot: QuoteSnapshot) -> dict[str, Any]:
    if line.term is None:
        raise ValueError(f"the amount of line {number} is not known")
    words = wording(snapshot.language)
    label = line_label(line, words)
    return {
        "quote": snapshot.number,
        "line_number": number,
        "supplier_part_id": f"{snapshot.number}/{line.id}",
        "description": " - ".join(part for part in (label, line.detail) if part),
        "category": line.category,
        "quantity": "1",
        "unit_of_measure": EACH,
        "unit_price": format(line.term, "f"),
        "currency": snapshot.currency.code,
        "one_time": _plain(line.once),
        "monthly": _plain(line.monthly),
        "months": snapshot.months,
        "counted": _plain(line.quantity),
        "counted_unit": line.unit,
        "counted_unit_price": _plain(line.unit_price),
    }


def _plain(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")


def _item_in(message: ElementTree.Element, item: dict[str, Any], snapshot: QuoteSnapshot) -> None:
    item_in = ElementTree.SubElement(
        message, "ItemIn", {"quantity": item["quantity"], "lineNumber": str(item["line_number"])}
    )
    part = ElementTree.SubElement(item_in, "ItemID")
    _text(part, "SupplierPartID", item["supplier_part_id"])
    _text(part, "SupplierPartAuxiliaryID", snapshot.number)
    detail = ElementTree.SubElement(item_in, "ItemDetail")
    _money(ElementTree.SubElement(detail, "UnitPrice"), Decimal(item["unit_price"]), snapshot)
    _description(detail, item["description"], snapshot)
    _text(detail, "UnitOfMeasure", item["unit_of_measure"])
    _text(detail, "Classification", item["category"], {"domain": CLASSIFICATION})
    for name in ("one_time", "monthly", "months", "counted", "counted_unit", "counted_unit_price"):
        if item[name] not in (None, ""):
            _text(detail, "Extrinsic", str(item[name]), {"name": name})


def _credential(header: ElementTree.Element, name: str, domain: str, identity: str) -> ElementTree.Element:
    side = ElementTree.SubElement(header, name)
    credential = ElementTree.SubElement(side, "Credential", {"domain": _clean(domain)})
    _text(credential, "Identity", identity)
    return side


def _money(parent: ElementTree.Element, amount: Decimal | None, snapshot: QuoteSnapshot) -> None:
    if amount is None:
        raise ValueError("an amount is not known")
    _text(parent, "Money", format(amount, "f"), {"currency": snapshot.currency.code})


def _description(parent: ElementTree.Element, text: str, snapshot: QuoteSnapshot) -> None:
    _text(parent, "Description", text, {"xml:lang": snapshot.language})


def _text(parent: ElementTree.Element, tag: str, text: str, attributes: dict[str, str] | None = None) -> None:
    ElementTree.SubElement(parent, tag, attributes or {}).text = _clean(text)


def _clean(text: str) -> str:
    """Without the characters that XML can't hold."""
    return "".join(character for character in text.translate(_CONTROL) if character not in "\ufffe\uffff")
