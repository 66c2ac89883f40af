"""Use cases as starts of a question."""

from __future__ import annotations

from functools import cache
from typing import Any

from catalog.use_cases import use_case_file


@cache
def use_case_presets() -> dict[str, Any]:
    """The file's ``as_of``, ``note`` and ``presets``; a preset's ``fields`` are members of an inference question."""
    document = use_case_file()
    # The form's empty text means "no limit"; a question leaves such a field out.
    presets = [
        {**preset, "fields": {name: value for name, value in preset["fields"].items() if value != ""}}
        for preset in document["presets"]
    ]
    return {"as_of": document["as_of"], "note": document["note"], "presets": presets}
