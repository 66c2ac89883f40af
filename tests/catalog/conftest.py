"""The project's own catalog, loaded once a module and rolled back after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from catalog.services import LoadReport, load_catalog


@pytest.fixture(scope="module")
def loaded_catalog(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[LoadReport]:
    """The data files' rows, inside one transaction that every test of the module nests in."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield load_catalog()
        transaction.set_rollback(True)


@pytest.fixture
def catalog(loaded_catalog: LoadReport, db: None) -> LoadReport:
    """The project's own catalog in the database."""
    return loaded_catalog
