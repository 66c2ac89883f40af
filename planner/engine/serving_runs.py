"""Runs of iterations with prompts: where prompts in chunks go on side by side, one on each attention rank, or where an
iteration lasts as long with several prompts as with one.

A run ends where ``K`` iterations in a row admit nobody, which one of ``d`` seconds does with ``f = exp(-rate d)``:

    E(c) = (f^-K - f^-c) / (1 - f)        iterations until then, where the last c admitted nobody

(waiting for a run of successes: Feller, 1968, XIII.7). Where the next iteration is fixed while one runs, it admits
those that came in the one before: the first of a run is followed by one that admits hardly anybody, and the first
after its end by one that admits as many as the run's others.

How much more often prompts are met after one's own than on average is the relative value of a state in a renewal cycle
of a run and a pause: time to the end of the run, times the share of pauses (Poisson's equation of the chain).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FOLLOWED: Final = 16
"""Iterations after one's own that are looked at one by one: what differs there has mostly died out by then."""
LEAST_ARRIVING: Final = 1e-6
MOST_ARRIVING: Final = 100.0
"""Requests in the chunks of one prompt: beyond these bounds powers lose their digits, and nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Arrays over candidates."""

    running: Any
    """Of iterations that carry prompts."""
    share: Any
    """Of time in these."""
    following: Any
    """How many more of them follow one's own prompt than follow any iteration."""
    nobody: Any
    """How often an iteration with prompts admits nobody,"""
    soon: Any
    """and how often one without them admits somebody."""
    joining: Any
    """How often the iteration before one's own first admits as many as one with prompts."""
    chunks: Any
    lookahead: Any
    waiting: Any
    """How often another has waited for one's own rank, and begins where one's own prompt ends."""

    def soon_following(self, decodes: Any) -> FloatArray:
        """How many more follow in the first ``decodes`` iterations."""
        soon, later = self._following_in(decodes)
        return soon + later

    def later_following(self, decodes: FloatArray) -> FloatArray:
        """Of these, after the ``FOLLOWED``th."""
        if not (decodes > FOLLOWED).any():
            return np.zeros_like(self.nobody)
        return self._following_in(decodes)[1]

    def _following_in(self, decodes: Any) -> tuple[FloatArray, FloatArray]:
        """Step by step, and then as the rest dies out."""
        ahead, several, nobody, soon = self.lookahead > 0.0, self.chunks > 1.0, self.nobody, self.soon
        begin, second = self._left(self.chunks), self._left(self.chunks - 1.0)
        run, begun = self._at_own_end(), np.where(several, 0.0, 1.0 - self.joining)
        ended, paused, off, found = (0.0 * nobody for _ in range(4))
        for step in range(FOLLOWED):
            begins = run.sum(axis=0) * (1.0 - nobody) + begun * soon
            again = ended * np.where(ahead, 1.0 - nobody, soon) + paused * soon
            goes_on = begun * (1.0 - soon)
            paused = paused * (1.0 - soon) + ended * np.where(ahead, nobody, 1.0 - soon)
            ended = run[0] * nobody + np.where(several, 0.0, goes_on)
            run = np.concatenate([run[1:-1], run[-1:], 0.0 * run[-1:]]) * nobody
            run = run + np.where(several, goes_on, 0.0) * second + (begins + np.where(ahead, 0.0, again)) * begin
            begun = np.where(ahead, again, 0.0)
            off = 1.0 - ended - paused - self.running
            found = found + np.clip(decodes - step, 0.0, 1.0) * off
        rest = self.following - found
        fades = np.clip(rest / np.where(rest + off == 0.0, 1.0, rest + off), 0.0, 1.0)
        later = rest * (1.0 - fades ** np.maximum(decodes - FOLLOWED, 0.0))
        return found, np.where(decodes > FOLLOWED, later, 0.0)

    def _left(self, left: Any) -> FloatArray:
        """1 for a run with so many iterations left at least, 0 else: (``FOLLOWED`` + 1, n), the last for all beyond."""
        found: FloatArray = np.eye(FOLLOWED + 1)[:, np.clip(left, 1.0, FOLLOWED + 1.0).astype(np.int64) - 1]
        return found

    def _at_own_end(self) -> FloatArray:
        """How often a run has so many iterations left at least, this one's own last among them."""
        nobody, chunks, several = self.nobody, self.chunks, self.chunks > 1.0
        before = self.joining * nobody + (1.0 - self.joining) * (1.0 - self.soon)
        left = np.arange(1.0, FOLLOWED + 2.0)[:, None]
        begun = (1.0 - nobody) * nobody ** np.maximum(chunks - left, 0.0)
        found: FloatArray = np.where(left <= chunks, begun, 0.0)
        second = nobody ** np.maximum(chunks - 2.0, 0.0)
        found[0] = np.where(several, before * second, self.joining)
        found[1] = np.where(several, (1.0 - before) * second, 0.0)
        found[-1] += np.where(several, 1.0 - found.sum(axis=0), 0.0)
        # One that waits came while one's own was served, as others that began: it begins next, whatever comes.
        others = found[1:].sum(axis=0)
        waiting = np.minimum(self.waiting, others)
        found[1:] *= 1.0 - waiting / np.maximum(others, 1e-300)
        found += waiting * self._left(chunks + 1.0)
        return found


def runs_of(
    rate: FloatArray, iteration_s: Any, carrying_s: Any, chunks: Any, lookahead: Any, waiting: Any = 0.0
) -> Runs:
    """Runs at ``rate`` requests a second, each with prompts in ``chunks`` iterations; those last ``carrying_s``,
    others ``iteration_s``; ``lookahead`` is 1 where the next is fixed while one runs, else 0.

    >>> low, high = (runs_of(np.array([rate]), 0.03, 1.8, np.array([2.0]), 1.0) for rate in (0.01, 0.7))
    >>> [round(float(value[0]), 3) for value in (low.share, low.following, high.share, high.following)]
    [0.036, 0.072, 0.982, 11.221]
    """
    ahead = lookahead > 0.0
    nobody = np.exp(-np.clip(rate * carrying_s, LEAST_ARRIVING, MOST_ARRIVING / chunks))
    soon = -np.expm1(-np.maximum(rate * iteration_s, 1e-300))
    some, powers = 1.0 - nobody, nobody**-chunks
    from_first, from_second = (powers - 1.0) / some, (powers - 1.0 / nobody) / some
    length = np.where(ahead, 1.0 + soon * from_first + (1.0 - soon) * from_second, from_first)
    pause = np.where(ahead, 1.0 + nobody / soon, 1.0 / soon)
    running = length / (length + pause)
    share = running * carrying_s / (running * carrying_s + (1.0 - running) * iteration_s)
    # One comes while prompts are under way in a share of all cases; the iteration after that one tells what is beside.
    joining = np.where(ahead, share * (1.0 - 1.0 / length) + (1.0 - share) / pause, 1.0)
    own_left = joining * from_first + (1.0 - joining) * (1.0 + from_second) - chunks
    own_left = own_left + waiting * (from_first - own_left)
    # What is left of a run and of a pause at any of their iterations.
    scatter = np.maximum(powers**2 - (2.0 * chunks + 1.0) * some * powers - nobody, 0.0) / some**2
    squared = from_first**2 + scatter
    second = np.maximum(squared - (1.0 + 2.0 * nobody * from_second + 2.0 * some * from_first) / nobody, 0.0)
    both = soon * (1.0 + 2.0 * from_first + squared) + (1.0 - soon) * (1.0 + 2.0 * from_second + second)
    left = (np.where(ahead, both, squared) / length + 1.0) / 2.0
    pause_left = np.where(ahead, (pause + nobody / soon**2) / pause, pause)
    usual = running * left + (1.0 - running) * length - running * pause_left
    return Runs(
        running=running,
        share=share,
        following=(1.0 - running) * (own_left - usual),
        nobody=nobody,
        soon=soon,
        joining=joining,
        chunks=chunks,
        lookahead=lookahead,
        waiting=waiting,
    )
