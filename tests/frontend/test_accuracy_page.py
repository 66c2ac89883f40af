"""The accuracy page: charts and error tables from the committed file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from django.test import Client

from catalog.accuracy_file import AccuracyCase, read_accuracy
from frontend.answers.accuracy import errors_of, present_accuracy

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("path", "charts"), [("/accuracy/", 3), ("/accuracy/training/", 2), ("/accuracy/memory/", 3)])
def test_each_section_has_its_charts_and_five_tables(client: Client, path: str, charts: int) -> None:
    text = client.get(path).content.decode()
    assert text.count("data-figure=") == charts
    assert re.findall(r"<h2 id=\"by-([a-z-]+)\"", text) == ["source", "gpu", "precision", "model-kind", "software"]
    assert len(text) < 700_000


def test_the_kinds_of_model_are_named_once_for_all_charts(client: Client) -> None:
    text = client.get("/accuracy/").content.decode()
    assert text.count('class="legend"') == 1
    legend = re.search(r'<ul class="legend"[^>]*>(.*?)</ul>', text, re.S)
    assert legend is not None
    used = re.findall(r'href="#(symbol-\d)"', legend[1])
    assert used == [f"symbol-{n}" for n in range(1, len(used) + 1)]
    assert len(used) >= 4
    assert all(f'id="{name}"' in text for name in used)
    for chart in present_accuracy(read_accuracy().sets[0]).charts:
        assert chart.figure["layout"]["showlegend"] is False


def test_an_unknown_section_is_no_page(client: Client) -> None:
    assert client.get("/accuracy/offers/").status_code == 404


def test_it_is_linked_from_every_page(client: Client) -> None:
    assert '<a href="/accuracy/"' in client.get("/docs/").content.decode()


def test_the_file_is_read_without_a_query(client: Client, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        client.get("/accuracy/")


def test_errors_are_those_of_the_pairs() -> None:
    cases = [
        AccuracyCase(labels={}, model="m", setup="s", pairs={"tpot_ms": (10.0, predicted)})
        for predicted in (9.0, 10.5, 13.0)
    ]
    errors = errors_of(cases, "tpot_ms")
    assert errors is not None
    assert errors.cases == 3
    assert errors.median == pytest.approx(0.1)
    assert errors.p90 == pytest.approx(np.percentile([0.1, 0.05, 0.3], 90))
    assert errors_of(cases, "ttft_ms") is None


def test_groups_of_a_table_add_up_to_all_cases() -> None:
    found = read_accuracy().sets[0]
    shown = present_accuracy(found)
    measured = sum("output_tok_s_per_gpu" in case.pairs for case in found.cases)
    for group in shown.breakdowns:
        assert sum(int(cells[0].sort or 0) for _name, cells in group.rows) == measured


def test_points_lie_on_equal_axes() -> None:
    for chart in present_accuracy(read_accuracy().sets[0]).charts:
        layout = chart.figure["layout"]
        assert layout["xaxis"]["range"] == layout["yaxis"]["range"]
