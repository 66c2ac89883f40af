"""Filling the simulation form with traffic like a trace."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from frontend.run_asked import subtitle
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.models import Run
from planner.services.fitted_traffic import MOST_BYTES, fitted_fields
from planner.services.simulation_job import read_simulation
from planner.services.trace_files import read_trace_stream
from tests.frontend.simulation_pages import FORM, TRACE, post
from tests.frontend.test_simulation_again import Form, again

pytestmark = pytest.mark.django_db
ROWS = "".join(f"{at * at / 40},{90 if at % 3 else 4000 + at},{5 + at % 7}\n" for at in range(400))
LONG = b"arrival_s,input_tokens,output_tokens\n" + ROWS.encode()


def fitted(client: Client, data: bytes, **fields: str) -> Any:
    return post(client, goal="fit", trace=SimpleUploadedFile("day.csv", data), **fields)


@pytest.mark.parametrize("data", [LONG, gzip.compress(LONG)])
def test_the_form_is_filled_in_and_starts_what_it_holds(client: Client, catalog: object, data: bytes) -> None:
    expected = fitted_fields(read_trace_stream(io.BytesIO(LONG)))
    assert len(expected["input_lengths"]) == 200
    response = fitted(client, data, **{"fleet-replicas": "3", "traffic-think_s": "9"})
    assert response.status_code == 200
    text = response.content.decode()
    assert "The fields hold traffic like the trace now" in text
    assert not Run.objects.exists()
    sent = Form(text).fields
    assert client.post(FORM, sent).status_code == 302
    run = Run.objects.get()
    traffic = read_simulation(run.params).regions[0].traffic
    assert traffic == TrafficQuestion(**expected)
    assert run.params["scenario"]["replicas"] == 3
    said = subtitle(run, {"model": "Llama 3.1 8B"})
    assert "Input, as seen 200 values from 90 to 4,398, tokens" in said
    assert "Output, median" in said
    assert "Input, median" not in said
    assert "Input 1,024" not in said
    assert read_simulation(again(client, run).params).regions == read_simulation(run.params).regions


def test_the_trace_of_the_run_before_may_be_fitted(client: Client, catalog: object) -> None:
    post(client, trace=SimpleUploadedFile("day.csv", LONG))
    run = Run.objects.get()
    response = post(client, goal="fit", **{"from": str(run.uuid), "again-trace": "1"})
    assert response.status_code == 200
    sent = Form(response.content.decode()).fields
    assert "again-trace" not in sent
    client.post(FORM, sent)
    later = Run.objects.exclude(pk=run.pk).get()
    assert "trace" not in later.params
    assert len(later.params["traffic"]["input_lengths"]) == 200


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (TRACE, "Too short to be fitted. Allowed: 10 requests or more, at different times"),
        (TRACE + b"2,none,5\n", "row 4, column input_tokens"),
        (gzip.compress(LONG)[:-20], "The gzip data is damaged"),
        (gzip.compress(LONG + b"\n" * MOST_BYTES), "Too large to be fitted at once."),
    ],
)
def test_what_cant_be_fitted_is_said(client: Client, catalog: object, data: bytes, said: str) -> None:
    response = fitted(client, data)
    assert response.status_code == 400
    assert said in response.content.decode()


def test_no_trace_is_no_traffic(client: Client, catalog: object) -> None:
    response = post(client, goal="fit")
    assert response.status_code == 400
    assert "No trace was sent." in response.content.decode()
