"""What every test shares."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.conf import settings as site
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.test import override_settings
from django.urls import get_resolver
from django.utils import timezone, translation
from hypothesis import settings
from pytest_django import DjangoDbBlocker

from catalog.services import LoadReport, load_catalog
from planner.engine.answers import InferencePlan
from planner.engine.errors import FieldError
from planner.engine.question_reading import parse_question, read_with_faults
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion
from planner.services import planning, webhook_delivery
from tests.factories import plan_factory, training_plan_factory
from tests.planner.organizations import Tenant, tenant_factory
from tests.planner.webhook_receiver import Receiver

# A slow machine is no fault of the code under test; speed has its own figures in docs/performance.md.
settings.register_profile("takar", deadline=None)
settings.load_profile("takar")

FIRST = "tests/planner/test_on_servers.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes first, so that it doesn't go on alone when all else is done."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def pytest_configure(config: pytest.Config) -> None:
    """Keep tests away from the cache, static files and message broker of the site in this checkout."""
    scratch = Path(tempfile.mkdtemp(prefix="takar-test-"))
    config.add_cleanup(lambda: _remove(scratch))
    (scratch / "static").mkdir()
    changed = override_settings(
        STATIC_ROOT=str(scratch / "static"),
        CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
        STORAGES={
            "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
            "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
        },
        # All tests call from one address, quicker than anybody types.
        PAGE_RATES={tier: dict.fromkeys(rates, 10**6) for tier, rates in site.PAGE_RATES.items()},
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    )
    changed.enable()
    config.add_cleanup(changed.disable)
    if current_app.conf.broker_url.startswith("filesystem:"):
        current_app.conf.broker_transport_options = {
            "data_folder_in": str(scratch / "broker"),
            "data_folder_out": str(scratch / "broker"),
            "control_folder": str(scratch / "broker-control"),
            "polling_interval": 0.1,
        }
        (scratch / "broker").mkdir()


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


@pytest.fixture(autouse=True)
def content_types_read_anew(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that empties the tables ends with content types of other ids than those remembered."""
    yield
    marker = request.node.get_closest_marker("django_db")
    committed = marker is not None and marker.kwargs.get("transaction", False)
    if committed or {"transactional_db", "live_server"} & set(request.fixturenames):
        ContentType.objects.clear_cache()


@pytest.fixture(autouse=True)
def language_of_its_own() -> Iterator[None]:
    """A page asked for in another language leaves that language active in this thread."""
    yield
    translation.deactivate()


@pytest.fixture(scope="module")
def loaded_catalog(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[LoadReport]:
    """The project's own catalog, inside one transaction that every test of the module nests in."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield load_catalog()
        transaction.set_rollback(True)


@pytest.fixture
def catalog(loaded_catalog: LoadReport, db: None) -> LoadReport:
    """The project's own catalog in the database."""
    return loaded_catalog


@pytest.fixture
def planner_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions are read as always, and answered with the plans of tests.factories."""
    # Modules that take the functions themselves are to be loaded before these stand in for them.
    assert get_resolver().url_patterns

    def inference(raw: Mapping[str, Any], **_: object) -> InferencePlan:
        return plan_factory(question=asdict(parse_question(InferenceQuestion, raw)))

    def training(raw: Mapping[str, Any], **_: object) -> TrainingPlan:
        return training_plan_factory(question=asdict(parse_question(TrainingQuestion, raw)))

    def by_itself(question_type: type, raw: Mapping[str, Any], **_: object) -> list[FieldError]:
        return read_with_faults(question_type, raw)[1]

    monkeypatch.setattr(planning, "faults_in", by_itself)
    monkeypatch.setattr(planning, "plan_inference", inference)
    monkeypatch.setattr(planning, "plan_training", training)


@pytest.fixture
def tenant(db: None) -> Tenant:
    """An organization with a person in each role."""
    return tenant_factory()


@pytest.fixture
def acme(catalog: LoadReport) -> Tenant:
    """The same beside the project's own catalog."""
    return tenant_factory("Acme")


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """Where webhooks are sent, with the clock that their delivery sees."""
    made = Receiver()
    monkeypatch.setattr(webhook_delivery, "post", made.post)
    monkeypatch.setattr(timezone, "now", lambda: made.now)
    monkeypatch.setattr("planner.services.webhook_delivery.random.uniform", lambda low, high: 1.0)
    return made
