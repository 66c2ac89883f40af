"""Traffic made to order, as a source for a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.engine.sentences import say
from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.planned_replica import Lengths
from planner.engine.simulate.setup import ClosedLoop
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.simulate.workload_model import generate

MOST_REQUESTS: Final = 20_000_000
"""Generated in one run: some minutes of one core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedTraffic:
    """What a ``TrafficQuestion`` asks for, made while the simulation runs."""

    question: TrafficQuestion
    hash_tokens: None = None
    hash_ids: None = None

    @property
    def lengths(self) -> Lengths:
        """Mean prompt and answer."""
        return Lengths(input_tokens=self.question.mean_input_tokens, output_tokens=self.question.mean_output_tokens)

    @property
    def notes(self) -> tuple[str, ...]:
        """What it is."""
        asked = self.question
        if asked.requests is not None:
            return (say("Generated job: {requests:,} requests, all queued at the beginning.", requests=asked.requests),)
        if asked.clients is None:
            return (
                say(
                    "Generated traffic: {rate:,g} req/s for {hours:,g} h.",
                    rate=asked.requests_per_second,
                    hours=asked.hours,
                ),
            )
        told = say(
            "Generated traffic: {clients:,} clients for {hours:,g} h, each waiting for its answer.",
            clients=asked.clients,
            hours=asked.hours,
        )
        pause = say(
            "Between an answer and its next request a client pauses {seconds:,g} s on average.", seconds=asked.think_s
        )
        return (told, pause) if asked.think_s else (told,)

    @property
    def is_job(self) -> bool:
        """Whether all are there at the beginning."""
        return self.question.requests is not None

    @property
    def has_no_prefixes(self) -> bool:
        """Whether nothing that prompts begin with is said of it."""
        return self.question.prefixes == 0

    @property
    def loop(self) -> ClosedLoop | None:
        """Its clients, where they wait for their answers."""
        return self.question.loop

    @property
    def lasts_s(self) -> float:
        """How long a fleet is kept for it at least."""
        return self.question.lasts_s

    def batches(self) -> Iterator[Traffic]:
        """The requests in order of arrival."""
        asked = self.question
        most = asked.requests if asked.clients is None else MOST_REQUESTS
        return generate(asked.model(), duration_s=asked.duration_s, seed=asked.seed, most_requests=most)
