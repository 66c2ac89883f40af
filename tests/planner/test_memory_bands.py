"""The stored errors of KV pools are those of the logs, each predicted without its own group."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.profiles import serving_memory_profile
from planner.services.validation.memory_fit import held_out_ratios, read_logs


def test_pool_errors_are_those_of_held_out_logs() -> None:
    ratios = held_out_ratios(read_logs())
    own, other = serving_memory_profile("vllm").pool, serving_memory_profile("sglang").pool
    assert own.logs == len(ratios)
    assert (own.own, other.own) == (True, False)
    assert (own.low, own.high) == pytest.approx(tuple(np.quantile(ratios, [0.05, 0.95])), abs=1e-3)
    assert (other.low, other.high) == pytest.approx((min(ratios), max(ratios)), abs=1e-3)
