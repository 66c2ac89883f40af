"""The figures of docs/performance.md, measured now: each a median over several runs in one warm process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.test import Client
from django.utils.http import urlencode

from planner.services.planning import plan_inference

INFERENCE_QUESTIONS: tuple[Mapping[str, Any], ...] = (
    {"model": "meta-llama/Llama-3.1-8B", "requests_per_second": 20},
    {"model": "meta-llama/Llama-3.1-70B", "requests_per_second": 12, "ttft_ms": 800, "tpot_ms": 40},
    {"model": "deepseek-ai/DeepSeek-V3", "requests_per_second": 5, "input_tokens": 2000, "output_tokens": 800},
    {"model": "openai/gpt-oss-120b", "users": 200_000, "requests_per_user_per_day": 8, "tpot_ms": 30},
)
"""Small dense, large dense with limits, latent attention with experts, sliding windows with experts."""
ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure beside its target."""

    name: str
    value: float
    unit: str
    target: float
    larger_is_better: bool = False

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.target if self.larger_is_better else self.value <= self.target


def measure() -> Iterator[Figure]:
    """Every figure, in the order of docs/performance.md."""
    yield Figure(
        name="whole-catalog inference plan, median of 4 questions",
        value=_median_ms(plan_inference),
        unit="ms",
        target=300,
    )
    client = Client()
    yield Figure(
        name="inference result page, median of 4 questions",
        value=_median_ms(lambda question: _get(client, "/?" + urlencode(question))),
        unit="ms",
        target=1000,
    )


def _median_ms(call: Callable[[Mapping[str, Any]], object]) -> float:
    times = []
    for question in INFERENCE_QUESTIONS:
        call(question)
        for _ in range(ROUNDS):
            start = time.perf_counter()
            call(question)
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def _get(client: Client, path: str) -> None:
    response = client.get(path)
    if response.status_code != 200:
        raise RuntimeError(f"{path} answered {response.status_code}")
