"""Training cases: step time, throughput, MFU and memory of published runs, predicted by the engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catalog.accelerator_files import find_accelerator
from catalog.model_files import find_model
from catalog.training_files import framework_facts, training_profiles
from planner.engine.confidence import confidence_of
from planner.engine.errors import UnsupportedModel
from planner.engine.training.memory import training_memory
from planner.engine.training.profile import memory_constants, step_constants
from planner.engine.training.recipe import Convention, model_flops_per_token
from planner.engine.training.step import longest_resource, step_time
from planner.engine.training.work import model_work
from planner.engine.units import GIB
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.replay import Case, Prediction, Quantity, ReplayKind, measured_column
from planner.services.validation.training_case import (
    TrainingCase,
    context_of,
    peak_flops,
    resolve_recompute,
    stack_cases,
)
from planner.services.validation.training_row_arch import Row, UnreadableRow
from planner.services.validation.training_rows import FindModel, RowReader

FORWARD_PASSES = 3.0


def measured_step_s(row: Row, case: TrainingCase) -> tuple[float | None, str]:
    """(seconds, basis) of a row's optimizer step, from whichever speed it states.

    Stated TFLOP/s and MFU are turned into time by the row's own FLOP convention.
    """
    tokens = case.global_batch * case.sequence_length
    step, rate, flops, mfu = (_cell(row, name) for name in ("step_time_s", "tok_s_per_gpu", "tflops_per_gpu", "mfu"))
    if step:
        return step, "step"
    if rate:
        return tokens / (rate * case.gpus), "tokens"
    counted = published_flops_per_token(case, row.get("flops_convention", ""))
    if flops:
        return tokens * counted / (flops * 1e12 * case.gpus), "flops"
    if mfu:
        return tokens * counted / (mfu * peak_flops(case) * case.gpus), "mfu"
    return None, ""


def published_flops_per_token(case: TrainingCase, convention: str) -> float:
    """FLOPs a token as a source counts them: causal or not, recomputation included or not, LoRA's 2/3.

    Where a source does not say, its framework's own counter does.
    """
    work = model_work(case.arch)
    text = convention.lower()
    causal_since = framework_facts()["causal_flops_since"].get(case.framework, np.inf)
    counted: Convention = "causal" if case.year >= causal_since else "non_causal"
    if "without attention" in text or "8*n" in text:
        counted = "no_attention"
    elif "non-causal" in text:
        counted = "non_causal"
    elif "causal" in text:
        counted = "causal"
    flops = float(np.asarray(model_flops_per_token(work, case.sequence_length, counted)))
    if "hardware" in text:
        flops *= (FORWARD_PASSES + 1.0) / FORWARD_PASSES
    if case.method in ("lora", "qlora"):
        flops *= 2.0 / 3.0
    return flops


def _cell(row: Row, column: str) -> float | None:
    try:
        return float(row.get(column) or "")
    except ValueError:
        return None


def predict(cases: Sequence[Case], library: ModelLibrary) -> list[Prediction]:
    """Predict step time, throughput, MFU and memory of every row."""
    profiles = training_profiles()
    reader = row_reader(library.resolve)
    read: list[TrainingCase | str] = []
    for row in cases:
        try:
            read.append(reader.read(row))
        except (UnreadableRow, UnsupportedModel) as error:
            read.append(str(error))
    known = resolve_recompute([case for case in read if isinstance(case, TrainingCase)], profiles)
    found = iter(_predict(known, [row for row, case in zip(cases, read, strict=True) if not isinstance(case, str)]))
    return [Prediction(supported=False, reason=case) if isinstance(case, str) else next(found) for case in read]


def _predict(cases: Sequence[TrainingCase], rows: Sequence[Row]) -> list[Prediction]:
    if not cases:
        return []
    profiles = training_profiles()
    work, recipe, cand = stack_cases(cases, profiles)
    contexts = [context_of(case, profiles) for case in cases]
    step = step_time(work, recipe, cand, step_constants(profiles, contexts))
    memory = training_memory(work, recipe, cand, memory_constants(profiles, contexts))
    predictions = []
    for index, (case, row) in enumerate(zip(cases, rows, strict=True)):
        seconds = float(step.total[index])
        rate = case.global_batch * case.sequence_length / seconds / case.gpus
        flops = published_flops_per_token(case, row.get("flops_convention", ""))
        predictions.append(
            Prediction(
                supported=True,
                reason="; ".join(case.assumptions),
                values={
                    "step_time_s": seconds,
                    "tok_s_per_gpu": rate,
                    "mfu": rate * flops / peak_flops(case),
                    "mem_gib_per_gpu": float(memory.total[index]) / GIB,
                    "limit": longest_resource(step, index),
                    "confidence": confidence_of(profiles.bands, contexts[index].attributes()).kind,
                },
            )
        )
    return predictions


def row_reader(find_model: FindModel) -> RowReader:
    """A reader with the catalog's accelerators and frameworks at hand."""
    facts = framework_facts()
    return RowReader(
        find_model=find_model,
        find_accelerator=find_accelerator,
        profiles=training_profiles(),
        framework_patterns=tuple((row["match"], row["key"]) for row in facts["frameworks"]),
        framework_facts={row["key"]: row for row in facts["frameworks"]},
        fallback_framework=facts["fallback"],
        model_aliases=facts["model_aliases"],
        long_documents=tuple(facts["long_documents"]),
        mtp_models=facts["mtp_models"],
    )


def _measured_step(row: Row) -> float | None:
    """The row's seconds a step, read with its own columns; None where it states no speed."""
    try:
        case = row_reader(find_model).read(row)
    except (UnreadableRow, UnsupportedModel):
        return _cell(row, "step_time_s")
    return measured_step_s(row, case)[0]


KIND = ReplayKind(
    required=("framework", "model", "gpu", "gpus", "precision"),
    columns=("step_time_s", "tok_s_per_gpu", "mfu", "mem_gib_per_gpu", "limit", "confidence"),
    quantities=(
        Quantity(name="step time", predicted="step_time_s", measured=_measured_step),
        Quantity(name="tokens/s/GPU", predicted="tok_s_per_gpu", measured=measured_column("tok_s_per_gpu")),
        Quantity(name="memory", predicted="mem_gib_per_gpu", measured=measured_column("mem_gib_per_gpu")),
    ),
    precision="precision",
    predict=predict,
)
