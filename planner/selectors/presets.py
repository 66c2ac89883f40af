"""Use cases with typical lengths and latency limits: a data file, each row with its sources."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from django.conf import settings


@cache
def use_case_presets() -> dict[str, Any]:
    """The file's ``as_of``, ``note`` and ``presets``; a preset's ``fields`` are members of an inference question."""
    path = settings.BASE_DIR / "frontend" / "data" / "use_case_presets.json"
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    # The form's empty text means "no limit"; a question leaves such a field out.
    presets = [
        {**preset, "fields": {name: value for name, value in preset["fields"].items() if value != ""}}
        for preset in document["presets"]
    ]
    return {"as_of": document["as_of"], "note": document["note"], "presets": presets}
