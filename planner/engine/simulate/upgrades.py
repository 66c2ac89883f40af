"""Rolling upgrades, as a Kubernetes Deployment does them: bounded by surge and by what may be unavailable."""

from __future__ import annotations

from functools import partial

import numpy as np

from planner.engine.simulate.places import READY, STARTING, Places


class Upgrades:
    """Rolls out new versions at their times."""

    def __init__(self, places: Places) -> None:
        self._places = places
        for pool, life in enumerate(places.lives):
            if life.upgrade is not None:
                places.clock.at(life.upgrade.at_s, partial(self._begin, pool))
        places.on_ready.append(self._changed)
        places.on_off.append(self._changed)

    def _begin(self, pool: int, now_s: float) -> None:
        upgrade = self._places.lives[pool].upgrade
        if upgrade is not None:
            self._places.latest_version[pool] += 1
            self._places.surge[pool] = upgrade.max_surge
            self._proceed(pool, now_s)

    def _changed(self, place: int, now_s: float) -> None:
        pool = self._places.pool[place]
        if self._places.latest_version[pool] > 0:
            self._proceed(pool, now_s)

    def _old(self, pool: int) -> list[int]:
        """Living replicas of an older version: those that don't serve yet first, then from the highest place."""
        places = self._places
        living = np.array(places.living(pool), dtype=np.int64)
        old = living[places.version[living] < places.latest_version[pool]][::-1]
        ordered: list[int] = old[np.argsort(places.state[old] == READY, kind="stable")].tolist()
        return ordered

    def _proceed(self, pool: int, now_s: float) -> None:
        """New ones start as far as the surge allows, old ones go as far as enough others serve."""
        places = self._places
        upgrade = places.lives[pool].upgrade
        old = self._old(pool)
        if upgrade is None or (not old and places.surge[pool] == 0):
            return
        needed = places.wanted[pool] - upgrade.max_unavailable
        spare = len(places.ready(pool)) - needed
        for place in old:
            if places.state[place] != STARTING:
                if spare <= 0:
                    break
                spare -= 1
            places.let_go(place, now_s)
        if not self._old(pool):
            places.surge[pool] = 0
            places.note("upgraded", now_s, pool)
        places.reconcile(pool, now_s)
