"""Training frameworks and fitted training constants: the catalog's data files as engine values.

``training_frameworks.json`` holds facts and is edited by hand; ``training_profiles.json`` holds the
laws (which constant may depend on what) and the values that ``calibrate_training`` found for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from catalog.profiles import load_profile_file
from planner.engine.confidence import Band, ResidualBands
from planner.engine.training.profile import (
    ConstantLaw,
    Effect,
    FrameworkProfile,
    TrainingProfiles,
)

FRAMEWORKS_FILE = "training_frameworks.json"
PROFILES_FILE = "training_profiles.json"
_PROFILE_FIELDS = (
    "key",
    "family",
    "label",
    "master_weights_sharded",
    "grad_bytes",
    "persistent_grads",
    "sequence_parallel",
    "loss_parallel",
    "low_precision_frozen_base",
    "compiled",
    "compiled_adapters",
    "keep_gathered",
    "gather_for_stages",
    "buckets_messages",
    "default_sharding",
    "default_recompute",
    "pipelines",
    "interleaves",
    "flash_attention_since",
    "micro_batches_are_stages",
    "tensor",
    "context",
    "experts",
    "zero_bubble",
)


def framework_facts() -> Mapping[str, Any]:
    """The frameworks file as it is: patterns, facts, aliases."""
    return load_profile_file(FRAMEWORKS_FILE)


@cache
def training_profiles() -> TrainingProfiles:
    """Frameworks, fitted constants and error bands, read once."""
    return profiles_from(load_profile_file(PROFILES_FILE))


def profiles_from(fitted: Mapping[str, Any]) -> TrainingProfiles:
    """Profiles from the parsed profile file and the frameworks file."""
    facts = framework_facts()
    return TrainingProfiles(
        frameworks={
            row["key"]: FrameworkProfile(
                **{name: row[name] for name in _PROFILE_FIELDS},
                vendors=tuple(row["vendors"]),
                shardings=tuple(row["shardings"]),
                pipeline_shardings=tuple(row["pipeline_shardings"]),
            )
            for row in facts["frameworks"]
        },
        question_frameworks=facts["question_frameworks"],
        step={name: law_from(row) for name, row in fitted["step"].items()},
        memory={name: law_from(row) for name, row in fitted["memory"].items()},
        reference_year=fitted["reference_year"],
        year_range=(fitted["year_range"][0], fitted["year_range"][1]),
        finetune_document_tokens=fitted["finetune_document_tokens"],
        architectures=fitted["architectures"],
        reference_watts_per_tflop=fitted["reference_watts_per_tflop"],
        bands=_bands(fitted["bands"]),
        fitted_on=fitted["fitted_on"],
    )


def law_from(row: Mapping[str, Any]) -> ConstantLaw:
    """One constant's law, with the fitted values (zero where not fitted yet)."""
    return ConstantLaw(
        prior=row["prior"],
        log_shift=row.get("log_shift", 0.0),
        fixed=_effects(row["fixed"]),
        effects=_effects(row["effects"]),
        per_year=_effects(row["per_year"]),
        cap=row["cap"],
    )


def _effects(rows: Sequence[Mapping[str, Any]]) -> tuple[Effect, ...]:
    return tuple(Effect(attributes=tuple(row["attributes"]), values=row.get("values", {})) for row in rows)


def _bands(rows: Sequence[Mapping[str, Any]]) -> ResidualBands:
    bands: dict[tuple[str, ...], dict[tuple[str, ...], Band]] = {}
    for row in rows:
        level = bands.setdefault(tuple(row["level"]), {})
        level[tuple(row["key"])] = Band(cases=row["cases"], low=row["low"], high=row["high"])
    return ResidualBands(quantity="step_s", bands=bands)
