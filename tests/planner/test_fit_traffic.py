"""``manage.py fit_traffic``: what a generator was asked for is found in the traffic it made."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.simulate.workload_model import generate

PUBLIC_TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"


def trace_of(question: TrafficQuestion, path: Path) -> Path:
    """The question's traffic as a file."""
    lines = ["arrival_s,input_tokens,output_tokens,prefix_id,prefix_tokens"]
    for batch in generate(question.model(), duration_s=question.duration_s, seed=question.seed):
        key = batch.key if len(batch.key) else np.full(len(batch.arrival_s), -1)
        shared = batch.shared_tokens if len(batch.shared_tokens) else np.zeros(len(batch.arrival_s), np.int64)
        lines += [
            f"{at:.6f},{given},{asked},{'' if name < 0 else name},{tokens}"
            for at, given, asked, name, tokens in zip(
                batch.arrival_s, batch.input_tokens, batch.output_tokens, key, shared, strict=True
            )
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def fitted(trace: Path) -> dict[str, Any]:
    out = io.StringIO()
    call_command("fit_traffic", str(trace), "--out", "-", stdout=out)
    found = json.loads(out.getvalue())
    assert isinstance(found, dict)
    return found


def test_a_day_and_its_lengths_come_back(tmp_path: Path) -> None:
    asked = TrafficQuestion(
        requests_per_second=0.4, hours=72, daily_peak=2, peak_hour=15, input_median=400, output_sigma=0.5
    )
    found = fitted(trace_of(asked, tmp_path / "trace.csv"))
    assert found["requests_per_second"] == pytest.approx(0.4, rel=0.03)
    assert found["hours"] == pytest.approx(72, rel=0.01)
    assert found["daily_peak"] == pytest.approx(2, rel=0.05)
    assert abs(found.get("peak_hour", 14) - 15) <= 1
    assert found["input_median"] == pytest.approx(400, rel=0.03)
    assert found["output_sigma"] == pytest.approx(0.5, rel=0.03)
    assert "gap_cv" not in found
    assert "prefixes" not in found


def test_shared_prefixes_and_gaps_come_back(tmp_path: Path) -> None:
    asked = TrafficQuestion(
        requests_per_second=10, hours=0.5, gap_cv=2, prefixes=40, prefix_tokens=800, prefix_zipf=1.2
    )
    found = fitted(trace_of(asked, tmp_path / "trace.csv"))
    assert found["prefixes"] == 40
    assert found["prefix_tokens"] == 800
    assert found["prefix_zipf"] == pytest.approx(1.2, abs=0.1)
    assert found.get("input_median", 700) == pytest.approx(700, rel=0.05)
    assert found["gap_cv"] == pytest.approx(2, rel=0.1)
    assert "burst_factor" not in found


def test_what_it_finds_can_be_generated(tmp_path: Path) -> None:
    """The fitted file is a valid question, and its traffic has the same rate and lengths."""
    asked = TrafficQuestion(requests_per_second=5, hours=1, burst_factor=4, burst_share=0.15, input_median=300)
    found = TrafficQuestion(**fitted(trace_of(asked, tmp_path / "trace.csv")))
    assert found.burst_factor > 2
    requests = (tmp_path / "trace.csv").read_text(encoding="utf-8").count("\n") - 1
    made = [list(generate(found.model(), duration_s=found.duration_s, seed=seed)) for seed in range(10)]
    counts = [sum(len(batch.arrival_s) for batch in batches) for batches in made]
    assert np.mean(counts) == pytest.approx(requests, rel=0.15)
    assert np.median(made[0][0].input_tokens) == pytest.approx(300, rel=0.05)


def test_too_little_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n1,2,3\n", encoding="utf-8")
    errors = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("fit_traffic", str(path), "--out", "-", stderr=errors)
    (error,) = json.loads(errors.getvalue())["errors"]
    assert error["attr"] == "trace"
    assert "at least 10 requests" in error["detail"]


@pytest.mark.skipif(not PUBLIC_TRACES.exists(), reason="the public traces are not beside this checkout")
def test_a_public_trace() -> None:
    """Azure's conversations of 2023: 5.53/s, answers of 129 tokens in the median (151 of the lognormal)."""
    found = fitted(PUBLIC_TRACES / "AzureLLMInferenceTrace_conv.csv")
    assert found["requests_per_second"] == pytest.approx(5.53, rel=0.01)
    assert found["hours"] == pytest.approx(3502 / 3600, rel=0.01)
    assert found["output_median"] == pytest.approx(129, rel=0.2)
