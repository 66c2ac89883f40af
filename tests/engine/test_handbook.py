"""Worked values of the modelling handbook that no other test file states in its own words."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.model_files import find_model
from planner.engine.kv_cache import logged_tokens
from planner.engine.model_arch import ModelArch
from planner.engine.step_time import TERMS, StepCoefficients, step_terms
from planner.engine.units import GIB


def model(name: str) -> ModelArch:
    arch = find_model(name)
    assert arch is not None
    return arch


@pytest.mark.parametrize(
    ("name", "pool_gib", "tokens"),
    [("qwen2.5-14b", 41.43, 226_240), ("gemma-3-27b", 109.86, 205_696), ("deepseek-v3", 41.60, 635_648)],
)
def test_token_line_of_a_pool(name: str, pool_gib: float, tokens: int) -> None:
    """The pool is printed to 0.01 GiB, so a line is reproduced to that rounding."""
    line = logged_tokens(model(name), "bf16", 1, 1, pool_gib * GIB, max_model_len=4096, by_concurrency=False)
    assert float(line) == pytest.approx(tokens, rel=2.5e-3)


@pytest.mark.parametrize(("tokens", "percent"), [(1, 3.1), (8, 22.4), (32, 63.8), (64, 86.9), (128, 98.3)])
def test_experts_covered_by_a_batch(tokens: int, percent: float) -> None:
    """8 of 256 experts a token: the share of expert weights an iteration streams."""
    idle = StepCoefficients(*[0.0] * len(StepCoefficients._fields))
    one_second = idle._replace(
        pipeline=1.0, attention_ranks=1.0, expert_weights_s=1.0, expert_miss_log=float(np.log1p(-8 / 256))
    )
    experts = step_terms(one_second, float(tokens), 0.0, 0.0, 0.0)[TERMS.index("experts")]
    assert 100 * experts == pytest.approx(percent, abs=0.06)
