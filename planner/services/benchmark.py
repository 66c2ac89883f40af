"""The figures of docs/performance.md, measured now: each a median over several runs in one warm process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from django.test import Client
from django.utils.http import urlencode

from planner.services.accuracy_benchmark import accuracy_figures
from planner.services.fan_out_benchmark import fan_out_figures
from planner.services.figure import Figure
from planner.services.planning import plan_inference, plan_training
from planner.services.price_book_benchmark import price_book_figures
from planner.services.quote_benchmark import quote_figures
from planner.services.simulation_benchmark import simulation_figures
from planner.services.training_benchmark import training_accuracy_figures

INFERENCE_QUESTIONS: tuple[Mapping[str, Any], ...] = (
    {"model": "meta-llama/Llama-3.1-8B", "requests_per_second": 20},
    {"model": "meta-llama/Llama-3.1-70B", "requests_per_second": 12, "ttft_ms": 800, "tpot_ms": 40},
    {"model": "deepseek-ai/DeepSeek-V3", "requests_per_second": 5, "input_tokens": 2000, "output_tokens": 800},
    {"model": "openai/gpt-oss-120b", "users": 200_000, "requests_per_user_per_day": 8, "tpot_ms": 30},
)
"""Small dense, large dense with limits, latent attention with experts, sliding windows with experts."""
TRAINING_QUESTIONS: tuple[Mapping[str, Any], ...] = (
    {"model": "meta-llama/Llama-3.1-8B", "tokens": 1e12},
    {"model": "meta-llama/Llama-3.1-70B", "tokens": 2e12, "finish_days": 90},
    {"model": "Qwen/Qwen3-30B-A3B", "tokens": 5e11, "gpus": 256},
    {"model": "meta-llama/Llama-3.1-8B", "method": "lora", "tokens": 1e9},
)
"""Pre-training small and large dense, experts on a given fleet, adapters."""
ROUNDS = 5


def measure() -> Iterator[Figure]:
    """Every figure, in the order of docs/performance.md."""
    yield Figure(
        name="whole-catalog inference plan, median of 4 questions",
        value=_median_ms(plan_inference, INFERENCE_QUESTIONS),
        unit="ms",
        target=150,
    )
    yield from price_book_figures(INFERENCE_QUESTIONS)
    yield Figure(
        name="whole-catalog training plan, median of 4 questions",
        value=_median_ms(plan_training, TRAINING_QUESTIONS),
        unit="ms",
        target=500,
    )
    yield Figure(
        name="training layouts sized, timed and priced a second",
        value=_layouts_per_s(TRAINING_QUESTIONS[0]),
        unit="/s",
        target=100_000,
        larger_is_better=True,
    )
    client = Client()
    for name, path, questions in (("inference", "/", INFERENCE_QUESTIONS),):
        yield Figure(
            name=f"{name} result page, median of 4 questions",
            value=_median_ms(partial(_get, client, path), questions),
            unit="ms",
            target=1000,
        )
    yield from accuracy_figures()
    yield from simulation_figures()
    yield from fan_out_figures()
    yield from quote_figures()
    yield from training_accuracy_figures()


def _median_ms(call: Callable[[Mapping[str, Any]], object], questions: Sequence[Mapping[str, Any]]) -> float:
    """Median of the questions, each by its own median: one slow call of a quick question says nothing of the others."""
    medians = []
    for question in questions:
        call(question)
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            call(question)
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return statistics.median(medians) * 1e3


def _layouts_per_s(question: Mapping[str, Any]) -> float:
    """Layouts of one plan over its whole time, on one core."""
    rates = []
    for _ in range(ROUNDS):
        start = time.process_time()
        tried = plan_training(question).layouts_tried
        rates.append(tried / (time.process_time() - start))
    return statistics.median(rates)


def _get(client: Client, path: str, question: Mapping[str, Any]) -> None:
    response = client.get(f"{path}?{urlencode(question)}")
    if response.status_code != 200:
        raise RuntimeError(f"{path} answered {response.status_code} to {question}")
