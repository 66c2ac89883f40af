"""A job from the result page: started, watched, cancelled, shown."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.translation import override

from frontend.progress_words import progress_words
from planner.engine.answers import InferencePlan, OfflineJob
from planner.models import Run, RunStatus
from planner.services import plan_sweep
from planner.services.run_execution import execute_run
from tests.factories import plan_factory
from tests.frontend.conftest import QUESTION

pytestmark = pytest.mark.usefixtures("catalog", "planner_answers")


@pytest.fixture
def run(client: Client) -> Run:
    """A sweep started from the result page."""
    response = client.post("/runs/sweeps/", {"question": QUESTION})
    assert response.status_code == 302
    uuid = response["Location"].split("/")[2]
    return Run.objects.get(uuid=uuid)


def page(client: Client, run: Run) -> str:
    response = client.get(f"/runs/{run.uuid}/")
    assert response.status_code == 200
    return response.content.decode()


def test_the_result_page_starts_a_sweep_of_its_own_question(client: Client, run: Run) -> None:
    assert run.kind == "plan_sweep"
    assert run.params["question"] == {"model": "Llama 3.1 70B", "requests_per_second": 10.0, "ttft_ms": 2000.0}
    text = page(client, run)
    assert "Queued" in text
    assert 'hx-trigger="every 1s"' in text
    assert 'name="csrfmiddlewaretoken"' in text
    assert f'href="/?{QUESTION.replace("&", "&amp;")}"' in text


def test_progress_elapsed_and_what_is_left(client: Client, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING,
        progress=0.25,
        message="Planning 2 times the load",
        started_at=timezone.now() - timedelta(seconds=10),
        lease_expires_at=timezone.now() + timedelta(minutes=1),
    )
    text = page(client, run)
    assert "Running: Planning 2 times the load" in text
    assert re.search(r'<progress[^>]* value="0.250"', text)
    assert "<dd>25 %</dd>" in text
    assert re.search(r"<dd>10 s</dd>|<dd>10\.\d+ s</dd>", text)
    assert re.search(r"<dd>30(\.\d+)? s</dd>", text)


def test_cancel_stops_it_and_the_page_says_so(client: Client, run: Run) -> None:
    response = client.post(f"/runs/{run.uuid}/cancel/")
    assert response["Location"] == f"/runs/{run.uuid}/"
    text = page(client, run)
    assert "Cancelled" in text
    assert "every 1s" not in text
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED


def test_a_finished_sweep_shows_charts_and_a_table(client: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(raw: Mapping[str, Any]) -> InferencePlan:
        load = float(raw["requests_per_second"])
        plan = plan_factory(0 if load > 50 else 3, mean_requests_s=load)
        return plan

    monkeypatch.setattr(plan_sweep, "plan_inference", answer)
    execute_run(run_id=run.pk)
    polled = client.get(f"/runs/{run.uuid}/", headers={"HX-Request": "true"})
    assert polled.status_code == 286
    text = polled.content.decode()
    assert "Succeeded" in text
    assert text.count("data-figure=") == 3
    assert "a million output tokens" in text.lower()
    rows = re.findall(r"<tr><td.*?</tr>", text)
    assert len(rows) == 12
    assert "A10G x8: TPOT p95 is above the limit." in rows[-1]
    assert f'href="/runs/{run.uuid}.csv"' in text
    table = list(csv.DictReader(io.StringIO(client.get(f"/runs/{run.uuid}.csv").content.decode())))
    assert len(table) == 12
    assert float(table[0]["load"]) == float(table[0]["mean_requests_s"])
    assert float(table[0]["usd_per_month"]) > 0
    assert float(table[0]["ttft_ms_p95"]) > 0
    assert (table[0]["reason"], table[-1]["usd_per_month"]) == ("", "")
    assert "TPOT p95 is above the limit" in table[-1]["reason"]


def test_a_jobs_sweep_is_told_in_jobs(client: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(raw: Mapping[str, Any]) -> InferencePlan:
        plan = plan_factory(3, mean_requests_s=1.0)
        job = OfflineJob(requests=raw["offline_requests"], hours=raw["offline_requests"] / 1e5, usd=Decimal("12.34"))
        return replace(plan, options=tuple(replace(option, job=job) for option in plan.options))

    monkeypatch.setattr(plan_sweep, "plan_inference", answer)
    Run.objects.update(params={"question": {"model": "Llama 3.1 8B", "offline_requests": 10**6, "offline_hours": 24}})
    execute_run(run_id=run.pk)
    text = client.get(f"/runs/{run.uuid}/").content.decode()
    assert text.count("data-figure=") == 2
    assert "A job of 250,000 requests costs $12.34, one of 8M $12.34" in text
    assert "2.5 hours" in text
    assert "$/month" not in text
    table = list(csv.DictReader(io.StringIO(client.get(f"/runs/{run.uuid}.csv").content.decode())))
    assert [(row["load"], row["job_hours"]) for row in (table[0], table[-1])] == [
        ("250000", "2.5"),
        ("8000000", "80.0"),
    ]


def test_a_failed_run_says_why(client: Client, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(status=RunStatus.FAILED, error={"code": "x", "detail": "The worker stopped."})
    assert "The worker stopped." in page(client, run)


@pytest.mark.parametrize("question", ["", "model=X&requests_per_second=-1", "users=1&users=2"])
def test_a_bad_question_starts_nothing(client: Client, question: str) -> None:
    response = client.post("/runs/sweeps/", {"question": question})
    assert response.status_code == 400
    assert "This job can't be started" in response.content.decode()
    assert not Run.objects.exists()


def test_only_a_post_starts_or_cancels(client: Client, run: Run) -> None:
    assert client.get("/runs/sweeps/").status_code == 405
    assert client.get(f"/runs/{run.uuid}/cancel/").status_code == 405
    assert client.post(f"/runs/{uuid4()}/cancel/").status_code == 404


def test_a_post_without_the_token_is_refused(run: Run) -> None:
    strict = Client(enforce_csrf_checks=True)
    response = strict.post(f"/runs/{run.uuid}/cancel/")
    assert response.status_code == 403
    assert "Form out of date" in response.content.decode()


def test_progress_has_the_languages_numbers() -> None:
    with override("id"):
        assert progress_words("Planning 4.26 times the load") == "Merencanakan 4,26 kali beban"
    assert progress_words("Planning 4.26 times the load") == "Planning 4.26 times the load"
