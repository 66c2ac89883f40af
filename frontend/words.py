"""The engine's codes in words: limits, memory parts, groups of terms, choices.

Names of products are facts and come from ``data/display_names.json``, those of providers from the catalog.
"""

from __future__ import annotations

import json
import time
from functools import lru_cache
from pathlib import Path

from babel import Locale
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from catalog.selectors import list_providers
from planner.engine.field_spec import specs
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion

DATA_DIR = Path(__file__).resolve().parent / "data"

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
    "non_torch": _("driver and communication"),
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
CHOICES: dict[str, str | Promise] = {
    "auto": _("Automatic"),
    "on_demand": _("On demand"),
    "spot": _("Spot"),
    "reserved_1y": _("Reserved, 1 year"),
    "reserved_3y": _("Reserved, 3 years"),
    "marketplace": _("Marketplace"),
    "monthly": _("By the month"),
    "capacity_block": _("Capacity block"),
    "mean": _("mean"),
    "pretrain": _("Pre-training"),
    "continued": _("Continued pre-training"),
    "full_finetune": _("Full fine-tuning"),
    "distillation": _("Distillation from a teacher"),
    "packed": _("Packed"),
    "padded": _("Padded"),
    "1f1b": "1F1B",
    "interleaved": _("Interleaved"),
    "zero_bubble": _("Zero bubble"),
    "no": _("No"),
    "yes": _("Yes"),
    "balanced": _("Balanced"),
    "natural": _("As the router decides"),
    "8bit": _("8 bit"),
    "1bit": _("1 bit"),
    "states": _("All states"),
    "none": _("None"),
    "together": _("Together"),
    "split": _("Split"),
    "both": _("Both"),
    "continuous": _("Continuous"),
    "dynamic": _("Dynamic"),
    "static": _("Static"),
    "tensor": _("Tensor parallel"),
    "data": _("Data parallel"),
    "private": _("Private"),
    "shared": _("Shared"),
    "draft_model": _("Draft model"),
    "selective": _("Selective"),
    "full": _("Full"),
    "owner": _("Owner"),
    "planner": _("Planner"),
    "buyer": _("Buyer"),
    "viewer": _("Viewer"),
    "node_hour": _("node and hour"),
    "gpu_hour": _("GPU and hour"),
    "node_month": _("node and month"),
    "capacity": _("Capacity"),
    "spend": _("Spend"),
    "on": _("On"),
    "off": _("Off"),
    "quote.issued": _("Quote issued"),
    "quote.accepted": _("Quote accepted"),
    "quote.superseded": _("Quote superseded"),
    "scenario.saved": _("Scenario saved"),
    "scenario.version_saved": _("Scenario version saved"),
    "ping": _("Trial"),
    "round_robin": _("Round robin"),
    "least_outstanding": _("Least outstanding"),
    "power_of_two": _("Better of two"),
    "least_kv": _("Least KV in use"),
    "prefix_aware": _("By shared prefix"),
    "session_affinity": _("By session"),
    "hpa": "Kubernetes HPA",
    "keda": "KEDA",
    "queue": _("Queue"),
    "concurrency": _("Concurrency"),
    "kv_use": _("KV use"),
    "requests_per_s": _("Requests/s"),
    "utilization": _("Share of time busy"),
}
CONFIDENCE: dict[str, str | Promise] = {
    "exact": _("exact"),
    "calibrated": _("calibrated"),
    "extrapolated": _("extrapolated"),
}
KINDS: dict[str, str | Promise] = {
    "organization": _("organization"),
    "membership": _("membership"),
    "invitation": _("invitation"),
    "serviceaccount": _("service account"),
    "apikey": _("API key"),
    "pricebook": _("price book"),
    "discount": _("discount"),
    "negotiatedprice": _("negotiated price"),
    "commitment": _("commitment"),
    "privateinstancetype": _("private instance type"),
    "pricebookfile": _("price book file"),
    "exchangerate": _("exchange rate"),
    "scenario": _("scenario"),
    "scenariocomment": _("comment"),
    "sharelink": _("link"),
    "quote": _("quote"),
    "webhook": _("webhook"),
}
FLAGS: dict[str, str | Promise] = {
    "price_book_discount": _("your discount"),
    "negotiated_price": _("your price"),
    "private_capacity": _("your own capacity"),
    "committed_capacity": _("your commitment"),
}
STATES: dict[str, str | Promise] = {
    "open": _("open"),
    "accepted": _("accepted"),
    "revoked": _("revoked"),
    "expired": _("expired"),
    "active": _("active"),
    "pending": _("pending"),
    "delivered": _("delivered"),
    "failed": _("given up"),
}
TIERS: dict[str, str | Promise] = {"anonymous": _("Without an account"), "free": _("Free"), "team": _("Team")}
QUOTAS: dict[str, str | Promise] = {
    "members": _("members and open invitations"),
    "price_books": _("price books"),
    "scenarios": _("scenarios"),
    "quotes_a_month": _("quotes issued this month"),
    "keys": _("active API keys"),
    "webhooks": _("webhooks"),
}
RATES: dict[str, str | Promise] = {
    "plan": _("API: plans a minute"),
    "read": _("API: reads and changes a minute"),
    "run": _("API: jobs started a minute"),
    "page_plan": _("pages: plans a minute"),
    "page_run": _("pages: jobs started a minute"),
}
DELIVERY_ERRORS: dict[str, str | Promise] = {
    "address": _("no public address"),
    "url": _("not a usable address"),
    "name": _("the name is not known"),
    "connection": _("no connection"),
    "tls": _("the certificate is not good"),
    "timeout": _("no answer in 10 s"),
    "redirect": _("a redirect, not followed"),
    "status": _("not accepted"),
    "secret": _("the secret can't be read: make a new one"),
}
UNKNOWN = _("unknown")


QUOTE_CATEGORIES: dict[str, str | Promise] = {
    "compute": _("Compute"),
    "networking": _("Networking"),
    "storage": _("Storage"),
    "egress": _("Data transfer out"),
    "licences": _("Licences"),
    "services": _("Services"),
    "support": _("Support"),
    "contingency": _("Contingency"),
    "mark_up": _("Mark-up"),
    "discount": _("Discount"),
    "tax": _("Tax"),
}
QUOTE_UNITS: dict[str, str | Promise] = {
    "node_hour": _("node-hours"),
    "gpu_hour": _("GPU-hours"),
    "node_month": _("node-months"),
    "gpu_month": _("GPU-months"),
    "gib_month": _("GiB-months"),
    "gb": _("GB"),
    "hour": _("hours"),
    "day": _("days"),
    "month": _("months"),
    "piece": _("pieces"),
}
QUOTE_STATUSES: dict[str, str | Promise] = {
    "draft": _("Draft"),
    "issued": _("Issued"),
    "accepted": _("Accepted"),
    "expired": _("Expired"),
    "superseded": _("Superseded"),
}


@lru_cache(maxsize=1)
def _display_names() -> dict[str, str]:
    names: dict[str, str] = json.loads((DATA_DIR / "display_names.json").read_text(encoding="utf-8"))
    return names


def plain(code: str) -> str:
    """A code with no words of its own, readable: ``decode_bandwidth`` -> ``decode bandwidth``."""
    return code.replace("_", " ")


def limit(code: str) -> str:
    return str(LIMITS.get(code, plain(code)))


def memory_part(code: str) -> str:
    return str(MEMORY_PARTS.get(code, plain(code).capitalize()))


def term(name: str) -> str:
    return str(TERMS.get(name, plain(name)))


@lru_cache(maxsize=1)
def _labels() -> dict[str, str]:
    return {
        name: spec.label
        for question_type in (TrainingQuestion, InferenceQuestion)
        for name, (spec, _default) in specs(question_type).items()
    }


def field_label(name: str) -> str:
    """What a form calls a question's field."""
    label = _labels().get(name)
    return gettext(label) if label else name


def rejection(code: str) -> str:
    """Why options were left out, as a heading; a filter says which."""
    if code in REJECTIONS:
        return str(REJECTIONS[code])
    if code.startswith("filter_"):
        return gettext("Left out by a filter: %(name)s") % {"name": field_label(code.removeprefix("filter_"))}
    return plain(code).capitalize()


def group(code: str) -> str:
    return str(GROUPS.get(code, plain(code).capitalize()))


def flag(code: str) -> str:
    """What is special about a price."""
    return str(FLAGS.get(code, plain(code)))


def kind(model: str) -> str:
    """What a row of that model is."""
    return str(KINDS.get(model, model))


def state(code: str) -> str:
    """What has become of an invitation or a key."""
    return str(STATES.get(code, code))


def tier(code: str) -> str:
    """What a tier is called."""
    return str(TIERS[code])


def quota(code: str) -> str:
    """What a tier limits, so many of them."""
    return str(QUOTAS[code])


def rate(code: str) -> str:
    """Which calls a rate counts."""
    return str(RATES[code])


def delivery_error(code: str) -> str:
    """Why a webhook could not be reached."""
    return str(DELIVERY_ERRORS.get(code, plain(code)))


def choice(code: str) -> str:
    """A choice of a field: a product's own name, else words, else the code."""
    return str(CHOICES.get(code) or _display_names().get(code) or code)


@lru_cache(maxsize=2)
def _provider_names(minute: int) -> dict[str, str]:
    """Names by code; read anew each minute, so that a reloaded catalog shows without a restart."""
    return {provider.code: provider.name for provider in list_providers()}


def provider(code: str) -> str:
    """A provider's name, as the catalog has it."""
    return _provider_names(int(time.monotonic() // 60)).get(code, code)


def country(code: str) -> str:
    """A country's name in the page's language; an unknown code as it is."""
    territories = Locale.parse(get_language() or "en", sep="-").territories
    return str(territories.get(code, code)) if code else ""


def quote_category(code: str) -> str:
    """A kind of line of a quote."""
    return str(QUOTE_CATEGORIES.get(code, plain(code)))


def quote_unit(code: str) -> str:
    """What a line counts."""
    return str(QUOTE_UNITS.get(code, plain(code)))


def quote_status(code: str) -> str:
    """Where a quote is in its life."""
    return str(QUOTE_STATUSES.get(code, code))
