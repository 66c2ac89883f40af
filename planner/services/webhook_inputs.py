"""What webhooks are written with: the fields of form and API."""

from __future__ import annotations

from dataclasses import dataclass

from planner.engine.field_spec import choice, choices, integer, text
from planner.models import EVENTS
from planner.services.outbound import URL_LENGTH

ON, OFF = "on", "off"
LONGEST_OVERLAP_HOURS = 168


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookInput:
    """An address that is told what happens."""

    name: str = text("Name", "Which system it is.", required=True, max_length=100)
    url: str = text("Address", "https://, public, on port 443 or from 1024.", required=True, max_length=URL_LENGTH)
    events: tuple[str, ...] = choices("Events", (), EVENTS, "What it is told of.", "advanced")
    state: str = choice("State", ON, (ON, OFF), "Off: nothing is sent.", "advanced")


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationInput:
    """A change of a webhook's secret."""

    overlap_hours: int = integer(
        "Overlap", 24, 0, LONGEST_OVERLAP_HOURS, "hours", "How long the old secret signs too; 0: not at all."
    )
