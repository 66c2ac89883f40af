"""KV capacity cases: the engine's token line for a pool whose size its log states.

The pool is given, so that only the allocator is put to the test: bytes a token, pages and groups,
block rounding, and what the line means in that version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from catalog.profiles import serving_memory_profile
from planner.engine.errors import InvalidQuestion, UnsupportedModel
from planner.engine.kv_cache import logged_tokens, max_concurrency
from planner.engine.model_arch import ModelArch
from planner.engine.units import GIB
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.precision import kv_format_of
from planner.services.validation.replay import Case, Prediction, Quantity, ReplayKind, number

SHORT_CONTEXT = 4096
"""Maximum length assumed where a log doesn't state it; uniform models' lines don't depend on it."""
DRAFT_HEAD = re.compile(r"\+\s*eagle", re.IGNORECASE)
"""A drafter of one attention layer that keeps its own cache."""


def predict(cases: Sequence[Case], library: ModelLibrary) -> list[Prediction]:
    """Predict the token line and the concurrency at the maximum length of every case."""
    return [_predict(case, library) for case in cases]


def _predict(case: Case, library: ModelLibrary) -> Prediction:
    pool_gib = _stated(case, "kv_pool_gib", "kv_cache_gib")
    if pool_gib is None:
        return Prediction(supported=False, reason="kv_pool_gib: the log states no pool")
    kv_format = kv_format_of(case.get("kv_format") or case.get("kv_dtype") or "")
    if kv_format is None:
        return Prediction(supported=False, reason="kv_format: not a known format")
    try:
        arch = _arch(case, library)
    except (UnsupportedModel, InvalidQuestion) as error:
        return Prediction(supported=False, reason=str(error))
    if arch is None:
        return Prediction(supported=False, reason=f"model {case['model']!r}: not in the catalog")
    profile = serving_memory_profile("vllm", version=case.get("engine_version") or case.get("vllm_version") or None)
    state_blocks = _stated(case, "state_blocks")
    allocator = replace(profile.allocator, state_blocks=int(state_blocks)) if state_blocks else profile.allocator
    max_model_len = _stated(case, "max_model_len")
    length = max_model_len or SHORT_CONTEXT
    tp, pp = _stated(case, "tensor_parallel", "tp") or 1, _stated(case, "pipeline_parallel", "pp") or 1
    tokens = logged_tokens(
        arch,
        kv_format,
        tp,
        pp,
        pool_gib * GIB,
        max_model_len=length,
        by_concurrency=profile.logs_concurrency_tokens,
        allocator=allocator,
    )
    concurrency = max_concurrency(arch, kv_format, tp, pp, pool_gib * GIB, length, allocator=allocator)
    return Prediction(
        supported=True,
        reason="" if max_model_len else f"max_model_len {SHORT_CONTEXT} assumed",
        values={"kv_tokens": float(tokens), "concurrency": float(concurrency), "confidence": "exact"},
    )


def _stated(case: Case, *columns: str) -> float | None:
    return next((value for column in columns if (value := number(case, column)) is not None), None)


def _arch(case: Case, library: ModelLibrary) -> ModelArch | None:
    """The case's model, with a drafter's layer where it runs one."""
    arch = next((found for name in _names(case["model"]) if (found := library.resolve(name)) is not None), None)
    drafts = int(_stated(case, "draft_layers") or 0) or int(bool(DRAFT_HEAD.search(case["model"])))
    if arch is None or not drafts:
        return arch
    first, *others = arch.attention
    return replace(arch, attention=(replace(first, layers=first.layers + drafts), *others))


def _names(text: str) -> Iterator[str]:
    """A model's name as written, without a remark in brackets or a drafter, and the remark itself."""
    yield text
    plain, _, remark = text.partition("(")
    yield DRAFT_HEAD.split(plain)[0].strip()
    yield remark.rstrip(") ")


KIND = ReplayKind(
    required=("model", "kv_tokens"),
    columns=("kv_tokens", "concurrency", "confidence"),
    quantities=(
        Quantity(name="KV tokens", predicted="kv_tokens", measured=lambda case: number(case, "kv_tokens")),
        Quantity(name="concurrency", predicted="concurrency", measured=lambda case: number(case, "concurrency")),
    ),
    precision="kv_dtype",
    groups=("grade", "exactness"),
    predict=predict,
)
