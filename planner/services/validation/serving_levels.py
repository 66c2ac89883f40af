"""The hierarchy that serving constants are fitted in: levels, and how far each may move each constant.

Numbers are a-priori standard deviations of a factor's logarithm. A level moves only constants it can move in
nature: a weight format changes matrix multiplications, not the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GEMM: Final = ("weight_bandwidth", "gemm_compute", "gemm_tile_tokens")
ATTENTION: Final = ("kv_bandwidth", "attention_compute")
EXPERTS: Final = ("expert_bandwidth", "expert_compute", "expert_tile_tokens", "expert_coverage", "expert_layer_s")
HOST: Final = ("layer_s", "step_s", "sequence_s", "prefill_launch_s")
SCHEDULER: Final = ("layer_s", "step_s", "sequence_s")
REQUEST: Final = ("request_s", "cohort", "backlog", "drain")
EXPERT_RATES: Final = EXPERTS[:-1]
COLLECTIVES: Final = ("collective_latency", "collective_bandwidth")
ALL: Final = GEMM + ATTENTION + EXPERTS + HOST + REQUEST + COLLECTIVES

START: Final[Mapping[str, float]] = {
    "weight_bandwidth": 0.85,
    "gemm_compute": 0.65,
    "gemm_tile_tokens": 20.0,
    "kv_bandwidth": 0.8,
    "attention_compute": 0.5,
    "expert_bandwidth": 0.7,
    "expert_compute": 0.13,
    "expert_tile_tokens": 5.0,
    "expert_coverage": 0.9,
    "layer_s": 50e-6,
    "expert_layer_s": 30e-6,
    "step_s": 4e-4,
    "sequence_s": 8e-6,
    "prefill_launch_s": 300e-6,
    "collective_latency": 1.3,
    "collective_bandwidth": 0.8,
    "request_s": 6e-3,
    "cohort": 0.5,
    "backlog": 0.03,
    "drain": 1.05,
}
"""Where a fit starts: kernel measurements (shares of peak), launch gaps and public step timings."""

SPREAD: Final[Mapping[str, float]] = {
    "weight_bandwidth": 0.3,
    "gemm_compute": 0.5,
    "gemm_tile_tokens": 1.0,
    "kv_bandwidth": 0.4,
    "attention_compute": 0.5,
    "expert_bandwidth": 0.4,
    "expert_compute": 1.0,
    "expert_tile_tokens": 1.0,
    "expert_coverage": 0.3,
    "layer_s": 0.6,
    "expert_layer_s": 0.5,
    "step_s": 1.0,
    "sequence_s": 1.2,
    "prefill_launch_s": 1.5,
    "collective_latency": 0.8,
    "collective_bandwidth": 0.8,
    "request_s": 0.5,
    "cohort": 1.0,
    "backlog": 1.0,
    "drain": 0.4,
}
"""How uncertain each constant is before any case is seen."""


def _level(
    attributes: str, scale: float, *groups: tuple[str, ...], **others: float
) -> tuple[tuple[str, ...], dict[str, float]]:
    spread = {name: scale * SPREAD[name] for group in groups for name in group}
    spread |= {name: other * SPREAD[name] for name, other in others.items()}
    return tuple(attributes.split()), spread


LEVELS: Final = (
    _level("", 2.0, ALL),
    _level("engine", 0.5, ALL),
    _level("engine era", 0.4, EXPERTS, HOST, REQUEST, COLLECTIVES, ATTENTION, gemm_compute=0.4, weight_bandwidth=0.4),
    _level(
        "engine build",
        0.3,
        EXPERTS,
        HOST,
        REQUEST,
        COLLECTIVES,
        ATTENTION,
        gemm_compute=0.3,
        weight_bandwidth=0.3,
    ),
    _level(
        "chip",
        0.5,
        GEMM,
        ATTENTION,
        EXPERT_RATES,
        COLLECTIVES,
        layer_s=0.25,
        expert_layer_s=0.2,
        step_s=0.2,
        prefill_launch_s=0.2,
    ),
    _level("chip form", 0.3, GEMM, ATTENTION, COLLECTIVES, step_s=0.3, layer_s=0.2, expert_bandwidth=0.2),
    _level("power", 0.3, gemm_compute=0.6, attention_compute=0.4, expert_compute=0.2),
    _level("card", 0.25, GEMM, ATTENTION, expert_bandwidth=0.2, expert_compute=0.2),
    _level("format", 0.4, GEMM, EXPERTS, layer_s=0.3),
    _level("chip format", 0.4, GEMM, EXPERTS),
    _level("engine format", 0.4, GEMM, EXPERTS, layer_s=0.3, weight_bandwidth=1.0),
    _level(
        "engine chip",
        0.3,
        GEMM,
        ATTENTION,
        EXPERT_RATES,
        COLLECTIVES,
        layer_s=0.2,
        expert_layer_s=0.15,
        step_s=0.2,
        sequence_s=0.2,
        prefill_launch_s=0.2,
    ),
    _level("kind", 0.4, ATTENTION, EXPERTS, layer_s=0.4, step_s=0.3, sequence_s=0.4, prefill_launch_s=0.4),
    _level("engine kind", 0.4, ATTENTION, EXPERTS, HOST),
    _level("engine era kind", 0.3, ATTENTION, EXPERTS, HOST),
    _level("engine kind format", 0.3, EXPERTS),
    _level(
        "engine chip experts",
        0.0,
        expert_compute=0.3,
        expert_bandwidth=0.3,
        expert_layer_s=0.3,
        prefill_launch_s=0.3,
    ),
    _level("mode", 0.3, SCHEDULER, REQUEST),
    _level("engine mode", 0.3, SCHEDULER, REQUEST),
    _level("engine era mode", 0.3, SCHEDULER, REQUEST, weight_bandwidth=0.2, gemm_compute=0.2, kv_bandwidth=0.2),
    _level("engine tp", 0.3, COLLECTIVES, layer_s=0.2),
    _level("link tp", 0.5, COLLECTIVES),
    _level("chip link tp", 0.4, COLLECTIVES),
    _level("engine era chip kind", 0.2, ALL),
    _level("engine era chip kind format", 0.2, GEMM, ATTENTION, EXPERTS, HOST, COLLECTIVES),
)
"""From what all candidates share to what only near twins do."""
