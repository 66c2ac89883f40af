"""The control plane of a fleet: autoscalers, health checks, failures, spot notices and upgrades over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from planner.engine.simulate.autoscaling import HpaState, Keda, KedaState, Reading
from planner.engine.simulate.clock import Clock
from planner.engine.simulate.disruption import Disruption
from planner.engine.simulate.incidents import Incidents
from planner.engine.simulate.lifecycle import Autoscaler, Incident, PoolLife
from planner.engine.simulate.places import Places
from planner.engine.simulate.readings import Meter, read_metric
from planner.engine.simulate.run import REPLICAS_A_REPORT, Run
from planner.engine.simulate.upgrades import Upgrades

GIVE_UP_S = 86_400.0
"""Requests that can't be served end a run once nothing has left for so long after the last arrival."""


class FleetControl:
    """Runs every pool's life; give it to ``simulate`` as its control plane, once."""

    def __init__(self, lives: Sequence[PoolLife], *, seed: int = 0) -> None:
        self._lives = lives
        self._seed = seed
        self._clock = Clock()

    def start(self, run: Run) -> None:
        """Bring up each pool's first replicas, warm, and set all clocks."""
        self._run = run
        self._places = Places(run, self._lives, self._clock)
        Disruption(self._places, self._seed)
        Upgrades(self._places)
        for pool, life in enumerate(self._lives):
            for number, place in enumerate(self._places.of_pool[pool][: self._places.wanted[pool]].tolist()):
                if number % REPLICAS_A_REPORT == 0:
                    run.tell()
                self._places.start_warm(place, 0.0)
            if life.autoscaler is not None:
                _Scaling(self._places, pool, life.autoscaler)
        self._places.incidents.clear()

    @property
    def happened(self) -> Incidents:
        """What happened: all counted, of much the most telling."""
        return self._places.incidents.read()

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """What is kept of it, in order."""
        return self.happened.kept

    def next_s(self) -> float:
        """The earliest event; never again once the last requests are beyond help."""
        next_s = self._clock.next_s
        return math.inf if self._run.stuck_for_s(next_s) > GIVE_UP_S else next_s

    def act(self, run: Run, now_s: float) -> None:
        """Do all that is due."""
        self._clock.run(now_s)


class _Scaling:
    """One pool's autoscaler: scrapes, syncs and, for KEDA, polls."""

    def __init__(self, places: Places, pool: int, scaler: Autoscaler) -> None:
        self._places = places
        self._pool = pool
        self._metric = scaler.metric
        self._meter = Meter()
        self._scraped = Reading(total=0.0, ready=0)
        clock = places.clock
        clock.every(scaler.scrape_s, self._scrape)
        if isinstance(scaler.settings, Keda):
            keda = KedaState.of(scaler.settings)
            clock.every(scaler.settings.polling_s, partial(self._poll, keda))
            clock.every(scaler.settings.hpa_sync_s, partial(self._sync, keda.hpa))
        else:
            clock.every(scaler.settings.sync_s, partial(self._sync, HpaState(settings=scaler.settings)))

    def _read(self, now_s: float) -> Reading:
        places = self._places
        ready = places.ready(self._pool)
        total = read_metric(places.run, self._meter, self._pool, ready, self._metric, now_s)
        missing = sum(places.pool[place] == self._pool for place in places.unnoticed)
        return Reading(total=total, ready=len(ready), unready=places.starting(self._pool), missing=missing)

    def _scrape(self, now_s: float) -> None:
        self._scraped = self._read(now_s)

    def _sync(self, hpa: HpaState, now_s: float) -> None:
        current = self._places.wanted[self._pool]
        self._places.want(self._pool, hpa.sync(now_s, current, self._scraped), now_s)

    def _poll(self, keda: KedaState, now_s: float) -> None:
        # KEDA asks the source itself when it polls; only its HPA sees what was scraped.
        current = self._places.wanted[self._pool]
        self._places.want(self._pool, keda.poll(now_s, current, self._read(now_s).total), now_s)
