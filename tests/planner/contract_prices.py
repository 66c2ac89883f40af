"""Prices of an organization's own, as tests put them into its price book."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from catalog.selectors import catalog_snapshot
from planner.engine.errors import InvalidQuestion
from planner.engine.hardware import Offer
from planner.selectors.price_books import snapshot_for
from planner.selectors.scope import Scope
from planner.services.json_input import read_form
from planner.services.price_book_inputs import (
    NegotiatedPriceInput,
    PrivateInstanceTypeInput,
)

QUESTION = {"model": "Llama 3.1 70B", "requests_per_second": 5, "max_options": 20}


def some_offer() -> Offer:
    """A listed price of a whole node."""
    return next(o for o in catalog_snapshot().offers if o.gpu_count == 8 and o.purchase_option == "on_demand")


def negotiated(**raw: Any) -> NegotiatedPriceInput:
    listed = some_offer()
    given = {"provider": listed.provider, "instance_type": listed.instance_type, "amount": "10", "currency": "USD"}
    return read_form(NegotiatedPriceInput, given | raw)


def private(**raw: Any) -> PrivateInstanceTypeInput:
    given = {
        "provider": "Our cellar",
        "name": "node",
        "accelerator": "h100-sxm",
        "gpu_count": "8",
        "fabric": "infiniband",
        "network_gbit_s": "3200",
        "region": "Jakarta",
        "country": "id",
        "amount": "5",
        "currency": "USD",
    }
    return read_form(PrivateInstanceTypeInput, given | raw)


def priced(scope: Scope, offer: Offer) -> Offer:
    return next(o for o in snapshot_for(scope, timezone.localdate()).offers if o.id == offer.id)


def faults(invalid: pytest.ExceptionInfo[InvalidQuestion]) -> dict[str, str]:
    return {error.field: error.message for error in invalid.value.errors}
