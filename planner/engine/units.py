"""Unit constants and conversions: the one place where a unit changes.

Inside the engine everything is bytes, bytes per second (one direction), dense FLOP/s,
seconds and USD per hour; a number's name carries its unit.

>>> round(bytes_to_gib(80e9), 3)
74.506
>>> mib_to_bytes(81_559)
85520809984
"""

from __future__ import annotations

from typing import Final

MIB: Final = 2**20
GIB: Final = 2**30
GB: Final = 10**9
TERA: Final = 10**12

HOURS_PER_MONTH: Final = 730
SECONDS_PER_HOUR: Final = 3600
SECONDS_PER_DAY: Final = 86_400
TOKENS_PER_MILLION: Final = 1_000_000


def bytes_to_gib(value_bytes: float) -> float:
    """Bytes as GiB (2^30)."""
    return value_bytes / GIB


def gib_to_bytes(value_gib: float) -> float:
    """GiB (2^30) as bytes."""
    return value_gib * GIB


def mib_to_bytes(value_mib: int) -> int:
    """MiB (2^20), as drivers print memory, as bytes."""
    return value_mib * MIB


def gbit_s_to_bytes_s(value_gbit_s: float) -> float:
    """A network line rate in Gbit/s as bytes per second, one direction.

    >>> gbit_s_to_bytes_s(400)
    50000000000.0
    """
    return value_gbit_s * 1e9 / 8
