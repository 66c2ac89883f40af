"""Use cases with typical lengths and latency limits: a data file, each row with its sources."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from catalog.profiles import DATA


@cache
def use_case_file() -> dict[str, Any]:
    """The file's ``as_of``, ``note`` and ``presets``; a field that is empty in one says that it has no such limit."""
    document: dict[str, Any] = json.loads((DATA / "use_case_presets.json").read_text(encoding="utf-8"))
    return document
