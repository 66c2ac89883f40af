"""Rolling upgrades, as a Kubernetes Deployment does them: bounded by surge and by what may be unavailable.

An upgrade is over when every replica wanted serves in its new version. Where its surge has left replicas on more nodes
than they need, nodes are emptied then, one at a time: what is left on one starts on another that has a free place and
is rented anyway, goes when that serves, and the node is given back.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from planner.engine.simulate.layout import Array
from planner.engine.simulate.places import DRAINING, READY, STARTING, Places

IDLE: Final = 0
UPGRADING: Final = 1
SETTLING: Final = 2
"""Waiting for those that drain: their places may be had then."""
MOVING: Final = 3
"""Waiting for what replaces the replicas of a node."""
EMPTYING: Final = 4
"""Waiting for these to have gone."""


class Upgrades:
    """Rolls out new versions at their times."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._at = [IDLE] * len(places.lives)
        self._leaving: list[list[int]] = [[] for _ in places.lives]
        """Replicas of the node that is being emptied, by pool."""
        for pool, life in enumerate(places.lives):
            if life.upgrade is not None:
                places.clock.at(life.upgrade.at_s, partial(self._begin, pool))
        places.on_ready.append(self._changed)
        places.on_off.append(self._changed)
        places.on_wanted.append(self._wanted)

    def _begin(self, pool: int, now_s: float) -> None:
        upgrade = self._places.lives[pool].upgrade
        if upgrade is not None:
            self._places.latest_version[pool] += 1
            self._places.surge[pool] = upgrade.max_surge
            self._at[pool] = UPGRADING
            self._proceed(pool, now_s)

    def _changed(self, place: int, now_s: float) -> None:
        self._go_on(self._places.pool[place], now_s)

    def _wanted(self, pool: int, now_s: float) -> None:
        if self._at[pool] != UPGRADING or not self._has_old(pool):
            self._go_on(pool, now_s)

    def _go_on(self, pool: int, now_s: float) -> None:
        if self._at[pool] == UPGRADING:
            self._proceed(pool, now_s)
        elif self._at[pool] == SETTLING:
            self._next_node(pool, now_s)
        elif self._at[pool] == MOVING:
            self._move(pool, now_s)
        elif self._at[pool] == EMPTYING:
            self._empty(pool, now_s)

    def _old(self, pool: int) -> Array:
        """Living replicas of an older version: those that don't serve yet first, then from the highest place."""
        places = self._places
        living = places.living(pool)
        old = living[places.version[living] < places.latest_version[pool]][::-1]
        ordered: Array = old[np.argsort(places.state[old] == READY, kind="stable")]
        return ordered

    def _has_old(self, pool: int) -> bool:
        return len(self._old(pool)) > 0

    def _is_old(self, place: int) -> bool:
        places = self._places
        lives = places.state[place] in (STARTING, READY)
        return bool(lives and places.version[place] < places.latest_version[places.pool[place]])

    def _proceed(self, pool: int, now_s: float) -> None:
        """New ones start as far as the surge allows, old ones go as far as enough others serve."""
        places = self._places
        upgrade = places.lives[pool].upgrade
        if upgrade is None:
            return
        needed = places.wanted[pool] - upgrade.max_unavailable
        spare = places.serving(pool) - needed
        for place in map(int, self._old(pool)):
            # One that never served is off at once, and those that are told of it may have gone on from there.
            if not self._is_old(place):
                continue
            if places.state[place] == READY:
                if spare <= 0:
                    break
                spare -= 1
            places.let_go(place, now_s)
        if self._at[pool] != UPGRADING:
            return
        if not self._has_old(pool):
            places.surge[pool] = 0
        places.reconcile(pool, now_s)
        if self._at[pool] != UPGRADING or self._has_old(pool) or places.serving(pool) < places.wanted[pool]:
            return
        places.note("upgraded", now_s, pool)
        self._next_node(pool, now_s)

    def _next_node(self, pool: int, now_s: float) -> None:
        """Begin to empty a node that isn't needed, if there is one."""
        self._at[pool] = SETTLING
        if (self._places.state[self._places.of_pool[pool]] == DRAINING).any():
            return
        self._leaving[pool] = self._strays(pool)
        self._at[pool] = MOVING if self._leaving[pool] else IDLE
        if self._leaving[pool]:
            self._places.close(self._leaving[pool][0])
            self._places.surge[pool] = len(self._leaving[pool])
            self._places.reconcile(pool, now_s)

    def _strays(self, pool: int) -> list[int]:
        """The replicas of a node, with the fewest, that all serve and that other nodes in use have room for."""
        places = self._places
        node_of = places.run.bill.unit_of_replica
        nodes, counts = np.unique(node_of[places.living(pool)], return_counts=True)
        free = node_of[places.free(pool)]
        room = np.bincount(free, minlength=int(node_of.max(initial=-1)) + 1)[nodes]
        fits = counts <= room.sum() - room
        order = np.lexsort((-nodes, counts))
        for number in order[fits[order]]:
            own = np.flatnonzero(node_of == nodes[number])
            strays: list[int] = own[places.state[own] == READY].tolist()
            if len(strays) == counts[number]:
                return strays
        return []

    def _move(self, pool: int, now_s: float) -> None:
        """Let a node's replicas go once enough others serve."""
        places = self._places
        strays = [place for place in self._leaving[pool] if places.state[place] == READY]
        if strays and places.serving(pool) - len(strays) < places.wanted[pool]:
            return
        self._at[pool] = EMPTYING
        places.surge[pool] = 0
        for place in strays:
            places.let_go(place, now_s)
        self._empty(pool, now_s)

    def _empty(self, pool: int, now_s: float) -> None:
        """Once a node is empty, see to the next."""
        place = self._leaving[pool][0]
        if self._places.run.bill.is_rented(place):
            return
        self._at[pool] = SETTLING
        self._places.reopen(place)
        self._places.reconcile(pool, now_s)
        if self._at[pool] == SETTLING:
            self._next_node(pool, now_s)
