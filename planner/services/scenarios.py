"""Saving plans: scenarios, their versions and comments."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.utils import timezone

from planner.engine.answers import InferenceOption, InferencePlan
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import TURNS
from planner.engine.sentences import say
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.models import PlanKind, Scenario, ScenarioComment, ScenarioVersion
from planner.selectors.scope import Scope
from planner.services.organizations import checked_name
from planner.services.plan_json import plain, plan_to_json
from planner.services.planning import plan_inference, plan_training
from planner.services.tenancy import Conflict, lock, tenant_write
from planner.services.tiers import require_room
from planner.services.webhooks import tell

NAME_LENGTH = 120
NOTE_LENGTH = 200
COMMENT_LENGTH = 4_000
MOST_VERSIONS = 1_000


def save_scenario(
    *, scope: Scope, name: str, kind: str, question: Mapping[str, Any], option: str = "", note: str = ""
) -> Scenario:
    """Plan ``question`` with the organization's prices and keep the answer as version 1 of a new scenario.

    ``option`` is the id of the option meant, the recommended one unless given. Raises ``InvalidQuestion``.
    """
    scope.require("planner.change_scenario")
    name = checked_name(name, longest=NAME_LENGTH)
    answer = _answer(scope, kind, question, option)
    return _store_scenario(scope=scope, name=name, kind=kind, answer=answer, note=checked_note(note))


def add_version(
    *, scope: Scope, scenario: Scenario, question: Mapping[str, Any], option: str = "", note: str = ""
) -> ScenarioVersion:
    """Plan ``question`` and keep the answer as the scenario's next version."""
    scope.require("planner.change_scenario")
    answer = _answer(scope, scenario.kind, question, option)
    return _store_version(scope=scope, scenario=scenario, answer=answer, note=checked_note(note))


@tenant_write
def rename_scenario(*, scope: Scope, scenario: Scenario, name: str) -> Scenario:
    """Give a scenario another name."""
    scope.require("planner.change_scenario")
    scenario = scope.get(Scenario, scenario.uuid, lock=True)
    scenario.name = checked_name(name, longest=NAME_LENGTH)
    scenario.save(update_fields=["name", "updated_at"])
    return scenario


@tenant_write
def clone_scenario(*, scope: Scope, scenario: Scenario, name: str) -> Scenario:
    """A new scenario that begins with a copy of the latest version; the answer is copied, not planned again."""
    scope.require("planner.change_scenario")
    latest = scenario.versions.get(number=scenario.latest)
    copy = _create(scope, checked_name(name, longest=NAME_LENGTH), scenario.kind)
    ScenarioVersion.objects.create(
        organization=scope.organization,
        scenario=copy,
        number=1,
        question=latest.question,
        plan=latest.plan,
        option_id=latest.option_id,
        usd=latest.usd,
        catalog_version=latest.catalog_version,
        engine_version=latest.engine_version,
        priced_on=latest.priced_on,
        note=f"{scenario.name}, version {latest.number}"[:NOTE_LENGTH],
        created_by=scope.user,
    )
    _tell("scenario.saved", copy, copy.versions.get())
    return copy


@tenant_write
def archive_scenario(*, scope: Scope, scenario: Scenario, archived: bool) -> Scenario:
    """Take a scenario out of the lists, or put it back; quotes keep pointing to it."""
    scope.require("planner.change_scenario")
    scenario = scope.get(Scenario, scenario.uuid, lock=True)
    scenario.archived_at = timezone.now() if archived else None
    scenario.save(update_fields=["archived_at", "updated_at"])
    return scenario


@tenant_write
def comment_on(*, scope: Scope, scenario: Scenario, text: str) -> ScenarioComment:
    """Say something of a scenario; every member may."""
    scope.require("planner.comment_scenario")
    text = text.strip() if isinstance(text, str) else ""
    if not text or len(text) > COMMENT_LENGTH or set(text) & (TURNS | {"\x00"}):
        raise InvalidQuestion(
            [
                FieldError(
                    field="text",
                    value=text,
                    message=say("Not a usable text."),
                    allowed=say("1 to {most} characters", most=COMMENT_LENGTH),
                )
            ]
        )
    return ScenarioComment.objects.create(
        organization=scope.organization, scenario=scenario, version=scenario.latest, author=scope.user, text=text
    )


def checked_note(note: object) -> str:
    """``note`` without space around it; raises ``InvalidQuestion`` where it can't be kept."""
    text = " ".join(note.split()) if isinstance(note, str) else None
    if text is None or len(text) > NOTE_LENGTH or not text.isprintable():
        raise InvalidQuestion(
            [
                FieldError(
                    field="note",
                    value=note,
                    message=say("Not a usable text."),
                    allowed=say("up to {most} characters", most=NOTE_LENGTH),
                )
            ]
        )
    return text


def make_plan(scope: Scope, kind: str, question: Mapping[str, Any]) -> InferencePlan | TrainingPlan:
    """The answer to ``question`` with the organization's prices; raises ``InvalidQuestion``."""
    if kind == PlanKind.INFERENCE:
        return plan_inference(question, scope=scope)
    if kind == PlanKind.TRAINING:
        return plan_training(question, scope=scope)
    allowed = ", ".join(PlanKind.values)
    raise InvalidQuestion([FieldError(field="kind", value=kind, message="Not a known choice.", allowed=allowed)])


def usd_of(option: InferenceOption | TrainingOption) -> Decimal:
    """What the option costs: a month of serving, or the whole run or offline job."""
    if not isinstance(option, InferenceOption):
        return option.usd_total
    return option.price.usd_per_month if option.job is None else option.job.usd


def _answer(scope: Scope, kind: str, question: Mapping[str, Any], option: str) -> dict[str, Any]:
    """The fields of a version: the question, the answer with the option meant, and what it rests on."""
    plan = make_plan(scope, kind, question)
    wanted = option or plan.recommended
    chosen = next((each for each in plan.options if each.id == wanted), None)
    if chosen is None:
        message = "Nothing meets the question." if not plan.options else "Not among the options of this plan."
        allowed = ", ".join(each.id for each in plan.options[:5]) or "a question that something meets"
        raise InvalidQuestion([FieldError(field="option", value=option, message=message, allowed=allowed)])
    document = plan_to_json(plan)
    options = [each for each in document["options"] if each["id"] == chosen.id]
    return {
        "question": plain(dict(question)),
        # What was rejected says nothing about the option that was chosen, and is most of an answer's size.
        "plan": {**document, "options": options, "rejections": []},
        "option_id": chosen.id,
        "usd": usd_of(chosen),
        "catalog_version": plan.catalog_version,
        "engine_version": plan.engine_version,
        "priced_on": plan.priced_on,
    }


def _create(scope: Scope, name: str, kind: str) -> Scenario:
    lock(scope.organization)
    require_room(scope.organization, "scenarios")
    return Scenario.objects.create(
        organization=scope.organization, name=name, kind=kind, latest=1, created_by=scope.user
    )


@tenant_write
def _store_scenario(*, scope: Scope, name: str, kind: str, answer: dict[str, Any], note: str) -> Scenario:
    scenario = _create(scope, name, kind)
    _tell("scenario.saved", scenario, _add(scope, scenario, 1, answer, note))
    return scenario


@tenant_write
def _store_version(*, scope: Scope, scenario: Scenario, answer: dict[str, Any], note: str) -> ScenarioVersion:
    scenario = scope.get(Scenario, scenario.uuid, lock=True)
    if scenario.latest >= MOST_VERSIONS:
        raise Conflict(
            "too_many",
            say("The scenario has {most} versions already.", most=MOST_VERSIONS),
            say("a clone"),
        )
    scenario.latest += 1
    scenario.save(update_fields=["latest", "updated_at"])
    version = _add(scope, scenario, scenario.latest, answer, note)
    _tell("scenario.version_saved", scenario, version)
    return version


def _tell(event: str, scenario: Scenario, version: ScenarioVersion) -> None:
    data = {
        "id": str(scenario.uuid),
        "address": f"/api/v1/scenarios/{scenario.uuid}/",
        "name": scenario.name,
        "kind": scenario.kind,
        "version": version.number,
        "usd": version.usd,
        "catalog_version": version.catalog_version,
        "priced_on": version.priced_on,
    }
    tell(organization=scenario.organization, event=event, data=lambda: plain(data))


def _add(scope: Scope, scenario: Scenario, number: int, answer: dict[str, Any], note: str) -> ScenarioVersion:
    return ScenarioVersion.objects.create(
        organization=scope.organization, scenario=scenario, number=number, note=note, created_by=scope.user, **answer
    )
