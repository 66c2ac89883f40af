"""Figures of an answer that has them."""

from __future__ import annotations

from planner.engine.answers import InferenceOption


def tpot_ms(option: InferenceOption, at: str) -> float:
    """TPOT of an option that answers with more than one token."""
    value = option.speed.tpot_ms[at]
    assert value is not None
    return value


def output_usd(option: InferenceOption) -> float:
    """USD a million output tokens, of the same."""
    assert option.usd_per_million_output is not None
    return float(option.usd_per_million_output)
