"""Running a simulation: feeding traffic to the compiled loop, and stopping where someone must act.

``simulate`` is the whole of it: a fleet, an iterable of traffic batches sorted by arrival, and, where
the fleet changes while it runs, a control plane (autoscaler, failures, upgrades).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from planner.engine.simulate import codes
from planner.engine.simulate.billing import Bill
from planner.engine.simulate.handle import table_of
from planner.engine.simulate.kernel import advance, start_replica, stop_replica
from planner.engine.simulate.layout import Array, State, Traffic
from planner.engine.simulate.results import Outcome, read_outcome
from planner.engine.simulate.setup import Fleet, distances
from planner.engine.simulate.state import (
    close_loop,
    coefficient_records,
    grow_cache,
    grow_events,
    grow_slots,
    kind_records,
    new_state,
    pool_records,
    with_rows,
)
from planner.engine.simulate.traffic import empty_batch

FLUSH_ROWS = 65_536
MOST_EVENTS = 1 << 16
"""Handled between two reports of progress: a fraction of a second."""
MOST_LOOKS = 1 << 25
"""The same where a gateway looks at every replica of a large fleet for every request."""
REPLICAS_A_REPORT = 1024

RowsSink = Callable[[Array], None]
"""Takes finished requests (``layout.ROW`` records, in order of leaving); the array is reused afterwards."""
Progress = Callable[[int, float], None]
"""Told how many requests have arrived and the simulated time; may raise to stop the run."""


class ControlPlane(Protocol):
    """Whoever changes the fleet while it runs."""

    def next_s(self) -> float:
        """When it next wants to act; infinity for never."""

    def act(self, run: Run, now_s: float) -> None:
        """Act now: start, stop or drain replicas."""

    def start(self, run: Run) -> None:
        """Bring up what runs at time 0."""


@dataclass(slots=True, kw_only=True)
class EverythingUp:
    """No control: every replica of every pool is ready from the first second to the last."""

    def next_s(self) -> float:
        """Never."""
        return math.inf

    def act(self, run: Run, now_s: float) -> None:
        """Nothing to do."""

    def start(self, run: Run) -> None:
        """All replicas of all pools."""
        for number in range(len(run.state.replicas)):
            if number % REPLICAS_A_REPORT == 0:
                run.tell()
            run.rent(number, 0.0)
            run.bring_up(number, 0.0)


@dataclass(slots=True, eq=False)
class Run:
    """A simulation under way: the state, and what a control plane may do to it."""

    fleet: Fleet
    progress: Progress | None = None
    lasts_s: float = 0.0
    """The fleet is kept so long at least, whatever there is to serve; 0: until the last request has left."""
    state: State = field(init=False)
    table: Array = field(init=False)
    bill: Bill = field(init=False)
    traffic_is_over: bool = False
    last_arrival_s: float = 0.0

    def __post_init__(self) -> None:
        fleet = self.fleet
        kinds = list(dict.fromkeys(id(pool.kind) for pool in fleet.pools))
        by_id = {id(pool.kind): pool.kind for pool in fleet.pools}
        records = kind_records([by_id[kind].record() for kind in kinds])
        coefficients = coefficient_records([by_id[kind].coefficients for kind in kinds])
        replicas = [
            (kinds.index(id(pool.kind)), number) for number, pool in enumerate(fleet.pools) for _ in range(pool.places)
        ]
        state = new_state(records, coefficients, pool_records([p.record() for p in fleet.pools]), replicas, fleet.seed)
        header = state.fleet[0]
        header["max_retries"], header["retry_s"] = fleet.max_retries, fleet.retry_s
        header["cancel_s"] = math.inf if fleet.client_timeout_s is None else fleet.client_timeout_s
        header["slo_ttft_s"] = math.inf if fleet.slo_ttft_s is None else fleet.slo_ttft_s
        header["slo_tpot_s"] = math.inf if fleet.slo_tpot_s is None else fleet.slo_tpot_s
        header["most_live"] = fleet.most_at_once
        header["lasts_s"] = self.lasts_s
        if fleet.loop is not None:
            state = close_loop(state, fleet.loop, fleet.seed)
        self._use(state._replace(distance=np.ascontiguousarray(distances(fleet))))
        self.bill = Bill(fleet)
        self.state.replicas["unit"] = self.bill.unit_of_replica
        self.state.replicas["unit_room"] = self.bill.room_of_unit[self.bill.unit_of_replica]

    def _use(self, state: State) -> None:
        self.state = state
        self.table = table_of(state)

    @property
    def now_s(self) -> float:
        """Simulated time."""
        return float(self.state.fleet["now"][0])

    def use_hashes(self, hash_ids: Array) -> None:
        """Block hashes of the whole trace, where it has them."""
        self._use(self.state._replace(hash_ids=np.ascontiguousarray(hash_ids, dtype=np.int64)))

    def keep_rows(self) -> None:
        """Keep one row per request from here on."""
        self._use(with_rows(self.state, FLUSH_ROWS + len(self.state.slots) + 64))

    def tell(self) -> None:
        """Report progress; raises where the run is to stop. Whatever takes long calls it again and again."""
        if self.progress is not None:
            self.progress(int(self.state.fleet["arrived"][0]), self.now_s)

    def advance(self, traffic: Traffic, until_s: float, last: bool, sink: RowsSink | None) -> int:
        """Simulate until ``until_s``, the end of ``traffic`` or the end of everything; says which."""
        events = max(1, min(MOST_EVENTS, MOST_LOOKS // max(len(self.state.replicas), 1)))
        while True:
            code = advance(self.table, traffic, until_s, last, events)
            if code == codes.PAUSED:
                self.tell()
            elif code == codes.GROW_SLOTS:
                self._flush(sink)
                self._use(grow_slots(self.state))
                if self.state.fleet["keep_rows"][0]:
                    self.keep_rows()
            elif code == codes.GROW_EVENTS:
                self._use(grow_events(self.state))
            elif code == codes.GROW_CACHE:
                self._use(grow_cache(self.state))
            elif code == codes.FLUSH_ROWS:
                self._flush(sink)
            else:
                return int(code)

    def _flush(self, sink: RowsSink | None) -> None:
        rows = int(self.state.fleet["rows"][0])
        if sink is not None and rows:
            sink(self.state.rows[:rows])
        self.state.fleet["rows"] = 0

    def rent(self, replica: int, now_s: float) -> None:
        """Pay for a replica from now on, ready or not."""
        if not self.state.replicas["billed"][replica]:
            self.state.replicas["billed"][replica] = 1
            self.bill.begin(replica, now_s)

    def give_up(self, replica: int, now_s: float) -> None:
        """Stop paying for a replica."""
        if self.state.replicas["billed"][replica]:
            self.state.replicas["billed"][replica] = 0
            self.bill.end(replica, now_s)

    def bring_up(self, replica: int, now_s: float) -> None:
        """A replica serves from now on, and the gateway knows."""
        start_replica(self.table, replica, now_s)
        self.include(replica)

    def take_down(self, replica: int, now_s: float) -> int:
        """A replica is gone at once; returns the requests it lost. The gateway may still believe in it."""
        return int(stop_replica(self.table, replica, now_s))

    def outstanding(self, replica: int) -> int:
        """Requests sent to a replica that it has not answered."""
        return int(self.state.replicas["outstanding"][replica])

    def stuck_for_s(self, until_s: float) -> float:
        """How long, by ``until_s``, nothing has left since the last request came; 0 while more may come, or the
        run lasts anyway.
        """
        if not self.traffic_is_over or self.state.fleet["live"][0] == 0 or until_s < self.lasts_s:
            return 0.0
        return until_s - max(self.last_arrival_s, float(self.state.fleet["last_left"][0]))

    def include(self, replica: int) -> None:
        """The gateway sends requests to a replica again."""
        self._set_members(replica, present=True)

    def exclude(self, replica: int) -> None:
        """The gateway sends no more requests to a replica."""
        self._set_members(replica, present=False)

    def _set_members(self, replica: int, *, present: bool) -> None:
        pool = int(self.state.replicas["pool"][replica])
        count = int(self.state.pools["members"][pool])
        members = self.state.members[pool]
        at = int(np.searchsorted(members[:count], replica))
        found = at < count and int(members[at]) == replica
        self.state.fleet["drain"] = 1
        # In order, and found by halving: a fleet of many thousand comes up in as many short moves.
        if present == found:
            return
        if present:
            members[at + 1 : count + 1] = members[at:count]
            members[at] = replica
        else:
            members[at : count - 1] = members[at + 1 : count]
        self.state.pools["members"][pool] += int(present) - int(found)


def simulate(
    fleet: Fleet,
    batches: Iterable[Traffic],
    *,
    control: ControlPlane | None = None,
    hash_ids: Array | None = None,
    rows: RowsSink | None = None,
    progress: Progress | None = None,
    lasts_s: float = 0.0,
) -> Outcome:
    """Serve all traffic with the fleet and say how it went.

    Batches must be sorted by arrival, within and across. The run ends when every request has left,
    or when nothing more can happen to those that haven't; but not before ``lasts_s``, the time that was asked for:
    until then the fleet scales, breaks and is paid for. In a closed loop arrivals are the earliest times at which
    requests may be sent, and batches are asked for until the loop closes; one that runs out of requests ends with them.
    """
    run = Run(fleet, progress, lasts_s)
    plane: ControlPlane = control or EverythingUp()
    if hash_ids is not None:
        run.use_hashes(hash_ids)
    if rows is not None:
        run.keep_rows()
    plane.start(run)
    for batch, last in _with_last(batches):
        run.state.fleet["cursor"] = 0
        # Clients that wait for answers send nothing by themselves.
        run.traffic_is_over = last or fleet.loop is not None
        if len(batch.arrival_s):
            run.last_arrival_s = float(batch.arrival_s[-1])
        code = _serve(run, plane, batch, last, rows)
        run.tell()
        if code != codes.NEED_TRAFFIC:
            break
    run._flush(rows)
    return read_outcome(run.state, run.bill, run.last_arrival_s)


def _serve(run: Run, plane: ControlPlane, batch: Traffic, last: bool, rows: RowsSink | None) -> int:
    """Until more traffic is needed, all is done, or nothing more can happen; says which."""
    while True:
        until_s = plane.next_s()
        code = run.advance(batch, until_s, last, rows)
        if code != codes.REACHED or math.isinf(until_s):
            return code
        run.state.fleet["now"] = until_s
        plane.act(run, until_s)
        run.tell()


def _with_last(batches: Iterable[Traffic]) -> Iterator[tuple[Traffic, bool]]:
    """Each batch, and whether it is the last; one empty batch where there is none."""
    held: Traffic | None = None
    for batch in batches:
        if held is not None:
            yield held, False
        held = batch
    yield (held if held is not None else empty_batch()), True
