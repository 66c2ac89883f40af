"""How replicas come and go: cold start, failure and repair, spot interruption, rolling upgrade. Settings only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.engine.simulate.autoscaling import Hpa, Keda, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """From asking for a replica to its first request; the parts add up.

    >>> ColdStart(provision_s=120, image_gib=10, image_gib_s=0.5, weights_gib=66, weights_gib_s=4, warm_up_s=60).cold_s
    216.5
    """

    provision_s: float = 0.0
    """Getting the node: quota, boot, join."""
    image_gib: float = 0.0
    image_gib_s: float = 0.5
    """Pull and unpack."""
    weights_gib: float = 0.0
    """That each GPU-holding process reads, all of one replica."""
    weights_gib_s: float = 2.0
    """The slowest of storage, network, PCIe and decoding."""
    warm_up_s: float = 0.0
    """Start of the engine: compile, profile, capture."""

    @property
    def node_s(self) -> float:
        """Until a new node is there, with the image: once for all its replicas."""
        return self.provision_s + self.image_s

    @property
    def image_s(self) -> float:
        """Pull and unpack, once a node and version."""
        return self.image_gib / self.image_gib_s

    @property
    def cold_s(self) -> float:
        """On a new node."""
        return self.node_s + self.restart_s

    @property
    def restart_s(self) -> float:
        """On a node that has the image."""
        return self.weights_gib / self.weights_gib_s + self.warm_up_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Units (nodes) that die without notice, at a constant rate each."""

    mean_hours: float
    """Between failures of one unit."""
    repair_s: float = 3600.0
    """Until the unit's place can be used again."""
    detect_s: float = 10.0
    """Until health checks have found out; until then the gateway sends requests that are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotInterruptions:
    """Units taken back by the provider."""

    per_unit_hour: float
    notice_s: float = 30.0
    """Known beforehand: the gateway sends nothing more, and a replacement starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingUpgrade:
    """A new version rolled out as a Kubernetes Deployment does."""

    at_s: float
    max_surge: int = 1
    """Replicas above the wanted number, new ones starting."""
    max_unavailable: int = 0
    """Replicas below the wanted number, old ones gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """Which autoscaler watches which metric of a pool."""

    settings: Hpa | Keda
    metric: Metric
    scrape_s: float = 15.0
    """The metric is as old as the last scrape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLife:
    """What happens to one pool's replicas during a run."""

    start: ColdStart = field(default_factory=ColdStart)
    grace_s: float = 30.0
    """A replica that is to go finishes its requests for so long; what is left then is sent again."""
    autoscaler: Autoscaler | None = None
    failures: Failures | None = None
    spot: SpotInterruptions | None = None
    upgrade: RollingUpgrade | None = None


IncidentKind = Literal["scaled", "failed", "noticed", "interrupted", "repaired", "ready", "upgraded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that happened to the fleet."""

    at_s: float
    kind: IncidentKind
    pool: int
    replica: int | None = None
    node: int | None = None
    """Whose replica it is, by the number of its first replica; nodes that are rented together count as one."""
    replicas: int | None = None
    """Scaled: the new number wanted."""
    lost_requests: int = 0
    """In flight when their replica went; sent again."""
