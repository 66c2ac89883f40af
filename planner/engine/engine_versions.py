"""Versions and dates of serving engines: what their profiles are keyed by."""

from __future__ import annotations

import re


def version_key(version: str) -> tuple[int, ...]:
    """Numbers of a version, for ordering.

    >>> version_key("0.11.0rc2") > version_key("0.9")
    True
    """
    found = re.search(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
