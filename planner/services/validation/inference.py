"""Inference cases: published serving measurements, predicted through the engine's own serving model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from catalog.accelerator_files import find_accelerator
from catalog.profiles import serving_profiles
from planner.engine.confidence import confidence_of
from planner.engine.errors import InvalidQuestion, UnsupportedModel
from planner.engine.serving import LIMITS
from planner.engine.serving_calibration import ServingProfiles
from planner.services.validation.inference_batch import CaseBatch
from planner.services.validation.inference_cases import InferenceCase, Unsupported, is_median, read_case
from planner.services.validation.inference_speeds import Predicted
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.replay import Case, Prediction, Quantity, ReplayKind, measured_column

REQUIRED: Final = (
    "engine",
    "model",
    "weight_precision",
    "gpu",
    "gpus",
    "tp",
    "isl",
    "osl",
    "concurrency",
    "mode",
)
UNKNOWN_QUEUE: Final = "ttft not predicted: the source counts a queue in it and doesn't state how many wait"


def predict(cases: Sequence[Case], library: ModelLibrary) -> list[Prediction]:
    """Predict output rate, TTFT and TPOT of every case; all supported ones in one pass over arrays."""
    read = [_read(case, library) for case in cases]
    supported = [case for case in read if isinstance(case, InferenceCase)]
    predictions = iter(_predict_all(supported) if supported else ())
    return [
        Prediction(supported=False, reason=case.reason) if isinstance(case, Unsupported) else next(predictions)
        for case in read
    ]


def _predict_all(cases: Sequence[InferenceCase]) -> list[Prediction]:
    profiles = serving_profiles()
    batch = CaseBatch(cases, profiles.engines)
    predicted = batch.predict(profiles)
    attributes = dict(zip(batch.order, batch.attributes, strict=True))
    return [_prediction(case, predicted, row, profiles, attributes[row]) for row, case in enumerate(cases)]


def _read(case: Case, library: ModelLibrary) -> InferenceCase | Unsupported:
    try:
        return read_case(case, library, find_accelerator)
    except (UnsupportedModel, InvalidQuestion) as error:
        return Unsupported(str(error))


def _prediction(
    case: InferenceCase, predicted: Predicted, row: int, profiles: ServingProfiles, attributes: dict[str, str]
) -> Prediction:
    ttft = "p50" if is_median(case.row.get("ttft_stat", "")) else "mean"
    tpot = "p50" if is_median(case.row.get("tpot_stat", "")) else "mean"
    confidence = confidence_of(profiles.bands["output_tok_s"], attributes)
    remarks = (*case.assumptions, *((UNKNOWN_QUEUE,) if case.queued else ()))
    return Prediction(
        supported=True,
        reason="; ".join(remarks),
        values={
            "output_tok_s_per_gpu": float(predicted.output_tok_s_per_gpu[row]),
            "ttft_ms": None if case.queued else float(predicted.ttft_s[ttft][row]) * 1e3,
            # One token comes with the prefill: there is no time after it.
            "tpot_ms": float(predicted.tpot_s[tpot][row]) * 1e3 if case.output_tokens > 1 else None,
            "limit": LIMITS[int(predicted.limit[row])],
            "confidence": f"{confidence.kind} {confidence.low:.2f}-{confidence.high:.2f}",
        },
    )


KIND = ReplayKind(
    required=REQUIRED,
    columns=("output_tok_s_per_gpu", "ttft_ms", "tpot_ms", "limit", "confidence"),
    quantities=(
        Quantity(
            name="output_tok_s_per_gpu",
            predicted="output_tok_s_per_gpu",
            measured=measured_column("output_tok_s_per_gpu"),
        ),
        Quantity(name="ttft_ms", predicted="ttft_ms", measured=measured_column("ttft_ms")),
        Quantity(name="tpot_ms", predicted="tpot_ms", measured=measured_column("tpot_ms")),
    ),
    precision="weight_precision",
    predict=predict,
)
