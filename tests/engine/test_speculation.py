"""Speculative decoding: tokens a step, what drafts cost in time and memory, and how the gain fades."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.profiles import serving_profiles
from planner.engine.kv_cache import kv_bytes_per_token_per_gpu
from planner.engine.param_count import count_parameters
from planner.engine.serving import AdmissionLimits, ServingLoad, steady_state
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_regimes import RegimeCoefficients, question_draft, regime_coefficients
from planner.engine.speculation import cache_arch, draft_arch, draft_weight_bytes, low_batch_speed_up, tokens_per_step
from planner.engine.step_time import step_time
from planner.engine.workload import InferenceQuestion
from tests.engine.published_models import published
from tests.engine.serving_cases import LLAMA_8B, candidates

LIMITS = AdmissionLimits(kv_sequences=2000.0, max_num_seqs=2048.0, max_num_batched_tokens=8192.0)
ONE = np.ones(1)


def coefficients(**asked: object) -> ServingCoefficients:
    question = InferenceQuestion(model="llama-8b", **asked)  # type: ignore[arg-type]
    draft = question_draft(question, LLAMA_8B, None)
    return regime_coefficients(LLAMA_8B, draft, candidates(), question, serving_profiles())


def tpot_ms(c: ServingCoefficients, clients: float) -> float:
    load = ServingLoad(kind="closed", input_tokens=512.0, output_tokens=512.0, concurrency=clients)
    return float(steady_state(c, load, LIMITS).tpot_s["mean"][0]) * 1e3


def test_tokens_a_step_and_the_gain_of_a_cheap_draft() -> None:
    assert tokens_per_step(0.8, 4) == pytest.approx(3.3616)
    assert low_batch_speed_up(0.8, 4, 0.05) == pytest.approx(2.80, abs=0.005)
    assert tokens_per_step(0.0, 4) == 1.0


@given(st.floats(0, 1), st.integers(1, 16))
def test_more_acceptance_and_more_drafts_never_yield_fewer_tokens(acceptance: float, drafts: int) -> None:
    tokens = tokens_per_step(acceptance, drafts)
    assert 1.0 <= tokens <= drafts + 1.0
    assert tokens_per_step(acceptance, drafts + 1) >= tokens
    assert tokens_per_step(min(acceptance + 0.1, 1.0), drafts) >= tokens


@pytest.mark.parametrize(("name", "billions"), [("llama-3.1-8b", 0.25), ("llama-3.1-70b", 0.99)])
def test_an_eagle_head_has_the_published_size(name: str, billions: float) -> None:
    """EAGLE's model list: 0.25B for the 8B and 0.99B for the 70B, embedding and head shared."""
    draft = draft_arch("eagle", published(name), None)
    assert draft is not None
    counts = count_parameters(draft)
    own = counts.total - counts.embedding - counts.lm_head
    assert own / 1e9 == pytest.approx(billions, rel=0.01)
    assert float(draft_weight_bytes("eagle", draft, "fp8", ONE, ONE)[0]) == pytest.approx(2 * own, rel=1e-3)


def test_a_multi_token_module_has_the_published_size() -> None:
    """DeepSeek-V3's module: 11.5B parameters of its own, beside a shared embedding and head."""
    draft = draft_arch("mtp", published("deepseek-v3"), None)
    assert draft is not None
    counts = count_parameters(draft)
    assert (counts.total - counts.embedding - counts.lm_head) / 1e9 == pytest.approx(11.5, rel=0.015)


def test_an_eagle_draft_adds_one_layer_to_the_cache() -> None:
    """The logged pool of an 8B with an EAGLE head: 33 layers, 135,168 bytes a token."""
    arch = published("llama-3.1-8b")
    both = cache_arch(arch, draft_arch("eagle", arch, None))
    assert float(kv_bytes_per_token_per_gpu(both, "bf16", 1, 1)) == 135_168
    assert cache_arch(arch, None) is arch


def test_a_lone_sequence_gains_nearly_the_tokens_of_a_step() -> None:
    plain, drafted = coefficients(), coefficients(speculation="ngram", draft_tokens=4, draft_acceptance=0.8)
    gain = tpot_ms(plain, 1) / tpot_ms(drafted, 1)
    assert gain == pytest.approx(3.3616, rel=0.08)
    eagle = coefficients(speculation="eagle", draft_tokens=4, draft_acceptance=0.8)
    assert 1.8 < tpot_ms(plain, 1) / tpot_ms(eagle, 1) < gain


def test_the_gain_fades_with_the_batch() -> None:
    """As long as all decode: of 1,500 whose drafts fill the token budget some 1,100 do, and the others wait for it."""
    plain = coefficients()
    drafted = coefficients(speculation="eagle", draft_tokens=4, draft_acceptance=0.6)
    gains = [tpot_ms(plain, clients) / tpot_ms(drafted, clients) for clients in (1, 64, 512, 1000)]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 1.4
    assert gains[-1] < 1.0


def test_drafts_that_are_never_kept_only_cost() -> None:
    assert tpot_ms(coefficients(speculation="eagle", draft_acceptance=0.0), 8) > tpot_ms(coefficients(), 8)


def test_parts_of_a_speculative_iteration_sum_to_its_time() -> None:
    c = coefficients(speculation="eagle", draft_tokens=3, lora_adapters=5)
    assert isinstance(c, RegimeCoefficients)
    terms = c.iteration_terms(np.array([16.0]), np.array([16_000.0]))
    assert {"draft", "adapters"} <= set(terms)
    assert sum(terms.values()) == pytest.approx(c.iteration_s(np.array([16.0]), np.array([16_000.0])))


def test_a_plain_question_keeps_the_plain_step() -> None:
    c = coefficients()
    assert type(c) is ServingCoefficients
    assert c.iteration_s(8.0, 8e3, 100.0, 5e3) == step_time(c.step, 8.0, 8e3, 100.0, 5e3)
