"""What products and number formats call themselves: a data file of names by the codes that questions and plans use."""

from __future__ import annotations

import json
from functools import cache

from catalog.profiles import DATA


@cache
def display_names() -> dict[str, str]:
    """Names by code.

    >>> display_names()["vllm"], display_names()["fp8_block"]
    ('vLLM', 'FP8 block')
    """
    names: dict[str, str] = json.loads((DATA / "display_names.json").read_text(encoding="utf-8"))
    return names
