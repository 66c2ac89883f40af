"""One published inference case, read and completed: what was served, on what, under which load.

Blank inputs are filled by stated assumptions, which travel with the case; what can't be known makes the
case unsupported, with the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from catalog.profiles import scheduler_defaults, serving_engine_of, serving_profiles
from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.quantization import WEIGHT_FORMATS, compute_format, resolve_format, weight_bytes
from planner.engine.serving import LoadKind
from planner.engine.units import GIB
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.precision import kv_format_of, weight_format_of
from planner.services.validation.replay import Case, number

CONDITION_PATTERNS = {
    "requests": r"(\d+) (?:[A-Za-z]+ )?(?:requests|prompts)",
    "max_num_seqs": r"max.num.seqs (\d+)|max batch (\d+)",
    "engine_max_batch": r"max batch per engine (\d+)",
    "max_num_batched_tokens": r"max.num.batched.tokens (\d+)",
    "uniform_lengths": r"uniform\w* in 0\.8",
    "natural_lengths": r"ShareGPT|lengths are \w+ means|means derived",
    "eager": r"eager|no CUDA graph",
    "decode_only": r"decode (?:pool|instance)",
    "prefill_workers": r"(\d+) prefill \+ \d+ decode workers",
    "decode_workers": r"\d+ prefill \+ (\d+) decode workers",
    "queued": r"TTFT includes queueing|QUEUED",
}
"""Conditions that published notes state in words, and the measurement files as ``name`` or ``name=number``."""

NATIVE_BLOCKS = {"fp8_block": ("fp8",), "int4_g32": ("awq_int4",)}
"""Labels that mean the checkpoint's own block format where a model ships in it."""

CaseKind = LoadKind | Literal["split"]
FindAccelerator = Callable[[str], Accelerator | None]

WAVES = 10.0
"""Requests a client sends in a closed loop that states no number (the serving benchmarks' usual ratio)."""
OPEN_RUN_S = 600.0
"""Length of an open-loop run that states no number of requests (MLPerf's shortest)."""
UNKNOWN_BATCH_LIMIT, UNKNOWN_TOKEN_BUDGET = 256, 8192
"""Of engines without settings of their own."""
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
    kind: CaseKind
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
    prefill_workers: float
    """Replicas that only prefill; 0 where each does both."""
    decode_workers: float
    queued: bool = False
    """The source says that first tokens waited in a queue whose length it doesn't state: TTFT can't be known."""
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
    if arch is not None and weight_format in NATIVE_BLOCKS.get(arch.native_format, ()):
        weight_format = arch.native_format
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
    split = "prefill_workers" in stated_conditions(row)
    replicas = 1.0 if split else max(gpus / (pp * max(tp, ep)), 1.0)
    kind, mode, concurrency = _load(row, stated_conditions(row))
    stated = stated_conditions(row)
    uniform = "uniform_lengths" in stated
    share = UNIFORM_MEAN_SHARE if uniform else 1.0
    seqs, tokens = _scheduler(row, engine, accelerator, int(sum(lengths)), stated)
    ranks = max(ep / tp, 1.0)
    requests = stated.get("requests")
    if requests is None and kind in ("closed", "split"):
        requests = WAVES * concurrency
    elif requests is None and kind == "open":
        requests = OPEN_RUN_S * (number(row, "request_rate") or 0.0)
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
        length_cv=UNIFORM_LENGTH_CV if uniform else NATURAL_LENGTH_CV if "natural_lengths" in stated else 0.0,
        prefix_cache_hit=1.0 if "decode_only" in stated else 0.0,
        max_num_seqs=stated.get("engine_max_batch", seqs) * ranks if kind != "static" else math.inf,
        max_num_batched_tokens=tokens * ranks,
        prefill_workers=stated.get("prefill_workers", 0.0),
        decode_workers=stated.get("decode_workers", 0.0),
        queued="queued" in stated,
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
    if row["mode"] == "offline" and tp == ep > 1 and any(group.kind == "mla" for group in arch.attention):
        assumptions.append("attention assumed data parallel: tensor ranks would each hold every latent")
        return 1, pp, ep
    return tp, pp, ep


def _load(row: Case, stated: Mapping[str, float]) -> tuple[CaseKind, str, float]:
    """Kind of load, how the engine runs, and the system's concurrency."""
    concurrency, rate = number(row, "concurrency"), number(row, "request_rate")
    mode = "eager" if "eager" in stated else row["mode"]
    if "prefill_workers" in stated and concurrency is not None:
        return "split", mode, concurrency
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


def _scheduler(
    row: Case, engine: str, accelerator: Accelerator, context: int, stated: Mapping[str, float]
) -> tuple[float, float]:
    """Batch limit and token budget: as stated, else the engine's defaults at that date."""
    settings = serving_profiles().engines.get(engine)
    if settings is not None and settings.dated_batch_limits:
        date = row.get("date") or None
        memory_gib = accelerator.memory_bytes / GIB
        seqs, tokens = scheduler_defaults(
            engine, date=date, gpu=row["gpu"], memory_gib=memory_gib, max_model_len=context
        )
        small_seqs, small_tokens = scheduler_defaults(engine, date=date, memory_gib=0.0, max_model_len=context)
        if stated.get("max_num_seqs") == small_seqs != seqs:
            # Defaults come in pairs: an engine used as a library has both of the small ones on any GPU.
            tokens = small_tokens
    elif settings is not None:
        seqs, tokens = settings.max_num_seqs, settings.max_num_batched_tokens
    else:
        seqs, tokens = UNKNOWN_BATCH_LIMIT, UNKNOWN_TOKEN_BUDGET
    return stated.get("max_num_seqs", float(seqs)), stated.get("max_num_batched_tokens", float(tokens))


def stated_conditions(row: Case) -> dict[str, float]:
    """Conditions of a run by name; the value is the number stated, or 1.

    >>> stated_conditions({"notes": "closed loop, 128 requests; max_num_seqs 32"})
    {'requests': 128.0, 'max_num_seqs': 32.0}
    >>> stated_conditions({"conditions": "requests=128 uniform_lengths"})
    {'requests': 128.0, 'uniform_lengths': 1.0}
    """
    if "conditions" in row:
        pairs = (text.partition("=") for text in row["conditions"].split())
        return {name: float(value or 1) for name, _, value in pairs}
    text = "; ".join(row.get(column, "") for column in ("engine_version", "notes", "source"))
    found = {name: re.search(pattern, text) for name, pattern in CONDITION_PATTERNS.items()}
    return {
        name: float(next((group for group in match.groups() if group), 1)) for name, match in found.items() if match
    }


def is_median(statistic: str) -> bool:
    """Whether a row's statistic is the median; where it names both or neither, the mean is meant.

    >>> is_median("median ITL"), is_median("unspecified (mean/median)"), is_median("")
    (True, False, False)
    """
    text = statistic.lower()
    return ("median" in text or "p50" in text) and "mean" not in text
