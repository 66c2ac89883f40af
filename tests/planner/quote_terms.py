"""Questions, and terms of quotes, that tests of saved plans and quotes share."""

from __future__ import annotations

from typing import Any

from planner.models import Quote, Role
from planner.services.quotes import create_quote
from tests.planner.organizations import Tenant

QUESTION: dict[str, Any] = {
    "model": "Llama 3.1 8B",
    "requests_per_second": 5,
    "input_tokens": 1000,
    "output_tokens": 200,
    "ttft_ms": 2000,
    "tpot_ms": 100,
    "accelerators": ["h100-sxm", "h200-sxm"],
    "max_options": 20,
}
TRAINING: dict[str, Any] = {
    "model": "Llama 3.1 8B",
    "method": "continued",
    "tokens": 2_000_000_000,
    "sequence_length": 8192,
    "finish_days": 60,
    "accelerators": ["h100-sxm"],
    "max_options": 5,
}
ITEM = {"category": "compute", "label": "Node", "quantity": "730", "unit": "node_hour", "unit_price": "53.52"}
BUYER = {"name": "Acme Pte. Ltd."}
TERMS: dict[str, Any] = {"title": "Capacity", "buyer": BUYER, "items": [ITEM]}
RUPIAH = {"base": "USD", "quote": "IDR", "rate": "16300", "rate_date": "2026-11-28", "source": "our bank"}


def issued(tenant: Tenant, **terms: Any) -> Quote:
    """``TERMS`` with others, issued."""
    return create_quote(scope=tenant.scope(Role.BUYER), terms=TERMS | terms, issue=True)
