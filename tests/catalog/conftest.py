"""What tests of the catalog share."""

from __future__ import annotations

import pytest

from tests.catalog.data_folder import small_folder


@pytest.fixture
def folder(tmp_path):
    return small_folder(tmp_path)
