"""Versions and dates of serving engines: what their profiles are keyed by."""

from __future__ import annotations

import re
from typing import Final

NUMBERED: Final = re.compile(r"[vb]?\d{1,6}(\.\d{1,6}){0,5}([a-z.+-][0-9a-z.+-]*)?", re.ASCII | re.IGNORECASE)
NAMED: Final = re.compile(r"(nightly|main|dev)\b[0-9a-z .+()-]*", re.ASCII | re.IGNORECASE)
"""A build between releases, as engines call theirs."""
COMMIT: Final = re.compile(r"[0-9a-f]{7,40}", re.ASCII | re.IGNORECASE)
MARKED: Final = re.compile(r"\b(nightly|main)\b|\bdev\d*\b", re.ASCII | re.IGNORECASE)
"""What such a build has in its name, wherever it stands."""


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
    return bool(MARKED.search(version) or COMMIT.fullmatch(version))


def is_version(version: str) -> bool:
    """Whether a text is a version as engines write theirs: a release's, or a build's between releases.

    >>> [is_version(v) for v in ("v0.24.0", "1.2.0rc6.post3", "b2843", "nightly-dev-2026", "main 535c9cc", "b6261862")]
    [True, True, True, True, True, True]
    >>> [is_version(v) for v in ("latest", "0,20", "1.2; rm", "not stated", "")]
    [False, False, False, False, False]
    """
    return any(form.fullmatch(version) for form in (NUMBERED, NAMED, COMMIT))


def release_key(version: str) -> tuple[int, ...]:
    """Numbers of the release that a version names or was built after; none of a branch's head or a bare commit.

    >>> release_key("0.19.1.dev12+gab12"), release_key("nightly-dev-20260402"), release_key("535c9cc")
    ((0, 19, 1), (), ())
    """
    return () if NAMED.match(version) or COMMIT.fullmatch(version) else version_key(version)
