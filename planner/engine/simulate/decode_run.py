"""Runs of decode iterations in closed form.

While the batch doesn't change, every running sequence grows by the same number of tokens each
iteration, so step times form an arithmetic series as long as the step time is linear in context.
That is checked, not assumed: a run whose middle step is off the line is cut in half until it is not.
"""

from __future__ import annotations

import math

from planner.engine.simulate.compiled import inner, step_time
from planner.engine.simulate.layout import State

LINEAR_TOLERANCE = 1e-9
"""Relative: how far the middle step of a run may be off the line through its ends."""


@inner
def fullest_rank(st: State, r: int) -> float:
    """The context of the fullest attention rank over the mean: all wait for it.

    Ranks hold equally many sequences; their contexts differ by chance.
    """
    rep = st.replicas[r]
    spread = st.kinds[rep.kind].rank_spread
    if spread == 0.0 or rep.decoding == 0:
        return 1.0
    ranks = st.coefficients[rep.kind].attention_ranks
    mean = rep.context / rep.decoding
    variance = max(0.0, rep.squares / rep.decoding - mean * mean)
    return 1.0 + spread * math.sqrt(variance * ranks / rep.decoding) / mean  # type: ignore[no-any-return]


@inner
def decode_step_s(st: State, r: int, context: float, uneven: float) -> float:
    """Seconds of one decode iteration of the running batch at a summed context, ``uneven`` over its ranks."""
    rep = st.replicas[r]
    kind = st.kinds[rep.kind]
    context *= uneven
    n = float(rep.decoding)
    if kind.draft_tokens == 0:
        return step_time(st.coefficients[rep.kind], n, context, 0.0, 0.0)  # type: ignore[no-any-return]
    drafts = float(kind.draft_tokens)
    verify = step_time(st.verify[rep.kind], n, context, 0.0, 0.0, n * drafts)
    draft = step_time(st.coefficients[rep.kind], n, context, 0.0, 0.0) * kind.draft_share
    return verify + drafts * draft  # type: ignore[no-any-return]


@inner
def plan_run(st: State, r: int, most: int) -> None:
    """Set the replica's run: up to ``most`` decode iterations whose times form an arithmetic series."""
    rep = st.replicas[r]
    uneven = fullest_rank(st, r)
    first = decode_step_s(st, r, rep.context, uneven)
    steps = most
    slope = 0.0
    while steps > 1:
        last = decode_step_s(st, r, rep.context + rep.growth * (steps - 1), uneven)
        slope = (last - first) / (steps - 1)
        if steps == 2:
            break
        middle = (steps - 1) // 2
        there = decode_step_s(st, r, rep.context + rep.growth * middle, uneven)
        if abs(first + slope * middle - there) <= LINEAR_TOLERANCE * there:
            break
        steps = (steps + 1) // 2
    rep.run_steps = steps
    rep.run_first = first
    rep.run_slope = slope if steps > 1 else 0.0


@inner
def run_s(first: float, slope: float, steps: int) -> float:
    """Seconds of ``steps`` iterations: k a + b k (k - 1) / 2."""
    return steps * first + slope * (0.5 * steps * (steps - 1))


@inner
def steps_reaching(first: float, slope: float, elapsed_s: float) -> int:
    """The fewest iterations, at least one, whose time is ``elapsed_s`` or more."""
    if elapsed_s <= first:
        return 1
    steps = math.ceil(elapsed_s / first)
    if slope > 0.0:
        half = first - 0.5 * slope
        steps = math.ceil((math.sqrt(half * half + 2.0 * slope * elapsed_s) - half) / slope)
    while run_s(first, slope, steps) < elapsed_s:
        steps += 1
    while steps > 1 and run_s(first, slope, steps - 1) >= elapsed_s:
        steps -= 1
    return steps
