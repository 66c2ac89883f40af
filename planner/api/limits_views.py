"""What the caller's tier allows, before it bites."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.auth import prices_scope
from planner.api.base import ApiView
from planner.api.openapi import RATE_HEADERS, answer, error_responses
from planner.api.tenant import ORGANIZATION, PRIVATE
from planner.api.throttles import ReadThrottle, caller_tier
from planner.services.tiers import QUOTAS, TIERS, rates, usages


class RateSerializer(serializers.Serializer[Any]):
    """How many calls of a kind one caller may make in a minute."""

    name = serializers.CharField(help_text="`plan`, `read`, `run` of the API; `page_plan`, `page_run` of the pages.")
    calls_per_minute = serializers.IntegerField()


class UsageSerializer(serializers.Serializer[Any]):
    """How far one limit of the organization is used up."""

    name = serializers.CharField()
    used = serializers.IntegerField()
    limit = serializers.IntegerField()


class TierSerializer(serializers.Serializer[Any]):
    """What one tier allows."""

    name = serializers.ChoiceField(TIERS)
    rates = RateSerializer(many=True)
    quotas = serializers.DictField(child=serializers.IntegerField(), help_text="How many an organization may have.")


class LimitsSerializer(serializers.Serializer[Any]):
    """The caller's limits, and those of every tier."""

    tier = serializers.ChoiceField(TIERS)
    rates = RateSerializer(many=True)
    usage = UsageSerializer(many=True, help_text="Of the key's organization, or the one named; else empty.")
    tiers = TierSerializer(many=True)


class LimitsView(ApiView):
    """What the caller may do, and how much of it is left."""

    throttle_classes = [ReadThrottle]

    @extend_schema(
        operation_id="read_limits",
        summary="Read your limits",
        tags=["plans"],
        parameters=[ORGANIZATION, *RATE_HEADERS],
        responses={200: answer(LimitsSerializer, "Your limits."), **error_responses(400, 401, 403, 404)},
    )
    def get(self, request: Request) -> Response:
        """The tier with its calls a minute; with a key, or an organization named, what is used up of its quotas."""
        scope = prices_scope(request)
        tier = scope.organization.tier if scope is not None else caller_tier(request)
        body = {
            "tier": tier,
            "rates": rates(tier),
            "usage": usages(scope.organization) if scope is not None else [],
            "tiers": [
                {"name": each, "rates": rates(each), "quotas": {name: q.most(each) for name, q in QUOTAS.items()}}
                for each in TIERS
            ],
        }
        return Response(LimitsSerializer(body).data, headers=PRIVATE)
