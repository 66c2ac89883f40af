"""Waiting times: textbook queues, in the forms the serving model needs, on numbers or arrays.

Sources: Erlang (1917); Pollaczek-Khinchine; Allen-Cunneen for general arrivals; Cosmetatos (1975) and Sakasegawa
(1977) for many servers without summation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

TALBOT: Final = 16
"""Points on the path of an inverse Laplace transform (Talbot, 1979; Abate and Valko, 2004)."""
CROWDED: Final = np.geomspace(1e-6, 100.0, 81)
"""Mean arrivals at which it is found; between them by line."""
LEAST_CV: Final = 0.2
"""Gaps more even than this are as even."""


def erlang_c(servers: int, offered: float) -> float:
    """Probability that an arrival waits, Poisson arrivals at ``servers`` exponential servers.

    ``offered`` is arrival rate x service time; 1 at or beyond saturation.

    >>> round(erlang_c(10, 8.0), 4), round(erlang_c(3, 2.4), 3)
    (0.4092, 0.647)
    """
    if offered >= servers:
        return 1.0
    blocking = 1.0
    for count in range(1, servers + 1):
        blocking = offered * blocking / (count + offered * blocking)
    utilization = offered / servers
    return blocking / (1.0 - utilization + utilization * blocking)


def single_server_wait(rate: Any, service_s: Any, arrival_cv2: Any = 1.0, service_cv2: Any = 0.0) -> Any:
    """Mean wait at one server: ``rho S / (1 - rho) x (Ca^2 + Cs^2) / 2``; infinite at saturation.

    With Poisson arrivals and fixed service (M/D/1) 0.1 s at 8/s:

    >>> float(round(0.1 + single_server_wait(8.0, 0.1), 3))
    0.3
    """
    load = np.minimum(rate * service_s, 1.0)
    with np.errstate(divide="ignore"):
        return load * service_s / (1.0 - load) * (arrival_cv2 + service_cv2) / 2.0


def many_server_wait(utilization: Any, service_s: Any, servers: Any, arrival_cv2: Any, service_cv2: Any) -> Any:
    """Mean wait for one of ``servers``: Erlang's ``C / (c (1 - rho))`` x S x (Ca^2 + Cs^2 + (1 - Cs^2) f) / 2.

    ``f`` is how much more than half of it fixed services wait: Cosmetatos (1975), in light traffic as much as the least
    of ``c`` even residual times over that of exponential ones.

    >>> [float(round(many_server_wait(load, 1.0, c, 1.0, cv2), 3)) for load, c, cv2 in ((0.8, 10, 1.0), (0.5, 2, 0.0))]
    [0.204, 0.175]
    """
    load, servers = np.clip(utilization, 0.0, 1.0), np.asarray(servers, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = waiting_share(load, servers) / (servers * (1.0 - load))
        fixed = (1.0 - load) * (servers - 1.0) * (np.sqrt(4.0 + 5.0 * servers) - 2.0) / (16.0 * servers * load)
    fixed = np.minimum(fixed, (servers - 1.0) / (servers + 1.0))
    return wait * service_s * (arrival_cv2 + service_cv2 + (1.0 - np.minimum(service_cv2, 1.0)) * fixed) / 2.0


def side_by_side_wait(utilization: Any, service_s: Any, servers: Any, arrival_cv2: Any, service_cv2: Any) -> Any:
    """The same by Sakasegawa (1977), ``rho^(sqrt(2(c+1))-1) / (c (1-rho))`` x S x (Ca^2 + Cs^2) / 2: rather more at low
    loads, as where services go on in step and wait for the longest of them.

    >>> float(round(side_by_side_wait(0.8, 1.0, 10, 1.0, 1.0), 2))
    0.22
    """
    load = np.clip(utilization, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = load ** (np.sqrt(2.0 * (servers + 1.0)) - 1.0) / (servers * (1.0 - load))
    return wait * service_s * (arrival_cv2 + service_cv2) / 2.0


def waiting_share(utilization: Any, servers: Any) -> Any:
    """Erlang C over arrays, for any number of servers from 1 on: how often an arrival waits.

    ``C = P(c) / (P(c) + (1 - rho) P(fewer))`` with Poisson chances at ``a = c rho``: the one by Stirling's series, the
    sum as a gamma tail (Wilson and Hilferty, 1931).

    >>> [float(round(waiting_share(load, servers), 3)) for load, servers in ((0.8, 10), (0.3, 11), (0.5, 2))]
    [0.409, 0.001, 0.332]
    """
    servers = np.asarray(servers, dtype=np.float64)
    offered = np.maximum(servers * utilization, 1e-12)
    log_factorial = (servers + 0.5) * np.log(servers) - servers + 0.5 * np.log(2.0 * np.pi)
    log_factorial = log_factorial + 1.0 / (12.0 * servers) - 1.0 / (360.0 * servers**3)
    all_taken = np.exp(servers * np.log(offered) - offered - log_factorial)
    off = 3.0 * np.sqrt(servers) * ((offered / servers) ** (1.0 / 3.0) - 1.0 + 1.0 / (9.0 * servers))
    fewer = normal_share(-off)
    return all_taken / np.maximum(all_taken + (1.0 - utilization) * fewer, 1e-300)


def normal_share(deviations: Any) -> Any:
    """Share of a normal distribution below so many standard deviations; within 0.0004, without ``erf``.

    >>> [float(round(normal_share(off), 3)) for off in (-1.0, 0.0, 1.6449)]
    [0.159, 0.5, 0.95]
    """
    return 0.5 + 0.5 * np.tanh(np.sqrt(2.0 / np.pi) * (deviations + 0.044715 * deviations**3))


def exponential_quantile(mean: Any, probability_positive: Any, quantile: float) -> Any:
    """Quantile of a wait that is 0, or else exponential: ``mean`` over all, ``probability_positive`` above 0."""
    above = np.maximum(probability_positive, 1e-12)
    return np.maximum(mean / above * np.log(np.maximum(above / (1.0 - quantile), 1.0)), 0.0)


def crowding(arrivals: Any, cv: float) -> Any:
    """How many more come within a time after one came than by chance, where gaps scatter by ``cv`` (gamma).

    ``arrivals`` come in that time on average. The renewal function less its mean, from its transform
    1 / (s ((1 + s / k)^k - 1)), k = 1 / cv^2 (Cox, Renewal Theory, 1962): for long times (cv^2 - 1) / 2.

    >>> crowding(np.array([0.0, 0.05, 1.0, 100.0]), 2.0).round(2).tolist(), crowding(np.array([0.5]), 1.0).tolist()
    ([0.0, 0.5, 1.15, 1.5], [0.0])
    """
    arrivals = np.asarray(arrivals, dtype=np.float64)
    if abs(cv - 1.0) < 1e-6:
        return 0.0 * arrivals
    return np.interp(np.log(np.maximum(arrivals, 1e-300)), np.log(CROWDED), _crowding(cv), left=0.0)


@lru_cache(maxsize=64)
def _crowding(cv: float) -> FloatArray:
    """At the arrivals of ``CROWDED``: asked for with one spread many times over."""
    shape = 1.0 / max(cv, LEAST_CV) ** 2
    tops = np.arange(1, TALBOT) * np.pi / TALBOT
    cot = 1.0 / np.tan(tops)
    nodes = np.concatenate([[2.0 * TALBOT / 5.0 + 0j], 2.0 * TALBOT / 5.0 * tops * (cot + 1j)])
    weights = np.concatenate([[0.5 + 0j], 1.0 + 1j * tops * (1.0 + cot**2) - 1j * cot]) * np.exp(nodes)
    s = nodes / CROWDED[:, None]
    transform = 1.0 / (s * ((1.0 + s / shape) ** shape - 1.0)) - 1.0 / s**2
    found: FloatArray = 2.0 / (5.0 * CROWDED) * np.sum((weights * transform).real, axis=1)
    return found
