"""Versions and dates of serving engines: what their profiles are keyed by."""

from __future__ import annotations

import re


def version_key(version: str) -> tuple[int, ...]:
    """Numbers of a version, for ordering: 0.24 is 0.24.0.

    >>> version_key("0.11.0rc2") > version_key("0.9"), version_key("0.24") == version_key("v0.24.0")
    (True, True)
    >>> version_key("b0"), version_key("nightly")
    ((0,), ())
    """
    found = re.search(r"\d+(\.\d+)*", version)
    if not found:
        return ()
    numbers = [int(part) for part in found[0].split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
