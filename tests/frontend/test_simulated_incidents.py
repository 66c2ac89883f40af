"""What happened to a simulated fleet, on its page: what broke always, the rest as far as it can be looked at."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from django.test import Client

from planner.engine.simulate.incidents import IncidentLog, Incidents
from planner.engine.simulate.lifecycle import Incident
from planner.models import Run
from planner.services.incident_report import incident_report
from tests.frontend.simulation_pages import figures_of, result

pytestmark = pytest.mark.django_db

HOURS = 168
DAY_S = 86_400.0


def happened(failures: int = 10) -> dict[str, Any]:
    """A scaling every five minutes of a week; failures and an upgrade on its sixth day."""
    scaled = [Incident(at_s=300.0 * n, kind="scaled", pool=0, replicas=n % 5 + 1) for n in range(12 * HOURS)]
    failed = [
        Incident(at_s=5 * DAY_S + 30.0 * n, kind="failed", pool=0, replica=n % 4, lost_requests=6)
        for n in range(failures)
    ]
    upgraded = Incident(at_s=5.5 * DAY_S, kind="upgraded", pool=0)
    kept = sorted([*scaled, *failed, upgraded], key=lambda each: each.at_s)
    counts = {"failed": failures, "scaled": len(scaled), "upgraded": 1}
    return incident_report(Incidents(counts=counts, rows=counts, lost_requests=6 * failures, kept=tuple(kept)))


def week(run: Run, incidents: dict[str, Any], **more: Any) -> None:
    Run.objects.filter(pk=run.pk).update(
        result={**result(), "duration_s": HOURS * 3600.0, "incidents": incidents, **more}
    )


def rows_of(text: str) -> list[tuple[str, ...]]:
    table = text[text.index('id="incidents-title"') :]
    cells = r"<tr><td>([^<]*)</td><td[^>]*>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td></tr>"
    return re.findall(cells, table)


def test_a_report_lists_all_that_broke_and_thins_the_rest() -> None:
    report = happened()
    assert report["counts"] == {"failed": 10, "scaled": 2016, "upgraded": 1}
    assert (report["total"], report["lost_requests"]) == (2027, 60)
    kinds = [each["kind"] for each in report["listed"]]
    assert len(kinds) == 1000
    assert (kinds.count("failed"), kinds.count("upgraded")) == (10, 1)
    assert report["listed"][-1]["at_s"] == 300.0 * 2015


def test_charts_and_table_have_all_that_broke_and_say_what_they_leave_out(client: Client, finished: Run) -> None:
    week(finished, happened())
    figures = figures_of(client, finished)
    drawn = {trace["name"]: len(trace["x"]) for trace in figures["run-events"]["data"]}
    assert drawn == {"Node failed": 10, "Upgraded": 1, "Scaled": 989}
    assert len(figures["run-ttft"]["layout"]["shapes"]) == len(figures["run-tpot"]["layout"]["shapes"]) == 10
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    among = "shown, all failures, notices, interruptions and upgrades among them."
    assert f"1,000 of 2,027 {among}" in text
    assert f"200 of 2,027 {among}" in text
    rows = rows_of(text)
    assert len(rows) == 200
    assert [row for row in rows if row[1] == "A node failed"][:2] == [
        ("5 d 0:00:00", "A node failed", "0", "6"),
        ("5 d 0:00:30", "A node failed", "1", "6"),
    ]
    assert ("5 d 12:00:00", "Upgrade done", "–", "0") in rows
    client.cookies["django_language"] = "id"
    assert "1.000 dari 2.027 ditampilkan, termasuk semua" in client.get(f"/runs/{finished.uuid}/").content.decode()


def test_more_losses_than_can_be_told_apart_are_not_marked_and_said(client: Client, finished: Run) -> None:
    week(finished, happened(41))
    assert figures_of(client, finished)["run-ttft"]["layout"]["shapes"] == []
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert text.count("Nodes were lost too often to mark each time here.") == 2
    assert len([row for row in rows_of(text) if row[1] == "A node failed"]) == 41


def test_what_an_older_release_stored_is_shown_as_what_it_is(client: Client, finished: Run) -> None:
    report = happened()
    listed = report["listed"][:100]
    week(finished, {"counts": report["counts"], "lost_requests": 60, "first": listed})
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "100 of 2,027 shown." in text
    assert "among them" not in text
    assert len(rows_of(text)) == 100


def test_a_region_is_named_beside_its_replica(client: Client, finished: Run) -> None:
    failed = Incident(at_s=2247.4, kind="failed", pool=1, replica=7, lost_requests=2)
    scaled = Incident(at_s=2262.0, kind="scaled", pool=0, replicas=4)
    counts = {"failed": 1, "scaled": 1}
    both = Incidents(counts=counts, rows=counts, lost_requests=2, kept=(failed, scaled))
    region = dict.fromkeys(("replicas", "requests", "goodput_share", "ttft_ms", "tpot_ms", "cost_usd"))
    regions = [region | {"name": name} for name in ("Jakarta", "Singapore")]
    week(finished, incident_report(both, ["Jakarta", "Singapore"]), regions=regions)
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert rows_of(text) == [
        ("0:37:27", "A node failed", "Singapore · 7", "2"),
        ("0:37:42", "Replicas wanted: 4", "Jakarta", "0"),
    ]
    events = figures_of(client, finished)["run-events"]["data"]
    assert events[0]["customdata"] == ["0:37:27 · A node failed · Singapore · replica 7 · 2 requests lost"]


def test_hovering_says_each_value_with_its_unit_and_the_time_once(client: Client, finished: Run) -> None:
    week(finished, happened())
    figures = figures_of(client, finished)
    hovers = {name: figures[f"run-{name}"]["data"][0]["hovertemplate"] for name in ("ttft", "load", "cost", "replicas")}
    assert hovers == {
        "ttft": "p50: %{y:,.4~g} ms<extra></extra>",
        "load": "Arriving: %{y:,.4~g} req/s<extra></extra>",
        "cost": "Cost so far: %{y:,.4~g} USD<extra></extra>",
        "replicas": "Ready: %{y:,.4~g} replicas<extra></extra>",
    }
    time = figures["run-ttft"]["layout"]["xaxis"]
    assert (time["hoverformat"], time["ticksuffix"]) == (",.4~g", " d")
    assert figures["run-events"]["data"][0]["hovertemplate"] == "%{customdata}<extra></extra>"
    assert figures["run-heat-kv"]["data"][0]["hovertemplate"] == "Replica %{y}: %{z:.1%}<extra>%{x:,.4~g} d</extra>"


def test_all_that_is_drawn_comes_as_csv(client: Client, finished: Run) -> None:
    week(finished, happened())

    def rows(what: str) -> list[dict[str, str]]:
        response = client.get(f"/runs/{finished.uuid}.csv{what}")
        assert f"takar-simulation{what.replace('?', '-')}-" in response["Content-Disposition"]
        return list(csv.DictReader(io.StringIO(response.content.decode())))

    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    for what in ("", "?events", "?distribution", "?replicas"):
        assert f'href="/runs/{finished.uuid}.csv{what}"' in text
    assert [row["cost_usd"] for row in rows("")] == ["0.48", "1.2"]
    events = rows("?events")
    assert len(events) == 1000
    failed = [row for row in events if row["kind"] == "failed"]
    assert (len(failed), failed[1]["at_s"], failed[1]["lost_requests"]) == (10, "432030.0", "6")
    assert rows("?distribution") == [
        {"share": "0.5", "ttft_ms": "80.0", "tpot_ms": "80.0"},
        {"share": "1.0", "ttft_ms": "150.0", "tpot_ms": "150.0"},
    ]
    assert rows("?replicas")[3] == {"time_s": "60.0", "replica": "1", "kv_used": "0.4", "waiting": "1"}


def test_what_befell_a_node_is_one_row_with_all_its_replicas(client: Client, finished: Run) -> None:
    failed = [
        Incident(at_s=60.0, kind="failed", pool=0, replica=replica, node=node, lost_requests=replica)
        for node, replicas in ((0, (0, 1)), (4, (4, 5, 6, 7)))
        for replica in replicas
    ]
    alone = Incident(at_s=60.0, kind="ready", pool=0, replica=2, node=2)
    log = IncidentLog()
    for each in (*failed, alone):
        log.note(each)
    week(finished, incident_report(log.read()))
    assert rows_of(client.get(f"/runs/{finished.uuid}/").content.decode()) == [
        ("0:01:00", "A node failed", "0, 1", "1"),
        ("0:01:00", "A node failed", "4–7", "22"),
        ("0:01:00", "Replica ready", "2", "0"),
    ]
    chart = figures_of(client, finished)["run-events"]
    assert chart["data"][0]["customdata"] == [
        "0:01:00 · A node failed · replicas 0, 1 · 1 request lost",
        "0:01:00 · A node failed · replicas 4–7 · 22 requests lost",
    ]
    text = client.get(f"/runs/{finished.uuid}/").content.decode()
    assert "Nodes were lost 2 times, 23 requests sent again" in text
    assert "shown" not in re.findall(r'id="incidents-title">.*?<table', text, re.S)[0]
