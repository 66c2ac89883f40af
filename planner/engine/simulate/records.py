"""The records that a run's state is made of: numpy types that compiled code and Python read and write alike.

Times are seconds since the start of the run; -1 stands for "none" in index fields; nan for "not yet" in time fields.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from planner.engine.step_time import StepCoefficients

MAX_FALLBACKS: Final = 4
MAX_AVOIDED: Final = 8
"""Replicas that failed a request and that it is not sent to again while there are others."""
MAX_PREFERRED: Final = 8


def _record(fields: dict[str, DTypeLike]) -> np.dtype[Any]:
    return np.dtype(list(fields.items()), align=True)


COEFFICIENTS: Final = _record(dict.fromkeys(StepCoefficients._fields, "f8"))

KIND: Final = _record(
    {
        "mode": "i4",
        "role": "i4",
        # Continuous batching.
        "block_tokens": "i8",
        "blocks": "i8",
        "max_seqs": "i8",
        "max_tokens": "i8",
        "max_context": "i8",
        "rank_spread": "f8",
        "lookahead": "i4",
        "chunked": "i4",
        "reserve_prompt": "i4",
        "prefix_cache": "i4",
        "unit_tokens": "i8",
        "found_tokens": "i8",
        "draft_tokens": "i8",
        "acceptance": "f8",
        "draft_share": "f8",
        "transfer_s": "f8",
        "transfer_token_s": "f8",
        # Whole-request batching.
        "instances": "i8",
        "max_batch": "i8",
        "max_delay_s": "f8",
        "preferred": ("i8", (MAX_PREFERRED,)),
        "padded": "i4",
        "batch_s": "f8",
        "item_s": "f8",
        "token_s": "f8",
        # Both.
        "max_waiting": "i8",
        "queue_timeout_s": "f8",
        "request_s": "f8",
        "gpus": "f8",
    }
)

REPLICA: Final = _record(
    {
        "kind": "i4",
        "pool": "i4",
        "alive": "i4",
        "billed": "i4",
        # The rented unit (node) that it is on, and how many replicas that has room for.
        "unit": "i8",
        "unit_room": "i8",
        "busy": "i4",
        "paused": "i4",
        "blocked": "i4",
        "refused": "f8",
        "free": "i8",
        "reserved": "i8",
        "late_blocks": "i8",
        "late_seqs": "i8",
        "taken": "i8",
        "debt": "f8",
        "steps": "f8",
        "context": "f8",
        "growth": "f8",
        "squares": "f8",
        "running": "i8",
        "decoding": "i8",
        "waiting": "i8",
        "waiting_tokens": "i8",
        "outstanding": "i8",
        "wait_head": "i8",
        "wait_tail": "i8",
        "pre_head": "i8",
        "pre_tail": "i8",
        "run_head": "i8",
        "run_tail": "i8",
        "heap_n": "i8",
        "run_start": "f8",
        "run_steps": "i8",
        "run_first": "f8",
        "run_slope": "f8",
        "last_start": "f8",
        "prefill_tokens": "f8",
        "prefill_pairs": "f8",
        "prompt_token_s": "f8",
        "longest_chunk": "f8",
        "lru_head": "i8",
        "lru_tail": "i8",
        "routed": "i8",
        "done": "i8",
        "busy_s": "f8",
        "prefill_s": "f8",
        "iterations": "i8",
        "preemptions": "i8",
        "cancels": "i8",
    }
)

SLOT: Final = _record(
    {
        "request": "i8",
        "arrival": "f8",
        "ready": "f8",
        "scheduled": "f8",
        "first": "f8",
        "extra": "f8",
        "pass_s": "f8",
        "join": "f8",
        "finish": "f8",
        "rate": "f8",
        "key": "i8",
        "hashes": "i8",
        "shared": "i8",
        "input": "i8",
        "output": "i8",
        "generated": "i8",
        "target": "i8",
        "computed": "i8",
        "chunk": "i8",
        "units": "i8",
        "kept": "i8",
        "kept_until": "i8",
        "replica": "i8",
        # Replicas that refused or lost it, the last ones: the n-th at n modulo their number.
        "avoid": ("i8", (MAX_AVOIDED,)),
        "pool": "i8",
        "home": "i8",
        "next": "i8",
        "prev": "i8",
        "queued": "i8",
        "state": "i4",
        "prefilled": "i4",
        "retries": "i4",
        "hits": "i8",
        "cancelled": "i4",
    }
)

POOL: Final = _record(
    {
        "policy": "i4",
        "decode_pool": "i4",
        "turn": "i8",
        "members": "i8",
        "max_outstanding": "i8",
        "spill": "i8",
        "load_cap": "f8",
        "fallback": ("i8", (MAX_FALLBACKS,)),
        "held": "i8",
        "hold_head": "i8",
        "hold_tail": "i8",
        "hold_s": "f8",
        "max_held": "i8",
        # Requests whose home it is, wherever they were served.
        "arrived": "i8",
        "done": "i8",
        "good": "i8",
        "sum_ttft_us": "i8",
        "sum_tpot_ns": "i8",
        "with_tpot": "i8",
    }
)

FLEET: Final = _record(
    {
        "now": "f8",
        "cursor": "i8",
        "live": "i8",
        "most_live": "i8",
        "free_slot": "i8",
        "random": "u8",
        "events": "i8",
        "sequence": "i8",
        "rows": "i8",
        "keep_rows": "i4",
        "closed": "i4",
        "released": "i8",
        "closes_s": "f8",
        "lasts_s": "f8",
        "think_s": "f8",
        "drain": "i4",
        "max_retries": "i8",
        "retry_s": "f8",
        "cancel_s": "f8",
        "entry_free": "i8",
        "entries": "i8",
        "entry_margin": "i8",
        "bin_s": "f8",
        "sample_s": "f8",
        "next_sample": "f8",
        "slo_ttft_s": "f8",
        "slo_tpot_s": "f8",
        # Totals. Sums are whole numbers so that parts of a run add up exactly in any order.
        "arrived": "i8",
        "outcomes": ("i8", (6,)),
        "good": "i8",
        "sum_ttft_us": "i8",
        "sum_e2e_us": "i8",
        "sum_tpot_ns": "i8",
        "with_tpot": "i8",
        "with_ttft": "i8",
        "input_tokens": "i8",
        "output_tokens": "i8",
        "hit_tokens": "i8",
        "preemptions": "i8",
        "retries": "i8",
        "last_left": "f8",
        "first_arrival": "f8",
    }
)

EVENT: Final = _record({"time": "f8", "sequence": "i8", "kind": "i8", "slot": "i8", "request": "i8"})
ENTRY: Final = _record(
    {"key": "i8", "replica": "i8", "refs": "i8", "blocks": "i8", "next": "i8", "prev": "i8", "chain": "i8"}
)
ROW: Final = _record(
    {
        "request": "i8",
        "arrival": "f8",
        "scheduled": "f8",
        "first": "f8",
        "last": "f8",
        "replica": "i8",
        "outcome": "i8",
    }
)
BIN: Final = _record(dict.fromkeys(("arrived", "done", "lost", "input_tokens", "output_tokens", "hit_tokens"), "i8"))
SAMPLE: Final = _record(
    {
        "count": "i8",
        "waiting": "f8",
        "waiting_max": "f8",
        "running": "f8",
        "running_max": "f8",
        "kv": "f8",
        "kv_max": "f8",
        "ready": "f8",
        "ready_min": "f8",
        "billed": "f8",
        "billed_max": "f8",
    }
)
