"""A simulation in parts: cut by regions and by replicas, the same as whole, the same in any number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from planner.engine.errors import InvalidQuestion
from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.traffic import batch
from planner.services import simulation_parts
from planner.services.region_traffic import interleave
from planner.services.run_kind import in_turn
from planner.services.served import pack, together, unpack
from planner.services.simulation_job import read_simulation
from planner.services.simulation_parts import TRACE_SHARE, serve_part, serve_task, sites_of
from planner.services.simulation_run import run_simulation
from planner.services.stored_traces import store_trace

QUESTION = {"model": "Llama 3.1 8B", "requests_per_second": 5, "accelerators": ["h100-sxm"], "ttft_ms": 2000}
TRAFFIC = {"requests_per_second": 12, "hours": 0.03, "input_median": 500, "output_median": 50, "prefixes": 4}
ROUND_ROBIN = {"policy": "round_robin", "replicas": 12}
HASHED = b"".join(
    b'{"timestamp": %d, "input_length": 1100, "output_length": 9, "hash_ids": [%d, %d, %d]}\n'
    % (ms * 400, ms % 3, ms % 5, ms)
    for ms in range(300)
)

pytestmark = pytest.mark.usefixtures("catalog")


def nothing(share: float, message: str) -> None:
    """A report to nobody."""


def run(params: Mapping[str, Any]) -> dict[str, Any]:
    return run_simulation(params, nothing, in_turn(serve_part, params))


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation_parts, "SHARD_REQUESTS", 400)


def both(params: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Whole, cut, and how many parts."""
    whole = run(params)
    monkeypatch.setattr(simulation_parts, "SHARD_REQUESTS", 400)
    return whole, run(params), len(sites_of(read_simulation(params)).tasks())


@pytest.mark.parametrize("kind", ["generated", "trace"])
def test_replicas_behind_a_round_robin_gateway_are_cut_without_a_trace(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic: dict[str, Any] = {"traffic": TRAFFIC}
    if kind == "trace":
        traffic = {"trace": store_trace([HASHED])}
        monkeypatch.setattr(simulation_parts, "BYTES_A_ROW", 20)
    whole, cut, parts = both({"question": QUESTION, "scenario": ROUND_ROBIN, **traffic}, monkeypatch)
    assert parts == 3
    counted = ("requests", "completed", "dropped_by_reason", "input_tokens", "output_tokens", "cached_input_tokens")
    for name in (*counted, "ttft_ms", "tpot_ms", "e2e_ms", "goodput", "ecdf", "iterations", "duration_s", "replicas"):
        assert cut[name] == whole[name], name
    assert cut["timeline"]["requests"] == whole["timeline"]["requests"]
    assert cut["timeline"]["heat"]["kv"] == whole["timeline"]["heat"]["kv"]
    assert cut["cost_usd"] == whole["cost_usd"]
    assert cut["notes"] == whole["notes"]


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "least_outstanding"},
        {"policy": "round_robin", "autoscaler": "hpa"},
        {"policy": "round_robin", "node_failure_hours": 10},
        {"policy": "round_robin", "max_outstanding": 4},
        {"policy": "round_robin", "draft_tokens": 2},
        {"policy": "round_robin", "replicas": 1},
    ],
)
def test_what_depends_on_each_other_stays_together(settings: dict[str, Any]) -> None:
    job = read_simulation({"question": QUESTION, "scenario": settings, "traffic": TRAFFIC})
    assert len(sites_of(job).tasks()) == 1


REGIONS = [
    {"name": "Jakarta", "scenario": {"replicas": 2}},
    {"name": "Singapore", "scenario": {"replicas": 1}, "traffic": {"requests_per_second": 3}},
]


def test_a_region_without_requests_pays_for_what_it_rents() -> None:
    regions = [{"name": "busy"}, {"name": "idle", "traffic": {"requests_per_second": 1e-6}}]
    params = {
        "question": QUESTION,
        "traffic": TRAFFIC | {"hours": 0.1},
        "scenario": {"replicas": 2},
        "regions": regions,
    }
    result = run(params)
    busy, idle = result["regions"]
    assert (idle["requests"], idle["gpu_hours"]) == (0, pytest.approx(busy["gpu_hours"]))
    assert idle["cost_usd"] == busy["cost_usd"] != "0.00"
    assert busy["gpu_hours"] + idle["gpu_hours"] == pytest.approx(result["gpu_hours"])


def test_regions_run_apart_and_add_up() -> None:
    params = {"question": QUESTION, "traffic": TRAFFIC, "regions": REGIONS}
    result = run(params)
    first, second = result["regions"]
    assert [first["name"], second["name"]] == ["Jakarta", "Singapore"]
    assert [first["replicas"], second["replicas"], result["replicas"]] == [2, 1, 3]
    assert first["requests"] + second["requests"] == result["requests"]
    assert second["requests"] < first["requests"] / 2
    assert float(first["cost_usd"]) + float(second["cost_usd"]) == pytest.approx(float(result["cost_usd"]), abs=0.011)
    assert any(note.startswith("Singapore: Generated traffic: 3 req/s") for note in result["notes"])
    alone = run(
        {
            "question": QUESTION,
            "scenario": {"replicas": 1, "seed": 1},
            "traffic": TRAFFIC | {"requests_per_second": 3, "seed": 1},
        }
    )
    assert second["ttft_ms"] == alone["ttft_ms"]


def test_a_full_region_sends_to_its_fallback() -> None:
    busy = {"name": "Jakarta", "scenario": {"replicas": 1, "max_outstanding": 1}, "round_trip_ms": 30}
    spare = {"name": "Singapore", "scenario": {"replicas": 3}, "traffic": {"requests_per_second": 0.5}}
    params = {"question": QUESTION, "traffic": TRAFFIC}
    alone = run(params | {"regions": [busy, spare]})
    linked = run(params | {"regions": [busy | {"fallback": ["Singapore"]}, spare]})
    assert linked["requests"] == alone["requests"] == linked["completed"]
    assert linked["ttft_ms"]["p95"] < alone["ttft_ms"]["p95"] / 2
    # A request away from home takes the round trip at least.
    assert linked["ttft_ms"]["p50"] > 30
    (served_there, at_home) = linked["regions"]
    assert sum(region["requests"] for region in linked["regions"]) == linked["requests"]
    assert served_there["ttft_ms"]["p50"] > 30
    assert at_home["ttft_ms"]["mean"] < served_there["ttft_ms"]["mean"]
    assert all(float(region["cost_usd"]) > 0 for region in linked["regions"])
    assert linked == run(params | {"regions": [busy | {"fallback": ["Singapore"]}, spare]})


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"regions": []}, ["regions"]),
        ({"regions": "x"}, ["regions"]),
        ({"regions": [{"name": ""}]}, ["regions.0.name"]),
        ({"regions": [{"name": "a"}, {"name": "a"}]}, ["regions.1.name"]),
        ({"regions": [{"name": "a", "fallback": ["a"]}]}, ["regions.0.fallback"]),
        ({"regions": [{"name": "a", "fallback": ["b"]}]}, ["regions.0.fallback"]),
        ({"regions": [{"name": "a", "speed": 1}]}, ["regions.0.speed"]),
        ({"regions": [{"name": "a", "scenario": {"replicas": 0}}]}, ["regions.0.scenario.replicas"]),
        ({"regions": [{"name": "a", "traffic": {"hours": 0}}]}, ["regions.0.traffic.hours"]),
        ({"regions": [{"name": "a", "trace": "x"}]}, ["regions.0.trace"]),
        ({"regions": [{"name": "a", "round_trip_ms": -1}]}, ["regions.0.round_trip_ms"]),
        ({"regions": [{"name": "a", "spill_outstanding": 0.5}]}, ["regions.0.spill_outstanding"]),
        ({"regions": [{"name": "a", "scenario": []}]}, ["regions.0.scenario"]),
        ({"regions": [{"name": "a"}], "trace": "x"}, ["trace"]),
        (
            {"regions": [{"name": str(n), "traffic": {"requests_per_second": 2000, "hours": 2}} for n in range(2)]},
            ["regions"],
        ),
    ],
)
def test_faults_in_regions_are_named_by_place(change: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidQuestion) as raised:
        read_simulation({"question": QUESTION, **change})
    assert [fault.field for fault in raised.value.errors] == fields


def test_hashed_traces_of_regions_stay_apart() -> None:
    """Two regions with the same hashes, one of them full: what is cached for one is of no use to the other."""
    hashed = store_trace([HASHED])
    generated = {"name": "c", "traffic": TRAFFIC | {"prefixes": 0}}
    scenario = {"replicas": 1}
    alone = [{"name": name, "trace": hashed} for name in ("a", "b")]
    linked = [each | {"fallback": ["c"]} for each in alone]
    apart = run({"question": QUESTION, "scenario": scenario, "regions": [*alone, generated]})
    together_ = run({"question": QUESTION, "scenario": scenario, "regions": [*linked, generated]})
    assert apart["cached_input_tokens"] > 2 * 250 * 512
    assert together_["cached_input_tokens"] == apart["cached_input_tokens"]
    for left, right in zip(apart["regions"], together_["regions"], strict=True):
        assert left["ttft_ms"] == right["ttft_ms"]
    full = [linked[0] | {"scenario": {"max_outstanding": 1}}, linked[1], generated]
    spilt = run({"question": QUESTION, "scenario": scenario, "regions": full})
    assert spilt["completed"] == spilt["requests"] == apart["requests"]


def test_parts_come_back_from_bytes_as_they_were() -> None:
    job = read_simulation(
        {"question": QUESTION, "traffic": TRAFFIC, "scenario": {"node_failure_hours": 0.02, "replicas": 2}}
    )
    (task,) = sites_of(job).tasks()
    served = serve_task(job, task, nothing)
    assert served.happened.kept
    back = unpack(pack(served))
    assert pack(back) == pack(served)
    assert (back.happened, back.pools, back.notes) == (served.happened, served.pools, served.notes)
    assert back.outcome.duration_s == served.outcome.duration_s
    assert np.array_equal(back.outcome.timeline.ttft, served.outcome.timeline.ttft)
    assert back.outcome.samples.kv.dtype == served.outcome.samples.kv.dtype
    joined = together([served, back])
    kept = joined.happened.kept
    assert len(kept) == joined.happened.total == 2 * len(served.happened.kept)
    assert [incident.at_s for incident in kept] == sorted(incident.at_s for incident in kept)
    assert joined.happened.lost_requests == 2 * served.happened.lost_requests


def test_a_part_of_another_catalog_is_refused() -> None:
    job = read_simulation({"question": QUESTION, "traffic": TRAFFIC})
    (task,) = sites_of(job).tasks()
    with pytest.raises(InvalidQuestion, match="catalog has changed"):
        serve_task(job, task | {"catalog": "another"}, nothing)


def test_streams_of_traffic_are_woven_by_arrival() -> None:
    def stream(*batches: list[float], key: int | None = None) -> Iterator[Traffic]:
        for times in batches:
            ones = np.ones(len(times), np.int64)
            yield batch(np.array(times), ones, ones, key=None if key is None else ones * key, shared_tokens=ones)

    woven = list(interleave([stream([0.0, 2.0], [2.0, 9.0]), stream([], [1.0, 2.0, 3.0], key=5)], [0, 2]))
    assert np.concatenate([each.arrival_s for each in woven]).tolist() == [0.0, 1.0, 2.0, 2.0, 2.0, 3.0, 9.0]
    assert np.concatenate([each.pool for each in woven]).tolist() == [0, 2, 0, 2, 0, 2, 0]
    assert np.concatenate([each.key for each in woven]).tolist() == [-1, 11, -1, 11, -1, 11, -1]
    assert [each.first_request for each in woven] == np.cumsum([0, *(len(e.arrival_s) for e in woven[:-1])]).tolist()


def test_reading_a_trace_is_most_of_its_progress() -> None:
    rows = b"".join(b"%d,200,2\n" % second for second in range(120_000))
    trace = store_trace([b"arrival_s,input_tokens,output_tokens\n" + rows])
    job = read_simulation({"question": QUESTION, "trace": trace, "scenario": {"replicas": 1}})
    told: list[tuple[float, str]] = []
    (task,) = sites_of(job).tasks()

    def hear(share: float, message: str = "") -> None:
        told.append((share, message))

    serve_task(job, task, hear)
    reading = [share for share, message in told if message.startswith("Reading the trace")]
    serving = [share for share, message in told if message.endswith("simulated")]
    assert reading == sorted(reading)
    assert 0.1 < reading[0] < reading[-1] <= TRACE_SHARE <= min(serving)
    assert serving == sorted(serving)
    assert serving[-1] > 0.9
