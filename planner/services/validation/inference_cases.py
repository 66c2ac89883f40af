"""One published inference case, read and completed: what was served, on what, under which load.

Blank inputs are filled by stated assumptions, which travel with the case; what can't be known makes the
case unsupported, with the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from catalog.profiles import scheduler_defaults, serving_engine_of
from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.quantization import WEIGHT_FORMATS, compute_format, resolve_format, weight_bytes
from planner.engine.serving import LoadKind
from planner.engine.units import GIB
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.precision import kv_format_of, weight_format_of
from planner.services.validation.replay import Case, number

FindAccelerator = Callable[[str], Accelerator | None]

WAVES = 10.0
"""Requests a client sends in a closed loop that states no number (the serving benchmarks' usual ratio)."""
UNIFORM_LENGTH_CV = 0.064
"""Of lengths uniform in 0.8 to 1.0 x nominal."""
UNIFORM_MEAN_SHARE = 0.9
NATURAL_LENGTH_CV = 1.0
"""Of chat data sets."""
WEIGHTS_SHARE = 0.75
"""Where no tensor parallelism is stated: weights take at most this share of a GPU."""
EIGHT_BIT_KV_FROM = "2025"
"""Where the KV format isn't stated: engines serve 4- and 8-bit checkpoints with an FP8 cache since then."""
QUEUED = math.inf
"""Concurrency of an offline run that queues everything at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceCase:
    """A case in the engine's terms; concurrency, rate and requests are one replica's."""

    row: Case
    arch: ModelArch
    accelerator: Accelerator
    engine: str
    version: str
    date: str
    weight_format: str
    kv_format: str
    tp: int
    pp: int
    ep: int
    gpus: int
    replicas: float
    kind: LoadKind
    mode: str
    """How the engine runs: a ``serving_candidates.MODES`` value."""
    input_tokens: float
    output_tokens: float
    concurrency: float
    requests: float | None
    requests_s: float
    length_cv: float
    prefix_cache_hit: float
    max_num_seqs: float
    max_num_batched_tokens: float
    assumptions: tuple[str, ...] = field(default=())

    @property
    def gpus_per_replica(self) -> int:
        return self.pp * max(self.tp, self.ep)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why a case can't be replayed."""

    reason: str


def read_case(row: Case, library: ModelLibrary, find_accelerator: FindAccelerator) -> InferenceCase | Unsupported:
    """Complete one row, or say what is missing."""
    arch = library.resolve(row["model"])
    accelerator = find_accelerator(row["gpu"])
    weight_format = weight_format_of(row["weight_precision"], gpu=row["gpu"])
    engine = serving_engine_of(row["engine"])
    if arch is None:
        return Unsupported(f"model: {row['model']} is not in the catalog; give its architecture.")
    if accelerator is None:
        return Unsupported(f"gpu: {row['gpu']} is not in the catalog.")
    if weight_format is None:
        return Unsupported(f"weight_precision: {row['weight_precision']} is not a known format.")
    if engine is None:
        return Unsupported(f"engine: {row['engine']} has no profile.")
    if compute_format(resolve_format(arch, weight_format), accelerator.peak_flops) is None:
        return Unsupported(f"{row['gpu']} has no known compute peak for {row['weight_precision']}.")
    lengths = number(row, "isl"), number(row, "osl")
    if lengths[0] is None or lengths[1] is None:
        blank = "isl" if lengths[0] is None else "osl"
        return Unsupported(f"{blank}: blank; speed depends on both lengths.")
    return _complete(row, arch, accelerator, engine, weight_format, (lengths[0], lengths[1]))


def _complete(
    row: Case, arch: ModelArch, accelerator: Accelerator, engine: str, weight_format: str, lengths: tuple[float, float]
) -> InferenceCase:
    assumptions: list[str] = []
    gpus = int(number(row, "gpus") or 1)
    tp, pp, ep = _layout(row, arch, accelerator, weight_format, gpus, assumptions)
    replicas = max(gpus / (pp * max(tp, ep)), 1.0)
    kind, mode, concurrency = _load(row)
    notes = row.get("notes", "")
    uniform = bool(re.search(r"uniform\w* in 0\.8", notes))
    share = UNIFORM_MEAN_SHARE if uniform else 1.0
    context = int(sum(lengths))
    seqs, tokens = _scheduler(row, engine, accelerator, context)
    ranks = max(ep / tp, 1.0)
    requests = _stated(notes, r"(\d+) (?:\w+ )?(?:requests|prompts)")
    if requests is None and kind == "closed":
        requests = WAVES * concurrency
    return InferenceCase(
        row=row,
        arch=arch,
        accelerator=accelerator,
        engine=engine,
        version=row.get("engine_version", ""),
        date=row.get("date", ""),
        weight_format=weight_format,
        kv_format=_kv_format(row, arch, weight_format, assumptions),
        tp=tp,
        pp=pp,
        ep=ep,
        gpus=gpus,
        replicas=replicas,
        kind=kind,
        mode=mode,
        input_tokens=max(lengths[0] * share, 1.0),
        output_tokens=max(lengths[1] * share, 1.0),
        concurrency=max(concurrency / replicas, 1.0),
        requests=None if requests is None else max(requests / replicas, 1.0),
        requests_s=(number(row, "request_rate") or 0.0) / replicas if kind == "open" else 0.0,
        length_cv=UNIFORM_LENGTH_CV if uniform else NATURAL_LENGTH_CV if "ShareGPT" in notes else 0.0,
        prefix_cache_hit=1.0 if re.search(r"decode (?:pool|instance)", notes) else 0.0,
        max_num_seqs=seqs * ranks if kind != "static" else math.inf,
        max_num_batched_tokens=tokens * ranks,
        assumptions=tuple(assumptions),
    )


def _layout(
    row: Case, arch: ModelArch, accelerator: Accelerator, weight_format: str, gpus: int, assumptions: list[str]
) -> tuple[int, int, int]:
    """Tensor, pipeline and expert parallelism; attention data parallelism as ``ep`` above ``tp``."""
    pp = int(number(row, "pp") or 1)
    ep = int(number(row, "ep") or 1)
    dp = int(number(row, "dp") or 1)
    stated = number(row, "tp")
    if stated is None:
        size = weight_bytes(arch, weight_format).total
        tp = 1
        while size / (tp * pp) > WEIGHTS_SHARE * accelerator.memory_bytes and tp * pp * 2 <= gpus:
            tp *= 2
        assumptions.append(f"tp assumed {tp}: the fewest GPUs that hold the weights")
    else:
        tp = min(int(stated), max(gpus // pp, 1))
    if dp > 1 and tp * pp == gpus and dp in (tp, ep):
        return max(tp // dp, 1), pp, max(ep, tp)
    return tp, pp, ep


def _load(row: Case) -> tuple[LoadKind, str, float]:
    """Kind of load, how the engine runs, and the system's concurrency."""
    concurrency, rate = number(row, "concurrency"), number(row, "request_rate")
    text = f"{row.get('engine_version', '')} {row.get('notes', '')}"
    mode = "eager" if re.search(r"eager|no CUDA graph", text) else row["mode"] if row["mode"] != "server" else "server"
    if row["mode"] == "static" and concurrency is not None:
        return "static", mode, concurrency
    if row["mode"] == "server" and rate is not None and math.isfinite(rate):
        return "open", mode, concurrency or 1.0
    if row["mode"] == "server" and concurrency is not None:
        return "closed", mode, concurrency
    return "offline", mode, QUEUED if concurrency is None else concurrency


def _kv_format(row: Case, arch: ModelArch, weight_format: str, assumptions: list[str]) -> str:
    stated = row.get("kv_precision", "")
    known = kv_format_of(stated)
    if stated and known:
        return known
    bits = WEIGHT_FORMATS[resolve_format(arch, weight_format).name].bits
    if bits < 9 and row.get("date", "9999") >= EIGHT_BIT_KV_FROM:
        assumptions.append("kv_precision assumed fp8, as engines serve such checkpoints")
        return "fp8"
    assumptions.append("kv_precision assumed 16 bit")
    return "bf16"


def _scheduler(row: Case, engine: str, accelerator: Accelerator, context: int) -> tuple[float, float]:
    """Batch limit and token budget: as the notes state, else the engine's defaults at that date."""
    notes = row.get("notes", "")
    try:
        seqs, tokens = scheduler_defaults(
            engine,
            date=row.get("date") or None,
            gpu=row["gpu"],
            memory_gib=accelerator.memory_bytes / GIB,
            max_model_len=context,
        )
    except LookupError:  # no profile of its own
        seqs, tokens = 256, 8192
    stated_seqs = _stated(notes, r"max.num.seqs (\d+)") or _stated(notes, r"max batch (?:per engine )?(\d+)")
    return stated_seqs or float(seqs), _stated(notes, r"max.num.batched.tokens (\d+)") or float(tokens)


def _stated(notes: str, pattern: str) -> float | None:
    found = re.search(pattern, notes)
    return float(found.group(1)) if found else None
