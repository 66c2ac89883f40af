"""What a trace's prompts begin with in common: by the prefixes that it names, or by the hashes of their blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.simulate.lengths import SharedPrefixes, shortened

Ints = NDArray[np.int64]

LISTED: Final = 200
"""Lengths that a fitted list has, at most."""
SHARING: Final = 0.02
"""Of the requests that must find a shared beginning for it to be told."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beginnings:
    """What prompts begin with in common, and the rest of each prompt."""

    prefixes: SharedPrefixes | None
    own_tokens: Ints
    """Without that."""
    begins: NDArray[np.bool_] | None = None
    """Which prompts begin with something shared."""


def fit_prefixes(input_tokens: Ints, key: Ints, shared_tokens: Ints | None) -> Beginnings:
    """Prompt starts that several requests share: how many, how long, and how unevenly asked for (Zipf).

    ``key`` names each request's (-1: none).
    """
    _names, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    repeated = (key >= 0) & (counts[inverse] > 1)
    if np.count_nonzero(repeated) < SHARING * len(key) or not len(key):
        return Beginnings(prefixes=None, own_tokens=input_tokens)
    tokens = np.ones_like(input_tokens) if shared_tokens is None else np.minimum(shared_tokens, input_tokens)
    named = key >= 0
    ranked = np.sort(np.unique(key[named], return_counts=True)[1])[::-1]
    return Beginnings(
        prefixes=SharedPrefixes(
            count=len(ranked),
            tokens=max(int(np.median(tokens[named])), 1),
            zipf=_zipf(ranked),
            share=float(named.mean()),
            seen=() if np.ptp(tokens[named]) == 0 else shortened(tokens[named], LISTED),
        ),
        own_tokens=np.maximum(input_tokens - np.where(named, tokens, 0), 1),
        begins=named,
    )


def fit_hashed_prefixes(input_tokens: Ints, hashes: Ints, hash_ids: Ints, block_tokens: int) -> Beginnings:
    """The same of a trace that names the blocks of each prompt, ``block_tokens`` each; request n's blocks are
    ``hash_ids[hashes[n]:hashes[n + 1]]``.

    A cache that never forgets would find a request's leading blocks that an earlier one had. As many texts, as long
    and as often asked for, make as much to find and as much to keep: distinct shared blocks over the mean length found.
    """
    counts = np.diff(hashes)
    request = np.repeat(np.arange(len(counts)), counts)
    _ids, first, inverse, times = np.unique(hash_ids, return_index=True, return_inverse=True, return_counts=True)
    found = _leading(request[first][inverse] < request, hashes)
    shared = _leading(times[inverse] > 1, hashes)
    again = found > 0
    if np.count_nonzero(again) < SHARING * len(counts) or not len(counts):
        return Beginnings(prefixes=None, own_tokens=input_tokens)
    tokens = np.minimum(found * block_tokens, input_tokens)
    mean_blocks = float(found[again].mean())
    texts = max(1, round(int(np.count_nonzero(times > 1)) / mean_blocks))
    ranked = np.sort(times[times > 1])[::-1]
    ranked = ranked[((np.arange(texts) + 0.5) * len(ranked) / texts).astype(np.int64)]
    held = np.where(again, tokens, np.minimum(shared * block_tokens, input_tokens))
    return Beginnings(
        prefixes=SharedPrefixes(
            count=texts,
            tokens=max(int(np.median(tokens[again])), 1),
            zipf=_zipf(ranked),
            share=min(1.0, (int(np.count_nonzero(again)) + texts) / len(counts)),
            seen=shortened(tokens[again], LISTED),
        ),
        own_tokens=np.maximum(input_tokens - held, 1),
        begins=held > 0,
    )


def _leading(flags: NDArray[np.bool_], edges: Ints) -> Ints:
    """How many flags of each stretch are set before the first that isn't."""
    lengths = np.diff(edges)
    place = np.arange(len(flags)) - np.repeat(edges[:-1], lengths)
    stops = np.where(flags, len(flags) + 1, place)
    least = lengths.copy()
    filled = lengths > 0
    if filled.any():
        # Empty stretches lie between others' edges, so that only the others' are cut at.
        least[filled] = np.minimum(np.minimum.reduceat(stops, edges[:-1][filled]), lengths[filled])
    return least


def _zipf(ranked: Ints) -> float:
    """How popularity falls with its rank; the rare are as many as the sample happens to hold: of the common half."""
    if len(ranked) < 2:
        return 0.0
    head = ranked[: max(2, len(ranked) // 2)]
    return max(0.0, -float(np.polyfit(np.log(np.arange(1, len(head) + 1)), np.log(head), 1)[0]))
