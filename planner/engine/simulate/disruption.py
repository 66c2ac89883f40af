"""What breaks: nodes that fail without notice, and spot nodes that are taken back with one."""

from __future__ import annotations

from functools import partial

import numpy as np

from planner.engine.simulate.lifecycle import PoolLife
from planner.engine.simulate.places import DEAD, DRAINING, OFF, READY, STARTING, Places
from planner.engine.units import SECONDS_PER_HOUR


class Disruption:
    """Draws, for every node as it comes up, when it fails or is taken back; and does it."""

    def __init__(self, places: Places, seed: int) -> None:
        self._places = places
        self._random = np.random.default_rng(seed)
        self._armed: dict[int, int] = {}
        places.on_ready.append(self._arm)

    def _life(self, place: int) -> PoolLife:
        return self._places.lives[self._places.pool[place]]

    def _rental(self, place: int) -> int:
        return self._places.run.bill.rental(place)

    def _is_gone(self, place: int, rental: int) -> bool:
        """Whether the node of that rental has been given back, or lost."""
        return not self._places.run.bill.is_rented(place) or self._rental(place) != rental

    def _arm(self, place: int, now_s: float) -> None:
        """Once a rental: a node's later replicas share its fate."""
        unit = self._places.run.bill.unit(place)
        rental = self._rental(place)
        if self._armed.get(unit) == rental:
            return
        self._armed[unit] = rental
        life = self._life(place)
        if life.failures is not None:
            after_s = self._random.exponential(life.failures.mean_hours * SECONDS_PER_HOUR)
            self._places.clock.at(now_s + after_s, partial(self._fail, place, rental))
        if life.spot is not None and life.spot.per_unit_hour > 0:
            after_s = self._random.exponential(SECONDS_PER_HOUR / life.spot.per_unit_hour)
            self._places.clock.at(now_s + after_s, partial(self._notice, place, rental))

    def _fail(self, place: int, rental: int, now_s: float) -> None:
        failures = self._life(place).failures
        if failures is None or self._is_gone(place, rental):
            return
        places = self._places
        places.close(place)
        for victim in places.run.bill.neighbours(place):
            if places.state[victim] in (OFF, DEAD):
                continue
            lost = places.die(victim, now_s)
            places.note("failed", now_s, places.pool[victim], replica=victim, lost_requests=lost)
            places.clock.at(now_s + failures.detect_s, partial(self._detect, victim))
        places.clock.at(now_s + failures.repair_s, partial(self._repair, place))

    def _detect(self, place: int, now_s: float) -> None:
        if self._places.state[place] == DEAD:
            self._places.run.exclude(place)
            self._places.unnoticed.discard(place)
        self._places.reconcile(self._places.pool[place], now_s)

    def _repair(self, place: int, now_s: float) -> None:
        """The node of a place may be used again, and all its places with it."""
        places = self._places
        places.reopen(place)
        for victim in places.run.bill.neighbours(place):
            if places.state[victim] == DEAD:
                places.switch_off(victim, now_s)
                places.note("repaired", now_s, places.pool[victim], replica=victim)
        places.reconcile(places.pool[place], now_s)

    def _notice(self, place: int, rental: int, now_s: float) -> None:
        spot = self._life(place).spot
        if spot is None or self._is_gone(place, rental):
            return
        places = self._places
        places.close(place)
        for victim in places.run.bill.neighbours(place):
            if places.state[victim] == READY:
                places.drain(victim)
                places.note("noticed", now_s, places.pool[victim], replica=victim)
            elif places.state[victim] == STARTING:
                places.switch_off(victim, now_s)
        places.clock.at(now_s + spot.notice_s, partial(self._take_back, place, rental))
        places.reconcile(places.pool[place], now_s)

    def _take_back(self, place: int, rental: int, now_s: float) -> None:
        places = self._places
        places.reopen(place)
        if self._rental(place) != rental:
            return
        for victim in places.run.bill.neighbours(place):
            if places.state[victim] in (READY, DRAINING):
                lost = places.run.take_down(victim, now_s)
                places.note("interrupted", now_s, places.pool[victim], replica=victim, lost_requests=lost)
            if places.state[victim] in (STARTING, READY, DRAINING):
                places.switch_off(victim, now_s, with_node=True)
        places.reconcile(places.pool[place], now_s)
