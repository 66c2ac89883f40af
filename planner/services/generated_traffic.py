"""Traffic made to order, as a source for a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.engine.sentences import say
from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.planned_replica import Lengths
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.simulate.workload_model import generate


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
        return (
            say(
                "Generated traffic: {rate:,g} req/s for {hours:,g} h.",
                rate=self.question.requests_per_second,
                hours=self.question.hours,
            ),
        )

    def batches(self) -> Iterator[Traffic]:
        """The requests in order of arrival."""
        return generate(self.question.model(), duration_s=self.question.duration_s, seed=self.question.seed)
