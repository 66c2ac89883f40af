"""What an inference question's fields must be together: traffic stated one way, regimes that go with each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.engine.errors import FieldError
from planner.engine.sentences import FieldName, say

TRAFFIC_PAIRS = (("users", "requests_per_user_per_day"), ("offline_requests", "offline_hours"))
TRAFFIC_FIELDS = ("requests_per_second", "concurrency", *TRAFFIC_PAIRS[0], *TRAFFIC_PAIRS[1])
"""The four ways to state the traffic."""


def check_traffic(values: Mapping[str, Any]) -> list[FieldError]:
    """What is wrong with how the traffic is stated: exactly one way, and both halves of it."""
    given = [[values[name] is not None for name in pair] for pair in TRAFFIC_PAIRS]
    ways = [values["requests_per_second"] is not None, values["concurrency"] is not None, *map(any, given)]
    if sum(ways) != 1:
        return [
            FieldError(
                field="requests_per_second",
                value=values["requests_per_second"],
                message="State the traffic in exactly one way." if sum(ways) else "State the traffic.",
                allowed=say(
                    "{rate}, or {users} and {each}, or {clients}, or {requests} and {hours}",
                    rate=FieldName("requests_per_second"),
                    users=FieldName("users"),
                    each=FieldName("requests_per_user_per_day"),
                    clients=FieldName("concurrency"),
                    requests=FieldName("offline_requests"),
                    hours=FieldName("offline_hours"),
                ),
                code="required",
            )
        ]
    return [
        FieldError(
            field=pair[halves.index(False)],
            value=None,
            message="Needed with the other half.",
            allowed=say("{one} and {other} together", one=FieldName(pair[0]), other=FieldName(pair[1])),
            code="required",
        )
        for pair, halves in zip(TRAFFIC_PAIRS, given, strict=True)
        if any(halves) and not all(halves)
    ]


def check_regimes(values: Mapping[str, Any]) -> list[FieldError]:
    """Settings that are fine by themselves and don't go together."""
    batched = values["batching"] != "continuous"
    offline = values["offline_requests"] is not None
    split = values["pools"] != "together"
    faults = (
        (
            offline and values["ttft_ms"] is not None,
            "ttft_ms",
            say("Queued at once, requests wait for hours."),
            say("empty"),
        ),
        (offline and batched, "batching", say("Offline requests are batched continuously."), "continuous"),
        (split and batched, "pools", say("Split pools are batched continuously."), "together"),
        (split and offline, "pools", say("Split pools answer clients."), "together"),
        (
            batched and values["speculation"] != "none",
            "speculation",
            say("Drained batches are planned without drafts."),
            say("none, or batching continuous"),
        ),
        (
            values["speculation"] == "draft_model" and not values["draft_model"],
            "draft_model",
            say("Name the draft model."),
            say("a catalog name or a Hugging Face id"),
        ),
        (
            values["speculation"] != "draft_model" and bool(values["draft_model"]),
            "draft_model",
            say("Only speculation with a draft model has one."),
            say("empty, or speculation draft_model"),
        ),
    )
    return [
        FieldError(field=field, value=values[field], message=message, allowed=allowed, code="conflict")
        for is_fault, field, message, allowed in faults
        if is_fault
    ]
