"""The same fleet in plain Python, one iteration after another: what the compiled loop is checked and timed against.

It covers continuous batching with chunked prefill, KV blocks, preemption with recompute, lookahead, and
the round-robin and least-outstanding gateways. It is written for reading, not for speed.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.setup import ContinuousReplica
from planner.engine.step_time import StepCoefficients, step_time


@dataclass(slots=True, kw_only=True)
class ReferenceRequest:
    """One request; times are nan until they are known."""

    arrival_s: float
    input_tokens: int
    output_tokens: int
    generated: int = 0
    computed: int = 0
    target: int = 0
    chunk: int = 0
    ready_s: float = math.nan
    first_s: float = math.nan
    last_s: float = math.nan
    fill_s: float = 0.0
    """Later than ``first_s`` and ``last_s`` that the client has its tokens: the way through the pipeline."""
    pass_s: float = 0.0
    """What its longest chunk adds to an iteration: it passes the other pipeline stages in as long each."""
    replica: int = -1

    def blocks(self, tokens: int, block_tokens: int) -> int:
        return -(-tokens // block_tokens)


@dataclass(slots=True, kw_only=True)
class ReferenceReplica:
    """One continuous-batching replica."""

    coefficients: StepCoefficients
    block_tokens: int
    blocks: int
    max_seqs: int
    max_tokens: int
    lookahead: bool
    reserve_prompt: bool
    waiting: deque[ReferenceRequest] = field(default_factory=deque)
    running: list[ReferenceRequest] = field(default_factory=list)
    free: int = 0
    outstanding: int = 0
    preemptions: int = 0
    started_s: float = math.nan
    """Start of the iteration under way."""
    last_started_s: float = math.nan
    ends_s: float = math.inf
    prompt_token_s: float = 0.0
    late_blocks: int = 0
    """Freed when the last iteration ended, after the next had been put together."""
    late_seqs: int = 0

    def __post_init__(self) -> None:
        self.free = self.blocks

    def held(self, request: ReferenceRequest) -> int:
        """Blocks a running request holds."""
        tokens = request.computed + request.chunk
        if request.computed >= request.target:
            tokens = request.input_tokens + request.generated - 1
        return request.blocks(tokens, self.block_tokens)

    def compose(self, now_s: float) -> None:
        """Choose the next iteration; idle when there is nothing to do."""
        busy = math.isfinite(self.ends_s)
        while True:
            chosen = self._choose(self.last_started_s if busy and self.lookahead else now_s)
            if chosen or not busy or not self.waiting:
                break
            busy = False
            self.late_blocks = self.late_seqs = 0
        if not chosen:
            self.ends_s = math.inf
            self.late_blocks = self.late_seqs = 0
            return
        decodes = [r for r in self.running if r.computed >= r.target]
        context = sum(r.input_tokens + r.generated for r in decodes)
        prefills = [r for r in self.running if r.chunk]
        tokens = sum(r.chunk for r in prefills)
        pairs = sum(r.chunk * float(r.computed) + 0.5 * r.chunk * (r.chunk + 1) for r in prefills)
        seconds = step_time(self.coefficients, float(len(decodes)), float(context), float(tokens), pairs)
        alone = step_time(self.coefficients, float(len(decodes)), float(context), 0.0, 0.0)
        self.prompt_token_s = float(seconds - alone) / tokens if tokens else 0.0
        self.started_s = now_s
        self.ends_s = now_s + float(seconds)

    def _choose(self, seen_s: float) -> bool:
        preempted = self._make_room()
        reserved = self._crossing()
        budget = self.max_tokens - sum(r.computed >= r.target for r in self.running)
        for request in [r for r in self.running if r.computed < r.target]:
            chunk = min(request.target - request.computed, budget)
            more = request.blocks(request.computed + chunk, self.block_tokens) - self.held(request)
            while request in self.running and more > self.free - self.late_blocks - reserved:
                self._preempt()
                preempted = True
                reserved = self._crossing()
            if request not in self.running or not chunk:
                break
            self.free -= more
            request.chunk = chunk
            budget -= chunk
        if not preempted:
            self._admit(seen_s, budget, reserved)
        return bool(self.running)

    def _admit(self, seen_s: float, budget: int, reserved: int) -> None:
        while self.waiting and len(self.running) + self.late_seqs < self.max_seqs and budget > 0:
            request = self.waiting[0]
            target = request.input_tokens + request.generated
            chunk = min(target, budget)
            until = target if self.reserve_prompt else chunk
            if request.ready_s > seen_s or (
                request.blocks(until, self.block_tokens) > self.free - self.late_blocks - reserved
            ):
                return
            self.waiting.popleft()
            request.target, request.computed, request.chunk = target, 0, chunk
            self.free -= request.blocks(chunk, self.block_tokens)
            self.running.append(request)
            budget -= chunk

    def _crossing(self) -> int:
        """Blocks that decodes begin in the next iteration."""
        block = self.block_tokens
        return sum(r.computed >= r.target and (r.input_tokens + r.generated) % block == 1 % block for r in self.running)

    def _make_room(self) -> bool:
        preempted = False
        while self._crossing() > self.free - self.late_blocks:
            self._preempt()
            preempted = True
        return preempted

    def _preempt(self) -> None:
        request = self.running.pop()
        self.free += self.held(request)
        request.computed = request.chunk = 0
        request.target = 1
        request.ready_s = -math.inf
        self.waiting.appendleft(request)
        self.preemptions += 1

    def complete(self, now_s: float) -> list[ReferenceRequest]:
        """Apply the iteration that ends now; returns the requests that are done."""
        self.last_started_s = self.started_s
        self.free -= self._crossing()
        for request in self.running:
            if request.computed >= request.target:
                request.generated += 1
            elif request.chunk:
                request.computed += request.chunk
                request.pass_s = max(request.pass_s, request.chunk * self.prompt_token_s)
                request.chunk = 0
                if request.computed >= request.target:
                    request.generated += 1
                    if math.isnan(request.first_s):
                        request.first_s = now_s
                        request.fill_s = (float(self.coefficients.pipeline) - 1.0) * request.pass_s
        done = [r for r in self.running if r.computed >= r.target and r.generated >= r.output_tokens]
        free = self.free
        for request in done:
            self.running.remove(request)
            self.free += request.blocks(request.input_tokens + request.generated - 1, self.block_tokens)
            request.last_s = now_s
        self.late_blocks, self.late_seqs = (self.free - free, len(done)) if self.lookahead else (0, 0)
        self.outstanding -= len(done)
        return done


def plain_requests(traffic: Traffic, most: int | None = None) -> list[ReferenceRequest]:
    """The first requests of one batch of traffic."""
    columns = (traffic.arrival_s, traffic.input_tokens, traffic.output_tokens)
    return [
        ReferenceRequest(arrival_s=float(at), input_tokens=int(given), output_tokens=int(asked))
        for at, given, asked in zip(*(column[:most] for column in columns), strict=True)
    ]


def plain_replicas(kind: ContinuousReplica, count: int) -> list[ReferenceReplica]:
    """Replicas of one kind, as far as the plain loop covers it."""
    return [
        ReferenceReplica(
            coefficients=kind.coefficients,
            block_tokens=kind.block_tokens,
            blocks=kind.kv_blocks,
            max_seqs=kind.max_num_seqs,
            max_tokens=kind.max_num_batched_tokens,
            lookahead=kind.lookahead,
            reserve_prompt=kind.reserve_prompt,
        )
        for _ in range(count)
    ]


def simulate_plainly(
    replicas: Sequence[ReferenceReplica],
    requests: Sequence[ReferenceRequest],
    *,
    least_outstanding: bool,
    clients: int | None = None,
) -> None:
    """Run all requests (sorted by arrival) to their end; results are left in the requests.

    Of a number of ``clients`` each sends the next request when it has its answer, not before the request's arrival.
    """
    following = 0
    free_s = [0.0] * (len(requests) if clients is None else clients)
    turn = 0
    while True:
        arrival_s = math.inf
        if following < len(requests) and free_s:
            arrival_s = max(requests[following].arrival_s, free_s[0])
        earliest = min(replicas, key=lambda replica: replica.ends_s)
        if math.isinf(arrival_s) and math.isinf(earliest.ends_s):
            return
        if earliest.ends_s <= arrival_s:
            now_s = earliest.ends_s
            for served in earliest.complete(now_s):
                heapq.heappush(free_s, served.last_s + served.fill_s)
            earliest.compose(now_s)
            continue
        request = requests[following]
        request.arrival_s = arrival_s
        following += 1
        heapq.heappop(free_s)
        order = [(turn + 1 + i) % len(replicas) for i in range(len(replicas))]
        if least_outstanding:
            turn = order[0]
            chosen = min(order, key=lambda number: replicas[number].outstanding)
        else:
            chosen = turn
            turn = order[0]
        replica = replicas[chosen]
        request.replica = chosen
        request.ready_s = arrival_s
        replica.outstanding += 1
        replica.waiting.append(request)
        if math.isinf(replica.ends_s):
            replica.compose(arrival_s)
