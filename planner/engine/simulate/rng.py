"""A small counter-based random generator: the same numbers on every machine, kept in the run's state."""

from __future__ import annotations

import numpy as np

from planner.engine.simulate.compiled import inner
from planner.engine.simulate.layout import State

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@inner
def _scramble(z: np.uint64) -> np.uint64:
    """splitmix64's finalizer (Steele, Lea, Flood 2014): every input bit moves every output bit."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@inner
def uniform(st: State) -> float:
    """The next number in [0, 1)."""
    fleet = st.fleet[0]
    fleet.random = fleet.random + _GAMMA
    return float(_scramble(fleet.random) >> _S11) * 2.0**-53


@inner
def mix(a: int, b: int) -> int:
    """A 64-bit name for the pair (a, b)."""
    z = _scramble(np.uint64(a) + _GAMMA)
    return np.int64(_scramble(z ^ (np.uint64(b) * _GAMMA)))  # type: ignore[return-value]
