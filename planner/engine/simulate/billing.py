"""Time that is paid for, by rented unit: a node is billed while any of its replicas is up or coming up."""

from __future__ import annotations

import numpy as np

from planner.engine.simulate.layout import Array
from planner.engine.simulate.setup import Fleet
from planner.engine.units import SECONDS_PER_HOUR


class Bill:
    """Rented units of a fleet and how long each has been paid for."""

    def __init__(self, fleet: Fleet) -> None:
        units: list[int] = []
        pools: list[int] = []
        gpus: list[float] = []
        for number, pool in enumerate(fleet.pools):
            first = len(gpus)
            units += [first + replica // pool.replicas_per_unit for replica in range(pool.places)]
            count = -(-pool.places // pool.replicas_per_unit)
            pools += [number] * count
            gpus += [pool.gpus_per_unit] * count
        self.unit_of_replica: Array = np.array(units, dtype=np.int64)
        self.pool_of_unit: Array = np.array(pools, dtype=np.int64)
        self.gpus_of_unit: Array = np.array(gpus)
        rooms = np.array([pool.replicas_per_unit for pool in fleet.pools], dtype=np.int64)
        self.room_of_unit: Array = rooms[self.pool_of_unit]
        """Replicas that each has room for."""
        self._first_replica: Array = np.searchsorted(self.unit_of_replica, np.arange(len(gpus)))
        self._up = np.zeros(len(gpus), np.int64)
        self._since = np.zeros(len(gpus))
        self._paid_s = np.zeros(len(gpus))
        self._rentals = np.zeros(len(gpus), np.int64)
        self._replica_up = np.zeros(len(units), np.int64)
        self._replica_since = np.zeros(len(units))
        self._replica_paid_s = np.zeros(len(units))

    def begin(self, replica: int, now_s: float) -> None:
        """One more replica of its unit is paid for."""
        unit = self.unit_of_replica[replica]
        if self._up[unit] == 0:
            self._since[unit] = now_s
            self._rentals[unit] += 1
        self._up[unit] += 1
        self._replica_up[replica] = 1
        self._replica_since[replica] = now_s

    def end(self, replica: int, now_s: float) -> None:
        """One replica fewer; its unit is given back with its last."""
        unit = self.unit_of_replica[replica]
        self._up[unit] -= 1
        self._replica_up[replica] = 0
        self._replica_paid_s[replica] += now_s - self._replica_since[replica]
        if self._up[unit] == 0:
            self._paid_s[unit] += now_s - self._since[unit]

    def unit(self, replica: int) -> int:
        """The rented unit (node) of a replica."""
        return int(self.unit_of_replica[replica])

    def first_replica(self, replica: int) -> int:
        """The first replica of its unit: how a node is called."""
        return int(self._first_replica[self.unit(replica)])

    def rental(self, replica: int) -> int:
        """How many times its unit has been rented: another number, another node."""
        return int(self._rentals[self.unit(replica)])

    def is_rented(self, replica: int) -> bool:
        """Whether its unit is paid for now."""
        return bool(self._up[self.unit(replica)] > 0)

    def are_rented(self, replicas: Array) -> Array:
        """Whether the unit of each is paid for now."""
        rented: Array = self._up[self.unit_of_replica[replicas]] > 0
        return rented

    def neighbours(self, replica: int) -> list[int]:
        """All replicas of its unit, itself included."""
        return [int(other) for other in np.flatnonzero(self.unit_of_replica == self.unit(replica))]

    def paid_s(self, end_s: float) -> Array:
        """Seconds paid by unit, those still rented up to ``end_s``."""
        running: Array = np.where(self._up > 0, np.maximum(end_s - self._since, 0.0), 0.0)
        return self._paid_s + running

    def replica_s(self, end_s: float) -> Array:
        """Seconds paid by replica; places of a unit that stay empty are nobody's."""
        running: Array = np.where(self._replica_up > 0, np.maximum(end_s - self._replica_since, 0.0), 0.0)
        return self._replica_paid_s + running

    def replicas_up(self) -> Array:
        """Which replicas are paid for now: 0 or 1."""
        return self._replica_up.copy()

    def unit_hours(self, end_s: float) -> Array:
        """Hours paid by pool, all its units together."""
        hours: Array = np.zeros(int(self.pool_of_unit.max(initial=-1)) + 1)
        np.add.at(hours, self.pool_of_unit, self.paid_s(end_s) / SECONDS_PER_HOUR)
        return hours

    def units_up(self) -> Array:
        """Units rented now, by pool."""
        up: Array = np.zeros(int(self.pool_of_unit.max(initial=-1)) + 1)
        np.add.at(up, self.pool_of_unit, self._up > 0)
        return up

    def gpus_up(self) -> float:
        """GPUs rented now."""
        return float(self.gpus_of_unit[self._up > 0].sum())

    def gpu_hours(self, end_s: float) -> float:
        """GPU-hours paid, used or not."""
        return float((self.paid_s(end_s) * self.gpus_of_unit).sum()) / SECONDS_PER_HOUR
