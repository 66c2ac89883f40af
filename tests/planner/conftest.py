"""What tests of jobs in real processes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.planner.live_processes import LiveProcess


@pytest.fixture
def processes() -> Iterator[list[LiveProcess]]:
    """Processes that the test starts; whatever is still there is killed after it."""
    started: list[LiveProcess] = []
    yield started
    for process in started:
        process.kill()
