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


def is_development_build(version: str) -> bool:
    """Whether a version names a build between releases: a nightly, a branch's head or a bare commit.

    >>> [is_development_build(v) for v in ("Nightly (Feb 2026)", "0.19.1.dev12+gab12", "main 535c9cc", "b6261862")]
    [True, True, True, True]
    >>> [is_development_build(v) for v in ("0.24.0", "1.2.0rc6.post3", "latest Sep 2025", "2023", "b2843", "")]
    [False, False, False, False, False, False]
    """
    version = version.lower()
    return bool(re.search(r"\b(nightly|main)\b|\bdev\d*\b", version) or re.fullmatch(r"[0-9a-f]{7,40}", version))
