"""What a trace's prompts begin with in common: by the prefixes that it names, or by the hashes of their blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.simulate.lengths import SharedPrefixes, shortened

Ints = NDArray[np.int64]

RANKS, APART = 200, 400
"""Ranks of texts, and distances between requests, at which what is expected of them is computed."""
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
    shared_tokens: Ints
    """What each has of a shared beginning."""


def nothing_shared(input_tokens: Ints) -> Beginnings:
    """Of prompts that have nothing in common."""
    return Beginnings(prefixes=None, own_tokens=input_tokens, shared_tokens=np.zeros_like(input_tokens))


def fit_prefixes(input_tokens: Ints, key: Ints, shared_tokens: Ints | None) -> Beginnings:
    """Prompt starts that several requests share: how many, how long, and how unevenly asked for (Zipf).

    ``key`` names each request's (-1: none).
    """
    _names, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    repeated = (key >= 0) & (counts[inverse] > 1)
    if np.count_nonzero(repeated) < SHARING * len(key) or not len(key):
        return nothing_shared(input_tokens)
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
        shared_tokens=np.where(named, tokens, 0),
    )


def fit_hashed_prefixes(input_tokens: Ints, hashes: Ints, hash_ids: Ints, block_tokens: int) -> Beginnings:
    """The same of a trace that names the blocks of each prompt, ``block_tokens`` each; request n's blocks are
    ``hash_ids[hashes[n]:hashes[n + 1]]``.

    A cache that never forgets would find a request's leading blocks that an earlier one had. As many requests find as
    much again in the generated traffic, after as many others on average: what a smaller cache forgets in between.
    """
    counts = np.diff(hashes)
    request = np.repeat(np.arange(len(counts)), counts)
    _ids, first, inverse, times = np.unique(hash_ids, return_index=True, return_inverse=True, return_counts=True)
    found = _leading(request[first][inverse] < request, hashes)
    again = found > 0
    if np.count_nonzero(again) < SHARING * len(counts) or not len(counts):
        return nothing_shared(input_tokens)
    tokens = np.minimum(found * block_tokens, input_tokens)
    distinct = max(1, round(int(np.count_nonzero(times > 1)) / float(found[again].mean())))
    ranked = np.sort(times[times > 1])[::-1]
    zipf = _zipf(ranked[((np.arange(distinct) + 0.5) * len(ranked) / distinct).astype(np.int64)])
    after = _mean_distance(request, inverse, (hashes[:-1] + found - 1)[again])
    finding = int(np.count_nonzero(again))
    texts = _texts_found_after(after, distinct, zipf, finding, len(counts))
    # Of those who are first to have what others find, as many as there are texts.
    firsts = np.flatnonzero(~again & (_leading(times[inverse] > 1, hashes) > 0))
    firsts = firsts[np.linspace(0, len(firsts) - 1, min(texts, len(firsts))).astype(np.int64)]
    held = tokens.copy()
    held[firsts] = np.minimum(_leading(times[inverse] > 1, hashes) * block_tokens, input_tokens)[firsts]
    return Beginnings(
        prefixes=SharedPrefixes(
            count=texts,
            tokens=max(int(np.median(tokens[again])), 1),
            zipf=zipf,
            share=min(1.0, (finding + texts) / len(counts)),
            seen=shortened(tokens[again], LISTED),
        ),
        own_tokens=np.maximum(input_tokens - held, 1),
        shared_tokens=held,
    )


def _mean_distance(request: Ints, inverse: Ints, last_found: Ints) -> float:
    """Requests since the deepest block that each one finds was used last."""
    order = np.argsort(inverse, kind="stable")
    same = inverse[order[1:]] == inverse[order[:-1]]
    before = np.zeros_like(request)
    before[order[1:][same]] = request[order[:-1][same]]
    return float(np.mean(request[last_found] - before[last_found]))


def _texts_found_after(distance: float, most: int, zipf: float, finding: int, requests: int) -> int:
    """How many texts, up to ``most``, of which a request finds its own again after so many others on average."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        share = min(1.0, (finding + middle) / requests)
        if _expected_distance(middle, zipf, share, requests) < distance:
            low = middle + 1
        else:
            high = middle
    return low


def _expected_distance(texts: int, zipf: float, share: float, requests: int) -> float:
    """Requests between two of the same text, of so many drawn independently; pairs longer apart are fewer."""
    rank = np.unique(np.geomspace(1, texts, RANKS).astype(np.int64))
    many = np.diff(np.append(rank, texts + 1))
    popularity = rank**-zipf
    chance = np.minimum(share * popularity / float(popularity @ many), 0.999999)
    apart = np.unique(np.geomspace(1, max(requests - 1, 1), APART).astype(np.int64))
    steps = np.diff(np.append(apart, requests))
    pairs = (many * chance**2) @ np.exp(np.log1p(-chance)[:, None] * (apart - 1)) * (requests - apart) * steps
    return float((pairs * apart).sum() / max(float(pairs.sum()), 1e-300))


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
