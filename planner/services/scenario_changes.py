"""What has changed since a scenario was saved: prices, catalog, engine, and the difference in money."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from planner.engine.answers import InferenceOption, InferencePlan
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.models import ScenarioVersion
from planner.selectors.scope import Scope
from planner.services.scenarios import make_plan, usd_of

SAME_KIND_OPTIONS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A saved plan against the same question asked today."""

    catalog_then: str
    catalog_now: str
    engine_then: str
    engine_now: str
    usd_then: Decimal
    """Of the option saved: a month of serving, or the whole run or offline job."""
    usd_now: Decimal | None
    """The same option today; None: it is not for sale any more, or no longer meets the question."""
    usd_difference: Decimal | None
    node_hour_then: Decimal
    node_hour_now: Decimal | None
    nodes_then: int
    nodes_now: int | None
    best_option: str
    """Id of the option that would be recommended today; empty: nothing meets the question."""
    best_name: str
    best_usd: Decimal | None
    problems: tuple[FieldError, ...] = ()
    """Why the question can't be asked today, where it can't."""

    @property
    def is_changed(self) -> bool:
        """Whether anything that the plan rests on, or the plan itself, is another today."""
        same = self.catalog_then == self.catalog_now and self.engine_then == self.engine_now
        return not same or self.usd_difference != 0


def what_changed(*, scope: Scope, version: ScenarioVersion) -> Changes:
    """Ask the saved question again, today, and find the saved option in the answer."""
    saved = version.plan["options"][0]
    then: dict[str, Any] = {
        "catalog_then": version.catalog_version,
        "engine_then": version.engine_version,
        "usd_then": version.usd,
        "node_hour_then": Decimal(saved["price"]["usd_per_node_hour"]),
        "nodes_then": int(saved["cluster"]["nodes"]),
    }
    try:
        plan = make_plan(scope, version.scenario.kind, version.question)
        option = _find(plan, version.option_id) or _find(_narrowed(scope, version, saved), version.option_id)
    except InvalidQuestion as invalid:
        return Changes(
            **then,
            catalog_now="",
            engine_now="",
            usd_now=None,
            usd_difference=None,
            node_hour_now=None,
            nodes_now=None,
            best_option="",
            best_name="",
            best_usd=None,
            problems=tuple(invalid.errors),
        )
    best = _find(plan, plan.recommended)
    now = None if option is None else usd_of(option)
    return Changes(
        **then,
        catalog_now=plan.catalog_version,
        engine_now=plan.engine_version,
        usd_now=now,
        usd_difference=None if now is None else now - version.usd,
        node_hour_now=None if option is None else option.price.usd_per_node_hour,
        nodes_now=None if option is None else option.cluster.nodes,
        best_option=plan.recommended,
        best_name="" if best is None else option_name(best),
        best_usd=None if best is None else usd_of(best),
    )


def option_name(option: InferenceOption | TrainingOption) -> str:
    """``2 x 8 H200 SXM, provider region``."""
    cluster = option.cluster
    return (
        f"{cluster.nodes} x {cluster.gpus_per_node:g} {cluster.accelerator_name}, {cluster.provider} {cluster.region}"
    )


def _narrowed(scope: Scope, version: ScenarioVersion, saved: dict[str, Any]) -> InferencePlan | TrainingPlan:
    """The same question of the saved option's seller and accelerator alone: there it is listed, if it is there."""
    cluster = saved["cluster"]
    question = {
        **version.question,
        "providers": [cluster["provider"]],
        "accelerators": [cluster["accelerator"]],
        "purchase_options": [cluster["purchase_option"]],
        "max_options": SAME_KIND_OPTIONS,
    }
    return make_plan(scope, version.scenario.kind, question)


def _find(plan: InferencePlan | TrainingPlan, option_id: str) -> InferenceOption | TrainingOption | None:
    return next((option for option in plan.options if option.id == option_id), None)
