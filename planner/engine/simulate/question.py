"""What may be asked of a simulation beside the plan and the traffic: one flat set of named, bounded fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.engine.field_spec import FieldSpec, ask, choice, integer, number
from planner.engine.simulate.codes import POLICIES

SECTIONS: Final = ("fleet", "gateway", "engine", "run")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationQuestion:
    """How to run a plan's cluster against a trace."""

    option: str = ask(
        FieldSpec(
            kind="text",
            label="Option",
            help="The id of one of the plan's options, or its place in the list; empty is the first.",
            section="fleet",
        ),
        "",
    )
    replicas: int | None = integer("Replicas", None, 1, 100_000, "replicas", "Empty: as many as the plan has.", "fleet")
    policy: str = choice(
        "Load balancing", "least_outstanding", POLICIES, "How the gateway chooses a replica.", "gateway"
    )
    load_cap: float = number(
        "Load cap",
        1.5,
        1,
        100,
        "x",
        "Prefix-aware balancing passes over a replica busier than this many times the mean.",
        "gateway",
    )
    max_outstanding: int | None = integer(
        "Requests a replica",
        None,
        1,
        1_000_000,
        "requests",
        "Sent to one replica at a time; more wait at the gateway. Empty: no limit.",
        "gateway",
    )
    max_waiting: int | None = integer(
        "Queue limit", None, 1, 10_000_000, "requests", "A longer queue refuses. Empty: no limit.", "gateway"
    )
    queue_timeout_s: float | None = number(
        "Queue time-out", None, 0.01, 86_400, "s", "Turned away after waiting this long unserved.", "gateway"
    )
    client_timeout_s: float | None = number(
        "Client time-out", None, 0.01, 86_400, "s", "Clients give up this long after they asked.", "gateway"
    )
    prefix_caching: bool = ask(
        FieldSpec(
            kind="flag",
            label="Prefix caching",
            help="Reuse the KV of shared prompt starts (needs prefixes in the trace).",
            section="engine",
        ),
        True,
    )
    lookahead: bool = ask(
        FieldSpec(
            kind="flag",
            label="Asynchronous scheduling",
            help="The next batch is chosen while the current one runs.",
            section="engine",
        ),
        True,
    )
    chunked_prefill: bool = ask(
        FieldSpec(
            kind="flag",
            label="Chunked prefill",
            help="Prompts share iterations with decodes; off: whole prompts first.",
            section="engine",
        ),
        True,
    )
    block_tokens: int = integer("KV block", 16, 1, 4096, "tokens", "Tokens a KV block holds.", "engine")
    draft_tokens: int = integer(
        "Draft tokens", 0, 0, 16, "tokens", "Speculative decoding: proposed each step; 0 is off.", "engine"
    )
    acceptance: float = number(
        "Acceptance", 0.7, 0, 1, "share", "Chance that a proposed token is kept, if those before it were.", "engine"
    )
    draft_share: float = number(
        "Draft cost", 0.05, 0, 1, "share", "One drafting step's time over a decode step's.", "engine"
    )
    seed: int = integer("Seed", 0, 0, 2**53, "", "The same seed gives the same run.", "run")
