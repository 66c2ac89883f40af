"""The planning pages over HTTP: whole pages, fragments, errors, files."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import re
import runpy
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from catalog.models import ModelArchitecture
from frontend.config_link import MAX_ADDRESS_CHARS, MAX_PACKED_CHARS, pack_config
from planner.services import planning
from tests.factories import empty_plan_factory, inference_option, plan_factory
from tests.frontend.conftest import QUESTION

pytestmark = pytest.mark.usefixtures("catalog", "planner_answers")


def page(client: Client, path: str, **extra: Any) -> tuple[int, str]:
    response = client.get(path, **extra)
    return response.status_code, response.content.decode()


def test_the_empty_page_answers_a_worked_example(client: Client) -> None:
    status, text = page(client, "/")
    assert status == 200
    assert "A worked example" in text
    assert 'value="Llama 3.1 70B"' in text
    assert 'id="figure-tradeoff"' in text


def test_a_link_reproduces_question_and_answer(client: Client) -> None:
    status, text = page(client, f"/?{QUESTION}")
    assert status == 200
    assert "A worked example" not in text
    assert re.search(r'name="ttft_ms"[^>]* value="2000"', text)
    assert 'data-link="/?model=Llama+3.1+70B&amp;requests_per_second=10&amp;ttft_ms=2000"' in text


def test_every_field_has_its_unit_help_and_place_for_an_error(client: Client) -> None:
    _status, text = page(client, "/")
    for name in ("input_tokens", "ttft_ms", "max_num_seqs", "budget_usd_per_month", "prefix_cache_hit"):
        assert f'aria-describedby="help-{name} error-{name}"' in text
        assert re.search(rf'id="help-{name}">[^<]+<', text)
    for unit in ("tokens", "req/s", "ms", "USD/month", "sequences"):
        assert f'<span class="unit">{unit}</span>' in text


def test_no_inline_script_or_style(client: Client) -> None:
    _status, text = page(client, "/")
    scripts = re.findall(r"<script([^>]*)>", text)
    assert len(scripts) > 5
    assert all("src=" in attributes or 'type="application/json"' in attributes for attributes in scripts)
    assert " style=" not in text
    assert "<style" not in text
    assert not re.search(r" on[a-z]+=", text)


@pytest.mark.parametrize(
    ("query", "field", "message", "allowed"),
    [
        ("model=X&requests_per_second=-3", "requests_per_second", "Out of range: -3.", "0.000001 to 10,000,000 req/s"),
        ("model=X&requests_per_second=1e400", "requests_per_second", "Not a finite number: 1e400.", "req/s"),
        ("model=X&requests_per_second=3&headroom=lots", "headroom", "Not a number: lots.", "0 to 0.9 share"),
        ("model=X&requests_per_second=3&engine=x", "engine", "Not a known choice: x.", "vllm, tensorrt_llm"),
        ("requests_per_second=3", "model", "Name a model or give its config.", "a catalog name"),
    ],
)
def test_a_fault_stands_beside_its_field_with_value_and_what_is_allowed(
    client: Client, query: str, field: str, message: str, allowed: str
) -> None:
    status, text = page(client, f"/?{query}")
    assert status == 400
    (beside,) = re.findall(rf'<p class="error" id="error-{field}">([^<]*)</p>', text)
    assert message in beside
    assert allowed in beside
    assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', text)
    assert 'id="sentence"' not in text


def test_the_values_given_stay_in_the_form(client: Client) -> None:
    _status, text = page(client, "/?model=Qwen3+8B&requests_per_second=-3&input_tokens=77")
    assert re.search(r'name="input_tokens"[^>]* value="77"', text)
    assert re.search(r'name="requests_per_second"[^>]* value="-3"', text)


def test_an_unknown_name_is_a_fault_that_lists_the_known_ones(client: Client) -> None:
    status, text = page(client, f"/?{QUESTION}&colour=blue")
    assert status == 400
    assert "Unknown field: colour." in text
    assert "prefix_cache_hit" in text


def test_a_fragment_brings_the_answer_and_the_link_to_it(client: Client) -> None:
    response = client.get(f"/answers/inference/?{QUESTION}", headers={"HX-Request": "true", "X-Takar-History": "push"})
    assert response.status_code == 200
    assert response["HX-Push-Url"] == "/?model=Llama+3.1+70B&requests_per_second=10&ttft_ms=2000"
    text = response.content.decode()
    assert text.lstrip().startswith('<section class="panel lead"')
    assert 'id="bar"' in text
    assert "<html" not in text


def test_a_fragment_with_faults_is_422_and_keeps_the_link(client: Client) -> None:
    response = client.get("/answers/inference/?model=X&users=0", headers={"X-Takar-History": "replace"})
    assert response.status_code == 422
    assert response["HX-Replace-Url"] == "/?model=X&users=0"
    assert 'data-problem="users"' in response.content.decode()


def test_a_header_of_somebody_else_sets_no_address(client: Client) -> None:
    response = client.get(f"/answers/inference/?{QUESTION}", headers={"X-Takar-History": "http://elsewhere"})
    assert not any(name.startswith("HX-") for name in response.headers)


def test_a_use_case_fills_the_form_without_scripts(client: Client) -> None:
    response = client.get("/?model=Qwen3+8B&requests_per_second=3&preset=code&fill=1")
    assert response.status_code == 302
    assert response["Location"] == (
        "/?model=Qwen3+8B&input_tokens=2048&output_tokens=28&requests_per_second=3&ttft_ms=450&tpot_ms=40"
    )
    _status, text = page(client, response["Location"])
    assert re.search(r'<option value="code"[^>]*selected', text)


def test_nothing_fits_is_a_page_with_ways_out(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "plan_inference", lambda raw, **_: empty_plan_factory())
    status, text = page(client, f"/?{QUESTION}")
    assert status == 200
    assert "Nothing fits: none of 9,412 options tried" in text
    assert "Serve in FP8: 12 options then fit." in text
    assert 'href="/?model=Llama+3.1+70B&amp;requests_per_second=10&amp;ttft_ms=900"' in text


def test_texts_of_the_catalog_are_escaped(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    nasty = plan_factory(1, options=(inference_option(0, id='"><script>alert(1)</script>', limit="</script><b>"),))
    monkeypatch.setattr(planning, "plan_inference", lambda raw, **_: nasty)
    _status, text = page(client, f"/?{QUESTION}")
    assert "<script>alert" not in text
    assert "</script><b>" not in text


def test_the_csv_has_every_option_at_full_precision(client: Client) -> None:
    response = client.get(f"/plans/inference.csv?{QUESTION}")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="takar-inference-2026-11-29.csv"'
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert len(rows) == 8
    by_provider = {row["provider"]: row for row in rows}
    assert by_provider["lambda"]["usd_per_month"] == "38427.20"
    assert by_provider["lambda"]["ttft_p95_ms"] == "760"


def test_the_csv_runs_no_formula(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        planning, "plan_inference", lambda raw, **_: plan_factory(1, options=(inference_option(0, limit="=1+1"),))
    )
    (row,) = csv.DictReader(io.StringIO(client.get(f"/plans/inference.csv?{QUESTION}").content.decode()))
    assert row["limit"] == "'=1+1"


def test_the_csv_of_a_run_has_its_batch_goodput_and_storage(client: Client) -> None:
    text = client.get("/plans/training.csv?model=Llama+3.1+8B&tokens=1e11").content.decode()
    row = next(csv.DictReader(io.StringIO(text)))
    assert (row["global_batch_tokens"], row["goodput"], row["usd_storage"]) == ("4194304", "1.0", "0")


def test_a_training_page_whose_offer_is_gone_draws_what_it_can(client: Client) -> None:
    status, text = page(client, "/training/?model=Llama+3.1+8B&tokens=1e11")
    assert status == 200
    assert 'id="figure-tradeoff"' in text
    assert 'id="costs-title"' in text
    assert 'id="figure-scaling"' not in text


def test_kinds_of_node_come_when_their_list_is_opened(client: Client) -> None:
    _status, form = page(client, "/training/?model=Llama+3.1+8B&tokens=1e11&instance_types=aws/p5.48xlarge")
    assert re.findall(r'name="instance_types" value="([^"]*)"', form) == ["aws/p5.48xlarge"]
    status, listed = page(client, "/nodes/?instance_types=aws/p5.48xlarge")
    assert status == 200
    assert re.findall(r'value="([^"]*)" checked', listed) == ["aws/p5.48xlarge"]
    assert listed.count("<label>") > 100


def test_a_csv_of_a_bad_question_says_why(client: Client) -> None:
    response = client.get("/plans/inference.csv?model=X&users=0")
    assert response.status_code == 400
    assert response.content.decode().startswith("users: Out of range: 0. Allowed: 1 to")


def test_a_pasted_config_goes_into_the_link(client: Client) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "id2label": {"0": "x"}}
    response = client.post(
        "/configs/inference/",
        {"question": QUESTION, "config_text": '{"architectures": ["LlamaForCausalLM"], "hidden_size": 64}'},
    )
    assert response.status_code == 302
    assert response["Location"] == f"/?config={pack_config(config)}&requests_per_second=10&ttft_ms=2000"
    _status, text = page(client, response["Location"])
    assert "config.json: LlamaForCausalLM" in text


def test_a_link_is_never_longer_than_the_web_server_takes(client: Client) -> None:
    longest = runpy.run_path(str(settings.BASE_DIR / "gunicorn.conf.py"))["limit_request_line"] - len(
        "GET  HTTP/1.1\r\n"
    )
    assert longest >= MAX_ADDRESS_CHARS
    names = {f"name{place:05}": hashlib.sha256(str(place).encode()).hexdigest() for place in range(98)}
    text = json.dumps({"model_type": "llama", "rope_scaling": names})
    assert 5_000 < len(pack_config(json.loads(text))) <= MAX_PACKED_CHARS
    response = client.post("/configs/inference/", {"question": QUESTION, "config_text": text})
    assert response.status_code == 302
    assert len(response["Location"]) <= MAX_ADDRESS_CHARS
    listed = "&instance_types=" + ",".join(f"provider/name-of-a-node-{place}" for place in range(100))
    response = client.post("/configs/inference/", {"question": QUESTION + listed, "config_text": text})
    assert response.status_code == 400
    assert "at most 8000 characters with the question&#x27;s other fields" in response.content.decode()


def test_an_uploaded_config_is_read(client: Client) -> None:
    upload = io.BytesIO(b'{"model_type": "qwen3"}')
    upload.name = "config.json"
    response = client.post("/configs/inference/", {"question": "", "config_file": upload})
    assert response.status_code == 302
    assert "config=" in response["Location"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "Nothing was pasted"), ("[1, 2]", "Not a JSON object"), ('{"a": <b>', "Not valid JSON")],
)
def test_what_is_no_config_is_refused_and_nothing_is_lost(client: Client, text: str, message: str) -> None:
    response = client.post("/configs/inference/", {"question": QUESTION, "config_text": text})
    assert response.status_code == 400
    shown = response.content.decode()
    assert message in shown
    assert "requests_per_second=10" in shown
    assert f">{html.escape(text)}</textarea>" in shown


def test_models_are_found_as_they_are_typed(client: Client) -> None:
    facts = {"hf_id": "meta-llama/Llama-3.1-70B", "spec": {}, "source": "test", "as_of": date(2026, 11, 29)}
    ModelArchitecture.objects.update_or_create(name="Llama 3.1 70B", defaults=facts)
    _status, text = page(client, "/models/?model=llama+3.1+70")
    assert re.findall(r'data-value="([^"]+)"', text) == ["Llama 3.1 70B"]
    _status, text = page(client, "/models/?model=no-such-model-anywhere")
    assert "No such model in the catalog" in text


def test_the_other_language_is_one_click_away(client: Client) -> None:
    response = client.post("/i18n/setlang/", {"language": "id"}, headers={"referer": f"http://testserver/?{QUESTION}"})
    assert response.status_code == 302
    _status, text = page(client, f"/?{QUESTION}")
    assert '<html lang="id">' in text


@pytest.mark.parametrize("path", ["/nothing-here", "/plans/cooking.csv", "/runs/00000000-0000-0000-0000-000000000000/"])
def test_a_page_that_is_not_there(client: Client, path: str) -> None:
    status, text = page(client, path)
    assert status == 404
    assert "No such page" in text


def test_every_table_that_scrolls_marks_its_edge(client: Client) -> None:
    templates = Path(settings.BASE_DIR) / "frontend" / "templates"
    boxes = [
        (path.name, box)
        for path in templates.rglob("*.html")
        for box in re.findall(r'<div class="scroll" role="region"[^>]*>', path.read_text(encoding="utf-8"))
    ]
    assert len(boxes) > 20
    assert [name for name, box in boxes if "data-scroll" not in box] == []
    assert "js/table" in client.get("/docs/").content.decode()
