"""Answers as values, realistic in shape, for tests of what is shown: the numbers are invented."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from planner.engine.advice import Advice
from planner.engine.answers import (
    Admission,
    Cluster,
    Confidence,
    GpuMemory,
    InferenceOption,
    InferencePlan,
    Layout,
    ModelSummary,
    Price,
    Rejection,
    ServingSpeed,
    Term,
)
from planner.engine.training_answers import TrainingOption, TrainingPlan, TrainingSpeed

PRICED_ON = date(2026, 11, 29)
MODEL = ModelSummary(
    name="Llama 3.1 70B",
    hf_id="meta-llama/Llama-3.1-70B",
    total_params=70_553_706_496,
    active_params=70_553_706_496,
    layers=80,
    attention="GQA, 64 heads over 8 KV heads",
    native_format="bf16",
    kv_bytes_per_token=327_680,
    max_context=131_072,
)
WORKING = (
    Term(group="demand", name="mean load", value=10.0, unit="req/s", formula="as asked"),
    Term(group="demand", name="peak load", value=20.0, unit="req/s", formula="10 req/s x peak factor 2"),
    Term(group="step_time", name="weights", value=11.2, unit="ms", formula="35.3 GB / (0.66 x 4.8 TB/s)"),
    Term(group="step_time", name="KV cache", value=4.6, unit="ms", formula="14.6 GB / (0.66 x 4.8 TB/s)"),
    Term(group="step_time", name="all-reduce", value=2.9, unit="ms", formula="160 x 18 us"),
    Term(group="memory", name="weights", value=33.9, unit="GiB", formula="70.55e9 x 8 bit / TP 2"),
    Term(group="memory", name="KV cache", value=81.4, unit="GiB", formula="what utilization 0.9 leaves"),
    Term(group="cost", name="month", value=31536.0, unit="USD", formula="8 GPU x 5.40 USD/h x 730 h"),
)
# accelerator, provider, region, country, GPUs a node, nodes, USD per GPU-hour, TTFT ms, TPOT ms, age, on the front
SHAPES: tuple[tuple[str, str, str, str, int, int, str, float, float, int, bool], ...] = (
    ("H200 SXM", "nebius", "eu-north1", "FI", 8, 1, "5.40", 620, 27, 13, True),
    ("H100 SXM", "runpod", "secure", "", 8, 2, "3.99", 770, 34, 20, False),
    ("H100 SXM", "lambda", "us-west-1", "US", 8, 2, "3.29", 760, 33, 40, False),
    ("A100 SXM 80GB", "vast", "any", "", 8, 3, "1.70", 1650, 71, 31, True),
    ("MI300X", "verda", "fin-01", "FI", 8, 1, "4.95", 910, 38, 60, True),
    ("B200", "azure", "southeastasia", "SG", 8, 1, "9.93", 290, 14, 164, True),
    ("B200", "nebius", "us-central1", "US", 8, 1, "7.15", 300, 15, 13, True),
    ("L40S", "aws", "us-east-1", "US", 8, 6, "1.86", 1900, 88, 131, False),
)


def inference_option(number: int = 0, **changes: Any) -> InferenceOption:
    """One accepted option, the ``number``-th of ``SHAPES``."""
    name, provider, region, country, per_node, nodes, rate, ttft, tpot, age, front = SHAPES[number % len(SHAPES)]
    gpus = per_node * nodes
    hourly = Decimal(rate) * gpus
    option = InferenceOption(
        id=f"{provider}-{region}-{name}-{nodes}x{per_node}-tp2".lower().replace(" ", "-"),
        cluster=Cluster(
            provider=provider,
            instance_type=f"{name.split()[0].lower()}-{per_node}g",
            region=region,
            country=country,
            purchase_option="on_demand",
            accelerator=name.lower().replace(" ", "-"),
            accelerator_name=name,
            gpus_per_node=per_node,
            nodes=nodes,
            gpus_used=gpus - 2,
            gpus_billed=gpus,
            interconnect="NVLink in the node, InfiniBand between nodes",
        ),
        layout=Layout(tensor=2, pipeline=1, expert=1, context=1, replicas=gpus // 2 - 1),
        prefill_pool=None,
        weight_format="fp8",
        kv_format="bf16",
        max_num_batched_tokens=8192,
        price=Price(
            usd_per_gpu_hour=Decimal(rate),
            usd_per_node_hour=Decimal(rate) * per_node,
            usd_per_hour=hourly,
            usd_per_month=hourly * 730,
            as_of=date(2026, 11, 16),
            age_days=age,
            is_stale=age > 90,
            flags=("estimated",) if age > 150 else (),
            source="provider price page",
        ),
        usd_per_million_input=Decimal("0.11"),
        usd_per_million_output=Decimal("0.61"),
        usd_per_million_tokens=Decimal("0.88"),
        speed=ServingSpeed(
            ttft_ms={"mean": ttft * 0.6, "p50": ttft * 0.5, "p90": ttft * 0.9, "p95": ttft, "p99": ttft * 1.4},
            tpot_ms={"mean": tpot * 0.8, "p50": tpot * 0.8, "p90": tpot * 0.95, "p95": tpot, "p99": tpot * 1.2},
            output_tok_s=4220.0,
            output_tok_s_per_gpu=4220.0 / gpus,
            peak_requests_s=20.0,
            capacity_requests_s=29.0,
            concurrency=131.0,
            max_concurrency=412.0,
            utilization=0.69,
            kv_cache_used=0.47,
        ),
        memory=GpuMemory(
            capacity_gib=139.8,
            parts_gib={"weights": 33.9, "kv_cache": 81.4, "activations": 2.1, "runtime": 8.4},
            free_gib=14.0,
        ),
        admission=Admission(
            request_tokens=1366,
            concurrency=390.5,
            max_model_len=131_072,
            concurrency_at_max_model_len=4.07,
            kv_cache_tokens=533_440,
            log_lines=(
                "GPU KV cache size: 533,440 tokens",
                "Maximum concurrency for 131,072 tokens per request: 4.07x",
            ),
            confidence=Confidence(kind="exact", low=1.0, high=1.0, basis="the engine's allocator", cases=55),
        ),
        limit="decode_bandwidth",
        working=WORKING,
        confidence=Confidence(
            kind="calibrated", low=0.88, high=1.12, basis="34 measured cases: Hopper, vLLM, dense, fp8", cases=34
        ),
        ttft_confidence=Confidence(
            kind="calibrated", low=0.7, high=1.5, basis="34 measured cases: Hopper, vLLM, dense, fp8", cases=34
        ),
        tpot_confidence=Confidence(
            kind="calibrated", low=0.9, high=1.1, basis="34 measured cases: Hopper, vLLM, dense, fp8", cases=34
        ),
        memory_confidence=Confidence(kind="calibrated", low=0.99, high=1.01, basis="55 start-up logs", cases=55),
        job=None,
        on_pareto_front=front,
    )
    return replace(option, **changes)


def plan_factory(count: int = len(SHAPES), **changes: Any) -> InferencePlan:
    """An inference plan with ``count`` options, cheapest first."""
    options = tuple(inference_option(n, id=f"option-{n}") for n in range(count))
    question: dict[str, object] = {
        "model": MODEL.name,
        "input_tokens": 1155,
        "output_tokens": 211,
        "slo_percentile": "p95",
        "ttft_ms": 2000.0,
        "tpot_ms": 100.0,
    }
    plan = InferencePlan(
        question=question,
        catalog_version="2026-11-29",
        engine_version="0.1.0",
        priced_on=PRICED_ON,
        model=MODEL,
        peak_requests_s=20.0,
        mean_requests_s=10.0,
        options=tuple(sorted(options, key=lambda option: option.price.usd_per_month)),
        options_found=count,
        options_tried=9412,
        rejections=(
            Rejection(
                subject="1x L4 (24 GB), TP1, bf16",
                code="weights_do_not_fit",
                reason="Weights need more memory than one GPU has.",
                value=131.4,
                limit=22.0,
                unit="GiB",
                count=1210,
            ),
            Rejection(
                subject="A10G x8",
                code="tpot_slo",
                reason="TPOT p95 is above the limit.",
                value=131.0,
                limit=100.0,
                unit="ms",
                count=87,
            ),
        ),
        advice=(),
        assumptions=("Prompts are not cached.", "Gaps between requests are Poisson."),
    )
    return replace(plan, **changes)


def empty_plan_factory(**changes: Any) -> InferencePlan:
    """A plan that nothing fits, with three ways out."""
    advice = (
        Advice(field="ttft_ms", suggestion="Allow a TTFT of 900 ms: 4 options then fit.", value=900),
        Advice(field="weight_formats", suggestion="Serve in FP8: 12 options then fit.", value=("fp8",)),
        Advice(field="input_tokens", suggestion="Cut prompts to 600 tokens: 2 options then fit.", value=600),
    )
    return plan_factory(0, options_found=0, advice=advice, **changes)


def training_option(number: int = 0, **changes: Any) -> TrainingOption:
    """One accepted training cluster, the ``number``-th of ``SHAPES``."""
    base = inference_option(number)
    days = base.speed.ttft_ms["p95"] / 40
    hours = days * 24
    option = TrainingOption(
        id=base.id,
        cluster=base.cluster,
        layout=Layout(tensor=1, pipeline=1, expert=1, context=1, replicas=base.cluster.gpus_used),
        sharding="zero3",
        recompute="selective",
        micro_batch=1,
        grad_accumulation=8,
        global_batch_tokens=4_194_304,
        price=base.price,
        usd_total=base.price.usd_per_hour * Decimal(round(hours, 2)),
        usd_per_million_tokens=Decimal("0.31"),
        speed=TrainingSpeed(
            step_s=7.31,
            steps=23_842,
            tokens_per_s=573_000.0,
            tokens_per_s_per_gpu=11_937.0,
            tflops_per_gpu=402.0,
            mfu=0.407,
            mfu_convention="non-causal",
            days=days,
            gpu_hours=hours * base.cluster.gpus_billed,
        ),
        memory=GpuMemory(
            capacity_gib=139.8,
            parts_gib={"weights": 1.9, "gradients": 3.7, "optimizer": 11.2, "activations": 48.5, "runtime": 6.0},
            free_gib=68.5,
        ),
        limit="compute",
        working=WORKING[:5],
        confidence=Confidence(kind="calibrated", low=0.9, high=1.15, basis="21 measured cases: Hopper", cases=21),
        on_pareto_front=base.on_pareto_front,
    )
    return replace(option, **changes)


def training_plan_factory(count: int = len(SHAPES), **changes: Any) -> TrainingPlan:
    """A training plan with ``count`` options, cheapest first."""
    options = tuple(training_option(n, id=f"option-{n}") for n in range(count))
    base = plan_factory(0)
    plan = TrainingPlan(
        question={"model": MODEL.name, "method": "continued", "finish_days": 60.0},
        catalog_version=base.catalog_version,
        engine_version=base.engine_version,
        priced_on=PRICED_ON,
        model=MODEL,
        tokens=1e11,
        global_batch_tokens=4_194_304,
        flops_total=5.8e21,
        options=tuple(sorted(options, key=lambda option: option.usd_total)),
        options_found=count,
        options_tried=2210,
        rejections=base.rejections[:1],
        advice=(),
        assumptions=("Goodput 0.95.",),
    )
    return replace(plan, **changes)
