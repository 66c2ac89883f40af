"""Autoscalers with the semantics of the real ones: Kubernetes' HPA (autoscaling/v2) and KEDA on top of it.

Pure state machines: they are told the time, the replicas and a metric, and answer how many replicas
there should be. Sources: the Kubernetes HPA algorithm and ``behavior`` documentation (v1.30), the HPA
controller's replica calculator, KEDA's ScaledObject documentation (2.14).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

Metric = Literal["queue", "concurrency", "kv_use", "requests_per_s", "utilization"]
METRICS: tuple[Metric, ...] = ("queue", "concurrency", "kv_use", "requests_per_s", "utilization")
SHARES: tuple[Metric, ...] = ("kv_use", "utilization")
"""Metrics that never pass 1."""
UNITS: dict[str, str] = {
    "queue": "requests a replica",
    "concurrency": "requests a replica",
    "requests_per_s": "req/s a replica",
    "kv_use": "share",
    "utilization": "share",
}
"""Of each metric's target."""


ROUNDING = 1e-9
JUST_BEFORE_S = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """At most so many replicas, or per cent of them, in a period."""

    kind: Literal["pods", "percent"]
    value: float
    period_s: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRules:
    """One direction of an HPA's ``behavior``; the policy that allows most change holds."""

    stabilization_s: float
    policies: tuple[ScalingPolicy, ...]


UP = ScalingRules(
    stabilization_s=0.0,
    policies=(ScalingPolicy(kind="percent", value=100.0), ScalingPolicy(kind="pods", value=4.0)),
)
"""The HPA's default: at once, doubling or 4 more every 15 s."""
DOWN = ScalingRules(stabilization_s=300.0, policies=(ScalingPolicy(kind="percent", value=100.0),))
"""The HPA's default: the highest recommendation of the last 5 minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """A HorizontalPodAutoscaler: settings only."""

    target: float
    """Of the metric, per replica."""
    external: bool = False
    """The metric comes from outside the replicas (a queue, a gateway): its total over the target, all replicas
    counted. False: the mean over those that serve, as for pod metrics."""
    min_replicas: int = 1
    max_replicas: int = 10
    sync_s: float = 15.0
    tolerance: float = 0.1
    up: ScalingRules = UP
    down: ScalingRules = DOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Keda:
    """A KEDA ScaledObject with one trigger: settings only. 1 to N is its HPA's work."""

    target: float
    """The trigger's threshold, per replica."""
    activation: float = 0.0
    """The trigger is active while its metric is above this."""
    min_replicas: int = 0
    max_replicas: int = 100
    polling_s: float = 30.0
    cooldown_s: float = 300.0
    """From the last time the trigger was active to scaling to zero; nothing else waits for it."""
    hpa_sync_s: float = 15.0
    tolerance: float = 0.1
    up: ScalingRules = UP
    down: ScalingRules = DOWN

    @property
    def hpa(self) -> Hpa:
        """The HPA that KEDA creates: never below one replica."""
        return Hpa(
            target=self.target,
            external=True,
            min_replicas=max(1, self.min_replicas),
            max_replicas=self.max_replicas,
            sync_s=self.hpa_sync_s,
            tolerance=self.tolerance,
            up=self.up,
            down=self.down,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an autoscaler is told of its pool."""

    total: float
    """Sum of the metric over ready replicas (and, for queues, the gateway)."""
    ready: int
    """Replicas that report."""
    unready: int = 0
    """Replicas that exist but don't serve yet."""
    missing: int = 0
    """Replicas that should report and don't: dead, and nobody has noticed."""


def desired_by_ratio(current: int, metric: float, target: float, tolerance: float = 0.1) -> int:
    """The HPA's core rule: ``ceil(current x metric / target)``, or no change within the tolerance.

    >>> desired_by_ratio(4, 1.35, 1.0), desired_by_ratio(4, 1.09, 1.0), desired_by_ratio(4, 0.5, 1.0)
    (6, 4, 2)
    """
    ratio = metric / target
    if abs(ratio - 1.0) <= tolerance + ROUNDING:
        return current
    return _ceil(current * ratio)


def desired_replicas(hpa: Hpa, current: int, reading: Reading) -> int:
    """What the metric alone asks for, replicas of which nothing is known taken conservatively.

    Where the rest asks for more, those that don't serve yet and those that don't report count as using nothing; where
    it asks for less, those that don't report count as at their target. If that turns the answer round, or brings it
    within the tolerance, nothing changes.

    >>> hpa = Hpa(target=10.0, max_replicas=50)
    >>> desired_replicas(hpa, 4, Reading(total=54.0, ready=4))
    6
    >>> desired_replicas(hpa, 6, Reading(total=54.0, ready=4, unready=2))
    6
    >>> desired_replicas(hpa, 4, Reading(total=6.0, ready=2, missing=2))
    3
    """
    if hpa.external:
        ratio = reading.total / (hpa.target * current)
        return current if _close(ratio, hpa) else _ceil(reading.total / hpa.target)
    if reading.ready == 0:
        return current
    seen = reading.total / reading.ready / hpa.target
    counted = reading.ready + reading.missing + (reading.unready if seen > 1.0 else 0)
    assumed = reading.missing * hpa.target if seen < 1.0 else 0.0
    ratio = (reading.total + assumed) / counted / hpa.target
    if _close(ratio, hpa) or (seen - 1.0) * (ratio - 1.0) < 0.0:
        return current
    wanted = _ceil(ratio * counted)
    turned = counted > reading.ready and (wanted > current if ratio < 1.0 else wanted < current)
    return current if turned else wanted


def _close(ratio: float, hpa: Hpa) -> bool:
    return abs(ratio - 1.0) <= hpa.tolerance + ROUNDING


def _ceil(value: float) -> int:
    """Up to the next whole number, unless only the last bits of a product are above one."""
    return math.ceil(value - ROUNDING)


@dataclass(slots=True, kw_only=True)
class HpaState:
    """An HPA at work: its recommendations and scalings so far."""

    settings: Hpa
    recommendations: deque[tuple[float, int]] = field(default_factory=deque)
    changes: deque[tuple[float, int]] = field(default_factory=deque)
    """(time, replicas added or, negative, removed)."""

    def sync(self, now_s: float, current: int, reading: Reading) -> int:
        """One sync: the replicas there should be from now on."""
        hpa = self.settings
        if current == 0:
            return 0
        wanted = desired_replicas(hpa, current, reading)
        wanted = self._stabilized(now_s, current, wanted)
        wanted = self._within_policies(now_s, current, wanted)
        wanted = min(max(wanted, hpa.min_replicas), hpa.max_replicas)
        if wanted != current:
            self.changes.append((now_s, wanted - current))
        return wanted

    def _stabilized(self, now_s: float, current: int, wanted: int) -> int:
        """Up: no more than the lowest recommendation of the up window; down: no less than the highest."""
        hpa = self.settings
        if not self.recommendations:
            # The controller records what it finds before its first sync: nothing shrinks in the first window.
            self.recommendations.append((now_s - JUST_BEFORE_S, current))
        self.recommendations.append((now_s, wanted))
        window_s = max(hpa.up.stabilization_s, hpa.down.stabilization_s)
        while self.recommendations[0][0] < now_s - window_s:
            self.recommendations.popleft()
        lowest = min(given for at, given in self.recommendations if at >= now_s - hpa.up.stabilization_s)
        highest = max(given for at, given in self.recommendations if at >= now_s - hpa.down.stabilization_s)
        if current < lowest:
            return lowest
        return min(current, highest) if current > highest else current

    def _within_policies(self, now_s: float, current: int, wanted: int) -> int:
        while self.changes and self.changes[0][0] < now_s - 3600.0:
            self.changes.popleft()
        if wanted > current:
            return min(wanted, max(self._most(now_s, current, each) for each in self.settings.up.policies))
        if wanted < current:
            return max(wanted, min(self._least(now_s, current, each) for each in self.settings.down.policies))
        return wanted

    def _most(self, now_s: float, current: int, policy: ScalingPolicy) -> int:
        added = sum(change for at, change in self.changes if change > 0 and at > now_s - policy.period_s)
        start = current - added
        if policy.kind == "pods":
            return start + int(policy.value)
        return math.ceil(start * (1.0 + policy.value / 100.0))

    def _least(self, now_s: float, current: int, policy: ScalingPolicy) -> int:
        removed = sum(-change for at, change in self.changes if change < 0 and at > now_s - policy.period_s)
        start = current + removed
        if policy.kind == "pods":
            return start - int(policy.value)
        return int(start * (1.0 - policy.value / 100.0))


@dataclass(slots=True, kw_only=True)
class KedaState:
    """KEDA at work: its own 0 to 1 and 1 to 0, and the HPA between."""

    settings: Keda
    hpa: HpaState
    last_active_s: float = -math.inf

    @classmethod
    def of(cls, settings: Keda) -> KedaState:
        """KEDA and its HPA at their start."""
        return cls(settings=settings, hpa=HpaState(settings=settings.hpa))

    def poll(self, now_s: float, current: int, metric: float) -> int:
        """One polling: wake from zero as soon as the trigger is active; sleep after the cooldown."""
        if metric > self.settings.activation:
            self.last_active_s = now_s
            return max(current, 1, self.settings.min_replicas) if current == 0 else current
        idle = now_s - self.last_active_s >= self.settings.cooldown_s
        return 0 if self.settings.min_replicas == 0 and current > 0 and idle else current
