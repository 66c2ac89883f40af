"""Fields that a question changes and that nothing reads beside its other fields: each is named in the answer.

Where a field was changed from its default and the values it matters under don't hold, the answer warns. A name that
nothing reads (a draft model, a teacher) is refused by the question's own checks instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from planner.engine.advice import Advice
from planner.engine.field_spec import specs
from planner.engine.model_arch import ModelArch
from planner.engine.sentences import Code, FieldName, joined, say
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """``field`` is not read where ``other`` has one of ``values``."""

    field: str
    other: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """``field`` is not read where ``other`` is given."""

    field: str
    other: str


Rule = Idle | Replaced

NOT_ADAPTERS: Final = ("pretrain", "continued", "full_finetune", "distillation")
INFERENCE_RULES: Final[tuple[Rule, ...]] = (
    Idle(field="draft_tokens", other="speculation", values=("none",)),
    Idle(field="draft_acceptance", other="speculation", values=("none",)),
    Idle(field="batch_delay_ms", other="batching", values=("continuous", "static")),
    Idle(field="kv_transfer_gb_s", other="pools", values=("together",)),
    Idle(field="lora_slots", other="lora_adapters", values=(0,)),
    Idle(field="lora_rank", other="lora_adapters", values=(0,)),
    Idle(field="prefix_kind", other="prefix_cache_hit", values=(0.0,)),
    Idle(field="tpot_ms", other="output_tokens", values=(1,)),
    Replaced(field="max_num_batched_tokens", other="token_budgets"),
    Replaced(field="peak_factor", other="concurrency"),
    Replaced(field="peak_factor", other="offline_requests"),
    Replaced(field="arrival_cv", other="concurrency"),
    Replaced(field="arrival_cv", other="offline_requests"),
)
TRAINING_RULES: Final[tuple[Rule, ...]] = (
    Idle(field="lora_rank", other="method", values=NOT_ADAPTERS),
    Idle(field="pipeline_schedule", other="pipeline_parallel", values=(1,)),
    Idle(field="async_tensor_parallel", other="tensor_parallel", values=(1,)),
)
ONLY_EXPERTS: Final = ("expert_imbalance", "expert_routing")
ONLY_SPOT: Final = "spot_interruptions_per_node_day"


def unused(question: InferenceQuestion | TrainingQuestion, arch: ModelArch) -> tuple[Advice, ...]:
    """A warning for each field that was changed from its default and has no effect beside the others."""
    rules = INFERENCE_RULES if isinstance(question, InferenceQuestion) else TRAINING_RULES
    known = specs(type(question))
    values = {name: getattr(question, name) for name in known}
    why = {rule.field: said for rule in rules if (said := _why_idle(rule, values)) is not None}
    if not any(group.kind == "moe" for group in arch.ffn):
        why |= {
            field: say("Warning: {field} has no effect: the model has no experts.", field=FieldName(field))
            for field in ONLY_EXPERTS
        }
    if "spot" not in question.purchase_options:
        why[ONLY_SPOT] = _says(ONLY_SPOT, "purchase_options", question.purchase_options)
    return tuple(
        Advice(field=field, suggestion=said, is_warning=True)
        for field, said in why.items()
        if field in known and values[field] != known[field][1]
    )


def _why_idle(rule: Rule, values: Mapping[str, Any]) -> str | None:
    """Why the rule's field has no effect; None where it has one."""
    other = values[rule.other]
    if isinstance(rule, Replaced):
        if not other:
            return None
        field, by = FieldName(rule.field), FieldName(rule.other)
        return say("Warning: {field} has no effect beside {other}.", field=field, other=by)
    return _says(rule.field, rule.other, other) if other in rule.values else None


def _says(field: str, other: str, value: Any) -> str:
    codes = value if isinstance(value, tuple) else (value,)
    given = joined((Code(code) for code in codes), ", ") if isinstance(codes[0], str) else int(value)
    return say(
        "Warning: {field} has no effect: {other} is {given}.",
        field=FieldName(field),
        other=FieldName(other),
        given=given,
    )
