"""A job from the result page: started, watched, cancelled, shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.translation import override

from frontend.progress_words import progress_words
from planner.engine.answers import InferencePlan
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
