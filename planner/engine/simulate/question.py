"""What may be asked of a simulation beside the plan and the traffic: one flat set of named, bounded fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.engine.field_spec import FieldSpec, ask, choice, choices, integer, number
from planner.engine.simulate.autoscaling import METRICS
from planner.engine.simulate.codes import POLICIES

SECTIONS: Final = ("fleet", "gateway", "engine", "batching", "scaling", "start", "faults", "run")
BATCHING: Final = ("continuous", "dynamic", "static")


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
        "Queue limit",
        None,
        1,
        10_000_000,
        "requests",
        "A longer queue refuses: each replica's, and the gateway's where requests wait there. Empty: no limit.",
        "gateway",
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
            help="The next batch is chosen while the current one runs, where the engine does so.",
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
    prefill_replicas: int = integer(
        "Prefill replicas", 0, 0, 100_000, "replicas", "Split prefill from decode; 0: replicas do both.", "engine"
    )
    transfer_gb_s: float | None = number(
        "KV transfer",
        None,
        0.01,
        10_000,
        "GB/s",
        "From a prefill to a decode replica. Empty: as the plan has it, else 25 GB/s.",
        "engine",
    )
    batching: str = choice(
        "Batching",
        "continuous",
        BATCHING,
        "Continuous is an LLM engine. Dynamic and static serve whole requests in batches (vision, embedding, rerank "
        "models) as Triton does, timed by the fields below; static sends full batches only, until the delay.",
        "batching",
    )
    batch_ms: float | None = number(
        "Batch time", None, 0, 1e6, "ms", "Of a batch, beside its items and tokens.", "batching"
    )
    item_ms: float | None = number("Item time", None, 0, 1e6, "ms", "Each request adds it to its batch.", "batching")
    token_us: float | None = number(
        "Token time", None, 0, 1e6, "us", "Each input token adds it to its batch.", "batching"
    )
    max_batch: int = integer("Largest batch", 32, 1, 100_000, "requests", "Never more in a batch.", "batching")
    preferred_batches: tuple[str, ...] = choices(
        "Preferred batches", (), (), "Sizes that are sent at once when the queue fills them, such as 8, 16.", "batching"
    )
    queue_delay_ms: float = number(
        "Queue delay", 0.0, 0, 1e6, "ms", "A request waits so long for others to fill its batch.", "batching"
    )
    instances: int = integer("Instances", 1, 1, 1000, "a replica", "Batches that run side by side.", "batching")
    padded: bool = ask(
        FieldSpec(
            kind="flag",
            label="Padding",
            help="Every request of a batch costs as many tokens as its longest.",
            section="batching",
        ),
        False,
    )
    autoscaler: str = choice("Autoscaler", "none", ("none", "hpa", "keda"), "Kubernetes HPA, or KEDA.", "scaling")
    scaling_metric: str = choice("Metric", "concurrency", METRICS, "What the autoscaler looks at.", "scaling")
    scaling_target: float = number(
        "Target", 32.0, 1e-6, 1e9, "a replica", "Of the metric; of a share up to 1.", "scaling"
    )
    min_replicas: int = integer("Fewest replicas", 1, 0, 100_000, "replicas", "0 needs KEDA.", "scaling")
    max_replicas: int | None = integer(
        "Most replicas", None, 1, 100_000, "replicas", "Empty: twice what runs at the start.", "scaling"
    )
    scrape_s: float = number("Metric age", 15.0, 0.1, 3600, "s", "Time between scrapes.", "scaling")
    hpa_sync_s: float = number("HPA sync", 15.0, 5, 3600, "s", "Between its decisions.", "scaling")
    hpa_tolerance: float = number(
        "HPA tolerance", 0.1, 0, 1, "share", "A metric as near to its target changes nothing.", "scaling"
    )
    scale_up_window_s: float = number("Up window", 0.0, 0, 3600, "s", "HPA stabilization upwards.", "scaling")
    scale_up_percent: float = number(
        "Up by", 100.0, 0, 100_000, "%/15 s", "At most, or as many as the next field allows.", "scaling"
    )
    scale_up_replicas: int = integer(
        "Up by replicas", 4, 0, 100_000, "replicas/15 s", "At most, or as many as the field before allows.", "scaling"
    )
    scale_down_window_s: float = number("Down window", 300.0, 0, 3600, "s", "HPA stabilization.", "scaling")
    scale_down_percent: float = number("Down by", 100.0, 0, 100, "%/15 s", "At most.", "scaling")
    keda_activation: float = number(
        "KEDA activation", 0.0, 0, 1e9, "of the metric", "Its total above which KEDA is active.", "scaling"
    )
    polling_s: float = number("KEDA polling", 30.0, 1, 3600, "s", "From 0 to 1.", "scaling")
    cooldown_s: float = number("KEDA cooldown", 300.0, 0, 86_400, "s", "From 1 to 0.", "scaling")
    grace_s: float = number("Drain", 30.0, 0, 86_400, "s", "Time to finish requests before a replica goes.", "scaling")
    provision_s: float = number(
        "Node provisioning", 120.0, 0, 86_400, "s", "Boot and join; 1 to 10 minutes, or never.", "start"
    )
    image_gib: float = number("Image", 10.0, 0, 1000, "GiB", "Pulled once a node and version.", "start")
    image_gib_s: float = number("Image pull", 0.5, 0.001, 1000, "GiB/s", "Pull and unpack.", "start")
    weights_gib_s: float = number(
        "Weight loading", 2.0, 0.001, 1000, "GiB/s", "Logs: 1.8 to 5.2 from disk, 0.04 from slow NFS.", "start"
    )
    warm_up_s: float = number(
        "Engine start", 60.0, 0, 86_400, "s", "Compile (1-57 s), graph capture (5-81 s), profiling.", "start"
    )
    node_failure_hours: float | None = number(
        "Node failures", None, 0.01, 1e7, "h", "Mean time between failures of one node; empty: none.", "faults"
    )
    repair_s: float = number("Repair", 3600.0, 0, 1e7, "s", "Until the node can be used again.", "faults")
    detect_s: float = number("Health checks", 10.0, 0, 3600, "s", "Until the gateway knows.", "faults")
    spot_interruptions_per_hour: float | None = number(
        "Spot interruptions", None, 1e-6, 1000, "per node-hour", "Empty: none.", "faults"
    )
    spot_notice_s: float = number("Spot notice", 30.0, 0, 3600, "s", "30 s or 2 min, by provider.", "faults")
    spare_nodes: int = integer("Spare nodes", 1, 0, 10_000, "nodes", "That can be had to replace lost ones.", "faults")
    max_retries: int = integer("Retries", 3, 0, 100, "times", "After a lost or refusing replica.", "faults")
    upgrade_at_s: float | None = number("Upgrade at", None, 0, 1e9, "s", "A rolling upgrade; empty: none.", "faults")
    max_surge: int = integer("Upgrade surge", 1, 0, 1000, "replicas", "New ones above the wanted number.", "faults")
    max_unavailable: int = integer("Unavailable", 0, 0, 1000, "replicas", "Below the wanted number.", "faults")
    seed: int = integer("Seed", 0, 0, 2**53, "", "The same seed gives the same run.", "run")
