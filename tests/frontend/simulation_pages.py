"""What tests of simulations' pages share: the form, and what finished jobs answer."""

from __future__ import annotations

import json
import re
from typing import Any

from django.test import Client

from planner.models import Run

FORM = "/simulations/new/"
TRACE = b"arrival_s,input_tokens,output_tokens\n0,10,5\n1,20,5\n"


def post(client: Client, **fields: Any) -> Any:
    return client.post(FORM, {"question": "model=Llama+3.1+8B&requests_per_second=2", **fields})


def result() -> dict[str, Any]:
    times = {at: [100.0, None] for at in ("p50", "p90", "p95", "p99")}
    latency = {"mean": 90.0, "p50": 80.0, "p90": 110.0, "p95": 120.0, "p99": 150.0}
    return {
        "requests": 12, "completed": 11, "dropped": 1, "duration_s": 120.0, "replicas": 2, "option": "a",
        "throughput": {"requests_s": 0.1, "input_tok_s": 5.0, "output_tok_s": 7.0},
        "ttft_ms": latency, "tpot_ms": latency, "goodput": {"share": 0.9}, "preemptions": 0, "utilization": 0.4,
        "gpu_hours": 0.1, "cost_usd": "1.20", "usd_per_million_input_tokens": "0.40",
        "usd_per_million_output_tokens": "3.10", "catalog_version": "v",
        "settings": {"seed": 4}, "notes": ["Generated traffic."],
        "ecdf": {"shares": [0.5, 1.0], "ttft_ms": [80.0, 150.0], "tpot_ms": [80.0, 150.0]},
        "incidents": {"listed": [{"at_s": 60.0, "kind": "scaled", "replica": None, "replicas": 3, "lost_requests": 0}]},
        "timeline": {
            "requests": {
                "bin_s": 60.0, "arrived": [6, 6], "completed": [5, 6], "dropped": [1, 0],
                "input_tokens": [10, 10], "output_tokens": [10, 10], "ttft_ms": times, "tpot_ms": times,
            },
            "replicas": {"bin_s": 60.0, "ready": [2.0, 3.0], "ready_min": [2.0, 2.0], "billed": [2.0, 3.0]},
            "queue": {"bin_s": 60.0, "waiting": [0, 1], "waiting_max": [1, 4], "running": [1, 2]},
            "kv": {"bin_s": 60.0, "used": [0.1, 0.2], "used_max": [0.2, 0.3]},
            "heat": {"bin_s": 60.0, "kv": [[0.1, 0.5], [0.2, 0.4]], "waiting": [[0, 0], [0, 1]]},
        },
    }  # fmt: skip


def searched() -> dict[str, Any]:
    base = {
        "replicas": 2, "autoscaled": False, "scaling_target": None, "min_replicas": None, "max_replicas": None,
        "met": True, "ttft_ms": 120.0, "tpot_ms": 20.0, "goodput_share": 0.97, "goodput_requests_s": 3.5, "dropped": 0,
        "gpu_hours": 2.0, "cost_usd": "4.00",
    }  # fmt: skip
    scaled = {"autoscaled": True, "scaling_target": 12.5, "min_replicas": 1, "max_replicas": 4, "cost_usd": "3.00"}
    one = {"replicas": 1, "met": False, "goodput_share": 0.4, "cost_usd": "2.00", "ttft_ms": None}
    tried = [base | one, base | scaled, base]
    limits = {"ttft": 500.0, "tpot": None}
    return {"replicas": 2, "percentile": "p95", "limits_ms": limits, "chosen": 1, "tried": tried}


def figures_of(client: Client, run: Run) -> dict[str, Any]:
    text = client.get(f"/runs/{run.uuid}/").content.decode()
    found = re.findall(r'<script id="figure-([^"]+)" type="application/json">(.*?)</script>', text, re.S)
    return {name: json.loads(figure) for name, figure in found}
