"""Serving engines as the planner knows them: constants by quarter, and the measurements they were fitted on."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from catalog.profiles import DATA, load_profile_file, serving_engine_of, serving_profiles, serving_release_date
from planner.engine.serving_calibration import CONSTANTS, SHARES, ServingProfiles
from planner.engine.serving_candidates import engine_era
from planner.engine.workload import SERVING_ENGINES

MEASUREMENTS = ("inference.csv", "inference_sweeps.csv", "inference_h200.csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """One engine in one quarter: what holds before any factor of chip, format, model and layout."""

    engine: str
    era: str
    """e.g. ``2026Q1``; empty for cases without a date."""
    taken_from: str
    """The engine whose constants these are; its own name where it has cases."""
    constants: Mapping[str, float]
    """Shares of datasheet peaks, seconds, factors of its releases: base x engine x engine and date."""
    cases: int
    sources: tuple[str, ...]
    first: str
    last: str
    gpus: tuple[str, ...]
    memory: str
    """What its memory constants were fitted on."""


@cache
def engine_profiles() -> tuple[EngineProfile, ...]:
    """Every engine that can be asked for, by name and quarter, with the measured cases of each."""
    profiles, measured = serving_profiles(), _measured()
    found = []
    for engine in SERVING_ENGINES:
        origin = profiles.calibrated_as.get(engine, engine)
        eras = {era for name, era in measured if name == origin} | _fitted_eras(profiles, origin)
        for era in sorted(eras) or [""]:
            rows = measured.get((origin, era), [])
            dates = sorted(row["date"] for row in rows if row["date"])
            found.append(
                EngineProfile(
                    engine=engine,
                    era=era,
                    taken_from=origin,
                    constants=_constants(profiles, origin, era),
                    cases=len(rows),
                    sources=tuple(sorted({row["source"] for row in rows})),
                    first=dates[0] if dates else "",
                    last=dates[-1] if dates else "",
                    gpus=tuple(sorted({row["gpu"] for row in rows})),
                    memory=_memory_source(engine),
                )
            )
    return tuple(found)


def _measured() -> dict[tuple[str, str], list[dict[str, str]]]:
    """Measured cases by engine and quarter."""
    cases: dict[tuple[str, str], list[dict[str, str]]] = {}
    for name in MEASUREMENTS:
        with (DATA / "measurements" / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                engine = serving_engine_of(row["engine"])
                if engine is not None:
                    cases.setdefault((engine, _era(engine, row)), []).append(row)
    return cases


def _era(engine: str, row: Mapping[str, str]) -> str:
    return engine_era(serving_release_date(engine, row["engine_version"])) or engine_era(row["date"])


def _fitted_eras(profiles: ServingProfiles, engine: str) -> set[str]:
    return {era for name, era in profiles.factors.get(("engine", "era"), {}) if name == engine}


def _constants(profiles: ServingProfiles, engine: str, era: str) -> dict[str, float]:
    """Base x engine x its releases x the latest fitted quarter up to ``era``; shares stay at or below 1."""
    logs = np.log([profiles.base[name] for name in CONSTANTS])
    for level, key in ((("engine",), (engine,)), (("engine", "build"), (engine, "release"))):
        own = profiles.factors.get(level, {}).get(key)
        if own is not None:
            logs = logs + own
    passed = [known for known in _fitted_eras(profiles, engine) if known <= era]
    if passed:
        logs = logs + profiles.factors[("engine", "era")][(engine, max(passed))]
    values = dict(zip(CONSTANTS, np.exp(logs).tolist(), strict=True))
    return {name: min(value, 1.0) if name in SHARES else value for name, value in values.items()}


def _memory_source(engine: str) -> str:
    """Of the newest memory profile."""
    support = load_profile_file("engine_support.json")["engines"].get(engine, {})
    name = support.get("memory_of", engine)
    rows = [row for row in load_profile_file("serving_memory_profiles.json")["profiles"] if row["engine"] == name]
    newest = max(rows, key=lambda row: str(row["date"]), default=None)
    return str(newest["fitted_on"]) if newest else ""
