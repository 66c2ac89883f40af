"""What the pages of simulated runs draw, as rows of CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from frontend.answers.simulated_incidents import listed_of
from frontend.answers.simulation_words import as_number

Rows = Iterator[Sequence[Any]]
STATISTICS = ("p50", "p90", "p95", "p99")
CSV_COLUMNS = (
    *("time_s", "arrived", "completed", "dropped", "input_tokens", "output_tokens"),
    *(f"{name}_{at}" for name in ("ttft_ms", "tpot_ms") for at in STATISTICS),
    *("replicas_ready", "replicas_billed", "waiting", "running", "kv_used", "cached_input_tokens", "cost_usd"),
)
EVENT_COLUMNS = ("at_s", "kind", "region", "node", "replica", "replicas", "lost_requests")


def bill_so_far(result: Mapping[str, Any]) -> list[float]:
    """What was billed until the end of each bin of replicas, USD: shared over time by the replicas billed."""
    billed = [value or 0.0 for value in result["timeline"]["replicas"]["billed"]]
    whole, total = sum(billed) or 1.0, as_number(result["cost_usd"]) or 0.0
    return [total * part / whole for part in accumulate(billed)]


def csv_rows(result: Mapping[str, Any]) -> Rows:
    """The timeline, one row a bin of the requests, each with the sample taken nearest to it."""
    timeline = result["timeline"]
    requests, replicas = timeline["requests"], timeline["replicas"]
    bill = [round(usd, 4) for usd in bill_so_far(result)]
    yield CSV_COLUMNS
    for place in range(len(requests["arrived"])):
        time_s = place * requests["bin_s"]
        counts = [requests[name][place] for name in CSV_COLUMNS[1:6]]
        times = [_at(requests[name].get(at, ()), place) for name in ("ttft_ms", "tpot_ms") for at in STATISTICS]
        states = [
            _at(timeline[part][name], int(time_s / timeline[part]["bin_s"]))
            for part, name in (
                ("replicas", "ready"),
                ("replicas", "billed"),
                ("queue", "waiting"),
                ("queue", "running"),
                ("kv", "used"),
            )
        ]
        cached = _at(requests.get("cached_input_tokens", ()), place)
        usd = _at(bill, int((time_s + requests["bin_s"]) / replicas["bin_s"] + 1e-9) - 1)
        yield [time_s, *counts, *times, *states, cached, usd]


def _at(values: Sequence[Any], place: int) -> Any:
    value = values[place] if place < len(values) else None
    return "" if value is None else value


def events_rows(result: Mapping[str, Any]) -> Rows:
    """What happened to the fleet, as far as the result lists it."""
    yield EVENT_COLUMNS
    for incident in listed_of(result):
        yield ["" if incident.get(name) is None else incident[name] for name in EVENT_COLUMNS]


def distribution_rows(result: Mapping[str, Any]) -> Rows:
    """TTFT and TPOT by the share of requests that stay within them."""
    found = result["ecdf"]
    yield ("share", "ttft_ms", "tpot_ms")
    for place, share in enumerate(found["shares"]):
        yield [share, *(_at(found[name], place) for name in ("ttft_ms", "tpot_ms"))]


def replicas_rows(result: Mapping[str, Any]) -> Rows:
    """The fullest KV cache and the longest queue of each replica, or each row of replicas, over time."""
    heat = result["timeline"]["heat"]
    yield ("time_s", "replica", "kv_used", "waiting")
    for place, (used, waiting) in enumerate(zip(heat["kv"], heat["waiting"], strict=True)):
        for replica, both in enumerate(zip(used, waiting, strict=True)):
            yield [place * heat["bin_s"], replica, *both]


OTHER_ROWS: dict[str, Callable[[Mapping[str, Any]], Rows]] = {
    "events": events_rows,
    "distribution": distribution_rows,
    "replicas": replicas_rows,
}
"""By what the address of a run's CSV asks for."""
