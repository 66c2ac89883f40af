"""Reading scenarios: lists, one with its versions, several side by side, and what a link shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from planner.models import Scenario, ScenarioComment, ScenarioVersion, ShareLink
from planner.selectors.scope import NotFound, Scope

MOST_COMPARED = 5


def scenarios(scope: Scope, *, archived: bool = False) -> QuerySet[Scenario]:
    """The organization's scenarios, the last changed first."""
    scope.require("planner.view_scenario")
    return scope.rows(Scenario).filter(archived_at__isnull=not archived).select_related("created_by")


def scenario(scope: Scope, uuid: UUID) -> Scenario:
    """One scenario; raises ``NotFound``."""
    scope.require("planner.view_scenario")
    return scope.get(Scenario, uuid)


def version_of(found: Scenario, number: int | None = None) -> ScenarioVersion:
    """A version of a scenario, the latest unless a number is given; raises ``NotFound``."""
    version = found.versions.select_related("scenario", "created_by").filter(number=number or found.latest).first()
    if version is None:
        raise NotFound("No such version.")
    return version


def latest_versions(found: Sequence[Scenario]) -> dict[int, ScenarioVersion]:
    """The latest version of each, by the scenario's key, without the plans themselves."""
    rows = ScenarioVersion.objects.filter(scenario__in=found, number=F("scenario__latest"))
    return {row.scenario_id: row for row in rows.defer("plan", "question")}


def versions_of(found: Scenario) -> QuerySet[ScenarioVersion]:
    """Every version, the latest first, without the plans themselves."""
    return found.versions.select_related("created_by").defer("plan", "question")


def comments_on(found: Scenario) -> QuerySet[ScenarioComment]:
    """What was said, in order."""
    return found.comments.select_related("author")


def links_to(scope: Scope, found: Scenario) -> QuerySet[ShareLink]:
    """Links that were made; only for who may make them."""
    scope.require("planner.change_scenario")
    return found.links.select_related("created_by")


def open_at(now: datetime) -> Q:
    """Links that show something: neither revoked nor past their last day."""
    return Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=now))


def shared_link(hashed_token: str, now: datetime) -> ShareLink:
    """The link of that secret's hash, to a scenario or to a quote; raises ``NotFound``.

    A revoked link, an expired one and one that never was are not told apart.
    """
    link = (
        ShareLink.objects.filter(open_at(now), token_hash=hashed_token)
        .select_related("scenario", "quote__superseded_by")
        .first()
    )
    if link is None or (link.scenario is not None and link.scenario.archived_at is not None):
        raise NotFound("No such link.")
    return link


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One scenario in a comparison: its latest version's option in figures. None: not of that kind of plan."""

    scenario: Scenario
    version: int
    name: str
    usd: Decimal
    cluster: dict[str, Any]
    price: dict[str, Any]
    speed: dict[str, Any]
    limit: str
    catalog_version: str
    priced_on: str
    layout: dict[str, Any]
    confidence: dict[str, Any]
    job: dict[str, Any] | None
    """Of an offline job: how long it takes."""


def side_by_side(scope: Scope, uuids: list[UUID]) -> list[Side]:
    """Up to five scenarios of one kind, in the order asked; raises ``NotFound`` where one is not there."""
    return [_side(version_of(scenario(scope, uuid))) for uuid in dict.fromkeys(uuids[:MOST_COMPARED])]


def _side(version: ScenarioVersion) -> Side:
    option = version.plan["options"][0]
    return Side(
        scenario=version.scenario,
        version=version.number,
        name=version.scenario.name,
        usd=version.usd,
        cluster=option["cluster"],
        price=option["price"],
        speed=option["speed"],
        limit=option["limit"],
        catalog_version=version.catalog_version,
        priced_on=version.priced_on.isoformat(),
        layout=option["layout"],
        confidence=option["confidence"],
        job=version.job,
    )
