"""Parameters of simulations, and how tests run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from planner.engine.errors import InvalidQuestion
from planner.services.run_kind import Spread, in_turn
from planner.services.simulation_job import read_simulation
from planner.services.simulation_parts import serve_part

QUESTION = {"model": "Llama 3.1 8B", "requests_per_second": 5, "accelerators": ["h100-sxm"], "ttft_ms": 2000}
TRAFFIC = {"requests_per_second": 4, "hours": 0.02, "input_median": 500, "output_median": 50}
TRACE = b"arrival_s,input_tokens,output_tokens\n" + b"".join(b"%d,200,20\n" % second for second in range(50))


def alone(params: Mapping[str, Any]) -> Spread:
    """Parts one after another in this process."""
    return in_turn(serve_part, params)


def faults(params: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidQuestion) as raised:
        read_simulation(params)
    return {fault.field: fault.message for fault in raised.value.errors}
