"""How the simulator's functions are compiled, and the engine's own step time made callable from them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba.extending import register_jitable

from planner.engine.step_time import step_time

Function = TypeVar("Function", bound=Callable[..., Any])


def inner(function: Function) -> Function:
    """Compile as a part of an entry point; the entry's cache holds the result."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))


def entry(function: Function) -> Function:
    """Compile as an entry point, cached on disk where ``NUMBA_CACHE_DIR`` says."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy", cache=True)(function))


def _share(function: FunctionType, seen: set[str]) -> None:
    """Let compiled code call ``function`` and the plain functions it calls, from their own source."""
    register_jitable(function)
    seen.add(function.__name__)
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if isinstance(used, FunctionType) and name not in seen:
            _share(used, seen)


_share(step_time, set())  # type: ignore[arg-type]

__all__ = ["entry", "inner", "step_time"]
