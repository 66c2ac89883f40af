"""Money: what a number of nodes costs an hour, a month, and for each million tokens.

The node is the billing unit, so cost = price x nodes; a GPU's price is the node's divided by its
GPUs. Sums are Decimal and quantized once, on the line that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from planner.engine.answers import InferenceOption, Price
from planner.engine.hardware import Offer
from planner.engine.training_answers import TrainingOption
from planner.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, TOKENS_PER_MILLION

CENT: Final = Decimal("0.01")
HOURLY: Final = Decimal("0.0001")
"""Hourly prices are shown to a hundredth of a cent, as providers list them."""
PER_MILLION: Final = Decimal("0.000001")
HOURS_STEP: Final = Decimal("0.0001")
"""Hours of a run or a job are rounded once, so that cost = price x hours x nodes can be checked by hand."""
RECOMMENDABLE_AGE_DAYS: Final = 365
"""Older prices are listed and marked, but not recommended: most have moved by a third since (catalog notes)."""


def quantize(amount: Decimal, step: Decimal) -> Decimal:
    """Round half up to ``step``.

    >>> quantize(Decimal("0.125"), CENT)
    Decimal('0.13')
    """
    return amount.quantize(step, rounding=ROUND_HALF_UP)


def price_of(offer: Offer, nodes: int, today: date) -> Price:
    """The price of ``nodes`` nodes: hourly sums are exact, the month is 730 hours of the hour shown."""
    node_hour = offer.price_usd_per_node_hour
    hour = quantize(node_hour * nodes, HOURLY)
    age_days = (today - offer.as_of).days
    return Price(
        usd_per_gpu_hour=quantize(node_hour / Decimal(str(offer.gpu_count)), HOURLY),
        usd_per_node_hour=quantize(node_hour, HOURLY),
        usd_per_hour=hour,
        usd_per_month=quantize(hour * HOURS_PER_MONTH, CENT),
        as_of=offer.as_of,
        age_days=age_days,
        is_stale=age_days > offer.age_limit_days,
        flags=offer.flags,
        source=offer.source,
    )


def recommended(options: Sequence[InferenceOption] | Sequence[TrainingOption]) -> str:
    """Id of the first (cheapest) option whose price is no older than a year, else of the first; "" of none."""
    young = next((option for option in options if option.price.age_days <= RECOMMENDABLE_AGE_DAYS), None)
    if young is not None:
        return young.id
    return options[0].id if options else ""


def usd_per_million_tokens(usd_per_hour: Decimal, tokens_per_s: float) -> Decimal:
    """$/h over tokens per second: ``$/h x 1e6 / (3600 x tok/s)``.

    >>> usd_per_million_tokens(Decimal(24), 10_000 * 0.6)
    Decimal('1.111111')
    """
    if tokens_per_s <= 0:
        raise ValueError("tokens_per_s must be positive")
    return quantize(
        usd_per_hour * TOKENS_PER_MILLION / (SECONDS_PER_HOUR * Decimal(repr(float(tokens_per_s)))), PER_MILLION
    )


def input_output_split(
    usd_per_hour: Decimal, input_share: float, *, input_tokens_per_s: float, output_tokens_per_s: float
) -> tuple[Decimal, Decimal]:
    """$/M input and $/M output of a bill of which input tokens bear ``input_share``.

    Input tokens x $/M input + output tokens x $/M output is the whole bill. With the share of GPU time that prompts
    take this is the handbook's price by time (9.2 a).

    >>> input_output_split(Decimal(24), 0.25, input_tokens_per_s=1000.0, output_tokens_per_s=500.0)
    (Decimal('1.666667'), Decimal('10.000000'))
    """
    input_usd = usd_per_million_tokens(usd_per_hour, input_tokens_per_s) * Decimal(repr(float(input_share)))
    output_usd = usd_per_million_tokens(usd_per_hour, output_tokens_per_s) * Decimal(repr(1.0 - float(input_share)))
    return quantize(input_usd, PER_MILLION), quantize(output_usd, PER_MILLION)
