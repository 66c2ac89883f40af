"""Bad input is refused field by field, by REST with 400 and on the command line with exit 2, in one envelope."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import SuspiciousOperation
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client

from planner.services import planning
from planner.services.json_input import MAX_BODY_BYTES, MAX_DEPTH, MAX_ERRORS
from tests.api.conftest import INFERENCE, Post

pytestmark = pytest.mark.usefixtures("planner_answers")

OK = '"model": "m", "concurrency": 1'
# body, attr, code, value, what "allowed" says
BODIES: list[tuple[str, bytes, str | None, str, Any, str]] = [
    ("empty", b"", None, "parse_error", None, "one JSON object"),
    ("blank", b" \n", None, "parse_error", None, "one JSON object"),
    ("not JSON", b"model=x", None, "parse_error", None, "one JSON object"),
    ("cut off", b'{"model": "m"', None, "parse_error", None, "one JSON object"),
    ("two documents", b"{}{}", None, "parse_error", None, "one JSON object"),
    ("list", b"[]", None, "parse_error", None, "one JSON object"),
    ("text", b'"x"', None, "parse_error", None, "one JSON object"),
    ("null", b"null", None, "parse_error", None, "one JSON object"),
    ("number", b"1", None, "parse_error", None, "one JSON object"),
    ("true", b"true", None, "parse_error", None, "one JSON object"),
    ("NaN alone", b"NaN", None, "parse_error", None, "one JSON object"),
    ("not UTF-8", b'{"model": "\xff"}', None, "parse_error", None, "UTF-8"),
    ("UTF-16", '{"model": "m"}'.encode("utf-16"), None, "parse_error", None, "UTF-8"),
    ("gzip", b"\x1f\x8b\x08\x00", None, "parse_error", None, "UTF-8"),
    ("byte order mark", b"\xef\xbb\xbf{}", None, "parse_error", None, "UTF-8 without a byte order mark"),
    ("depth bomb", b"[" * 100_000, None, "parse_error", None, f"up to {MAX_DEPTH} levels"),
    (
        "deep config",
        b'{"config": ' + b'{"a": ' * 40 + b"1" + b"}" * 41,
        None,
        "parse_error",
        None,
        f"up to {MAX_DEPTH} levels",
    ),
    ("duplicate key", b'{"model": "a", "model": "b"}', "model", "duplicate", None, "each key once"),
    ("duplicate in config", b'{"config": {"a": 1, "a": 2}}', "a", "duplicate", None, "each key once"),
    ("NaN", b'{"headroom": NaN}', "headroom", "invalid", "nan", "a finite number"),
    ("Infinity", b'{"headroom": Infinity}', "headroom", "invalid", "inf", "a finite number"),
    ("-Infinity", b'{"headroom": -Infinity}', "headroom", "invalid", "-inf", "a finite number"),
    ("overflow", b'{"headroom": 1e999}', "headroom", "invalid", "inf", "a finite number"),
    ("huge integer", b'{"input_tokens": ' + b"9" * 100_000 + b"}", "input_tokens", "invalid", "inf", "a finite number"),
    ("NaN in config", b'{"config": {"x": [0, NaN]}}', "config.x.1", "invalid", "nan", "a finite number"),
    ("NUL", b'{"model": "a\\u0000b"}', "model", "invalid", "'a\\x00b'", "Unicode text without NUL"),
    ("half a pair", b'{"model": "\\ud800"}', "model", "invalid", "'\\ud800'", "Unicode text without NUL"),
    ("half a pair as key", b'{"\\ud800": 1}', "\\ud800", "invalid", "'\\ud800'", "Unicode text without NUL"),
    ("NUL in config key", b'{"config": {"\\u0000": 1}}', "config.\\x00", "invalid", "'\\x00'", "Unicode text"),
    ("unknown field", f'{{{OK}, "colour": 1}}'.encode(), "colour", "unknown_field", 1, "One of: model, config"),
    ("number as text", f'{{{OK}, "headroom": "0.1"}}'.encode(), "headroom", "invalid", "0.1", "0 to 0.9 share"),
    ("number as list", f'{{{OK}, "headroom": []}}'.encode(), "headroom", "invalid", [], "0 to 0.9 share"),
    ("number as empty text", f'{{{OK}, "headroom": ""}}'.encode(), "headroom", "invalid", "", "0 to 0.9 share"),
    ("boolean", f'{{{OK}, "headroom": true}}'.encode(), "headroom", "invalid", True, "0 to 0.9 share"),
    ("fraction", f'{{{OK}, "input_tokens": 1.5}}'.encode(), "input_tokens", "invalid", 1.5, "1 to 10,000,000 tokens"),
    ("zero", f'{{{OK}, "input_tokens": 0}}'.encode(), "input_tokens", "out_of_range", 0, "1 to 10,000,000 tokens"),
    ("negative", f'{{{OK}, "headroom": -1}}'.encode(), "headroom", "out_of_range", -1, "0 to 0.9 share"),
    ("too large", f'{{{OK}, "ttft_ms": 1e300}}'.encode(), "ttft_ms", "out_of_range", 1e300, "1 to 3,600,000 ms"),
    ("long integer", f'{{{OK}, "headroom": {10**30}}}'.encode(), "headroom", "out_of_range", 1e30, "0 to 0.9 share"),
    ("choice", f'{{{OK}, "engine": "vLLM"}}'.encode(), "engine", "invalid", "vLLM", "vllm, tensorrt_llm"),
    ("empty choice", f'{{{OK}, "engine": ""}}'.encode(), "engine", "invalid", "", "vllm, tensorrt_llm"),
    (
        "choices as text",
        f'{{{OK}, "weight_formats": "fp8"}}'.encode(),
        "weight_formats",
        "invalid",
        "fp8",
        "auto, bf16",
    ),
    ("choice of list", f'{{{OK}, "weight_formats": ["f8"]}}'.encode(), "weight_formats", "invalid", "f8", "auto, bf16"),
    (
        "choice with space",
        f'{{{OK}, "weight_formats": [" fp8"]}}'.encode(),
        "weight_formats",
        "invalid",
        [" fp8"],
        "auto, bf16",
    ),
    ("list of numbers", f'{{{OK}, "providers": [1]}}'.encode(), "providers", "invalid", "[1]", "a list of texts"),
    ("config as text", b'{"config": "{}", "concurrency": 1}', "config", "invalid", "{}", "a config.json object"),
    ("empty config list", f'{{{OK}, "config": []}}'.encode(), "config", "invalid", [], "a JSON object"),
    ("model as number", b'{"model": 7, "concurrency": 1}', "model", "invalid", 7, "up to 200 characters"),
    ("no model", b'{"concurrency": 1}', "model", "required", "", "a catalog name"),
    ("no traffic", b'{"model": "m"}', "requests_per_second", "required", None, "requests_per_second, or users"),
    (
        "two traffics",
        f'{{{OK}, "requests_per_second": 2}}'.encode(),
        "requests_per_second",
        "required",
        2.0,
        "requests_per_second, or users",
    ),
]


@pytest.mark.parametrize(
    ("body", "attr", "code", "value", "allowed"), [c[1:] for c in BODIES], ids=[c[0] for c in BODIES]
)
def test_each_fault_names_field_value_and_what_is_allowed(
    body: bytes, attr: str | None, code: str, value: Any, allowed: str, post: Post, tmp_path: Path
) -> None:
    response = post("inference", body)
    assert response.status_code == 400
    document = response.json()
    (error,) = document["errors"]
    assert document["type"] == ("client_error" if attr is None else "validation_error")
    assert list(error) == ["code", "detail", "attr", "value", "allowed"]
    assert (error["attr"], error["code"], error["value"]) == (attr, code, value)
    assert error["allowed"].startswith(allowed)
    assert error["detail"]
    assert _printed_by_the_command(body, tmp_path) == document


def _printed_by_the_command(body: bytes, folder: Path) -> Any:
    file = folder / "question.json"
    file.write_bytes(body)
    printed, complained = StringIO(), StringIO()
    with pytest.raises(SystemExit) as stopped:
        call_command("plan", "inference", str(file), stdout=printed, stderr=complained)
    assert stopped.value.code == 2
    assert printed.getvalue() == ""
    return json.loads(complained.getvalue())


def test_every_fault_is_told_at_once(post: Post) -> None:
    body = {"model": 1, "input_tokens": "7", "headroom": 3, "engine": "x", "colour": 0}
    errors = post("inference", body).json()["errors"]
    # Traffic is not stated either.
    assert {error["attr"] for error in errors} == {*body, "requests_per_second"}


def test_errors_and_values_are_bounded(post: Post) -> None:
    body = {f"field{n}": "x" * 1000 for n in range(500)}
    document = post("inference", body).json()
    assert len(document["errors"]) == MAX_ERRORS
    assert all(len(error["value"]) == 200 for error in document["errors"])
    long_name = post("inference", {"n" * 100_000: 1}).json()["errors"][0]["attr"]
    assert len(long_name) == 200


@pytest.mark.parametrize("length_bytes", [MAX_BODY_BYTES + 1, 20 * 2**20])
def test_a_body_that_is_too_long_is_413(length_bytes: int, post: Post) -> None:
    response = post("inference", b'{"model": "' + b"x" * (length_bytes - 13) + b'"}')
    assert response.status_code == 413
    assert response.json() == {
        "type": "client_error",
        "errors": [
            {
                "code": "too_large",
                "detail": "The body is too long.",
                "attr": None,
                "value": length_bytes,
                "allowed": f"up to {MAX_BODY_BYTES} bytes",
            }
        ],
    }


def test_a_body_just_short_enough_is_read(post: Post) -> None:
    response = post("inference", b'{"model": "' + b"x" * (MAX_BODY_BYTES - 13) + b'"}')
    assert response.status_code == 400
    assert response.json()["errors"][0]["attr"] == "model"


@pytest.mark.parametrize(
    ("content_type", "extra"),
    [
        ("text/plain", {}),
        ("application/x-www-form-urlencoded", {}),
        ("multipart/form-data; boundary=x", {}),
        ("application/xml", {}),
        ("", {}),
        ("x" * 300, {}),
        ("application/json; charset=latin-1", {}),
        ("application/json", {"HTTP_CONTENT_ENCODING": "gzip"}),
    ],
)
def test_other_content_is_415(content_type: str, extra: dict[str, str], post: Post) -> None:
    response = post("inference", INFERENCE, content_type=content_type, **extra)
    assert response.status_code == 415
    (error,) = response.json()["errors"]
    assert (error["code"], error["allowed"]) == ("unsupported_media_type", "application/json")


def test_another_answer_than_json_is_406(post: Post) -> None:
    response = post("inference", INFERENCE, HTTP_ACCEPT="text/csv")
    assert response.status_code == 406
    (error,) = response.json()["errors"]
    assert (error["code"], error["value"], error["allowed"]) == ("not_acceptable", "text/csv", "application/json")


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "trace"])
def test_another_method_is_405(method: str, client: Client) -> None:
    response = getattr(client, method)("/api/v1/plans/inference/")
    assert response.status_code == 405
    assert response.headers["Allow"] == "POST, OPTIONS"
    (error,) = response.json()["errors"]
    assert (error["code"], error["value"], error["allowed"]) == ("method_not_allowed", method.upper(), "POST, OPTIONS")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/v1/plans/inference", "/api/v1/plans/inference/"),
        ("/api/v1/plans/", "the paths listed at /api/schema/"),
        ("/api/v2/", "the paths listed at /api/schema/"),
        ("/api/%00", "the paths listed at /api/schema/"),
        ("/api/%ff/..//", "the paths listed at /api/schema/"),
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_unknown_path_is_404_in_the_envelope(method: str, path: str, allowed: str, client: Client) -> None:
    response = getattr(client, method)(path)
    assert response.status_code == 404
    (error,) = response.json()["errors"]
    assert (error["code"], error["allowed"]) == ("not_found", allowed)


def test_an_unknown_query_parameter_is_refused(client: Client) -> None:
    response = client.post(
        "/api/v1/plans/inference/?currency=IDR", data=json.dumps(INFERENCE), content_type="application/json"
    )
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert (error["attr"], error["value"], error["allowed"]) == ("currency", "IDR", "no query parameters")


def test_too_many_query_parameters_are_refused(client: Client) -> None:
    response = client.get("/api/schema/?" + "&".join(f"a{n}=" for n in range(2000)))
    assert response.status_code == 400
    assert response.json()["errors"][0]["code"] == "parse_error"


@pytest.mark.parametrize(
    ("raised", "status", "code", "kind"),
    [
        (OperationalError("locked"), 503, "unavailable", "server_error"),
        (SuspiciousOperation("odd"), 400, "parse_error", "client_error"),
        (ZeroDivisionError("a bug"), 500, "error", "server_error"),
    ],
)
def test_what_fails_inside_keeps_the_envelope_and_its_secrets(
    raised: Exception, status: int, code: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(raw: object, **_: object) -> None:
        raise raised

    monkeypatch.setattr(planning, "plan_inference", fails)
    client = Client(raise_request_exception=False)
    response = client.post("/api/v1/plans/inference/", data=json.dumps(INFERENCE), content_type="application/json")
    assert response.status_code == status
    document = response.json()
    assert (document["type"], document["errors"][0]["code"]) == (kind, code)
    assert "bug" not in response.content.decode()


@pytest.mark.parametrize("name", ["absent.json", "", "a\x00b"])
def test_a_file_that_cannot_be_read_is_bad_input(name: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/{name}"
    complained = StringIO()
    with pytest.raises(SystemExit) as stopped:
        call_command("plan", "training", path, stderr=complained)
    assert stopped.value.code == 2
    document = json.loads(complained.getvalue())
    (error,) = document["errors"]
    assert document["type"] == "client_error"
    assert error["detail"].startswith("Can't read the file")
    assert error["allowed"] == "a readable file, or -"


def test_answers_to_programs_are_english_whatever_the_language_asked(post: Post, client: Client) -> None:
    response = client.get("/api/v1/plans/inference/", HTTP_ACCEPT_LANGUAGE="id")
    assert response.json()["errors"][0]["detail"] == 'Method "GET" not allowed.'
    assert response.headers["Content-Language"] == "en"
