"""The smallest fleet from the page: how it is asked for, and how what was tried is shown."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from frontend.answers.capacity_words import target_words
from planner.models import Run, RunStatus
from tests.frontend.simulation_pages import FORM, figures_of, post, result, searched

pytestmark = pytest.mark.django_db


def test_a_post_may_ask_for_the_smallest_fleet(client: Client, catalog: object) -> None:
    question = "model=Llama+3.1+8B&requests_per_second=2&ttft_ms=900"
    assert "the question has none yet" not in client.get(f"{FORM}?{question}").content.decode()
    client.post(FORM, {"question": question, "goal": "smallest", "fleet-autoscaler": "hpa"})
    run = Run.objects.get()
    assert (run.kind, run.params["scenario"]) == ("capacity_search", {"autoscaler": "hpa"})


def test_the_smallest_fleets_of_several_regions_may_be_asked_for(client: Client, catalog: object) -> None:
    question = "model=Llama+3.1+8B&requests_per_second=2&ttft_ms=900"
    regions = [{"name": "a", "fallback": ["b"]}, {"name": "b"}]
    scenario = SimpleUploadedFile("scenario.json", json.dumps({"regions": regions}).encode())
    client.post(FORM, {"question": question, "goal": "smallest", "scenario": scenario})
    run = Run.objects.get()
    assert (run.kind, run.params["regions"]) == ("capacity_search", regions)


def test_the_smallest_fleet_needs_a_limit(client: Client, catalog: object) -> None:
    assert "the question has none yet" in client.get(f"{FORM}?model=Llama+3.1+8B").content.decode()
    response = post(client, goal="smallest")
    assert response.status_code == 400
    assert "ttft_ms: A smallest fleet needs a limit to hold." in response.content.decode()


def test_a_search_shows_attainment_against_cost_and_the_chosen_run(client: Client, search: Run) -> None:
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "The cheapest fleet that holds the limits: 1 to 4 replicas, target 12.5, $3.00 for the time" in text
    assert "Without an autoscaler the fewest replicas that hold them are 2." in text
    assert text.count("data-figure=") == 13
    assert "12 requests in 2 min" in text
    rows = re.findall(r"<tr( class=\"is-chosen\"[^>]*)?><td data-sort=\"[^\"]*\" class=\"text\">([^<]*)</td>", text)
    assert [(bool(chosen), fleet) for chosen, fleet in rows] == [
        (False, "1 replica"),
        (True, "1 to 4 replicas, target 12.5"),
        (False, "2 replicas"),
    ]


def test_a_search_that_found_nothing_says_what_came_closest(client: Client, search: Run) -> None:
    nothing = searched() | {"replicas": None, "chosen": 0}
    Run.objects.update(result={**result(), "search": nothing})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "No fleet tried holds the limits; the closest, 1 replica, keeps 40.0\xa0% of requests within them" in text


def test_a_search_over_regions_names_each(client: Client, search: Run) -> None:
    point = searched()["tried"][2]
    unset = {"min_replicas": None, "max_replicas": None, "scaling_target": None}
    jakarta, singapore = ({"name": name, "replicas": 1, **unset} for name in ("Jakarta", "Singapore"))
    scaled = jakarta | {"replicas": 1, "min_replicas": 1, "max_replicas": 3, "scaling_target": 8.0}
    total = {"autoscaled": True, "min_replicas": 2, "max_replicas": 4, "scaling_target": None, "cost_usd": "3.00"}
    tried = [point | total | {"regions": [scaled, singapore]}, point | {"regions": [jakarta, singapore]}]
    Run.objects.update(result={**result(), "search": searched() | {"tried": tried, "chosen": 0}})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "2 replicas (Jakarta: 1 replica, Singapore: 1 replica)" in text
    assert "2 to 4 replicas (Jakarta: 1 to 3 replicas, target 8, Singapore: 1 replica), $3.00 for the time" in text
    rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{search.uuid}.csv?tried").content.decode())))
    assert [row["regions"] for row in rows] == ["Jakarta: 1; Singapore: 1"] * 2
    message = "Each region alone: 65,536 requests, 1.50 h simulated"
    Run.objects.update(status=RunStatus.RUNNING, result=None, message=message, lease_expires_at=timezone.now())
    client.cookies["django_language"] = "id"
    assert "Setiap wilayah sendiri-sendiri: 65.536 permintaan" in client.get(f"/runs/{search.uuid}/").content.decode()


def test_all_that_was_tried_comes_as_csv(client: Client, search: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{search.uuid}.csv?tried").content.decode())))
    assert [row["cost_usd"] for row in rows] == ["2.00", "3.00", "4.00"]
    assert [row["scaling_target"] for row in rows] == ["", "12.5", ""]
    assert "arrived" in client.get(f"/runs/{search.uuid}.csv").content.decode()


def test_no_more_than_four_charts_are_in_view(client: Client, finished: Run, search: Run) -> None:
    for kind, open_at_first in (("simulation", 1), ("capacity_search", 0)):
        Run.objects.update(kind=kind)
        text = client.get(f"/runs/{finished.uuid}/").content.decode()
        groups = re.findall(r'<details class="chart-group" name="run-charts"[^>]*?( open)?>(.*?)</details>', text, re.S)
        counts = [group.count("data-figure=") for _open, group in groups]
        assert counts == [4, 4, 3]
        assert [bool(is_open) for is_open, _group in groups].count(True) == open_at_first
        assert text.count("data-figure=") - sum(counts) == (2 if kind == "capacity_search" else 0)


def test_shares_on_an_axis_have_the_places_they_need(client: Client, search: Run) -> None:
    close = [
        point | {"goodput_share": share} for point, share in zip(searched()["tried"], (0.997, 0.999, 1), strict=True)
    ]
    for tried, places in ((searched()["tried"], 0), (close, 2)):
        Run.objects.update(result={**result(), "search": searched() | {"tried": tried}})
        texts = figures_of(client, search)["capacity-attainment"]["layout"]["yaxis"]["ticktext"]
        assert {len(text.removesuffix(" %").partition(".")[2]) for text in texts} == {places}


def test_a_fleet_that_holds_the_limits_can_be_quoted(client: Client, search: Run) -> None:
    assert "Quote this fleet" in client.get(f"/runs/{search.uuid}/").content.decode()
    Run.objects.update(result={**result(), "search": searched() | {"chosen": 2}})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    link = re.search(r'href="(/save/inference/[^"]*)">Quote this fleet', text)
    assert link is not None
    assert f"then=quote&amp;run={search.uuid}" in link[1]
    assert "option=a" in link[1]
    Run.objects.update(result={**result(), "search": searched() | {"chosen": 0}})
    assert "Quote this fleet" not in client.get(f"/runs/{search.uuid}/").content.decode()


def test_a_bill_is_also_a_pace(client: Client, search: Run) -> None:
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "$36.00 an hour, $26,300 a month</dd>" in text
    assert "At this pace: $90.00 an hour, $65,700 a month." in text
    assert "The limits hold from $65,700 a month on" in text
    chart = figures_of(client, search)["capacity-attainment"]
    assert chart["layout"]["xaxis"]["title"]["text"] == "USD a month"
    assert sorted(x for trace in chart["data"][:2] for x in trace["x"]) == pytest.approx([43_800, 65_700, 87_600])


def fleets(*sizes: tuple[int, float, str, str, bool]) -> list[dict[str, Any]]:
    """Fixed fleets: replicas, hours that the run took, its bill and what it is a month, whether the limits hold."""
    base = searched()["tried"][2]
    return [
        base
        | {"replicas": size, "duration_s": hours * 3600, "cost_usd": usd, "usd_per_month": month, "met": met}
        | {"goodput_share": 0.99 if met else 0.2}
        for size, hours, usd, month, met in sizes
    ]


def test_a_backlog_makes_no_small_fleet_dear(client: Client, search: Run) -> None:
    """Too few replicas run on until all is answered: their bill is higher, their cost a month is not."""
    tried = fleets((2, 4.2, "64.93", "11300.00", False), (6, 0.56, "26.07", "33900.00", False))
    tried += fleets((7, 0.5, "25.67", "37500.00", True), (8, 0.5, "29.34", "42800.00", True))
    found = searched() | {"tried": tried, "chosen": 2, "replicas": 7}
    Run.objects.update(result={**result(), "search": found})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "The limits hold from $37,500 a month on" in text
    assert "Without an autoscaler" not in text
    assert "The cheapest fleet that holds the limits: 7 replicas, $25.67 for the time" in text
    xs = figures_of(client, search)["capacity-attainment"]["data"][0]["x"]
    assert xs == [11_300, 33_900, 37_500, 42_800]


def test_dearer_fleets_that_do_not_hold_the_limits_are_told(client: Client, search: Run) -> None:
    scaled = {"autoscaled": True, "min_replicas": 2, "max_replicas": 8, "scaling_metric": "concurrency"}
    tried = fleets((3, 1, "4.00", "2900.00", True), (3, 1, "5.00", "3600.00", False), (4, 1, "6.00", "4300.00", False))
    tried[1] |= scaled | {"scaling_target": 124.0}
    tried[2] |= scaled | {"scaling_target": 74.1}
    found = searched() | {"tried": tried, "chosen": 0, "replicas": 3}
    Run.objects.update(result={**result(), "search": found})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "The limits hold from $2,900 a month; 2 dearer fleets don&#x27;t hold them" in text
    assert "2 to 8 replicas, target 74.1 requests at once a replica" in text
    assert "Without an autoscaler the fewest replicas that hold them are 3." in text


@pytest.mark.parametrize(
    ("metric", "target", "said"),
    [
        ("queue", 4.0, "4 requests waiting a replica"),
        ("kv_use", 0.7, "70 % of the KV blocks in use"),
        ("requests_per_s", 2.5, "2.5 requests/s a replica"),
        ("utilization", 0.55, "55 % of the time busy"),
        (None, 12.5, "12.5"),
    ],
)
def test_a_target_says_what_it_is_of(metric: str | None, target: float, said: str) -> None:
    assert target_words(metric, target) == said


def test_the_smallest_fleet_of_an_unchanged_form_is_sized_for_the_plans_load(client: Client, catalog: object) -> None:
    asked = "model=Llama+3.1+8B&requests_per_second=4&peak_factor=2&headroom=0.2&ttft_ms=2000&tpot_ms=60"
    text = client.get(f"{FORM}?{asked}").content.decode()
    assert "Sized for 10 requests/s, as the plan is: 4 on average, peak factor 2, 20% of capacity kept free." in text
    for load, expected in (("4", None), ("7", 7.0)):
        typed = {"traffic-requests_per_second": load, "traffic-hours": "0.1", "goal": "smallest"}
        answer = client.post(FORM, {"question": asked, **typed})
        assert answer.status_code == 302
        run = Run.objects.latest("created_at")
        assert run.kind == "capacity_search"
        assert run.params["traffic"].get("requests_per_second") == expected


def test_a_search_says_what_it_is_sized_for_and_where_it_ended(client: Client, search: Run) -> None:
    sized = "Sized for this traffic as it is: no peak factor or headroom is added."
    more = {"replicas": None, "most_replicas": 512, "sized_for": sized}
    Run.objects.update(result={**result(), "search": searched() | more})
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert sized in text
    assert "It ended at 512 replicas, the most to be tried: more may do, or none." in text
    Run.objects.update(result={**result(), "usd_per_hour": "2.2500", "search": None})
    assert "$2.25 an hour" in client.get(f"/runs/{search.uuid}/").content.decode()


def test_of_a_job_the_time_is_told_until_it_is_done(client: Client, search: Run) -> None:
    tried = [point | {"duration_s": 3000.0 / point["replicas"]} for point in searched()["tried"]]
    job = {"requests": 4000, "simulated_requests": 4000, "hours": "0.25", "within_hours": 0.5, "usd": "9.00"}
    done = {
        **result(),
        "usd_per_hour": "36.0000",
        "dropped": 0,
        "job": job,
        "search": searched() | {"within_s": 1440.0, "tried": tried},
    }
    Run.objects.update(result=done)
    text = client.get(f"/runs/{search.uuid}/").content.decode()
    assert "The cheapest fleet that is done in time" in text
    assert "done in 24 min" in text
    assert "4,000 requests, all queued at once, are done in 15 min for $9.00" in text
    assert "Time left" in text
    assert "50 %" in text
    assert 'id="figure-capacity-time"' in text
    assert "capacity-attainment" not in text
    assert "a month" not in text
    part = job | {"requests": 400_000, "hours": "25"}
    Run.objects.update(result=done | {"job": part})
    assert "at the pace of the first 4,000" in client.get(f"/runs/{search.uuid}/").content.decode()


def test_what_ran_is_what_the_search_chose(client: Client, search: Run) -> None:
    asked = {"autoscaler": "hpa", "policy": "least_kv"}
    scaled = {"autoscaler": "hpa", "scaling_metric": "concurrency", "scaling_target": 42.0, "min_replicas": 1}
    scaled |= {"max_replicas": 20, "replicas": 10, "seed": 0}
    Run.objects.update(params={**search.params, "scenario": asked})

    def told(settings: dict[str, Any]) -> str:
        Run.objects.update(result={**result(), "settings": settings, "search": searched()})
        text = client.get(f"/runs/{search.uuid}/").content.decode()
        return re.search(r"<dt>Scenario</dt>\s*<dd>([^<]*)", text)[1]  # type: ignore[index]

    assert (
        told({"autoscaler": "none", "replicas": 2, "seed": 0}) == "Replicas 2 replicas · Load balancing Least KV in use"
    )
    whole = told(scaled)
    for part in ("Kubernetes HPA", "Target 42", "Fewest replicas 1", "Most replicas 20"):
        assert part in whole


def test_charts_of_fleets_that_all_hold_the_limits_have_ticks_that_read_apart(client: Client, search: Run) -> None:
    for rates, shares in (((10.026, 10.0261, 10.027), (1.0, 1.0, 1.0)), ((9.9, 10.0, 10.4), (0.97, 0.99, 1.0))):
        tried = [
            point | {"goodput_requests_s": rate, "goodput_share": share}
            for point, rate, share in zip(searched()["tried"], rates, shares, strict=True)
        ]
        Run.objects.update(result={**result(), "search": searched() | {"tried": tried}})
        figures = figures_of(client, search)
        for name in ("goodput", "attainment"):
            ticks = figures[f"capacity-{name}"]["layout"]["yaxis"]["ticktext"]
            assert len(set(ticks)) == len(ticks) >= 2, ticks
        assert max(figures["capacity-attainment"]["layout"]["yaxis"]["tickvals"]) <= 1.0


def test_fleets_whose_answers_come_whole_have_no_time_between_tokens(client: Client, search: Run) -> None:
    whole = [point | {"tpot_ms": None} for point in searched()["tried"]]
    for tried, told in ((searched()["tried"], True), (whole, False)):
        Run.objects.update(result={**result(), "search": searched() | {"tried": tried}})
        drawn = str(figures_of(client, search))
        assert ("TTFT 120" in drawn, ", TPOT" in drawn) == (True, told)
