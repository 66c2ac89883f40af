"""Where compiled simulator code is kept: a folder named after the sources it was compiled from.

The compiler itself only looks at the file of an entry point, so a change in a function that the entry
calls would go unnoticed. A name that follows all sources (and versions) makes a stale result impossible,
and a folder of our own works where the program's files are read-only.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

COMPILERS = ("numba", "llvmlite", "numpy")
SHARED_SOURCES = ("compiled.py", "handle.py", "layout.py", "codes.py")
"""What compiled functions are made of beside the files that define them."""
MARK = b"simulate.compiled import"
"""Stands in every file that defines compiled functions."""


def compiled_cache_folder(parent: Path, engine: Path) -> Path:
    """The folder for code compiled from ``engine``'s sources as they are now."""
    digest = hashlib.sha256(sys.version.encode())
    for name in COMPILERS:
        digest.update(version(name).encode())
    digest.update((engine / "step_time.py").read_bytes())
    for source in sorted((engine / "simulate").glob("*.py")):
        text = source.read_bytes()
        if source.name in SHARED_SOURCES or MARK in text:
            digest.update(text)
    return parent / digest.hexdigest()[:16]
