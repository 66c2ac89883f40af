"""What tests of pages share."""

from __future__ import annotations

import pytest

from frontend import words

QUESTION = "model=Llama+3.1+70B&requests_per_second=10&ttft_ms=2000"


@pytest.fixture(autouse=True)
def _names_of_this_database() -> None:
    """Provider names are kept for a minute; each test has a catalog of its own, or none."""
    words._provider_names.cache_clear()
