"""How scenarios and quotes are written: money as decimal texts, plans and snapshots as their own components."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from planner.accounts import display_name
from planner.api.components import MONEY, ref
from planner.documents.snapshot import SCHEMA, snapshot_to_json
from planner.models import SHOWN_STATUSES, Quote, Scenario, ScenarioComment, ScenarioVersion, ShareLink
from planner.services.error_envelope import envelope
from planner.services.quote_pricing import PricedDraft
from planner.services.quotes import priced

_QUESTION = {"anyOf": [ref("InferenceQuestion"), ref("TrainingQuestion")]}
_PLAN = {"anyOf": [ref("InferencePlan"), ref("TrainingPlan")]}


class ScenarioSerializer(serializers.ModelSerializer[Scenario]):
    """A saved plan; what it says is in its versions."""

    id = serializers.UUIDField(source="uuid")
    kind = serializers.ChoiceField(["inference", "training"])
    latest = serializers.IntegerField(help_text="Number of the latest version.")
    created_by = serializers.SerializerMethodField()

    class Meta:
        model = Scenario
        fields = ["id", "name", "kind", "latest", "created_by", "created_at", "updated_at", "archived_at"]
        read_only_fields = fields

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_created_by(self, row: Scenario) -> str | None:
        return display_name(row.created_by) if row.created_by else None


class ScenarioVersionSerializer(serializers.ModelSerializer[ScenarioVersion]):
    """One version of a scenario, without the plan itself."""

    id = serializers.UUIDField(source="uuid")
    usd = serializers.SerializerMethodField(help_text="A month of serving, or the whole run or offline job.")
    note = serializers.CharField()

    class Meta:
        model = ScenarioVersion
        fields = [
            "id",
            "number",
            "option_id",
            "usd",
            "catalog_version",
            "engine_version",
            "priced_on",
            "note",
            "created_at",
        ]
        read_only_fields = fields

    @extend_schema_field(MONEY)
    def get_usd(self, row: ScenarioVersion) -> str:
        return format(row.usd, "f")


class WholeVersionSerializer(ScenarioVersionSerializer):
    """One version with its question, and the answer with the option that was chosen."""

    question = serializers.SerializerMethodField()
    plan = serializers.SerializerMethodField(help_text="As it was answered; `options` holds the one chosen.")

    class Meta(ScenarioVersionSerializer.Meta):
        fields = [*ScenarioVersionSerializer.Meta.fields, "question", "plan"]
        read_only_fields = fields

    @extend_schema_field(_QUESTION)
    def get_question(self, row: ScenarioVersion) -> Any:
        return row.question

    @extend_schema_field(_PLAN)
    def get_plan(self, row: ScenarioVersion) -> Any:
        return row.plan


class ScenarioCommentSerializer(serializers.ModelSerializer[ScenarioComment]):
    """What somebody said."""

    id = serializers.UUIDField(source="uuid")
    author = serializers.SerializerMethodField()

    class Meta:
        model = ScenarioComment
        fields = ["id", "version", "author", "text", "created_at"]
        read_only_fields = fields

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_author(self, row: ScenarioComment) -> str | None:
        return row.author.email or row.author.username if row.author else None


class ShareLinkSerializer(serializers.ModelSerializer[ShareLink]):
    """A link for reading; its address is shown once, when it is made."""

    id = serializers.UUIDField(source="uuid")
    name = serializers.CharField()

    class Meta:
        model = ShareLink
        fields = ["id", "name", "expires_at", "revoked_at", "last_used_at", "created_at"]
        read_only_fields = fields


class NewShareLinkSerializer(ShareLinkSerializer):
    """A link that was made just now."""

    url = serializers.SerializerMethodField(help_text="The address; never shown again.")

    class Meta(ShareLinkSerializer.Meta):
        fields = [*ShareLinkSerializer.Meta.fields, "url"]
        read_only_fields = fields

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_url(self, row: ShareLink) -> str | None:
        url: str | None = self.context.get("url")
        return url


class QuoteSerializer(serializers.ModelSerializer[Quote]):
    """A quote's row."""

    id = serializers.UUIDField(source="uuid")
    number = serializers.SerializerMethodField(help_text="Null while it is a draft.")
    title = serializers.CharField()
    status = serializers.SerializerMethodField()
    scenario = serializers.SerializerMethodField(help_text="Id of the scenario it was made from.")
    scenario_version = serializers.SerializerMethodField()
    replaces = serializers.SerializerMethodField(help_text="Id of the quote whose place it takes.")
    superseded_by = serializers.SerializerMethodField(help_text="Id of the quote that took its place.")

    class Meta:
        model = Quote
        fields = [
            "id",
            "number",
            "title",
            "status",
            "scenario",
            "scenario_version",
            "replaces",
            "superseded_by",
            "valid_until",
            "issued_at",
            "accepted_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_number(self, row: Quote) -> str | None:
        return row.number or None

    @extend_schema_field(serializers.ChoiceField(list(SHOWN_STATUSES)))
    def get_status(self, row: Quote) -> str:
        return row.shown_status(timezone.localdate())

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_scenario(self, row: Quote) -> str | None:
        return str(row.scenario_version.scenario.uuid) if row.scenario_version else None

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_scenario_version(self, row: Quote) -> int | None:
        return row.scenario_version.number if row.scenario_version else None

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_replaces(self, row: Quote) -> str | None:
        return str(row.replaces.uuid) if row.replaces else None

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_superseded_by(self, row: Quote) -> str | None:
        return str(row.superseded_by.uuid) if row.superseded_by else None


class WholeQuoteSerializer(QuoteSerializer):
    """A quote with what was entered and what it says: frozen once issued, as of now while it is a draft."""

    terms = serializers.SerializerMethodField(help_text="As entered, every member written out.")
    snapshot = serializers.SerializerMethodField(help_text=f"What the documents say, `{SCHEMA}`.")
    problems = serializers.SerializerMethodField(help_text="What stands in the way of issuing; empty once issued.")
    warnings = serializers.SerializerMethodField(
        help_text="What a draft can be issued with and its writer should know: exchange rates of long ago."
    )

    class Meta(QuoteSerializer.Meta):
        fields = [*QuoteSerializer.Meta.fields, "terms", "snapshot", "problems", "warnings"]
        read_only_fields = fields

    _priced: PricedDraft

    def to_representation(self, instance: Quote) -> dict[str, Any]:
        self._priced = priced(instance, timezone.now() if instance.is_draft else None)
        written: dict[str, Any] = super().to_representation(instance)
        return written

    @extend_schema_field(ref("QuoteTerms"))
    def get_terms(self, row: Quote) -> Any:
        return row.terms

    @extend_schema_field(ref("QuoteSnapshot"))
    def get_snapshot(self, row: Quote) -> Any:
        return snapshot_to_json(self._priced.snapshot)

    @extend_schema_field({"type": "array", "items": ref("Error")})
    def get_problems(self, row: Quote) -> Any:
        return envelope(self._priced.problems)["errors"]

    @extend_schema_field({"type": "array", "items": ref("Error")})
    def get_warnings(self, row: Quote) -> Any:
        return envelope(self._priced.warnings)["errors"]


class CartSerializer(serializers.Serializer[Any]):
    """A quote as a procurement system's cart."""

    quote = serializers.CharField(help_text="Its number.")
    currency = serializers.CharField()
    net = serializers.CharField(help_text="What the items sum to.")
    tax = serializers.CharField()
    total = serializers.CharField()
    items = serializers.ListField(child=serializers.DictField(), help_text="One flat object a line.")
    cxml = serializers.CharField(help_text="The same as a cXML 1.2 PunchOutOrderMessage.")


class ChangesSerializer(serializers.Serializer[Any]):
    """A saved plan against the same question asked today; null is not to be had."""

    is_changed = serializers.BooleanField()
    catalog_then = serializers.CharField()
    catalog_now = serializers.CharField()
    engine_then = serializers.CharField()
    engine_now = serializers.CharField()
    usd_then = serializers.CharField(help_text="A month of serving, or the whole run or offline job.")
    usd_now = serializers.CharField(allow_null=True)
    usd_difference = serializers.CharField(allow_null=True)
    node_hour_then = serializers.CharField(help_text="USD for one node and hour.")
    node_hour_now = serializers.CharField(allow_null=True)
    nodes_then = serializers.IntegerField()
    nodes_now = serializers.IntegerField(allow_null=True)
    best_option = serializers.CharField(help_text="What would be recommended today.")
    best_name = serializers.CharField()
    best_usd = serializers.CharField(allow_null=True)
