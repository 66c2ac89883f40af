"""The places that replicas of a fleet may take: off, starting, ready, draining or dead.

Whatever changes, ``reconcile`` brings the number that are starting or ready to what their pool wants,
as far as there are free places. Nodes that are rented fill up before another is, from the lowest place up, and
empty from the highest down. A new node comes once, image and all, for however many of its replicas wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from planner.engine.simulate.clock import Clock
from planner.engine.simulate.incidents import IncidentLog
from planner.engine.simulate.layout import Array
from planner.engine.simulate.lifecycle import Incident, IncidentKind, PoolLife
from planner.engine.simulate.run import Run

OFF: Final = 0
STARTING: Final = 1
READY: Final = 2
DRAINING: Final = 3
DEAD: Final = 4
DRAIN_CHECK_S: Final = 1.0

Told = Callable[[int, float], None]
"""Told a place, or a pool, and the time."""


class Places:
    """State of every place, and the moves between states."""

    def __init__(self, run: Run, lives: Sequence[PoolLife], clock: Clock) -> None:
        self.run = run
        self.lives = lives
        self.clock = clock
        self.pool: list[int] = run.state.replicas["pool"].tolist()
        self.of_pool = [np.flatnonzero(run.state.replicas["pool"] == number) for number in range(len(lives))]
        self.state = np.full(len(self.pool), OFF)
        self.version = np.zeros(len(self.pool), np.int64)
        self.latest_version = [0] * len(lives)
        self.surge = [0] * len(lives)
        self.wanted = [pool.replicas for pool in run.fleet.pools]
        self.incidents = IncidentLog()
        self.unnoticed: set[int] = set()
        """Dead, and health checks haven't found out."""
        self.on_ready: list[Told] = []
        self.on_off: list[Told] = []
        self.on_wanted: list[Told] = []
        self._epoch = np.zeros(len(self.pool), np.int64)
        self._there_s = np.zeros(len(run.bill.gpus_of_unit))
        """When each rented node is there, or will be, with the image of the last version that was asked for on it."""
        self._image = np.zeros(len(self._there_s), np.int64)
        """Which version that is."""
        self._left_s = np.full(len(self._there_s), -np.inf)
        """When each node lost its last replica, and was given back unless another starts on it in the same moment."""
        self._closed = np.zeros(len(self._there_s), np.int64)
        """For how many reasons nothing is to start on a node: broken, being taken back, to be given back."""

    def note(self, kind: IncidentKind, now_s: float, pool: int, replica: int | None = None, **more: Any) -> None:
        """Keep an incident for the report."""
        node = None if replica is None else self.run.bill.first_replica(replica)
        self.incidents.note(Incident(at_s=now_s, kind=kind, pool=pool, replica=replica, node=node, **more))

    def living(self, pool: int) -> Array:
        """Places that serve or will."""
        own = self.of_pool[pool]
        state = self.state[own]
        found: Array = own[(state == STARTING) | (state == READY)]
        return found

    def ready(self, pool: int) -> list[int]:
        """Places that serve."""
        return self._in_state(pool, READY)

    def starting(self, pool: int) -> int:
        """How many don't serve yet."""
        return int(np.count_nonzero(self.state[self.of_pool[pool]] == STARTING))

    def serving(self, pool: int) -> int:
        """How many serve."""
        return int(np.count_nonzero(self.state[self.of_pool[pool]] == READY))

    def _in_state(self, pool: int, state: int) -> list[int]:
        own = self.of_pool[pool]
        found: list[int] = own[self.state[own] == state].tolist()
        return found

    def want(self, pool: int, replicas: int, now_s: float) -> None:
        """Change how many replicas a pool should have."""
        if replicas != self.wanted[pool]:
            self.wanted[pool] = replicas
            self.note("scaled", now_s, pool, replicas=replicas)
            self.reconcile(pool, now_s)
            for told in self.on_wanted:
                told(pool, now_s)

    def reconcile(self, pool: int, now_s: float) -> None:
        """Start or let go replicas until as many as wanted are starting or ready."""
        living = self.living(pool)
        limit = self.wanted[pool] + self.surge[pool]
        if len(living) < limit:
            for place in self.free(pool)[: limit - len(living)].tolist():
                self._start(place, now_s)
            return
        if len(living) == limit:
            return
        # Those that don't serve yet go first, then the highest places, so that whole nodes empty.
        spare = sorted(living.tolist(), key=lambda place: (self.state[place] == READY, -place))
        for place in spare[: max(0, len(living) - limit)]:
            self.let_go(place, now_s)

    def free(self, pool: int) -> Array:
        """Places that may be started, those of nodes that are rented first."""
        own = self.of_pool[pool]
        bill = self.run.bill
        free = own[(self.state[own] == OFF) & (self._closed[bill.unit_of_replica[own]] == 0)]
        ordered: Array = free[np.argsort(~bill.are_rented(free), kind="stable")]
        return ordered

    def close(self, place: int) -> None:
        """Start nothing more on its node."""
        self._closed[self.run.bill.unit(place)] += 1

    def reopen(self, place: int) -> None:
        """Take one ``close`` back."""
        self._closed[self.run.bill.unit(place)] -= 1

    def start_warm(self, place: int, now_s: float) -> None:
        """Ready at once: what runs when the simulation begins."""
        node = self.run.bill.unit(place)
        self._there_s[node], self._image[node] = now_s, self.latest_version[self.pool[place]]
        self.run.rent(place, now_s)
        self._become_ready(place, now_s)

    def _start(self, place: int, now_s: float) -> None:
        start = self.lives[self.pool[place]].start
        node = self.run.bill.unit(place)
        version = self.latest_version[self.pool[place]]
        seconds = start.cold_s
        if self.run.bill.is_rented(place) or self._left_s[node] == now_s:
            if self._image[node] != version:
                self._there_s[node] = max(self._there_s[node], now_s) + start.image_s
            seconds = max(self._there_s[node] - now_s, 0.0) + start.restart_s
        else:
            self._there_s[node] = now_s + start.node_s
        self._image[node] = version
        self.run.rent(place, now_s)
        self._enter(place, STARTING)
        self.version[place] = version
        epoch = int(self._epoch[place])

        def started(at_s: float) -> None:
            if self._epoch[place] == epoch:
                self._become_ready(place, at_s)

        self.clock.at(now_s + seconds, started)

    def _become_ready(self, place: int, now_s: float) -> None:
        self._enter(place, READY)
        self.run.bring_up(place, now_s)
        self.note("ready", now_s, self.pool[place], replica=place)
        for told in self.on_ready:
            told(place, now_s)

    def let_go(self, place: int, now_s: float) -> None:
        """Drain: no new requests; off with the last one, or at the end of the grace period."""
        if self.state[place] == STARTING:
            self.switch_off(place, now_s)
            return
        self.drain(place)
        deadline_s = now_s + self.lives[self.pool[place]].grace_s
        epoch = int(self._epoch[place])

        def check(at_s: float) -> None:
            if self._epoch[place] != epoch:
                return
            if self.run.outstanding(place) == 0 or at_s >= deadline_s:
                self.run.take_down(place, at_s)
                self.switch_off(place, at_s)
            else:
                self.clock.at(min(at_s + DRAIN_CHECK_S, deadline_s), check)

        self.clock.at(now_s, check)

    def drain(self, place: int) -> None:
        """The gateway sends it nothing more."""
        self._enter(place, DRAINING)
        self.run.exclude(place)

    def die(self, place: int, now_s: float) -> int:
        """Gone without notice; returns the requests it lost. The gateway doesn't know yet."""
        lost = self.run.take_down(place, now_s) if self.state[place] != STARTING else 0
        self._enter(place, DEAD)
        self.unnoticed.add(place)
        self.run.give_up(place, now_s)
        return lost

    def switch_off(self, place: int, now_s: float, *, with_node: bool = False) -> None:
        """Off, free to be started again, and no longer paid for; ``with_node``: the node goes whatever follows."""
        self.run.exclude(place)
        self._enter(place, OFF)
        was_rented = self.run.bill.is_rented(place)
        self.run.give_up(place, now_s)
        if was_rented and not with_node and not self.run.bill.is_rented(place):
            self._left_s[self.run.bill.unit(place)] = now_s
        for told in self.on_off:
            told(place, now_s)

    def _enter(self, place: int, state: int) -> None:
        # What was planned for the place in its old state no longer holds.
        self._epoch[place] += 1
        self.state[place] = state
        self.unnoticed.discard(place)
