"""Prefix cache: hits by whole units, blocks shared and given back, the oldest evicted first."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.simulate.run import Run, simulate
from planner.engine.simulate.traffic import batch
from planner.engine.step_time import step_time
from tests.engine.simulate.fleets import EIGHT_B, lognormal_traffic, one_pool, replica, rows_of


def spaced(inputs: list[int], keys: list[int], *, shared: list[int] | None = None, gap_s: float = 60.0):
    """Requests so far apart that each finds the replica idle; one output token each."""
    count = len(inputs)
    return batch(
        np.arange(count) * gap_s,
        np.array(inputs),
        np.ones(count),
        key=np.array(keys),
        shared_tokens=None if shared is None else np.array(shared),
    )


def test_hits_are_whole_blocks_and_never_the_last_token() -> None:
    traffic = spaced([100, 100, 96, 200], [1, 1, 1, 1])
    outcome = simulate(one_pool(replica(prefix_cache=True)), [traffic])
    # 100 tokens fill 6 blocks of 16; a repeat of exactly 96 tokens must compute its last block.
    assert outcome.cached_input_tokens == 96 + 80 + 96


def test_only_the_shared_part_is_found() -> None:
    traffic = spaced([100, 300, 300], [1, 1, 1], shared=[48, 48, 48])
    outcome = simulate(one_pool(replica(prefix_cache=True)), [traffic])
    assert outcome.cached_input_tokens == 48 + 48


def test_a_conversation_finds_its_own_answers() -> None:
    traffic = batch(np.array([0.0, 100.0]), np.array([64, 200]), np.array([65, 1]), key=np.array([5, 5]))
    outcome = simulate(one_pool(replica(prefix_cache=True)), [traffic])
    # Prompt 64 and answer 65, whose last token is never in the cache: 128 tokens.
    assert outcome.cached_input_tokens == 128


def test_other_keys_share_nothing() -> None:
    outcome = simulate(one_pool(replica(prefix_cache=True)), [spaced([100, 100, 100], [1, 2, -1])])
    assert outcome.cached_input_tokens == 0


def test_hashes_of_a_trace_cover_their_own_length() -> None:
    hash_ids = np.array([7, 8, 9, 7, 8, 4])
    traffic = batch(np.array([0.0, 60.0]), np.array([1500, 1400]), np.ones(2), hashes=np.array([0, 3, 6]))
    outcome = simulate(one_pool(replica(prefix_cache=True, hash_tokens=512)), [traffic], hash_ids=hash_ids)
    assert outcome.cached_input_tokens == 1024


def test_a_hit_saves_its_prefill_time() -> None:
    traffic = spaced([4000, 4000], [1, 1])
    rows, _ = rows_of(one_pool(replica(prefix_cache=True)), traffic)
    first, second = rows["first"] - rows["arrival"]
    assert second < first / 10


def test_the_oldest_unused_blocks_go_first() -> None:
    # 20 blocks: each prompt of 96 tokens takes 6; the fourth key evicts part of the first.
    kind = replica(prefix_cache=True, kv_blocks=20)
    outcome = simulate(one_pool(kind), [spaced([96, 96, 96, 96, 96], [1, 2, 3, 4, 2])])
    assert outcome.cached_input_tokens == 80
    outcome = simulate(one_pool(kind), [spaced([96, 96, 96, 96, 96], [1, 2, 3, 4, 1])])
    # A sequence's last blocks are given up before its first: two of the first key's six are left.
    assert outcome.cached_input_tokens == 32


def test_blocks_held_by_a_running_request_are_shared() -> None:
    # Two prompts of 960 tokens (60 blocks) run together in 70 blocks only because they share.
    traffic = batch(np.array([0.0, 0.2]), np.array([960, 960]), np.array([80, 80]), key=np.array([1, 1]))
    kind = replica(prefix_cache=True, kv_blocks=75)
    rows, outcome = rows_of(one_pool(kind), traffic)
    assert outcome.preemptions == 0
    assert rows["first"][1] < rows["last"][0]
    alone, _ = rows_of(one_pool(replica(kv_blocks=75)), traffic)
    assert alone["first"][1] > alone["last"][0]


@pytest.mark.parametrize("blocks", [400, 2000])
@pytest.mark.parametrize("unit", [16, 64])
def test_every_block_comes_back(blocks: int, unit: int) -> None:
    traffic = lognormal_traffic(400, 30)
    rng = np.random.default_rng(1)
    keyed = batch(
        traffic.arrival_s,
        np.minimum(traffic.input_tokens, 3000),
        traffic.output_tokens,
        key=rng.integers(-1, 12, len(traffic.arrival_s)),
    )
    fleet = one_pool(replica(prefix_cache=True, kv_blocks=blocks, hash_tokens=unit, max_num_batched_tokens=1024))
    run = Run(fleet)
    run.bring_up(0, 0.0)
    run.advance(keyed, np.inf, True, None)
    state = run.state
    assert state.fleet["live"][0] == 0
    assert state.replicas["free"][0] == blocks
    used = state.entries[: int(state.fleet["entries"][0]) + 1]
    assert int(state.entries["refs"].sum()) == 0
    assert len(used) > 0
    in_queue = 0
    e = int(state.replicas["lru_head"][0])
    while e != -1:
        in_queue += int(state.entries["blocks"][e])
        e = int(state.entries["next"][e])
    assert in_queue == blocks
    assert run.state.fleet["hit_tokens"][0] > 0


def test_a_preempted_request_finds_what_is_left_of_its_own_blocks() -> None:
    """Without a name for its content as with one: only fewer are computed again than without the cache."""
    traffic = lognormal_traffic(400, 40)
    named = traffic._replace(key=np.arange(400))
    tight = {"kv_blocks": 1500, "max_num_batched_tokens": 2048}
    rows, ends = {}, {}
    for name, cache, given in (("none", False, traffic), ("own", True, traffic), ("named", True, named)):
        rows[name], outcome = rows_of(one_pool(replica(prefix_cache=cache, **tight)), given)
        ends[name] = outcome.duration_s
        assert outcome.preemptions > 20
    assert ends["own"] < ends["none"]
    assert ends["own"] == pytest.approx(ends["named"], rel=0.01)
    latency = {name: (each["last"] - each["arrival"]).mean() for name, each in rows.items()}
    assert latency["own"] == pytest.approx(latency["named"], rel=0.01)


def test_reuse_of_own_blocks_gives_every_block_back() -> None:
    run = Run(one_pool(replica(prefix_cache=True, kv_blocks=1500, max_num_batched_tokens=2048)))
    run.bring_up(0, 0.0)
    run.advance(lognormal_traffic(400, 40), np.inf, True, None)
    assert run.state.fleet["live"][0] == 0
    assert run.state.replicas["free"][0] == 1500
    assert run.state.fleet["hit_tokens"][0] == 0


@pytest.mark.parametrize("prefix_cache", [False, True])
def test_a_clients_own_cached_start_is_not_computed_and_takes_its_blocks(prefix_cache: bool) -> None:
    """600 of 1,000 tokens found: 400 computed, which attend to the 600; blocks of all 1,000."""
    kind = replica(prefix_cache=prefix_cache, found_tokens=600)
    one = batch(np.zeros(1), np.array([1000]), np.array([2]))
    rows, outcome = rows_of(one_pool(kind), one)
    prompt = step_time(EIGHT_B, 0.0, 0.0, 400.0, 400.0 * 600 + 0.5 * 400 * 401)
    assert rows["first"][0] == pytest.approx(prompt, rel=1e-12)
    assert outcome.cached_input_tokens == 600
    # Room for one and a half of them: one at a time.
    tight = replica(prefix_cache=prefix_cache, found_tokens=600, kv_blocks=95)
    rows, outcome = rows_of(one_pool(tight), batch(np.zeros(2), np.full(2, 1000), np.full(2, 20)))
    assert outcome.preemptions == 0
    assert rows["scheduled"][1] >= rows["last"][0]


def test_a_prompt_shorter_than_its_cached_start_computes_its_last_token() -> None:
    _rows, outcome = rows_of(one_pool(replica(found_tokens=600)), batch(np.zeros(1), np.array([10]), np.array([2])))
    assert outcome.left["done"] == 1
    assert outcome.cached_input_tokens == 9
