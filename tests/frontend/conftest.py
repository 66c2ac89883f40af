"""What tests of pages share."""

from __future__ import annotations

import pytest

from frontend import words
from planner.models import Run, RunStatus
from tests.frontend.simulation_pages import result, searched

QUESTION = "model=Llama+3.1+70B&requests_per_second=10&ttft_ms=2000"


@pytest.fixture(autouse=True)
def _names_of_this_database() -> None:
    """Provider names are kept for a minute; each test has a catalog of its own, or none."""
    words._provider_names.cache_clear()


@pytest.fixture
def finished(db: None) -> Run:
    """A simulation that has ended well."""
    return Run.objects.create(
        kind="simulation",
        params={"question": {"model": "Llama 3.1 8B", "requests_per_second": 2.0}, "traffic": {"hours": 0.5}},
        status=RunStatus.SUCCEEDED,
        progress=1.0,
        result=result(),
    )


@pytest.fixture
def search(finished: Run) -> Run:
    """A search for the smallest fleet that has ended well."""
    Run.objects.filter(pk=finished.pk).update(kind="capacity_search", result={**result(), "search": searched()})
    return Run.objects.get()
