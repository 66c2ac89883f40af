"""Two simulated runs side by side: every setting that differs is listed, and what was the same is not."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from django.test import Client

from frontend.answers.compared import named_apart, settings_apart
from planner.models import Run, RunStatus
from tests.frontend.simulation_pages import result

pytestmark = pytest.mark.django_db

QUESTION = {"model": "Llama 3.1 8B", "requests_per_second": 10.0, "ttft_ms": 2000}
SCENARIO = {"autoscaler": "hpa", "min_replicas": 2, "max_replicas": 8, "scaling_target": 40}
ONE = {"question": QUESTION, "scenario": SCENARIO, "traffic": {"hours": 24.0, "seed": 3}}


def apart(here: dict[str, Any], there: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {label: (ours, theirs) for label, ours, theirs, _by in settings_apart(here, there)}


def test_every_setting_that_differs_is_listed_and_no_other() -> None:
    other = {
        "question": QUESTION | {"requests_per_second": 12},
        "scenario": SCENARIO | {"min_replicas": 3, "max_replicas": 12, "chunked_prefill": False},
        "traffic": {"hours": 168, "seed": 3, "burst_factor": 2.0},
    }
    assert apart(ONE, other) == {
        "Mean load": ("10 req/s", "12 req/s"),
        "Traffic · Duration": ("24 h", "168 h"),
        "Traffic · Bursts": ("–", "2 x mean"),
        "Chunked prefill": ("yes", "no"),
        "Fewest replicas": ("2 replicas", "3 replicas"),
        "Most replicas": ("8 replicas", "12 replicas"),
    }


def test_a_default_that_is_stated_is_no_difference() -> None:
    stated = ONE | {"scenario": SCENARIO | {"policy": "least_outstanding", "scrape_s": 15, "max_waiting": None}}
    assert apart(ONE, stated) == {}
    assert apart(ONE, ONE | {"question": QUESTION | {"requests_per_second": 10, "ttft_ms": 2000.0}}) == {}
    assert named_apart(ONE, stated) == "same settings"


def test_what_the_plan_filled_in_is_compared_as_it_was_generated() -> None:
    bare, stated = {"question": QUESTION}, {"question": QUESTION, "traffic": {"requests_per_second": 10.0}}
    results = ({"traffic": {"requests_per_second": 10.0, "hours": 1.0}},) * 2
    assert settings_apart(bare, stated, results) == ()
    louder = {"traffic": {"requests_per_second": 20.0, "hours": 1.0}}
    assert settings_apart(bare, stated, (results[0], louder)) == (("Traffic · Mean load", "10 req/s", "20 req/s", ""),)


def test_a_trace_a_search_and_regions_are_compared_too() -> None:
    traced = {"question": QUESTION, "scenario": SCENARIO, "trace": "0123456789ab"}
    assert apart(ONE, traced) == {"Traffic": ("generated", "an uploaded trace")}
    assert apart(traced, traced | {"trace": "ffff456789ab"}) == {"Traffic": ("trace 01234567", "trace ffff4567")}
    wide = ONE | {"search": {"most_replicas": 64}}
    assert apart(ONE, wide) == {"Smallest fleet · Most replicas": ("512 replicas", "64 replicas")}
    chosen: tuple[Any, Any] = ({}, {"search": {}, "settings": SCENARIO | {"scaling_target": 12.5}})
    assert settings_apart(wide, wide, chosen) == (("Target", "40 requests a replica", "12.5 requests a replica", ""),)
    regions = [{"name": "a", "fallback": ["b"], "round_trip_ms": 30.0}, {"name": "b"}]
    others = [
        {"name": "a", "scenario": {"replicas": 4, "option": "2"}},
        {"name": "b", "traffic": {"hours": 2.0}},
        {"name": "c"},
    ]
    common = {"question": QUESTION, "traffic": {"hours": 1.0}}
    assert apart({**common, "regions": regions}, {**common, "regions": others}) == {
        "a · Option": ("–", "2"),
        "a · Replicas": ("–", "4 replicas"),
        "a · Falls back to": ("b", "–"),
        "a · Round trip added": ("30 ms", "–"),
        "b · Traffic · Duration": ("1 h", "2 h"),
        "Region c": ("no", "yes"),
    }


def test_the_page_lists_them_before_how_it_went(
    client: Client, catalog: object, finished: Run, django_user_model: Any
) -> None:
    owner = django_user_model.objects.create_user("one@example.org")
    Run.objects.filter(pk=finished.pk).update(params=ONE, result=result() | {"cached_input_tokens": 6})
    changed = ONE | {"scenario": SCENARIO | {"min_replicas": 3, "max_replicas": 12}}
    more = result() | {"cached_input_tokens": 12, "input_tokens": 120}
    other = Run.objects.create(kind="simulation", status=RunStatus.SUCCEEDED, params=changed, result=more, owner=owner)
    same = Run.objects.create(kind="simulation", status=RunStatus.SUCCEEDED, params=ONE, result=more, owner=owner)
    client.force_login(owner)
    text = client.get(f"/runs/{finished.uuid}/?with={other.uuid}").content.decode()
    table = text[text.index('id="compared-title"') : text.index('id="simulation-sentence"')]
    rows = re.findall(r'<th scope="row"[^>]*>([^<]*)</th><td>([^<]*)</td><td>([^<]*)</td>', table)
    assert rows[:2] == [("Fewest replicas", "2 replicas", "3 replicas"), ("Most replicas", "8 replicas", "12 replicas")]
    assert ("Prompt tokens found cached", "–", "12 (10.0 %)") in rows
    assert table.index("Settings that differ") < table.index("Most replicas") < table.index("How it went")
    names = dict(re.findall(r'<option value="([^"]*)"[^>]*>([^<]*)</option>', text))
    started = " · Simulation · Llama 3.1 8B · "
    assert names[str(other.uuid)].endswith(f"{started}Fewest replicas 3 replicas, Most replicas 12 replicas")
    assert names[str(same.uuid)].endswith(f"{started}same settings")
    text = client.get(f"/runs/{finished.uuid}/?with={same.uuid}").content.decode()
    assert "All settings are the same." in text


def test_a_page_tells_cached_tokens_and_why_requests_were_dropped(client: Client, finished: Run) -> None:
    more: dict[str, Any] = {"input_tokens": 59_300_000, "cached_input_tokens": 5_300_000, "dropped": 480}
    more |= {"dropped_by_reason": {"queue_full": 80, "cancelled": 0, "queue_timeout": 400}}
    told = result() | more
    told["timeline"]["requests"]["cached_input_tokens"] = [7, 8]
    Run.objects.filter(pk=finished.pk).update(result=told)
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "<dt>Prompt tokens found cached</dt><dd>5,300,000 (8.9 %)</dd>" in text
    assert "400 waited longer than the queue&#x27;s time-out, 80 refused: too many waited" in text
    rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{finished.uuid}.csv").content.decode())))
    assert [row["cached_input_tokens"] for row in rows] == ["7", "8"]


def test_what_ran_says_who_takes_a_regions_requests(client: Client, finished: Run) -> None:
    regions = [
        {"name": "Jakarta", "fallback": ["Singapore"], "round_trip_ms": 30, "traffic": {"requests_per_second": 75}},
        {"name": "Singapore", "scenario": {"replicas": 4}, "spill_outstanding": 100},
    ]
    Run.objects.filter(pk=finished.pk).update(params={"question": QUESTION, "regions": regions})
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    jakarta = "Mean load 75 req/s · Falls back to Singapore · Round trip added 30 ms"
    assert f"<dt>Jakarta</dt><dd>{jakarta}</dd>" in text
    spills = "Replicas 4 replicas · Spills over from 100 requests out at every replica"
    assert f"<dt>Singapore</dt><dd>{spills}</dd>" in text
