"""Ways out when nothing fits: which limit binds, by how much, and numbers that would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, isfinite

from planner.engine.advice import Advice, FieldValue
from planner.engine.answers import Rejection
from planner.engine.engine_support import ANYWHERE, EngineSupport
from planner.engine.field_spec import specs
from planner.engine.offers import Shape
from planner.engine.sentences import Code, FieldName, Noun, say
from planner.engine.workload import SERVING_ENGINES, InferenceQuestion

MOST = 3
MORE_TIME = 10.0
"""Times the hours of a job that no million replicas finish in them."""
FOUR_BIT = ("awq_int4", "gguf_q4_k_m")
EIGHT_BIT_CACHE = ("fp8", "int8")
FITTING = frozenset({"budget", "ttft_slo", "tpot_slo"})
"""Reasons that only options meet whose memory holds the model on the nodes that were asked for."""
TRIED = FITTING | {"max_nodes", "replicas", "memory", "kv_memory"}
"""Reasons found by sums: some option got as far as those."""


def advise(
    question: InferenceQuestion,
    rejections: Sequence[Rejection],
    shapes: Sequence[Shape],
    support: Mapping[str, EngineSupport],
) -> tuple[Advice, ...]:
    """Up to three changes, each with the number that the closest rejected option needed, and none that the engine
    can't do.

    ``shapes`` are the nodes that pass the filters; ``support`` says by engine what it runs on.
    """
    closest: dict[str, Rejection] = {}
    for rejection in rejections:
        best = closest.get(rejection.code)
        if best is None or _excess(rejection) < _excess(best):
            closest[rejection.code] = rejection
    ways = [*_ways(question, closest, support.get(question.engine, ANYWHERE))]
    refused = closest.get("engine") or closest.get("weight_format") or closest.get("layout")
    if refused is not None and not TRIED & closest.keys():
        ways += _elsewhere(question, refused, shapes, support)
    return tuple(ways)[:MOST]


def _excess(rejection: Rejection) -> float:
    if rejection.value is None or rejection.limit is None:
        return float("inf")
    return rejection.value - rejection.limit


def _ways(question: InferenceQuestion, closest: dict[str, Rejection], support: EngineSupport) -> Iterator[Advice]:
    allowed = specs(InferenceQuestion)
    for code, field, unit in (
        ("budget", "budget_usd_per_month", "USD a month"),
        ("ttft_slo", "ttft_ms", "ms"),
        ("tpot_slo", "tpot_ms", "ms"),
        ("max_nodes", "max_nodes", "nodes"),
    ):
        found = closest.get(code)
        if found is None or found.value is None or not isfinite(found.value):
            continue
        value, most = ceil(found.value), allowed[field][0].maximum
        if most is None or value <= most:
            yield Advice(
                field=field,
                suggestion=say(
                    "Raise {field} to {value:,} {unit}: that much is needed by the closest ({subject}).",
                    field=FieldName(field),
                    value=value,
                    unit=Noun(unit),
                    subject=found.subject,
                ),
                value=value,
            )
    yield from _looser(question, closest, support)
    slow = closest.get("ttft_slo")
    if question.batching != "continuous" and slow is not None:
        suggestion = say("Continuous batching makes no request wait for a batch.")
        yield Advice(field="batching", suggestion=suggestion, value="continuous")
    if question.offline_hours is not None and "replicas" in closest:
        longest = allowed["offline_hours"][0].maximum or question.offline_hours
        hours = min(question.offline_hours * MORE_TIME, longest)
        suggestion = say(
            "Raise {field} to {value:,g} h: fewer replicas then do.", field=FieldName("offline_hours"), value=hours
        )
        yield Advice(field="offline_hours", suggestion=suggestion, value=float(f"{hours:g}"))
    short = closest.get("memory") or closest.get("kv_memory")
    # Where something does fit, memory is not what stands in the way.
    if short is None or FITTING & closest.keys():
        return
    smaller = _smaller_weights(support)
    if smaller and question.weight_formats != smaller:
        yield Advice(
            field="weight_formats",
            suggestion=say(
                "4-bit weights take a quarter of 16-bit ones; {subject} came closest.", subject=short.subject
            ),
            value=smaller,
        )
    cache = next((name for name in EIGHT_BIT_CACHE if support.knows_cache(name)), "")
    if cache and question.kv_format == "auto":
        yield Advice(field="kv_format", suggestion=say("An 8-bit KV cache holds twice the tokens."), value=cache)
    if question.accelerators:
        yield Advice(field="accelerators", suggestion=say("Let larger accelerators in."))
    if question.tensor_parallel is not None and "layout" not in closest:
        yield Advice(field="tensor_parallel", suggestion=say("Let the search choose the layout."))


def _smaller_weights(support: EngineSupport) -> tuple[str, ...]:
    """The 4-bit format that the engine loads, as a list of one; empty where it has none."""
    return tuple(name for name in FOUR_BIT if support.knows_weights(name))[:1]


def _looser(question: InferenceQuestion, closest: dict[str, Rejection], support: EngineSupport) -> Iterator[Advice]:
    """What was pinned and left nothing to try; nothing where some option was tried."""
    if TRIED & closest.keys():
        return
    if "layout" in closest:
        for field in ("tensor_parallel", "pipeline_parallel", "expert_parallel"):
            if getattr(question, field) is not None:
                yield Advice(field=field, suggestion=say("Let the search choose the layout."))
        if question.attention_ranks != "auto":
            yield Advice(field="attention_ranks", suggestion=say("Let the search choose the layout."), value="auto")
        if question.redundant_experts:
            suggestion = say("Without copies of experts other expert groups do.")
            yield Advice(field="redundant_experts", suggestion=suggestion, value=0)
    if "weight_format" in closest:
        other = _smaller_weights(support) if question.weight_formats == ("auto",) else ("auto",)
        yield Advice(field="weight_formats", suggestion=closest["weight_format"].reason, value=other)
    if "kv_format" in closest:
        yield Advice(field="kv_format", suggestion=closest["kv_format"].reason, value="auto")
    if "no_peak" in closest and question.accelerators:
        yield Advice(field="accelerators", suggestion=closest["no_peak"].reason)


def _elsewhere(
    question: InferenceQuestion, refused: Rejection, shapes: Sequence[Shape], support: Mapping[str, EngineSupport]
) -> Iterator[Advice]:
    """Other engines that run on these nodes, each at its newest version; else other nodes."""
    for engine in SERVING_ENGINES:
        runs = any(support.get(engine, ANYWHERE).runs_on(shape.accelerator) for shape in shapes)
        if runs and engine != question.engine and refused.code != "layout":
            suggestion = say("{reason} {engine} runs there.", reason=refused.reason, engine=Code(engine))
            also: dict[str, FieldValue] = {"engine_version": None} if question.engine_version else {}
            yield Advice(field="engine", suggestion=suggestion, value=engine, also=also)
    if question.accelerators:
        suggestion = say("Leave {field} open: other hardware may do.", field=FieldName("accelerators"))
        yield Advice(field="accelerators", suggestion=suggestion)
