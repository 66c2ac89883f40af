"""Scenarios: saved plans, their versions, and what changed since."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.filters import Filter, containing, not_older_than, one_of, read_parameters, whether
from planner.api.scenario_serializers import (
    ChangesSerializer,
    ScenarioSerializer,
    ScenarioVersionSerializer,
    WholeVersionSerializer,
)
from planner.api.tenant import ORGANIZATION, PRIVATE, TenantListView, TenantView, created, operation
from planner.api.throttles import PlanThrottle
from planner.engine.field_spec import FieldSpec
from planner.models import PlanKind, Scenario, ScenarioVersion
from planner.selectors import scenarios as read
from planner.services import scenarios
from planner.services.json_input import read_object
from planner.services.plan_json import plain
from planner.services.scenario_changes import what_changed
from planner.services.scenario_inputs import (
    CloneInput,
    ScenarioChange,
    ScenarioInput,
    VersionInput,
)
from planner.services.typed_json import read_json

TAG = "scenarios"
VIEW, CHANGE, COMMENT = "planner.view_scenario", "planner.change_scenario", "planner.comment_scenario"
VERSION = FieldSpec(kind="integer", minimum=1, maximum=100_000, help="Number of a version; the latest unless given.")
VERSION_PARAMETER = Filter(spec=VERSION, keep=lambda _: Q()).parameter("version")


class ScenariosView(TenantListView):
    """The organization's saved plans."""

    title = "scenarios"
    quota = "scenarios"
    tag = TAG
    permissions = {"GET": VIEW, "POST": CHANGE}
    serializer = ScenarioSerializer
    filters = {
        "search": containing("Text in the name.", "name"),
        "kind": one_of("kind", "Inference or training.", *PlanKind.values),
        "archived": whether("Whether it was put away.", lambda is_so: Q(archived_at__isnull=not is_so)),
    }

    def rows(self) -> QuerySet[Scenario]:
        return self.scope.rows(Scenario).select_related("created_by__service_account")

    @operation(
        CHANGE,
        id="save_scenario",
        summary="Save a plan",
        tag=TAG,
        gives=ScenarioSerializer,
        takes=ScenarioInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request) -> Response:
        """The question is planned with the organization's prices, and the answer kept as version 1."""
        values = read_json(ScenarioInput, read_object(self.body()))
        uuid = self.make_once(
            "scenarios",
            values,
            scenarios.save_scenario,
            name=values.name,
            kind=values.kind,
            question=values.question,
            option=values.option,
            note=values.note,
        )
        body = ScenarioSerializer(read.scenario(self.scope, uuid)).data
        return created(body, reverse("api:scenario", args=[uuid]))


class ScenarioView(TenantView):
    """One scenario."""

    permissions = {"GET": VIEW, "PATCH": CHANGE}

    @operation(VIEW, id="read_scenario", summary="Read a scenario", tag=TAG, gives=ScenarioSerializer)
    def get(self, request: Request, scenario_id: UUID) -> Response:
        """Its name and where it stands; the plan is in its versions."""
        return Response(ScenarioSerializer(read.scenario(self.scope, scenario_id)).data, headers=PRIVATE)

    @operation(
        CHANGE,
        id="change_scenario",
        summary="Rename or archive a scenario",
        tag=TAG,
        gives=ScenarioSerializer,
        takes=ScenarioChange,
    )
    def patch(self, request: Request, scenario_id: UUID) -> Response:
        """Members left out stay as they are."""
        found = read.scenario(self.scope, scenario_id)
        values = read_json(ScenarioChange, read_object(self.body()))
        if values.name is not None:
            found = scenarios.rename_scenario(scope=self.scope, scenario=found, name=values.name)
        if values.archived is not None:
            found = scenarios.archive_scenario(scope=self.scope, scenario=found, archived=values.archived)
        return Response(ScenarioSerializer(found).data, headers=PRIVATE)


class VersionsView(TenantListView):
    """The versions of a scenario, without the plans themselves."""

    title = "scenario versions"
    tag = TAG
    permissions = {"GET": VIEW, "POST": CHANGE}
    serializer = ScenarioVersionSerializer
    filters = {
        "search": containing("Text in the note.", "note"),
        "max_age_days": not_older_than("created_at__date", "Leaves out older ones."),
    }

    def rows(self) -> QuerySet[ScenarioVersion]:
        found = read.scenario(self.scope, self.kwargs["scenario_id"])
        return self.scope.rows(ScenarioVersion).filter(scenario=found).defer("plan", "question")

    @operation(
        CHANGE,
        id="add_version",
        summary="Save a plan as the next version",
        tag=TAG,
        gives=WholeVersionSerializer,
        takes=VersionInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request, scenario_id: UUID) -> Response:
        """The question is planned with the organization's prices of today."""
        found = read.scenario(self.scope, scenario_id)
        values = read_json(VersionInput, read_object(self.body()))
        uuid = self.make_once(
            f"versions:{found.pk}",
            values,
            scenarios.add_version,
            scenario=found,
            question=values.question,
            option=values.option,
            note=values.note,
        )
        version = self.scope.get_in(ScenarioVersion, uuid, scenario=found)
        location = reverse("api:scenario-version", args=[scenario_id, version.number])
        return created(WholeVersionSerializer(version).data, location)


class VersionView(TenantView):
    """One version."""

    permissions = {"GET": VIEW}

    @operation(VIEW, id="read_version", summary="Read a version", tag=TAG, gives=WholeVersionSerializer)
    def get(self, request: Request, scenario_id: UUID, number: int) -> Response:
        """With its question and its answer, as it was on the day."""
        version = read.version_of(read.scenario(self.scope, scenario_id), number)
        return Response(WholeVersionSerializer(version).data, headers=PRIVATE)


class ChangesView(TenantView):
    """What has changed since a version was saved."""

    throttle_classes = [PlanThrottle]
    permissions = {"GET": VIEW}
    query_parameters = ("version",)

    @operation(
        VIEW,
        id="read_changes",
        summary="Compare a version with today",
        tag=TAG,
        gives=ChangesSerializer,
        parameters=(VERSION_PARAMETER, ORGANIZATION),
    )
    def get(self, request: Request, scenario_id: UUID) -> Response:
        """The saved question is asked again today: prices, catalog, engine, and the difference in money."""
        given = read_parameters(request.query_params, {"version": VERSION})
        version = read.version_of(read.scenario(self.scope, scenario_id), given.get("version"))
        changes = what_changed(scope=self.scope, version=version)
        body: dict[str, Any] = {**plain(changes), "is_changed": changes.is_changed}
        return Response({str(name): body[str(name)] for name in ChangesSerializer().fields}, headers=PRIVATE)


class CloneView(TenantView):
    """A copy of a scenario."""

    permissions = {"POST": CHANGE}

    @operation(
        CHANGE,
        id="clone_scenario",
        summary="Clone a scenario",
        tag=TAG,
        gives=ScenarioSerializer,
        takes=CloneInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request, scenario_id: UUID) -> Response:
        """Begins with a copy of the latest version; nothing is planned again."""
        found = read.scenario(self.scope, scenario_id)
        values = read_json(CloneInput, read_object(self.body()))
        uuid = self.make_once(f"clones:{found.pk}", values, scenarios.clone_scenario, scenario=found, name=values.name)
        body = ScenarioSerializer(read.scenario(self.scope, uuid)).data
        return created(body, reverse("api:scenario", args=[uuid]))


PATHS: tuple[tuple[str, Any, str], ...] = (
    ("v1/scenarios/", ScenariosView, "scenarios"),
    ("v1/scenarios/<uuid:scenario_id>/", ScenarioView, "scenario"),
    ("v1/scenarios/<uuid:scenario_id>/versions/", VersionsView, "scenario-versions"),
    ("v1/scenarios/<uuid:scenario_id>/versions/<version:number>/", VersionView, "scenario-version"),
    ("v1/scenarios/<uuid:scenario_id>/changes/", ChangesView, "scenario-changes"),
    ("v1/scenarios/<uuid:scenario_id>/clone/", CloneView, "scenario-clone"),
)
