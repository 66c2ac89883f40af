"""KV-cache blocks of a replica: what sequences hold, and what they will need.

Counts follow the engine's paged allocator: a sequence of S tokens holds ceil(S / block) blocks.
"""

from __future__ import annotations

from planner.engine.simulate.compiled import inner
from planner.engine.simulate.layout import State


@inner
def blocks_of(tokens: int, block_tokens: int) -> int:
    """Blocks that ``tokens`` tokens fill."""
    return (tokens + block_tokens - 1) // block_tokens


@inner
def crossing(st: State, r: int, steps: int) -> int:
    """Blocks that the running sequences begin in the next ``steps`` decode iterations.

    A sequence begins one when its context reaches 1 modulo the block, so it is enough to know how
    many stand at each phase. With several tokens a step the phases mix: the mean rate is used, and
    what it is off by is carried in ``debt`` and settled when a sequence leaves.
    """
    rep = st.replicas[r]
    block = st.kinds[rep.kind].block_tokens
    if st.kinds[rep.kind].draft_tokens > 0:
        return int(max(0.0, rep.debt + steps * rep.growth / block + 1e-9))
    full = steps // block
    total = full * rep.decoding
    phase = (1 - int(rep.steps) - full * block) % block
    for _ in range(steps - full * block):
        total += st.phases[r, phase]
        phase -= 1
        if phase < 0:
            phase = block - 1
    return total  # type: ignore[no-any-return]


@inner
def steps_within(st: State, r: int, free: int, most: int) -> int:
    """Decode iterations, up to ``most``, that ``free`` blocks allow."""
    rep = st.replicas[r]
    block = st.kinds[rep.kind].block_tokens
    if rep.decoding * (most // block + 1) <= free or crossing(st, r, most) <= free:
        return most
    low = 0
    high = most
    while high - low > 1:
        middle = (low + high) // 2
        if crossing(st, r, middle) <= free:
            low = middle
        else:
            high = middle
    return low


@inner
def own_blocks(st: State, r: int, s: int, tokens: int) -> int:
    """Blocks of its own that a request with ``tokens`` tokens in the cache holds, beside shared units."""
    kind = st.kinds[st.replicas[r].kind]
    return blocks_of(tokens, kind.block_tokens) - st.slots[s].units * (kind.unit_tokens // kind.block_tokens)  # type: ignore[no-any-return]
