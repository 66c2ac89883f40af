"""An answer's codes in words: limits, parts of memory, terms of the working, reasons, confidence."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from frontend.words import field_label, named, plain

LIMITS: dict[str, str | Promise] = {
    "kv_memory": _("KV cache memory"),
    "memory": _("GPU memory"),
    "weights": _("weight memory"),
    "decode_bandwidth": _("decode bandwidth"),
    "bandwidth": _("memory bandwidth"),
    "memory_bandwidth": _("memory bandwidth"),
    "compute": _("compute"),
    "prefill_compute": _("prefill compute"),
    "communication": _("communication"),
    "network": _("network"),
    "overhead": _("per-step overhead"),
    "host_overhead": _("host overhead"),
    "ttft_slo": _("the TTFT limit"),
    "tpot_slo": _("the TPOT limit"),
    "batch_limit": _("the batch limit"),
    "max_num_seqs": _("the batch limit"),
    "queue": _("queueing"),
    "pipeline_bubble": _("pipeline bubbles"),
    "attention": _("attention"),
    "elementwise": _("memory traffic of small kernels"),
    "tensor_comm": _("tensor-parallel communication"),
    "context_comm": _("context-parallel communication"),
    "expert_comm": _("expert-parallel communication"),
    "pipeline_comm": _("pipeline communication"),
    "data_comm": _("data-parallel communication"),
    "recompute": _("recomputation"),
    "optimizer": _("the optimizer step"),
    "straggler": _("stragglers"),
    "demand": _("demand"),
    "one_replica": _("nothing: one replica is enough"),
    "none": _("nothing"),
    "decode": _("decode bandwidth"),
    "prefill": _("prefill compute"),
    "saturated": _("saturation"),
    "host": _("the host"),
    "offload": _("the optimizer on the host"),
    "teacher": _("the teacher's forward pass"),
}
MEMORY_PARTS: dict[str, str | Promise] = {
    "weights": _("Weights"),
    "kv_cache": _("KV cache"),
    "kv": _("KV cache"),
    "activations": _("Activations"),
    "activation": _("Activations"),
    "cuda_graphs": _("CUDA graphs"),
    "graphs": _("CUDA graphs"),
    "runtime": _("Runtime"),
    "overhead": _("Runtime"),
    "non_torch": _("Driver and NCCL"),
    "gradients": _("Gradients"),
    "optimizer": _("Optimizer states"),
    "logits": _("Logits"),
    "driver": _("Kept by the driver"),
    "reserved": _("Reserved by the engine limit"),
    "unreserved": _("Outside the engine limit"),
    "fragmentation": _("Fragmentation"),
    "buffers": _("Buffers"),
    "adapters": _("Adapters"),
    "draft_and_adapters": _("Draft, adapters, copies"),
    "state": _("Recurrent state"),
    "gathered": _("Gathered layers"),
    "free": _("Left free"),
}
GROUPS: dict[str, str | Promise] = {
    "demand": _("Demand"),
    "step_time": _("Time of one step"),
    "prefill": _("Time of a prefill"),
    "ttft": _("Time to first token"),
    "tpot": _("Time per output token"),
    "memory": _("Memory of one GPU"),
    "capacity": _("Capacity"),
    "replicas": _("Replicas"),
    "cost": _("Cost"),
    "flops": _("Work"),
    "goodput": _("Goodput"),
    "training_step": _("Time of one training step"),
    "admission": _("What the KV cache admits"),
    "speculation": _("Speculative decoding"),
    "split": _("Split pools"),
    "job": _("The job"),
    "distribution": _("TTFT and TPOT by percentile"),
    "run": _("The whole run"),
}
TERMS: dict[str, str | Promise] = {
    "peak": _("peak load"),
    "peak of a replica": _("peak load of a replica"),
    "clients a replica": _("clients of a replica"),
    "replicas": _("replicas"),
    "weights": _("weights"),
    "activation_peak": _("activations at their peak"),
    "non_torch": _("context and communication"),
    "cuda_graphs": _("CUDA graphs"),
    "kv_pool": _("KV cache"),
    "unbudgeted": _("outside the budget"),
    "driver": _("kept by the driver"),
    "draft_and_adapters": _("draft, adapters, copies"),
    "concurrency_as_asked": _("requests as asked, at a time"),
    "concurrency_at_longest": _("longest requests, at a time"),
    "kv_cache_tokens": _("KV cache"),
    "log_line": _("start-up log"),
    "prefill_replicas": _("prefill replicas"),
    "pool_ratio": _("prefill to decode GPUs"),
    "kv_transfer": _("KV transfer"),
    "job_hours": _("time of the job"),
    "job_cost": _("cost of the job"),
    "tokens_per_step": _("tokens a step"),
    "step_per_token": _("step time a token"),
    "draft": _("drafting"),
    "adapters": _("adapters"),
    "gemm": _("matrix multiplications"),
    "experts": _("experts"),
    "attention_decode": _("attention, decode"),
    "attention_prefill": _("attention, prefill"),
    "collectives": _("communication"),
    "layers": _("per-layer overhead"),
    "prefill_launch": _("prefill overhead"),
    "step": _("per-step overhead"),
    "sequences": _("per-sequence overhead"),
    "prefill": _("prefill"),
    "iteration": _("shared iteration"),
    "own_iteration": _("own iteration"),
    "prompts_between": _("prompts between"),
    "front_end": _("front end"),
    "waiting": _("waiting"),
    "month": _("a month"),
    "compute": _("matrix multiplications"),
    "attention": _("attention"),
    "elementwise": _("norms, activations, casts"),
    "recompute": _("recomputation"),
    "tensor_comm": _("tensor-parallel communication"),
    "context_comm": _("context-parallel communication"),
    "expert_comm": _("expert-parallel communication"),
    "pipeline_bubble": _("pipeline bubble"),
    "pipeline_comm": _("pipeline communication"),
    "data_comm": _("data-parallel communication"),
    "optimizer": _("optimizer"),
    "overhead": _("overhead"),
    "straggler": _("stragglers"),
    "gradients": _("gradients"),
    "activations": _("activations"),
    "logits": _("logits"),
    "gathered": _("gathered layers"),
    "wall time": _("wall time"),
    "interruptions": _("interruptions"),
    "checkpoint interval": _("checkpoint interval"),
    "checkpoint size": _("checkpoint size"),
    "nodes": _("nodes"),
    "storage": _("checkpoints and data"),
    "lost to failures": _("lost to failures"),
    "offload": _("optimizer on the host"),
    "teacher": _("the teacher's forward pass"),
}
REJECTIONS: dict[str, str | Promise] = {
    "memory": _("Too little memory"),
    "kv_memory": _("No room for the KV cache"),
    "ttft_slo": _("Too slow for the TTFT limit"),
    "tpot_slo": _("Too slow for the TPOT limit"),
    "replicas": _("Too many replicas"),
    "max_nodes": _("Too many nodes"),
    "available_nodes": _("Fewer nodes to be had"),
    "budget": _("Over the budget"),
    "weight_format": _("The weight format is not supported there"),
    "kv_format": _("The KV cache format is not supported there"),
    "no_peak": _("No peak rate is known"),
    "invalid_layout": _("The layout is not possible"),
    "context_too_long": _("Longer than the model's context"),
    "layout": _("No valid layout"),
    "deadline": _("Not done by the deadline"),
    "finish_days": _("Not done by the deadline"),
    "gpus": _("Not this number of GPUs"),
    "framework": _("The framework does not run there"),
    "engine": _("The engine does not run there"),
    "precision": _("No matrix units of this precision"),
    "network_unknown": _("Network speed not stated"),
    "filter_whole_gpus": _("Less than one GPU"),
    "filter_real_offers": _("Averages, not offers"),
}
CONFIDENCE: dict[str, str | Promise] = {
    "exact": _("exact"),
    "calibrated": _("calibrated"),
    "extrapolated": _("extrapolated"),
}
FLAGS: dict[str, str | Promise] = {
    "price_book_discount": _("your discount"),
    "negotiated_price": _("your price"),
    "private_capacity": _("your own capacity"),
    "committed_capacity": _("your commitment"),
}


def _heading(words: Mapping[str, str | Promise], code: str) -> str:
    return str(words.get(code, plain(code).capitalize()))


def limit(code: str) -> str:
    return named(LIMITS, code)


def memory_part(code: str) -> str:
    return _heading(MEMORY_PARTS, code)


def term(name: str) -> str:
    return named(TERMS, name)


def rejection(code: str) -> str:
    """Why options were left out, as a heading; a filter says which."""
    if code.startswith("filter_") and code not in REJECTIONS:
        return gettext("Left out by a filter: %(name)s") % {"name": field_label(code.removeprefix("filter_"))}
    return _heading(REJECTIONS, code)


def group(code: str) -> str:
    return _heading(GROUPS, code)


def flag(code: str) -> str:
    """What is special about a price."""
    return named(FLAGS, code)
