"""Replays of measured serving runs: the same requests at the same times, simulated with the plan's own constants."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from catalog.profiles import serving_memory_profile, serving_profiles
from catalog.selectors import catalog_snapshot
from planner.engine.answers import Layout
from planner.engine.offers import Shape
from planner.engine.simulate.layout import Array
from planner.engine.simulate.planned_replica import Lengths, replica_on
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import ContinuousReplica, Fleet, Pool
from planner.engine.simulate.traffic import batch
from planner.engine.workload import InferenceQuestion
from planner.services.planning import resolve_model

DATA: Final = Path(__file__).resolve().parents[3] / "catalog" / "data" / "measurements"
COLUMNS: Final = ("arrival_s", "input_tokens", "output_tokens", "first_token_s", "last_token_s")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """One measured run: how it was served, and when each request got its first and last token."""

    name: str
    setting: Mapping[str, Any]
    arrival_s: Floats
    input_tokens: Floats
    output_tokens: Floats
    first_token_s: Floats
    last_token_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One statistic of a run, measured and simulated."""

    replay: str
    statistic: str
    measured: float
    simulated: float

    @property
    def error(self) -> float:
        """Relative; for rank correlations the correlation itself is in ``simulated``."""
        return self.simulated / self.measured - 1.0


def read_replays(folder: Path = DATA) -> list[Replay]:
    """All measured runs, requests in order of arrival."""
    settings: dict[str, Any] = json.loads((folder / "replays.json").read_text(encoding="utf-8"))
    rows: dict[str, list[list[float]]] = {name: [] for name in settings}
    with (folder / "replays.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            rows[row["replay"]].append([float(row[name]) for name in COLUMNS])
    replays = []
    for name, setting in settings.items():
        columns = np.array(sorted(rows[name])).T
        replays.append(Replay(name=name, setting=setting, **dict(zip(COLUMNS, columns, strict=True))))
    return replays


def replica_of(replay: Replay) -> ContinuousReplica:
    """The replica that served a run, by the plan's own constants."""
    given = replay.setting
    question = InferenceQuestion(
        model=given["model"],
        requests_per_second=1.0,
        engine=given["engine"],
        engine_version=given["engine_version"],
        max_num_seqs=given["max_num_seqs"],
        max_num_batched_tokens=given["max_num_batched_tokens"],
        memory_utilization=given["memory_utilization"],
    )
    layout = Layout(
        tensor=given["tensor"],
        pipeline=given["pipeline"],
        expert=given["expert"],
        context=1,
        replicas=given["replicas"],
    )
    gpus = layout.gpus_per_replica
    accelerator = catalog_snapshot().accelerators[given["accelerator"]]
    shape = Shape(
        accelerator=accelerator,
        gpu_count=float(gpus),
        intra_node_link=("nvlink" if accelerator.link_bytes_s else "pcie") if gpus > 1 else "none",
        link_domain_gpus=gpus,
        fabric="none",
        network_bytes_s=None,
    )
    return replica_on(
        shape,
        layout,
        given["weight_format"],
        resolve_model(question),
        question,
        SimulationQuestion(prefix_caching=given["prefix_caching"]),
        serving_profiles(),
        serving_memory_profile(given["engine"]),
        lengths=Lengths(
            input_tokens=float(replay.input_tokens.mean()), output_tokens=float(replay.output_tokens.mean())
        ),
        hash_tokens=None,
    )


def compare(replay: Replay, replica: ContinuousReplica | None = None) -> list[Comparison]:
    """Every statistic of a run, measured and simulated (with another replica than the plan's, where given)."""
    kept: list[Array] = []
    kind = replica or replica_of(replay)
    simulate(
        Fleet(pools=[Pool(kind=kind, replicas=replay.setting["replicas"])]),
        [batch(replay.arrival_s, replay.input_tokens, replay.output_tokens)],
        rows=lambda rows: kept.append(rows.copy()),
    )
    rows = np.concatenate(kept)
    rows = rows[np.argsort(rows["request"])]
    measured = _statistics(replay, replay.first_token_s, replay.last_token_s)
    simulated = _statistics(replay, rows["first"], rows["last"])
    compared = [
        Comparison(replay=replay.name, statistic=name, measured=measured[name], simulated=simulated[name])
        for name in measured
    ]
    ranks = {
        "ttft_rank": _rank_correlation(rows["first"] - replay.arrival_s, replay.first_token_s - replay.arrival_s),
        "e2e_rank": _rank_correlation(rows["last"] - replay.arrival_s, replay.last_token_s - replay.arrival_s),
    }
    return compared + [
        Comparison(replay=replay.name, statistic=name, measured=1.0, simulated=value) for name, value in ranks.items()
    ]


def _statistics(replay: Replay, first_s: Floats, last_s: Floats) -> dict[str, float]:
    ttft = first_s - replay.arrival_s
    several = replay.output_tokens > 1
    tpot = (last_s - first_s)[several] / (replay.output_tokens[several] - 1.0)
    return {
        "ttft_mean_ms": float(ttft.mean()) * 1e3,
        "ttft_p50_ms": float(np.quantile(ttft, 0.5)) * 1e3,
        "ttft_p99_ms": float(np.quantile(ttft, 0.99)) * 1e3,
        "tpot_mean_ms": float(tpot.mean()) * 1e3,
        "tpot_p99_ms": float(np.quantile(tpot, 0.99)) * 1e3,
        "makespan_s": float(last_s.max() - replay.arrival_s.min()),
    }


def _rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's: Pearson's of the ranks, ties at their mean."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends: Floats = np.cumsum(counts).astype(np.float64)
    return (ends - (counts - 1) / 2.0)[inverse]


def table(comparisons: Sequence[Comparison]) -> str:
    """One line a run and statistic."""
    lines = [f"{'run':<32} {'statistic':<14} {'measured':>12} {'simulated':>12} {'error':>8}"]
    for one in comparisons:
        error = "" if one.statistic.endswith("_rank") else f"{one.error:+8.1%}"
        lines.append(f"{one.replay:<32} {one.statistic:<14} {one.measured:>12,.2f} {one.simulated:>12,.2f} {error}")
    return "\n".join(lines)
