"""Writing what calibration found into the profile file: laws stay, values and bands change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.engine.training.profile import ConstantLaw, Effect, TrainingProfiles
from planner.services.validation.serving_profile_file import band_rows


def with_values(raw: Mapping[str, Any], profiles: TrainingProfiles) -> dict[str, Any]:
    """The profile file's content with the fitted values of ``profiles``."""
    return {
        **raw,
        "fitted_on": profiles.fitted_on,
        "step": {name: _law(row, profiles.step[name]) for name, row in raw["step"].items()},
        "memory": {name: _law(row, profiles.memory[name]) for name, row in raw["memory"].items()},
        "bands": band_rows(profiles.bands),
    }


def write_profile_file(path: Path, content: Mapping[str, Any]) -> None:
    """Write the file, one line a leaf, so that a change shows as a small difference."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _law(row: Mapping[str, Any], law: ConstantLaw) -> dict[str, Any]:
    return {
        **row,
        "log_shift": law.log_shift,
        "effects": _effects(row["effects"], law.effects),
        "per_year": _effects(row["per_year"], law.per_year),
    }


def _effects(rows: Sequence[Mapping[str, Any]], found: Sequence[Effect]) -> list[dict[str, Any]]:
    values = {effect.attributes: effect.values for effect in found}
    return [{**row, "values": dict(sorted(values[tuple(row["attributes"])].items()))} for row in rows]
