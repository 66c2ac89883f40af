"""Speculative decoding, split prefill and decode, whole prompts first, limits and time-outs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.engine.simulate.run import Run, simulate
from planner.engine.simulate.setup import ClosedLoop, Fleet, Pool
from planner.engine.simulate.traffic import batch, in_batches
from tests.engine.simulate.fleets import EIGHT_B, STEADY, lognormal_traffic, one_pool, replica, rows_of


def many(count: int, tokens: int, *, inputs: int = 1):
    return batch(np.zeros(count), np.full(count, inputs), np.full(count, tokens))


def test_speculation_emits_the_expected_tokens_a_step() -> None:
    """Handbook 6.8: acceptance 0.8 with 4 drafts is 3.3616 tokens a step; at 5 % draft cost 2.80x."""
    kind = replica(coefficients=STEADY, draft_tokens=4, acceptance=0.8, draft_share=0.05, max_num_seqs=400)
    outcome = simulate(one_pool(kind), [many(400, 1001)])
    steps_s = 0.001 * (1 + 4 * 0.05)
    assert steps_s / outcome.tpot.mean_s == pytest.approx(3.3616, rel=0.01)
    assert 0.001 / outcome.tpot.mean_s == pytest.approx(2.80, rel=0.01)


def test_speculation_fades_in_a_compute_bound_batch() -> None:
    gains = []
    for clients in (1, 256):
        plain, drafted = (
            simulate(
                one_pool(
                    replica(draft_tokens=drafts, acceptance=0.7, draft_share=0.02), loop=ClosedLoop(clients=clients)
                ),
                [many(512, 200)],
            )
            for drafts in (0, 4)
        )
        gains.append(plain.tpot.mean_s / drafted.tpot.mean_s)
    assert gains[0] > 2.0
    assert gains[1] < 0.75 * gains[0]


def test_speculation_gives_every_block_back() -> None:
    run = Run(one_pool(replica(draft_tokens=3, acceptance=0.6, kv_blocks=1500)))
    run.bring_up(0, 0.0)
    run.advance(lognormal_traffic(400, 40), np.inf, True, None)
    assert run.state.fleet["live"][0] == 0
    assert run.state.replicas["free"][0] == pytest.approx(1500, abs=1)
    assert run.state.fleet["preemptions"][0] > 0


def split(prefills: int, decodes: int) -> Fleet:
    return Fleet(
        pools=[
            Pool(
                kind=replica(role="prefill", transfer_s=0.002, transfer_s_per_token=1e-6),
                replicas=prefills,
                decode_pool=1,
            ),
            Pool(kind=replica(role="decode"), replicas=decodes),
        ]
    )


def test_split_prefill_and_decode_of_one_request() -> None:
    traffic = batch(np.array([1.0]), np.array([1000]), np.array([3]))
    together, _ = rows_of(one_pool(replica()), traffic)
    apart, _ = rows_of(split(1, 1), traffic)
    moved_s = 0.002 + 1e-6 * 1000
    # The client has its first token from the replica that decodes, once it has the KV.
    assert apart["first"][0] == pytest.approx(together["first"][0] + moved_s, abs=1e-9)
    assert apart["last"][0] == pytest.approx(together["last"][0] + moved_s, abs=1e-9)
    assert apart["replica"][0] == 1


def test_an_answer_of_one_token_is_the_prefill_replicas() -> None:
    traffic = batch(np.array([1.0]), np.array([1000]), np.array([1]))
    together, _ = rows_of(one_pool(replica()), traffic)
    apart, _ = rows_of(split(1, 1), traffic)
    assert apart["first"][0] == together["first"][0] == apart["last"][0]


def test_who_waits_for_a_place_to_decode_waits_for_the_first_token() -> None:
    """Two at once and one place: the second's first token comes when the first has left, its pace is its own."""
    alone = split(2, 1)
    decode = replace(alone.pools[1], kind=replica(role="decode", max_num_seqs=1, lookahead=False))
    fleet = replace(alone, pools=[alone.pools[0], decode])
    rows, _ = rows_of(fleet, batch(np.array([1.0, 1.0]), np.full(2, 1000), np.full(2, 50)))
    first, second = sorted(rows, key=lambda row: row["first"])
    assert second["first"] == pytest.approx(first["last"], abs=1e-9)
    assert second["last"] - second["first"] == pytest.approx(first["last"] - first["first"], rel=1e-6)


def test_split_keeps_prompts_out_of_decoding() -> None:
    traffic = lognormal_traffic(1500, 25, inputs=1500)
    together = simulate(one_pool(replica(), 4), [traffic])
    apart = simulate(split(2, 2), [traffic])
    assert apart.left["done"] == 1500
    assert apart.tpot.quantile_s(0.99) < 0.7 * together.tpot.quantile_s(0.99)


def test_split_gives_every_block_back() -> None:
    run = Run(split(2, 2))
    for number in range(4):
        run.bring_up(number, 0.0)
    run.advance(lognormal_traffic(800, 60), np.inf, True, None)
    assert run.state.fleet["live"][0] == 0
    assert run.state.replicas["free"].tolist() == [28_000] * 4
    assert run.state.replicas["outstanding"].tolist() == [0] * 4


def test_whole_prompts_first_stall_the_decodes() -> None:
    traffic = batch(np.array([0.0, 0.1]), np.array([10, 8000]), np.array([200, 2]))
    stalled, _ = rows_of(one_pool(replica(chunked_prefill=False, lookahead=False)), traffic)
    shared, _ = rows_of(one_pool(replica(max_num_batched_tokens=512, lookahead=False)), traffic)
    assert stalled["first"][1] < shared["first"][1]
    # Chunked: the first request decodes on while the second is prefilled.
    assert shared["last"][0] - stalled["last"][0] < 0.2
    assert stalled["first"][1] - 0.1 > 8000 * EIGHT_B.dense_token_s


def test_too_long_for_the_pool_is_refused() -> None:
    outcome = simulate(one_pool(replica(kv_blocks=100)), [batch(np.zeros(2), np.array([1590, 1601]), np.full(2, 10))])
    assert outcome.left["done"] == 1
    assert outcome.left["too_long"] == 1
    outcome = simulate(
        one_pool(replica(max_context_tokens=1600)), [batch(np.zeros(1), np.array([1590]), np.array([11]))]
    )
    assert outcome.left["too_long"] == 1


def test_a_full_queue_refuses() -> None:
    kind = replica(coefficients=STEADY, max_num_seqs=2, max_waiting=3)
    outcome = simulate(one_pool(kind), [batch(np.arange(10) * 1e-3 + 0.5, np.ones(10), np.full(10, 5000))])
    assert outcome.left["done"] == 5
    assert outcome.left["queue_full"] == 5


def test_waiting_too_long_is_turned_away() -> None:
    kind = replica(coefficients=STEADY, max_num_seqs=1, queue_timeout_s=2.5, lookahead=False)
    outcome = simulate(one_pool(kind), [batch(np.zeros(10), np.ones(10), np.full(10, 1000))])
    # One a second: those that could start at 0, 1 and 2 s do, the rest have waited 3 s by then.
    assert outcome.left["done"] == 3
    assert outcome.left["queue_timeout"] == 7


def test_clients_that_give_up_free_what_they_hold() -> None:
    run = Run(one_pool(replica(kv_blocks=600), client_timeout_s=3.0))
    run.bring_up(0, 0.0)
    run.advance(lognormal_traffic(600, 60, outputs=300), np.inf, True, None)
    state = run.state
    assert state.fleet["outcomes"][0][5] > 50
    assert state.fleet["outcomes"][0][:6].sum() == 600
    assert state.replicas["free"][0] == 600
    assert state.replicas["outstanding"][0] == 0
    assert state.replicas["decoding"][0] == state.replicas["running"][0] == 0


def test_a_request_longer_than_its_client_waits_ends_at_the_next_iteration() -> None:
    rows, outcome = rows_of(
        one_pool(replica(coefficients=STEADY), client_timeout_s=1.0), batch(np.zeros(1), np.ones(1), np.full(1, 5000))
    )
    assert outcome.left["cancelled"] == 1
    assert rows["outcome"][0] == 5
    assert outcome.busy_s[0] == pytest.approx(1.0, abs=0.0011)


def test_closed_loop_keeps_its_clients_busy() -> None:
    outcome = simulate(one_pool(replica(coefficients=STEADY), loop=ClosedLoop(clients=4)), [many(40, 100)])
    assert outcome.left["done"] == 40
    assert outcome.samples.running_max.max() <= 4
    # Ten rounds of 100 iterations of 1 ms.
    assert outcome.duration_s == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("policy", ["power_of_two", "least_outstanding", "prefix_aware"])
def test_cut_into_batches_the_run_is_the_same_to_the_bit(policy: str) -> None:
    traffic = lognormal_traffic(3000, 60)
    fleet = one_pool(replica(kv_blocks=1500, draft_tokens=2, acceptance=0.5), 3, policy=policy, seed=3)
    whole = simulate(fleet, [traffic])
    pieces = simulate(fleet, in_batches(traffic, 101))
    assert (whole.ttft.histogram == pieces.ttft.histogram).all()
    assert whole.e2e.mean_s == pieces.e2e.mean_s
    assert (whole.busy_s == pieces.busy_s).all()
    assert (whole.samples.waiting == pieces.samples.waiting).all()
    again = simulate(
        one_pool(replica(kv_blocks=1500, draft_tokens=2, acceptance=0.5), 3, policy=policy, seed=4), [traffic]
    )
    assert again.e2e.mean_s != whole.e2e.mean_s


RANKS = EIGHT_B._replace(attention_ranks=2.0, prompt_ranks=2.0)


def test_a_prompt_stays_on_one_attention_rank_and_the_other_waits() -> None:
    """Data-parallel attention: two prompts of one length take as long as one of them, each on its rank."""
    one_rank = rows_of(one_pool(replica()), batch(np.zeros(1), np.array([1000]), np.ones(1)))[0]["first"][0]
    alone, pair = (
        rows_of(one_pool(replica(coefficients=RANKS)), batch(np.zeros(n), np.full(n, 1000), np.ones(n)))[0]["first"]
        for n in (1, 2)
    )
    assert alone[0] == pytest.approx(one_rank, rel=1e-9)
    # Requests come one after the other: the first has started when the second comes, which waits for it and runs alone.
    assert pair[0] == pytest.approx(one_rank, rel=1e-9)
    together = batch(np.array([0.0, 0.001, 0.002]), np.array([3000, 1000, 1000]), np.ones(3))
    rows, _ = rows_of(one_pool(replica(coefficients=RANKS)), together)
    assert rows["first"][1] == rows["first"][2]
    assert rows["first"][2] - rows["first"][0] == pytest.approx(one_rank, rel=1e-9)


def test_a_prompt_has_its_ranks_share_of_the_token_budget() -> None:
    """3,000 tokens on a budget of 2 x 1,024: three iterations of one rank, not two of both."""
    kind = replica(coefficients=RANKS, max_num_batched_tokens=2048)
    rows, outcome = rows_of(one_pool(kind), batch(np.zeros(1), np.array([3000]), np.ones(1)))
    assert outcome.left["done"] == 1
    plain = replica(max_num_batched_tokens=1024)
    expected, _ = rows_of(one_pool(plain), batch(np.zeros(1), np.array([3000]), np.ones(1)))
    assert rows["first"][0] == pytest.approx(expected["first"][0], rel=1e-9)


def test_all_wait_for_the_attention_rank_with_the_longest_contexts() -> None:
    """Equal contexts spread evenly; contexts that differ leave one rank with more to read."""
    even = batch(np.zeros(32), np.full(32, 2000), np.full(32, 200))
    mixed = batch(np.zeros(32), np.tile([100, 3900], 16), np.full(32, 200))
    tpot = [
        simulate(one_pool(replica(coefficients=RANKS)), [traffic]).tpot.quantile_s(0.1) for traffic in (even, mixed)
    ]
    assert tpot[1] > 1.005 * tpot[0]


@pytest.mark.parametrize("policy", ["least_outstanding", "round_robin"])
def test_requests_beyond_what_memory_is_for_are_turned_away(policy: str) -> None:
    """1,000 come within a millisecond and 300 may be there at once: the rest leaves as it comes, and is counted."""
    traffic = batch(np.arange(1000) * 1e-6, np.full(1000, 200), np.full(1000, 20))
    rows, outcome = rows_of(one_pool(replica(), 2, policy=policy, most_at_once=300), traffic)
    assert outcome.left["done"] == 300
    assert outcome.left["queue_full"] == 700
    assert outcome.requests == 1000
    assert outcome.timeline.lost.sum() == 700
    assert (rows["outcome"][:300] == 0).all()
    assert (rows["outcome"][300:] == 1).all()
    assert np.isnan(rows["first"][300:]).all()
    # Room again, for those that come later.
    later = simulate(one_pool(replica(), 2, most_at_once=300), [traffic._replace(arrival_s=np.arange(1000) * 0.05)])
    assert later.left["done"] == 1000


def test_clients_that_wait_are_never_turned_away_for_memory() -> None:
    outcome = simulate(one_pool(replica(), most_at_once=10, loop=ClosedLoop(clients=50)), [many(500, 20)])
    assert outcome.left["done"] == 500


def test_drafts_in_a_cache_that_hardly_holds_them_never_preempt_nobody() -> None:
    """Blocks of one token, 300 of them: what drafts take is counted by a mean, and may be more than there are."""
    rng = np.random.default_rng(900_462)
    kind = replica(
        kv_blocks=300,
        block_tokens=1,
        max_num_batched_tokens=512,
        chunked_prefill=False,
        reserve_prompt=False,
        draft_tokens=3,
        acceptance=0.6,
        draft_share=0.05,
    )
    traffic = batch(np.cumsum(rng.exponential(0.01, 1500)), rng.integers(1, 3000, 1500), rng.integers(1, 200, 1500))
    outcome = simulate(one_pool(kind, 2), [traffic])
    assert outcome.left["done"] > 50
    assert outcome.left["done"] + outcome.left["too_long"] == 1500
