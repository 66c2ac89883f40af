"""One request's cycle through a replica: the closed form that every regime of the serving model shares.

While ``S`` requests are resident, each is prefilled once and decoded for O tokens, and the prefill of every
other resident takes its time from those that decode:

    cycle   T = I t(N) + S p                 X = S / T requests/s
    decode  D = (O - 1) t(N) + (S - k) p     N = S D / T       TPOT = D / (O - 1)
    prefill R = k p + (I - O + 1) t(N)

``t(N)`` is one decode iteration, ``p`` what one prompt adds to the iterations that carry it, and ``k`` how many
prompts are prefilled in one's own way: all that fit the token budget where answers of one length keep clients
in step, few where lengths scatter, and some backlog that grows with the clients. ``I`` is the iterations of a cycle:
O, more where one's own prompt takes several or where a small token budget needs more of them to carry S prompts.
Answers too short for the other prompts to pass meanwhile leave them in front of one's own: ``k`` is at least
``S - (O - 1) x budget / (prompt + O - 1)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from planner.engine.serving_coefficients import ServingCoefficients

FloatArray = NDArray[np.float64]
LoadKind = Literal["closed", "open", "offline", "static"]
Batching = Literal["continuous", "dynamic", "static"]

FIXED_POINT_ROUNDS: Final = 6
LEAST_CHUNK_TOKENS: Final = 16.0
"""Room a scheduler keeps for prompts however many sequences decode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLoad:
    """What one replica is asked to do; numbers or arrays of length ``n``.

    ``closed``: ``concurrency`` clients, each waiting for its answer; ``requests`` in all where all clients
    start together (None or infinite: steady state). ``open``: ``requests_s`` with gaps of ``arrival_cv``.
    ``offline``: everything queued at once. ``static``: batches of ``concurrency``, prefilled together,
    drained together.
    """

    kind: LoadKind
    input_tokens: Any
    output_tokens: Any
    concurrency: Any = 1.0
    requests: Any = None
    requests_s: Any = 0.0
    arrival_cv: Any = 1.0
    length_cv: Any = 0.0
    """Coefficient of variation of the lengths of answers."""
    prefix_cache_hit: Any = 0.0
    batching: Batching = "continuous"
    """``static`` waits for a full batch, ``dynamic`` no longer than ``batch_delay_s``; both drain it whole."""
    batch_delay_s: float = 0.0

    @property
    def prompt_tokens(self) -> Any:
        """Prompt tokens computed: those not found cached."""
        return np.maximum(self.input_tokens * (1.0 - self.prefix_cache_hit), 1.0)

    @property
    def decode_tokens(self) -> Any:
        """Tokens after the first."""
        return np.maximum(self.output_tokens - 1.0, 0.0)

    @property
    def mean_context(self) -> Any:
        """Context of a decoding sequence, on average over its answer."""
        return self.input_tokens + self.output_tokens / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionLimits:
    """What one replica admits; numbers or arrays of length ``n``."""

    kv_sequences: Any
    """Requests of the asked lengths that the KV memory holds."""
    max_num_seqs: Any
    max_num_batched_tokens: Any

    @property
    def sequences(self) -> Any:
        return np.maximum(np.minimum(self.kv_sequences, self.max_num_seqs), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One request's cycle on a replica with ``S`` residents; seconds."""

    cycle_s: Any
    decode_s: Any
    """From first token to last."""
    iteration_s: Any
    """One decode iteration without prompt tokens."""
    prompt_s: Any
    """What one prompt adds to the iterations that carry it."""
    decoding: Any
    """Sequences decoding on average."""
    cohort: Any
    """Prompts prefilled in one's own way."""
    by_chance: Any = 0.0
    """Of those beside one's own, on average, those that others meet more or fewer of."""
    prefill_iterations: Any = 1.0
    """Iterations from admission to the first token, without what prompts add to them."""
    fill: Any = 1.0
    """How much longer a prompt takes to pass all pipeline stages than it occupies each of them."""

    @property
    def prefill_s(self) -> Any:
        """From admission to the first token."""
        return (self.cohort + self.fill - 1.0) * self.prompt_s + self.prefill_iterations * self.iteration_s


def prompts_in_the_way(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, residents: Any) -> Any:
    """``k``: prompts prefilled before or with one's own, itself included.

    ``1 + cohort x (those that share a token budget - 1) / (1 + spread) + backlog x residents``, at most all;
    ``spread`` is the standard deviation, in tokens, of where answers that began together end.
    """
    most = np.maximum(residents, 1.0)
    sharing = np.clip(limits.max_num_batched_tokens / load.prompt_tokens, 1.0, most)
    in_step = c.cohort / (1.0 + load.length_cv * load.output_tokens)
    return np.minimum(1.0 + in_step * (sharing - 1.0) + c.backlog * (most - 1.0), most)


def cycle(
    c: ServingCoefficients,
    load: ServingLoad,
    limits: AdmissionLimits,
    residents: Any,
    waves: Any = np.inf,
    *,
    decoding: Any = None,
    rounds: int = FIXED_POINT_ROUNDS,
) -> Cycle:
    """The cycle of a replica with ``residents`` requests, by fixed point over the decoding batch.

    ``decoding`` is where the fixed point starts (default: nine in ten residents), for callers that iterate
    over ``residents`` too and carry it from round to round.

    In a run of ``waves`` requests a client, the last wave is interrupted by no later prompts, so a request
    meets ``1 - 1 / (2 waves)`` of the others' on average.
    """
    prompt, context = load.prompt_tokens, load.mean_context
    in_the_way = prompts_in_the_way(c, load, limits, residents)
    mean_attended = load.input_tokens * load.prefix_cache_hit + prompt / 2.0
    budget = np.maximum(limits.max_num_batched_tokens, LEAST_CHUNK_TOKENS)
    chunks = np.maximum(np.ceil(prompt * c.step.attention_ranks / budget), 1.0)
    steps = load.decode_tokens / c.tokens_per_step
    # Full iterations pass so many requests each, whatever share of them decodes.
    passed = budget / (prompt + steps * c.step_tokens)
    cohort = np.maximum(in_the_way, np.minimum(residents - steps * passed, residents))
    iterations = np.maximum(steps + chunks, residents / passed)
    decoding = residents * 0.9 if decoding is None else np.minimum(decoding, residents)
    c = c.carrying(cohort)
    for _ in range(rounds):
        iteration = c.iteration_s(decoding, decoding * context)
        room = chunk_room(c, limits, decoding)
        chunk = np.minimum(cohort * prompt, room * c.step.prompt_ranks / c.step.attention_ranks)
        mixed = c.iteration_s(decoding, decoding * context, chunk, chunk * mean_attended)
        prompt_s = (mixed - iteration) * prompt / chunk
        whole = iterations * iteration + residents * prompt_s
        decode = steps * iteration + np.maximum(residents - cohort, 0.0) * prompt_s
        decoding = residents * decode / whole
    # No more get through than where iterations are full, prompts behind which others wait or not.
    most = np.minimum(steps * passed, limits.sequences)
    iteration = np.maximum(iteration, residents / passed / iterations * c.iteration_s(most, most * context))
    whole = iterations * iteration + residents * prompt_s
    met = np.maximum(residents - cohort, 0.0) * (1.0 - 0.5 / waves)
    return Cycle(
        cycle_s=whole,
        decode_s=steps * iteration + met * prompt_s,
        iteration_s=iteration,
        prompt_s=prompt_s,
        decoding=decoding,
        cohort=cohort,
        by_chance=in_the_way - 1.0,
        prefill_iterations=iterations - steps,
        fill=pipeline_fill(c, load, limits, decoding),
    )


def pipeline_fill(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, decoding: Any) -> Any:
    """``1 + (p - 1) x chunk / prompt`` for a prompt through ``p`` stages: ``(n + p - 1) / n`` with ``n`` equal chunks.

    Stages work on different chunks at a time, so a prompt occupies each stage for a p-th of its work; but its
    longest chunk passes them one after the other, and the first token waits for the last stage (a flow shop).
    """
    chunk = np.minimum(chunk_room(c, limits, decoding), load.prompt_tokens)
    return 1.0 + (c.step.pipeline - 1.0) * chunk / load.prompt_tokens


def chunk_room(c: ServingCoefficients, limits: AdmissionLimits, decoding: Any) -> Any:
    """Tokens of the budget that running sequences leave for prompts."""
    return np.maximum(limits.max_num_batched_tokens - decoding * c.step_tokens, LEAST_CHUNK_TOKENS)
