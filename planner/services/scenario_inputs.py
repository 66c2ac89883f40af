"""What scenarios and quotes are written with over the API, beside ``QuoteTerms``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from planner.services.quote_terms import QuoteTerms
from planner.services.typed_json import limited

UUID_PATTERN = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
OPTION_LENGTH = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioInput:
    """A plan to save as a new scenario: it is planned again, with the organization's prices."""

    name: str = limited(longest=120)
    kind: Literal["inference", "training"]
    question: Mapping[str, Any] = field(metadata={"schema": ["InferenceQuestion", "TrainingQuestion"]})
    """As for `plans/`, of that kind."""
    option: str = limited("", longest=OPTION_LENGTH)
    """Id of the option meant; empty: the recommended one."""
    note: str = limited("", longest=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionInput:
    """A plan to keep as the scenario's next version."""

    question: Mapping[str, Any] = field(metadata={"schema": ["InferenceQuestion", "TrainingQuestion"]})
    option: str = limited("", longest=OPTION_LENGTH)
    note: str = limited("", longest=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioChange:
    """Members to change; those left out stay."""

    name: str | None = limited(None, longest=120)
    archived: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneInput:
    """The clone's name."""

    name: str = limited(longest=120)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentInput:
    """Something to say."""

    text: str = limited(longest=4000, lines=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkInput:
    """A link for reading."""

    name: str = limited("", longest=100)
    """For whom."""
    days: int | None = limited(30, least=1, most=365)
    """How long it is good; null: until it is revoked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteInput:
    """A quote to draft, or to issue at once."""

    scenario: str | None = limited(None, longest=36, pattern=UUID_PATTERN, example="the id of a scenario")
    """Its plan gives the compute line and the term, where `terms` state none."""
    version: int | None = limited(None, least=1, most=100_000)
    """Null: the latest."""
    terms: Mapping[str, Any] = field(default_factory=dict, metadata={"schema": [QuoteTerms.__name__]})
    issue: bool = False
    """Issue it in the same request: all or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferInput:
    """What the buyer's system gave when the visit began."""

    buyer_cookie: str = limited("", longest=200)
    """Returned in the cart as it came."""
    buyer_domain: str = limited("NetworkID", longest=60)
    buyer_identity: str = limited("", longest=120)
    supplier_domain: str = limited("NetworkID", longest=60)
    supplier_identity: str = limited("", longest=120)
