"""Whole published runs: GPU-hours from tokens, as a plan reckons them, against what was reported.

The layout is searched as a plan does (or taken where the run's is known), on the software of the run's own
date. A run whose fleet is not stated is given the power of two of GPUs that ends it within a month at 40 % of
peak. What a run trained with is a fact file's matter (``long_run_recipes.json``), matched by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.accelerator_files import find_accelerator
from catalog.model_files import find_model
from catalog.profiles import load_profile_file
from catalog.training_files import training_profiles
from planner.engine.field_spec import specs
from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.training.goodput import Reliability, goodput
from planner.engine.training.layouts import AskedLayout
from planner.engine.training.nodes import NodeHardware
from planner.engine.training.profile import Context, TrainingProfiles
from planner.engine.training.recipe import PEAK_FORMAT, RecipeSpec, model_flops_per_token, recipe
from planner.engine.training.search import layout_words, search_layouts
from planner.engine.training.search_types import BestLayouts, ClusterSize, LayoutQuestion
from planner.engine.training.work import ModelWork, model_work
from planner.engine.training_question import TrainingQuestion
from planner.engine.units import SECONDS_PER_DAY, SECONDS_PER_HOUR
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.replay import Case, Prediction, Quantity, ReplayKind, number
from planner.services.validation.training_case import sixteen_bit_peak
from planner.services.validation.training_row_arch import arch_from_columns

RECIPES_FILE = "long_run_recipes.json"
GPUS_PER_NODE = 8
USUAL_DAYS, USUAL_MFU, LARGEST_FLEET = 30.0, 0.4, 16_384
WHOLE_DOCUMENT = 1e12
GOODPUT = float(specs(TrainingQuestion)["goodput"][1])
"""What a plan takes where nothing is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """One published run: what it trained, on what, how."""

    arch: ModelArch
    work: ModelWork
    teacher: ModelWork | None
    accelerator: Accelerator
    tokens: float
    gpus: int
    facts: Mapping[str, Any]


def recipes() -> Mapping[str, Mapping[str, Any]]:
    """Facts of published runs by name."""
    return {row["run"]: row for row in load_profile_file(RECIPES_FILE)["runs"]}


def reported_runs() -> list[Case]:
    """Runs of the fact file with what was reported of them, as cases; figures read at their source alone."""
    return [
        {"id": name, "model": name, **row["reported"]}
        for name, row in recipes().items()
        if row["reported"]["confidence"] == "read"
    ]


def gpu_hour_ratios(cases: Sequence[Case], predictions: Sequence[Prediction]) -> list[float]:
    """Predicted over reported GPU-hours of every run that has both."""
    return [
        float(found.values["gpu_hours"] or 0.0) / measured
        for case, found in zip(cases, predictions, strict=True)
        if found.supported and (measured := measured_gpu_hours(case))
    ]


def measured_gpu_hours(case: Case) -> float | None:
    """GPU-hours as reported, else GPUs x days."""
    stated = number(case, "gpu_hours")
    if stated:
        return stated
    gpus, days = number(case, "gpus"), number(case, "days")
    return gpus * days * 24.0 if gpus and days else None


def predict(cases: Sequence[Case], library: ModelLibrary | None = None) -> list[Prediction]:
    """GPU-hours of every run that is known well enough; architectures are the fact file's."""
    known = recipes()
    profiles = training_profiles()
    return [_predict(case, known.get(case["model"]), profiles) for case in cases]


def _predict(case: Case, facts: Mapping[str, Any] | None, profiles: TrainingProfiles) -> Prediction:
    accelerator = find_accelerator(case["gpu"])
    tokens = number(case, "tokens_t")
    if facts is None or accelerator is None or tokens is None:
        missing = "tokens" if tokens is None else "accelerator" if accelerator is None else "sequence, batch, software"
        return Prediction(supported=False, reason=f"not known of this run: {missing}")
    run = _read(case, facts, accelerator, tokens * 1e12)
    best = _search(run, profiles)
    if not len(best.cluster):
        return Prediction(supported=False, reason=f"no layout fits {run.gpus} GPUs")
    rate = float(best.tokens_per_s[0])
    useful = min(GOODPUT, float(np.asarray(goodput(float(run.gpus), Reliability()))))
    hours = run.tokens / rate / useful / SECONDS_PER_HOUR
    return Prediction(
        supported=True,
        reason="" if number(case, "gpus") else f"{run.gpus} GPUs assumed",
        values={
            "gpu_hours": hours * run.gpus,
            "days": hours / 24.0,
            "tok_s_per_gpu": rate / run.gpus,
            "goodput": useful,
            "layout": layout_words(best.candidates, 0, str(facts["framework"])),
        },
    )


def _read(case: Case, facts: Mapping[str, Any], accelerator: Accelerator, tokens: float) -> LongRun:
    arch = _architecture(case["model"], facts)
    work = model_work(arch)
    teacher = find_model(facts["teacher"]) if "teacher" in facts else None
    stated = number(case, "gpus")
    return LongRun(
        arch=arch,
        work=work,
        teacher=None if teacher is None else model_work(teacher),
        accelerator=accelerator,
        tokens=tokens,
        gpus=int(stated) if stated else _usual_fleet(work, tokens, accelerator, int(facts["sequence_length"])),
        facts=facts,
    )


def _architecture(name: str, facts: Mapping[str, Any]) -> ModelArch:
    found = find_model(facts["model"]) if "model" in facts else None
    if found is not None:
        return found
    sizes = facts["architecture"]
    columns = {"gated_mlp": str(int(sizes["gated"])), "model": name}
    arch = arch_from_columns({**columns, **{key: str(value) for key, value in sizes.items()}})
    return ModelArch(
        name=name,
        hidden=arch.hidden,
        layers=arch.layers,
        vocab=arch.vocab,
        attention=arch.attention,
        ffn=arch.ffn,
        tied_embeddings=bool(sizes["tied"]),
    )


def _usual_fleet(work: ModelWork, tokens: float, accelerator: Accelerator, sequence: int) -> int:
    flops = tokens * float(np.asarray(model_flops_per_token(work, sequence)))
    wanted = flops / (USUAL_MFU * sixteen_bit_peak(accelerator)) / (USUAL_DAYS * SECONDS_PER_DAY)
    gpus = GPUS_PER_NODE
    while gpus < min(wanted, LARGEST_FLEET):
        gpus *= 2
    return gpus


def _search(run: LongRun, profiles: TrainingProfiles) -> BestLayouts:
    facts, accelerator = run.facts, run.accelerator
    framework = profiles.frameworks[facts["framework"]]
    sequences = float(round(facts["batch_tokens"] / facts["sequence_length"]))
    spec = RecipeSpec(
        method="pretrain",
        precision=facts["precision"],
        sequence_length=facts["sequence_length"],
        global_batch=sequences,
        document_tokens=WHOLE_DOCUMENT,
        year=facts["year"],
    )
    question = LayoutQuestion(
        recipe=recipe(spec, run.work, framework),
        sequence_length=facts["sequence_length"],
        global_batch=sequences,
        batch_is_fixed=False,
        asked=AskedLayout(tensor=facts.get("tensor"), pipeline=facts.get("pipeline")),
        sharding="auto",
        recompute="auto",
        framework=framework,
        teacher=run.teacher,
    )
    peaks = accelerator.peak_flops
    node = NodeHardware(
        gpus=GPUS_PER_NODE,
        peak_flops=peaks.get(PEAK_FORMAT[facts["precision"]]) or sixteen_bit_peak(accelerator),
        peak_flops_16bit=sixteen_bit_peak(accelerator),
        power_share=1.0,
        memory_bytes=float(accelerator.memory_bytes),
        memory_bandwidth_bytes_s=accelerator.memory_bandwidth_bytes_s,
        link_bytes_s=accelerator.link_bytes_s,
        link_is_shared=False,
        link_domain_gpus=GPUS_PER_NODE,
        network_bytes_s=facts["network_bytes_s"],
        host_bytes_s=25e9,
        context=_context(run, profiles),
    )
    size = ClusterSize(node=0, nodes=max(1, run.gpus // GPUS_PER_NODE), gpus=run.gpus)
    return search_layouts(run.work, question, [node], [size], profiles).best


def _context(run: LongRun, profiles: TrainingProfiles) -> Context:
    facts, generation = run.facts, run.accelerator.generation
    framework = profiles.frameworks[facts["framework"]]
    return Context(
        framework=framework.key,
        family=framework.family,
        generation=generation,
        precision="bf16" if facts["precision"] == "fp16" else facts["precision"],
        kind="moe" if any(group.kind == "moe" for group in run.arch.ffn) else "dense",
        measure="allocated",
        year=facts["year"],
        messages="bucketed" if framework.buckets_messages else "single",
        accelerator=run.accelerator.key,
        architecture=profiles.architectures.get(generation, generation),
    )


KIND = ReplayKind(
    required=("model", "tokens_t", "gpu", "gpus", "gpu_hours", "days"),
    columns=("gpu_hours", "days", "tok_s_per_gpu", "goodput", "layout"),
    quantities=(Quantity(name="GPU-hours", predicted="gpu_hours", measured=measured_gpu_hours),),
    precision="precision",
    predict=predict,
    groups=("confidence",),
)
