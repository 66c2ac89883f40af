"""Quotes as snapshots, realistic in shape; the numbers and names are invented."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from planner.documents.snapshot import (
    Band,
    Fact,
    FxRate,
    Party,
    Plan,
    QuoteSnapshot,
    Statement,
    Tax,
    Withholding,
)
from planner.engine.money import Currency, to_amount
from planner.engine.quote_math import Amounts, Item, Share, TaxRate, price_quote
from tests.factories import WORKING

USD = Currency(code="USD", minor_digits=2)
IDR = Currency(code="IDR", minor_digits=0)
JPY = Currency(code="JPY", minor_digits=0)
SELLER = Party(
    name="PT Contoh Komputasi Nusantara",
    address="Jl. Jenderal Sudirman Kav. 52-53\nJakarta Selatan 12190\nIndonesia",
    tax_id="01.234.567.8-012.000",
    contact="Dewi Lestari",
    email="dewi@contoh.example",
)
BUYER = Party(
    name="Acme Analytics Pte. Ltd.",
    address="1 Raffles Place #20-01\nSingapore 048616",
    tax_id="201912345K",
    contact="Wei Ling Tan",
    reference="RFQ-2026-0817",
)
ITEMS = (
    Item(
        id="compute-1",
        category="compute",
        cadence="monthly",
        quantity=Decimal(730),
        unit="node_hour",
        unit_price=Decimal("43.20"),
        label="1 node of 8x H200 SXM, on demand",
        detail="h200-8g at Nebius, eu-north1 (Finland)",
        source="list price, Nebius price page, read on 2026-11-16",
    ),
    Item(
        id="networking-1",
        category="networking",
        cadence="monthly",
        quantity=Decimal(1),
        unit="month",
        unit_price=Decimal("310"),
        label="Private interconnect, 10 Gbit/s",
        source="quotation of the carrier, 2026-11-20",
    ),
    Item(
        id="storage-1",
        category="storage",
        cadence="monthly",
        quantity=Decimal("263"),
        unit="gib_month",
        unit_price=Decimal("0.071"),
        label="Weights",
        detail="2 copies of 131.4 GiB",
    ),
    Item(
        id="egress-1",
        category="egress",
        cadence="monthly",
        quantity=Decimal("88.2"),
        unit="gb",
        unit_price=Decimal("0.05"),
        label="Answers to users",
    ),
    Item(
        id="licences-1",
        category="licences",
        cadence="monthly",
        quantity=Decimal(8),
        unit="gpu_month",
        unit_price=Decimal("375"),
        label="Serving software, enterprise support",
    ),
    Item(
        id="services-1",
        category="services",
        cadence="once",
        quantity=Decimal(6),
        unit="day",
        unit_price=Decimal("950"),
        label="Set-up and load test",
    ),
)
SHARES = (
    Share(id="support-1", category="support", percent=Decimal(6), of=("compute", "networking")),
    Share(id="contingency-1", category="contingency", percent=Decimal(5)),
    Share(id="discount-1", category="discount", percent=Decimal("7.5"), label="Discount for a 12 months' commitment"),
)
TAX = Tax(
    name="PPN",
    country="ID",
    rate=Decimal("0.12"),
    base_numerator=11,
    base_denominator=12,
    valid_from=date(2025, 1, 1),
    source="PMK 131/2024, since 2025-01-01",
)
PLAN = Plan(
    kind="inference",
    scenario="Support chat, Q1 launch",
    version=3,
    option="nebius-eu-north1-h200-1x8-tp2",
    catalog_version="2026-11-29-3f2a91c0",
    engine_version="1",
    priced_on=date(2026, 11, 29),
    facts=(
        Fact(code="model", text="Llama 3.1 70B"),
        Fact(code="params", number=70_553_706_496.0),
        Fact(code="input_tokens", number=1155.0, unit="tokens"),
        Fact(code="output_tokens", number=211.0, unit="tokens"),
        Fact(code="mean_load", number=10.0, unit="req/s"),
        Fact(code="peak_load", number=20.0, unit="req/s"),
        Fact(code="provider", text="Nebius"),
        Fact(code="region", text="eu-north1"),
        Fact(code="country", text="FI"),
        Fact(code="instance_type", text="h200-8g"),
        Fact(code="accelerator", text="H200 SXM"),
        Fact(code="purchase_option", text="on_demand"),
        Fact(code="nodes", number=1.0),
        Fact(code="gpus_per_node", number=8.0),
        Fact(code="interconnect", text="NVLink in the node, InfiniBand between nodes"),
        Fact(code="layout", text="3 x TP2"),
        Fact(code="weight_format", text="fp8"),
        Fact(code="ttft", number=620.0, unit="ms", text="p95"),
        Fact(code="tpot", number=27.0, unit="ms", text="p95"),
        Fact(code="capacity", number=29.0, unit="req/s"),
    ),
    working=WORKING,
    assumptions=("Prompts are not cached.", "Gaps between requests are Poisson."),
    confidence=Band(
        kind="calibrated", low=0.88, high=1.12, basis="34 measured cases: Hopper, vLLM, dense, fp8", cases=34
    ),
)


def quote(
    *,
    items: Sequence[Item] = ITEMS,
    shares: Sequence[Share] = SHARES,
    currency: Currency = USD,
    months: int = 12,
    tax: Tax | None = TAX,
    **changes: Any,
) -> QuoteSnapshot:
    """An issued quote of these lines."""
    rate = None
    if tax is not None:
        rate = TaxRate(
            id="tax-1",
            name=tax.name,
            rate=tax.rate,
            base_numerator=tax.base_numerator,
            base_denominator=tax.base_denominator,
            source=tax.source,
        )
    priced = price_quote(items, shares, rate, currency, months)
    held = Decimal("0.02")

    def part(amount: Decimal | None) -> Decimal | None:
        return None if amount is None else to_amount(amount * held, currency)

    values: dict[str, Any] = {
        "number": "2026-0042",
        "title": "GPU capacity for the support chat",
        "language": "en",
        "made_at": datetime(2026, 11, 29, 9, 30, tzinfo=UTC),
        "issued_on": date(2026, 11, 29),
        "valid_until": date(2026, 12, 29),
        "supersedes": "2026-0031",
        "seller": SELLER,
        "buyer": BUYER,
        "currency": currency,
        "months": months,
        "lines": priced.lines,
        "net": priced.net,
        "tax_total": priced.tax,
        "total": priced.total,
        "tax": tax,
        "withholding": Withholding(
            name="PPh 23",
            rate=held,
            amounts=Amounts(once=part(priced.net.once), monthly=part(priced.net.monthly), term=part(priced.net.term)),
            source="Income tax law, article 23",
        ),
        "fx": (
            FxRate(
                base="EUR",
                quote="USD",
                rate=Decimal("1.1567"),
                rate_date=date(2026, 8, 14),
                source="ECB reference rate",
            ),
        ),
        "plan": PLAN,
        "assumptions": (
            Statement(code="hours_730", values={}),
            Statement(code="list_prices", values={}),
            Statement(code="whole_nodes", values={"billed": "8", "used": "6"}),
            Statement(code="speed_band", values={}),
            Statement(values={}, text="The buyer's documents are in English and Indonesian."),
        ),
        "exclusions": (
            Statement(code="no_people", values={}),
            Statement(code="no_duties", values={}),
        ),
        "terms": (
            Statement(code="payment_days", values={"days": "30"}),
            Statement(code="invoice_monthly", values={}),
            Statement(code="availability", values={}),
        ),
    }
    return QuoteSnapshot(**(values | changes))


def long_quote(count: int, **changes: Any) -> QuoteSnapshot:
    """A quote of ``count`` priced lines in every category."""
    items = [
        Item(
            id=f"{base.category}-{n}",
            category=base.category,
            cadence=base.cadence,
            quantity=base.quantity,
            unit=base.unit,
            unit_price=base.unit_price,
            label=f"{base.label} ({n})",
            detail=base.detail if n % 3 else "",
            source=base.source if n % 2 else "",
        )
        for n in range(1, count + 1)
        for base in (ITEMS[n % len(ITEMS)],)
    ]
    return quote(items=items, **changes)
