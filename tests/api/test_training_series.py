"""The series behind a training option's charts, over REST and on the command line, on the whole catalog."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.api.documented import faults

pytestmark = pytest.mark.usefixtures("catalog")

QUESTION = {
    "model": "Llama 3.1 70B",
    "tokens": 1e11,
    "accelerators": ["h100-sxm"],
    "nodes": 16,
    "pipeline_parallel": 4,
    "max_options": 3,
}


def ask(client: Client, address: str, question: dict[str, Any]) -> Any:
    return client.post(f"/api/v1/plans/training/{address}", json.dumps(question), content_type="application/json")


def test_the_series_of_an_option_agree_with_its_plan(client: Client) -> None:
    option = ask(client, "", QUESTION).json()["options"][1]
    response = ask(client, f"series/?option={option['id']}", QUESTION)
    assert response.status_code == 200
    series = response.json()
    assert faults("TrainingSeries", series) == []
    assert series["option"] == option["id"]
    assert len(series["ranks"]) == option["layout"]["pipeline"] == 4
    assert series["ranks"][0]["has_embedding"]
    assert series["ranks"][-1]["has_head"]
    fullest = max(rank["total_gib"] for rank in series["ranks"])
    taken = option["memory"]["capacity_gib"] - option["memory"]["free_gib"]
    assert fullest == pytest.approx(taken, rel=0.02)
    same = next(size for size in series["scaling"] if size["nodes"] == 16)
    assert same["step_s"] == pytest.approx(option["speed"]["step_s"])
    assert sum(same["seconds"].values()) == pytest.approx(same["step_s"])
    sizes = [size["gpus"] for size in series["scaling"]]
    assert sizes == sorted(sizes)
    mine = [point for point in series["micro_batches"] if point["micro_batch"] == option["micro_batch"]]
    assert {point["recompute"] for point in mine} == {"none", "selective", "full"}
    assert any(point["fits"] for point in mine)


def test_the_recommended_option_is_drawn_where_none_is_named(client: Client) -> None:
    plan = ask(client, "", QUESTION).json()
    assert ask(client, "series/", QUESTION).json()["option"] == plan["recommended"]


@pytest.mark.parametrize(
    ("address", "change", "code"),
    [
        ("series/?option=none", {}, "unknown_option"),
        ("series/?option=" + "x" * 2000, {}, "unknown_option"),
        ("series/", {"finish_days": 0.01}, "unknown_option"),
        ("series/?opton=a", {}, "unknown_field"),
        ("series/", {"nodes": 0}, "out_of_range"),
    ],
)
def test_what_cannot_be_drawn_is_refused(client: Client, address: str, change: dict[str, Any], code: str) -> None:
    response = ask(client, address, {**QUESTION, **change})
    assert response.status_code == 400
    assert [error["code"] for error in response.json()["errors"]] == [code]


def test_the_command_prints_the_bytes_of_the_api(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "question.json"
    file.write_text(json.dumps(QUESTION), encoding="utf-8")
    printed = StringIO()
    call_command("plan", "training", str(file), "--series", stdout=printed)
    assert printed.getvalue() == ask(client, "series/", QUESTION).content.decode() + "\n"
    with pytest.raises(CommandError, match="training plans"):
        call_command("plan", "inference", str(file), "--series")


def test_limits_by_date_sum_and_nodes_over_rest(client: Client) -> None:
    answer = ask(client, "", {**QUESTION, "start_on": "2026-12-01", "finish_by": "2026-12-03"}).json()
    assert answer["options"] == []
    ways = {advice["field"]: advice["value"] for advice in answer["advice"]}
    assert set(ways) == {"finish_by", "tokens", "precision"}
    moved = ask(client, "", {**QUESTION, "start_on": "2026-12-01", "finish_by": ways["finish_by"]}).json()
    assert moved["options"]
    assert moved["question"]["finish_by"] == ways["finish_by"]
    cheapest = ask(client, "", QUESTION).json()["options"][0]
    assert cheapest["cluster"]["nodes"] == 16
    dear = ask(client, "", {**QUESTION, "budget_usd": 1000}).json()
    assert {advice["field"] for advice in dear["advice"]} == {"budget_usd", "tokens", "precision"}
    rented = cheapest["cluster"]
    named = f"{rented['provider']}/{rented['instance_type']}"
    only = ask(client, "", {**QUESTION, "instance_types": [named]}).json()
    assert {option["cluster"]["instance_type"] for option in only["options"]} == {rented["instance_type"]}
