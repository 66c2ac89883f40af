"""Worked money of the handbook."""

from decimal import Decimal

import pytest

from planner.engine.cost import input_output_split, usd_per_million_tokens


def test_utilization_adjusted_cost_of_a_million_tokens() -> None:
    assert usd_per_million_tokens(Decimal(24), 10_000 * 0.6) == Decimal("1.111111")


def test_prefill_and_decode_priced_by_their_time() -> None:
    """Handbook 9.2: 20k tok/s prefill, 2.5k tok/s decode, $24/h: 0.333 / 2.667, 3:1 mix 0.917."""
    total_s = 3 / 20_000 + 1 / 2_500
    input_usd, output_usd = input_output_split(
        Decimal(24),
        3 / 20_000 / total_s,
        input_tokens_per_s=3 / total_s,
        output_tokens_per_s=1 / total_s,
    )
    assert float(input_usd) == pytest.approx(0.333, abs=5e-4)
    assert float(output_usd) == pytest.approx(2.667, abs=5e-4)
    assert float(3 * input_usd + output_usd) / 4 == pytest.approx(0.917, abs=5e-4)


def test_no_throughput_has_no_price() -> None:
    with pytest.raises(ValueError, match="positive"):
        usd_per_million_tokens(Decimal(24), 0)
