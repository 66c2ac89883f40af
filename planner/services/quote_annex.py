"""What a quote says of the plan it rests on: its facts, and statements that a buyer should read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from catalog.display_names import display_names
from planner.documents.snapshot import Band, Fact, Plan, Statement
from planner.engine.answers import Term
from planner.engine.sentences import pattern_of
from planner.models import PlanKind, ScenarioVersion
from planner.services.quote_plan import ANYWHERE, hours_in_all, is_contract, option_of, provider_name, run_hours

OWN_PRICES: Final = pattern_of("Prices are those of the price book {name}, {rest}")
"""Says what the seller pays by: no matter of the buyer's."""


def in_names(text: str) -> str:
    """``text`` with the codes of formats and engines by their names.

    >>> in_names("Hopper 9.0, vllm, fp8_block; meta/model-fp8 read as vllm.")
    'Hopper 9.0, vLLM, FP8 block; meta/model-fp8 read as vLLM.'
    """
    return _codes().sub(lambda found: display_names()[found[0]], text)


@cache
def _codes() -> re.Pattern[str]:
    """Any code that stands by itself, no part of a name."""
    codes = "|".join(map(re.escape, sorted(display_names(), key=len, reverse=True)))
    return re.compile(rf"(?<![\w/.-])(?:{codes})(?![\w/-]|\.\w)", re.ASCII)


def plan_facts(version: ScenarioVersion) -> Plan:
    """The plan as the annex prints it."""
    option = option_of(version)
    band = Band(**option["confidence"])
    return Plan(
        kind="training" if version.scenario.kind == PlanKind.TRAINING else "inference",
        scenario=version.scenario.name,
        version=version.number,
        option=version.option_id,
        # What follows the catalog's own version names the price book.
        catalog_version=version.catalog_version.partition("+")[0],
        engine_version=version.engine_version,
        priced_on=version.priced_on,
        facts=tuple(_facts(version, option)),
        working=tuple(Term(**{**term, "formula": in_names(term["formula"])}) for term in option["working"]),
        assumptions=tuple(in_names(text) for text in version.plan["assumptions"] if not OWN_PRICES.fullmatch(text)),
        confidence=replace(band, basis=in_names(band.basis)),
    )


def statements(version: ScenarioVersion, *, whole: bool = True) -> tuple[Statement, ...]:
    """What the plan's figures assume, in words that every language has; ``whole``: for all hours of the month."""
    option = option_of(version)
    cluster, price = option["cluster"], option["price"]
    said: list[Statement] = []
    hours = hours_in_all(version)
    if hours is None:
        said.append(_say("hours_730" if whole else "hours_listed"))
    else:
        code = "run_hours" if version.scenario.kind == PlanKind.TRAINING else "job_hours"
        said.append(_say(code, hours=f"{hours:f}"))
    if not is_contract(option):
        said.append(_say("list_prices"))
    if cluster["gpus_billed"] != cluster["gpus_used"]:
        said.append(_say("whole_nodes", billed=f"{cluster['gpus_billed']:g}", used=f"{cluster['gpus_used']:g}"))
    if price["is_stale"]:
        said.append(_say("stale_price", date=price["as_of"]))
    if cluster["purchase_option"] == "spot":
        said.append(_say("spot"))
    said.append(_say("availability"))
    return (*said, _say("speed_band"))


def _say(code: str, **values: str) -> Statement:
    return Statement(code=code, values=values)


def _facts(version: ScenarioVersion, option: Mapping[str, Any]) -> list[Fact]:
    plan, cluster = version.plan, option["cluster"]
    question, price = plan["question"], option["price"]
    common = [
        Fact(code="model", text=plan["model"]["name"] or plan["model"]["hf_id"]),
        Fact(code="params", number=float(plan["model"]["total_params"])),
    ]
    rented = [
        Fact(code="provider", text=provider_name(cluster["provider"])),
        *(
            Fact(code=code, text=cluster[code])
            for code in ("region", "country")
            if cluster[code] and ANYWHERE not in cluster[code]
        ),
        Fact(code="instance_type", text=cluster["instance_type"]),
        Fact(code="accelerator", text=cluster["accelerator_name"]),
        Fact(code="purchase_option", text=cluster["purchase_option"]),
        Fact(code="nodes", number=float(cluster["nodes"])),
        Fact(code="gpus_per_node", number=float(cluster["gpus_per_node"])),
        Fact(code="interconnect", text=cluster["interconnect"]),
        Fact(code="layout", text=pools_text(option)),
    ]
    if not is_contract(option):
        rented.append(Fact(code="list_price", number=float(price["usd_per_node_hour"]), unit="USD/h"))
        rented.append(Fact(code="price_read", text=price["as_of"]))
    asked = _training_facts if version.scenario.kind == PlanKind.TRAINING else _serving_facts
    return [*common, *asked(plan, question, option), *rented]


def _serving_facts(plan: Mapping[str, Any], question: Mapping[str, Any], option: Mapping[str, Any]) -> list[Fact]:
    speed, at, job = option["speed"], str(question.get("slo_percentile") or "p95"), option.get("job")
    facts = [
        Fact(code="input_tokens", number=float(question["input_tokens"]), unit="tokens"),
        Fact(code="output_tokens", number=float(question["output_tokens"]), unit="tokens"),
    ]
    if job is None:
        facts.append(Fact(code="mean_load", number=float(plan["mean_requests_s"]), unit="req/s"))
        facts.append(Fact(code="peak_load", number=float(plan["peak_requests_s"]), unit="req/s"))
    else:
        facts.append(Fact(code="job_requests", number=float(job["requests"])))
        facts.append(Fact(code="job_within", number=float(question["offline_hours"]), unit="h"))
    facts.append(Fact(code="weight_format", text=in_names(option["weight_format"])))
    facts.append(Fact(code="kv_format", text=in_names(option["kv_format"])))
    if job is not None:
        # Nobody waits for a job's answers one by one.
        done = Fact(code="job_speed", number=float(speed["capacity_requests_s"]), unit="req/s")
        return [*facts, done, Fact(code="job_hours", number=float(job["hours"]), unit="h")]
    for code, values in (("ttft", speed["ttft_ms"]), ("tpot", speed["tpot_ms"])):
        if values.get(at) is not None:
            facts.append(Fact(code=code, number=float(values[at]), unit="ms", text=at))
    facts.append(Fact(code="capacity", number=float(speed["capacity_requests_s"]), unit="req/s"))
    return facts


def _training_facts(plan: Mapping[str, Any], question: Mapping[str, Any], option: Mapping[str, Any]) -> list[Fact]:
    speed = option["speed"]
    return [
        Fact(code="method", text=str(question["method"]).replace("_", " ")),
        Fact(code="tokens", number=float(plan["tokens"]), unit="tokens"),
        Fact(code="sequence_length", number=float(question["sequence_length"]), unit="tokens"),
        Fact(code="days", number=float(speed["days"]), unit="days"),
        Fact(code="gpu_hours", number=float(speed["gpu_hours"]), unit="h"),
        Fact(code="run_hours", number=float(run_hours(option)), unit="h"),
        Fact(code="mfu", number=float(speed["mfu"])),
    ]


def pools_text(option: Mapping[str, Any]) -> str:
    """``3 x TP2``, or ``2 x TP4 + 3 x TP1 (prefill)`` where pools are split."""
    prefill = option.get("prefill_pool")
    decode = layout_text(option["layout"])
    return f"{decode} + {layout_text(prefill['layout'])} (prefill)" if prefill else decode


def layout_text(layout: Mapping[str, Any]) -> str:
    """``3 x TP2``: replicas and how each is spread."""
    spread = [
        f"{name}{layout[key]}"
        for name, key in (("TP", "tensor"), ("PP", "pipeline"), ("EP", "expert"), ("CP", "context"))
        if layout[key] > 1
    ]
    return f"{layout['replicas']} x {' '.join(spread) or 'TP1'}"
