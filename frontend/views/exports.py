"""The options of a plan as a table file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from defusedcsv import csv
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.forms import allowed_text, error_text
from frontend.kinds import KINDS, plan_for
from frontend.query import read_query
from frontend.tenancy import active_scope
from frontend.views.guard import limited, needs_catalog
from planner.engine.answers import InferenceOption, InferencePlan
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.services.audit import note_export

PLACE = ("rank", "provider", "region", "country", "instance_type", "accelerator", "purchase_option")
SIZE = ("nodes", "gpus_per_node", "gpus_used", "gpus_billed")
LAYOUT = ("tensor_parallel", "pipeline_parallel", "expert_parallel", "context_parallel", "replicas")
PRICE = ("usd_per_gpu_hour", "usd_per_node_hour", "usd_per_hour", "usd_per_month")
ORIGIN = ("price_as_of", "price_age_days", "price_source")
TRUST = ("limit", "confidence", "confidence_low", "confidence_high", "on_pareto_front")
COMMON = (*PLACE, *SIZE, *LAYOUT, *PRICE, *ORIGIN, *TRUST)
RECIPE = ("sharding", "recompute", "micro_batch", "grad_accumulation", "usd_total", "usd_per_million_tokens")
PACE = ("days", "step_s", "mfu", "tokens_per_s", "tokens_per_s_per_gpu", "gpu_hours")
RUN = ("global_batch_tokens", "goodput", "interruptions_per_day", "checkpoint_interval_s", "spare_nodes", "usd_storage")


@require_safe
@limited("page_plan", "GET")
@needs_catalog
def plan_csv(request: HttpRequest, kind: str) -> HttpResponse:
    """The options listed, one a row, at full precision; cells that a spreadsheet would run are defused."""
    this = KINDS[kind]
    scope = active_scope(request)
    outcome = plan_for(this, read_query(request.GET, this.question_type), scope)
    if outcome.plan is None:
        lines = [f"{error.field}: {error_text(error)} {allowed_text(error)}" for error in outcome.errors]
        return HttpResponse("\n".join(lines), status=400, content_type="text/plain; charset=utf-8")
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="takar-{kind}-{outcome.plan.priced_on}.csv"'
    csv.writer(response).writerows(_rows(outcome.plan))
    if scope is not None:
        # Its prices leave with the file.
        note_export(scope=scope, subject=scope.organization, what=f"{kind} plan", options=len(outcome.plan.options))
    return response


def _rows(plan: InferencePlan | TrainingPlan) -> Iterator[list[Any]]:
    if isinstance(plan, InferencePlan):
        yield [*COMMON, *_serving_names(plan)]
        for rank, served in enumerate(plan.options, start=1):
            yield [*_common(rank, served), *_serving(served)]
    else:
        yield [*COMMON, *RECIPE, *PACE, *RUN]
        for rank, trained in enumerate(plan.options, start=1):
            yield [*_common(rank, trained), *_training(trained)]


def _common(rank: int, option: InferenceOption | TrainingOption) -> list[Any]:
    cluster, layout, price, confidence = option.cluster, option.layout, option.price, option.confidence
    return [
        *(rank, cluster.provider, cluster.region, cluster.country, cluster.instance_type, cluster.accelerator_name),
        *(cluster.purchase_option, cluster.nodes, cluster.gpus_per_node, cluster.gpus_used, cluster.gpus_billed),
        *(layout.tensor, layout.pipeline, layout.expert, layout.context, layout.replicas),
        *(price.usd_per_gpu_hour, price.usd_per_node_hour, price.usd_per_hour, price.usd_per_month),
        *(price.as_of.isoformat(), price.age_days, price.source),
        *(option.limit, confidence.kind, confidence.low, confidence.high, option.on_pareto_front),
    ]


def _serving_names(plan: InferencePlan) -> list[str]:
    statistics = plan.options[0].speed.ttft_ms if plan.options else {}
    return [
        *("weight_format", "kv_format", "usd_per_million_input", "usd_per_million_output", "usd_per_million_tokens"),
        *(f"ttft_{name}_ms" for name in statistics),
        *(f"tpot_{name}_ms" for name in statistics),
        *("output_tok_s", "output_tok_s_per_gpu", "peak_requests_s", "capacity_requests_s", "utilization"),
        "kv_cache_used",
    ]


def _serving(option: InferenceOption) -> list[Any]:
    speed = option.speed
    return [
        *(option.weight_format, option.kv_format),
        *(option.usd_per_million_input, option.usd_per_million_output, option.usd_per_million_tokens),
        *speed.ttft_ms.values(),
        *(speed.tpot_ms.get(name) for name in speed.ttft_ms),
        *(speed.output_tok_s, speed.output_tok_s_per_gpu, speed.peak_requests_s, speed.capacity_requests_s),
        *(speed.utilization, speed.kv_cache_used),
    ]


def _training(option: TrainingOption) -> list[Any]:
    speed = option.speed
    return [
        *(option.sharding, option.recompute, option.micro_batch, option.grad_accumulation),
        *(option.usd_total, option.usd_per_million_tokens, speed.days, speed.step_s, speed.mfu),
        *(speed.tokens_per_s, speed.tokens_per_s_per_gpu, speed.gpu_hours),
        *(option.global_batch_tokens, speed.goodput, speed.interruptions_per_day, speed.checkpoint_interval_s),
        *(option.spare_nodes, option.usd_storage),
    ]
