"""The working of one inference option's memory: its parts, and what the KV cache admits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from planner.engine.answers import Admission, Term
from planner.engine.inference_ranking import Sized
from planner.engine.sentences import Code, say
from planner.engine.units import GIB
from planner.engine.workload import InferenceQuestion

ALWAYS_SHOWN: Final = ("weights", "kv_pool")
"""Parts of memory that are a part even where they take nothing."""


def memory_terms(sized: Sized, row: int, question: InferenceQuestion) -> Iterator[Term]:
    """The parts of one GPU's memory, in GiB."""
    memory = sized.evaluated.memory
    candidates = sized.evaluated.candidates
    weight_format = candidates.weight_formats[candidates.weight_format[row]]
    budget = question.max_num_batched_tokens if candidates.token_budget is None else candidates.token_budget[row]
    split = f"TP{candidates.tensor[row]} x PP{candidates.pipeline[row]} x EP{candidates.expert[row]}"
    pool = say(
        "{share:g} x {capacity:,.1f} GiB that the engine sees - the parts above",
        share=question.memory_utilization,
        capacity=float(memory.capacity[row]) / GIB,
    )
    if memory.is_lowered(question.memory_utilization)[row]:
        pool = say(
            "{capacity:,.1f} GiB that the engine sees - {rest:,.1f} GiB that come on top of its budget "
            "- the parts above",
            capacity=float(memory.capacity[row]) / GIB,
            rest=float(memory.unbudgeted[row]) / GIB,
        )
    for name, column, formula in (
        ("weights", memory.weights, _weights_formula(weight_format, split)),
        ("draft_and_adapters", memory.resident, say("draft model, adapter slots, copies of experts")),
        (
            "activation_peak",
            memory.activation_peak,
            say("at {tokens:,} batched tokens", tokens=int(budget)),
        ),
        ("non_torch", memory.non_torch, say("context, communication and library workspaces")),
        ("cuda_graphs", memory.cuda_graphs, say("captured graphs the engine budgets for")),
        ("kv_pool", memory.kv_pool, pool),
        ("unbudgeted", memory.unbudgeted, say("comes on top of the engine's budget")),
        ("driver", memory.driver, say("kept by the driver: the engine sees the rest of the card")),
    ):
        gib = float(column[row]) / GIB
        if gib or name in ALWAYS_SHOWN:
            yield Term(group="memory", name=name, value=gib, unit="GiB", formula=formula)


def _weights_formula(weight_format: str, split: str) -> str:
    return say(
        "every tensor in {format} or its recipe's 16 bit, split over {split}", format=Code(weight_format), split=split
    )


def admission_terms(question: InferenceQuestion, admission: Admission) -> Iterator[Term]:
    """What the KV cache admits, and how the engine says so when it starts."""
    for name, value, tokens in (
        ("concurrency_as_asked", admission.concurrency, admission.request_tokens),
        ("concurrency_at_longest", admission.concurrency_at_max_model_len, admission.max_model_len),
    ):
        yield Term(
            group="admission",
            name=name,
            value=value,
            unit="requests",
            formula=say("KV pool / blocks of a request of {tokens:,} tokens, held whole", tokens=tokens),
        )
    yield Term(
        group="admission",
        name="kv_cache_tokens",
        value=float(admission.kv_cache_tokens),
        unit="tokens",
        formula=say("as the engine counts them when it starts"),
    )
    counted = ((float(admission.kv_cache_tokens), "tokens"), (admission.concurrency_at_max_model_len, "requests"))
    for line, (value, unit) in zip(admission.log_lines, counted, strict=False):
        yield Term(
            group="admission",
            name="log_line",
            value=value,
            unit=unit,
            formula=say('the engine logs "{line}"', line=line),
        )
