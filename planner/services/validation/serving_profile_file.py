"""Writing fitted serving constants and their error bands into the profile file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from planner.engine.confidence import ResidualBands
from planner.engine.serving_calibration import CONSTANTS, Level
from planner.services.validation.serving_fit import Effects
from planner.services.validation.serving_levels import LEVELS, START
from planner.services.validation.serving_solver import Fit

LEAST_EFFECT: Final = 0.002
"""Logarithms of factors nearer to 0 than this are left out."""


def with_fit(
    raw: Mapping[str, Any], effects: Effects, fitted: Fit, bands: Mapping[str, ResidualBands], fitted_on: str
) -> dict[str, Any]:
    """The profile file's content with new constants and bands; laws and engine settings stay."""
    values = {key: float(value) for key, value in zip(effects.columns, fitted.effects, strict=True)}
    base = {name: float(f"{START[name] * np.exp(values[(), (), name]):.4g}") for name in CONSTANTS}
    return {
        **raw,
        "fitted_on": fitted_on,
        "base": base,
        "levels": [_level(level, values) for level, _ in LEVELS if level],
        "bands": {name: band_rows(found) for name, found in bands.items()},
    }


def _level(level: Level, values: Mapping[tuple[Level, tuple[str, ...], str], float]) -> dict[str, Any]:
    factors: dict[tuple[str, ...], dict[str, float]] = {}
    for (found, key, constant), value in values.items():
        if found == level:
            factors.setdefault(key, {})[constant] = value
    if "era" in level:
        factors = _summed_over_eras(level.index("era"), factors)
    rows = []
    for key, logs in sorted(factors.items()):
        kept = {name: round(logs[name], 3) for name in CONSTANTS if abs(logs.get(name, 0.0)) >= LEAST_EFFECT}
        rows.append({"key": list(key), "log": kept})
    return {"attributes": list(level), "factors": rows}


def _summed_over_eras(
    place: int, factors: Mapping[tuple[str, ...], Mapping[str, float]]
) -> dict[tuple[str, ...], dict[str, float]]:
    """Each era's effects with all earlier ones': what holds in that era."""
    summed: dict[tuple[str, ...], dict[str, float]] = {}
    for key in factors:
        earlier = [
            k
            for k in factors
            if (*k[:place], *k[place + 1 :]) == (*key[:place], *key[place + 1 :]) and k[place] <= key[place]
        ]
        summed[key] = {name: sum(factors[k].get(name, 0.0) for k in earlier) for name in CONSTANTS}
    return summed


def band_rows(bands: ResidualBands) -> list[dict[str, Any]]:
    """Error bands as a profile file has them."""
    return [
        {
            "level": list(level),
            "key": list(key),
            "cases": band.cases,
            "low": round(band.low, 4),
            "high": round(band.high, 4),
        }
        for level, found in bands.bands.items()
        for key, band in sorted(found.items())
    ]


def write_profile_file(path: Path, content: Mapping[str, Any]) -> None:
    """Write the file with one line a factor or band, so that a change shows as a small difference."""
    path.write_text(_pretty(content, 0) + "\n", encoding="utf-8")


def _pretty(value: Any, depth: int) -> str:
    flat = json.dumps(value)
    if not isinstance(value, dict | list) or len(flat) + depth <= 118 or depth >= 5:
        return flat
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(value, dict):
        lines = [f"{pad}{json.dumps(key)}: {_pretty(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{end}}}"
    return "[\n" + ",\n".join(pad + _pretty(item, depth + 1) for item in value) + f"\n{end}]"
