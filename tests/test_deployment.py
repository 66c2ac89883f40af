"""The container files say what the code can do: services, commands, variables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from celery import current_app
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parent.parent
OURS = ("prepare", "web", "worker", "beat")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return parsed


@pytest.fixture(scope="module")
def dockerfile() -> list[tuple[str, str]]:
    """Instructions and their arguments, continuation lines joined, comments dropped."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(words[0], " ".join(words[1:])) for line in lines if (words := line.split())]


def test_the_services_are_the_whole_site(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"db", "redis", *OURS}
    for name in OURS:
        assert compose["services"][name]["image"] == "takar"
        assert compose["services"][name]["build"] == "."


def test_every_service_waits_for_what_it_needs(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert services["prepare"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    for name in ("web", "worker", "beat"):
        assert services[name]["depends_on"] == {
            "prepare": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }


def test_every_service_that_stays_has_a_health_check(
    compose: dict[str, Any], dockerfile: list[tuple[str, str]]
) -> None:
    for name, service in compose["services"].items():
        if name == "web":
            assert "healthcheck" not in service  # It has the image's own.
        elif name == "prepare":
            assert service["healthcheck"] == {"disable": True}
        else:
            assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    (check,) = [arguments for instruction, arguments in dockerfile if instruction == "HEALTHCHECK"]
    assert "/health/" in check


def test_data_outlives_the_containers(compose: dict[str, Any]) -> None:
    mounted = [mount.split(":")[0] for service in compose["services"].values() for mount in service.get("volumes", [])]
    assert set(mounted) == set(compose["volumes"]) == {"db", "media", "redis"}


def test_commands_exist(compose: dict[str, Any], dockerfile: list[tuple[str, str]]) -> None:
    services = compose["services"]
    assert services["prepare"]["command"][:2] == ["python", "manage.py"]
    assert services["prepare"]["command"][2] in get_commands()
    assert services["worker"]["command"][:3] == ["celery", "--app=planner.celery", "worker"]
    assert services["beat"]["command"][:3] == ["celery", "--app=planner.celery", "beat"]
    (command,) = [json.loads(arguments) for instruction, arguments in dockerfile if instruction == "CMD"]
    assert command == services["web"]["command"] == ["gunicorn"]
    assert (ROOT / "gunicorn.conf.py").is_file()
    assert current_app.main == "planner"


def test_every_variable_is_in_the_example_and_is_read_by_something(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    wanted = set(re.findall(r"\$\{(\w+)", text))
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert wanted == set(re.findall(r"^(\w+)=", example, flags=re.MULTILINE))
    code = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("planner/settings.py", "gunicorn.conf.py"))
    for name in compose["services"]["web"]["environment"]:
        assert f'"{name}"' in code, name


def test_a_secret_left_out_stops_the_start(compose: dict[str, Any]) -> None:
    for name in OURS:
        environment = compose["services"][name]["environment"]
        assert environment["SECRET_KEY"].startswith("${SECRET_KEY:?")
        assert "${POSTGRES_PASSWORD:?" in environment["DATABASE_URL"]


def test_the_image_runs_as_nobody_in_particular_from_checked_packages(dockerfile: list[tuple[str, str]]) -> None:
    bases = [arguments.split()[0] for instruction, arguments in dockerfile if instruction == "FROM"]
    assert set(bases) == {"python:3.11-slim"}
    users = [arguments for instruction, arguments in dockerfile if instruction == "USER"]
    assert users == ["10001"]
    assert any("--require-hashes" in arguments for instruction, arguments in dockerfile if instruction == "RUN")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".git", ".venv", ".env", "var"} <= set(ignored)
