"""HPA and KEDA against their documentation's rules and the handbook's worked examples."""

from __future__ import annotations

import pytest

from planner.engine.simulate.autoscaling import (
    Hpa,
    HpaState,
    Keda,
    KedaState,
    Reading,
    ScalingPolicy,
    ScalingRules,
    desired_by_ratio,
    desired_replicas,
)


def per_replica(value: float, ready: int, unready: int = 0) -> Reading:
    return Reading(total=value * ready, ready=ready, unready=unready)


@pytest.mark.parametrize(
    ("current", "ratio", "wanted"),
    [(4, 1.35, 6), (4, 1.09, 4), (4, 1.1, 4), (4, 1.11, 5), (4, 0.9, 4), (4, 0.89, 4), (4, 0.7, 3), (10, 2.0, 20)],
)
def test_worked_examples(current: int, ratio: float, wanted: int) -> None:
    """Handbook 7.3: 4 pods at ratio 1.35 become 6, at 1.09 they stay 4 (tolerance 0.1)."""
    assert desired_by_ratio(current, ratio, 1.0) == wanted
    assert desired_replicas(Hpa(target=10.0), current, per_replica(ratio * 10.0, current)) == wanted


def test_defaults_are_those_of_kubernetes_and_keda() -> None:
    """Handbook 7.3: sync 15 s, tolerance 0.1; up at once by 100 % or 4, down after 300 s; KEDA polls each 30 s."""
    hpa, keda = Hpa(target=1.0), Keda(target=1.0)
    assert (hpa.sync_s, hpa.tolerance, hpa.up.stabilization_s, hpa.down.stabilization_s) == (15.0, 0.1, 0.0, 300.0)
    assert {(each.kind, each.value, each.period_s) for each in hpa.up.policies} == {
        ("percent", 100.0, 15.0),
        ("pods", 4.0, 15.0),
    }
    assert {(each.kind, each.value, each.period_s) for each in hpa.down.policies} == {("percent", 100.0, 15.0)}
    assert (keda.polling_s, keda.cooldown_s, keda.min_replicas, keda.max_replicas) == (30.0, 300.0, 0, 100)
    assert (keda.hpa.min_replicas, keda.hpa.sync_s, keda.hpa.external) == (1, 15.0, True)


def test_the_whole_sync_of_the_worked_example() -> None:
    assert HpaState(settings=Hpa(target=10.0)).sync(0.0, 4, per_replica(13.5, 4)) == 6
    assert HpaState(settings=Hpa(target=10.0)).sync(0.0, 4, per_replica(10.9, 4)) == 4


@pytest.mark.parametrize(("current", "allowed"), [(1, 5), (3, 7), (4, 8), (10, 20), (50, 100)])
def test_up_at_most_doubles_or_adds_four(current: int, allowed: int) -> None:
    state = HpaState(settings=Hpa(target=1.0, max_replicas=10_000))
    assert state.sync(0.0, current, per_replica(1000.0, current)) == allowed


def test_the_period_remembers_what_it_has_added() -> None:
    state = HpaState(settings=Hpa(target=1.0, max_replicas=10_000))
    assert state.sync(0.0, 10, per_replica(100.0, 10)) == 20
    assert state.sync(5.0, 20, per_replica(100.0, 20)) == 20
    assert state.sync(15.0, 20, per_replica(100.0, 20)) == 40


def test_what_it_finds_counts_for_the_first_window() -> None:
    state = HpaState(settings=Hpa(target=10.0))
    assert state.sync(15.0, 4, per_replica(2.0, 4)) == 4
    assert state.sync(300.0, 4, per_replica(2.0, 4)) == 4
    assert state.sync(315.0, 4, per_replica(2.0, 4)) == 1


def test_down_waits_for_five_quiet_minutes() -> None:
    state = HpaState(settings=Hpa(target=10.0))
    assert state.sync(0.0, 8, per_replica(10.0, 8)) == 8
    for sync in range(1, 20):
        assert state.sync(sync * 15.0, 8, per_replica(5.0, 8)) == 8
    # At 300 s the recommendation of 0 s still counts; at 315 s it doesn't.
    assert state.sync(300.0, 8, per_replica(5.0, 8)) == 8
    assert state.sync(315.0, 8, per_replica(5.0, 8)) == 4


def test_down_goes_to_the_highest_recommendation_of_the_window() -> None:
    state = HpaState(settings=Hpa(target=10.0))
    for at, value in ((0.0, 2.0), (100.0, 7.0), (200.0, 2.0), (300.0, 2.0)):
        assert state.sync(at, 10, per_replica(value, 10)) in (2, 7, 10)
    state = HpaState(settings=Hpa(target=10.0))
    state.recommendations.extend([(0.0, 10), (100.0, 7), (200.0, 2)])
    assert state.sync(301.0, 10, per_replica(2.0, 10)) == 7


def test_an_up_window_takes_the_lowest_recommendation() -> None:
    rules = ScalingRules(stabilization_s=60.0, policies=(ScalingPolicy(kind="pods", value=100.0),))
    state = HpaState(settings=Hpa(target=10.0, max_replicas=100, up=rules))
    assert state.sync(0.0, 4, per_replica(10.0, 4)) == 4
    assert state.sync(30.0, 4, per_replica(30.0, 4)) == 4
    assert state.sync(75.0, 4, per_replica(50.0, 4)) == 12


def test_a_down_policy_bounds_each_period() -> None:
    rules = ScalingRules(stabilization_s=0.0, policies=(ScalingPolicy(kind="percent", value=10.0, period_s=60.0),))
    state = HpaState(settings=Hpa(target=10.0, max_replicas=100, down=rules))
    assert state.sync(0.0, 80, per_replica(1.0, 80)) == 72
    assert state.sync(15.0, 72, per_replica(1.0, 72)) == 72
    assert state.sync(60.0, 72, per_replica(1.0, 72)) == 64


def test_replicas_that_start_count_as_idle_when_growing() -> None:
    hpa = Hpa(target=10.0, max_replicas=50)
    # 4 ready at 20 each ask for 8; with 4 starting the mean is at target: nothing more.
    assert desired_replicas(hpa, 8, per_replica(20.0, 4, unready=4)) == 8
    # At 40 each the 8 are still at twice the target.
    assert desired_replicas(hpa, 8, per_replica(40.0, 4, unready=4)) == 16


def test_replicas_that_do_not_report_count_against_any_change() -> None:
    """Handbook 7.3: nothing on the way up, at their target on the way down."""
    hpa = Hpa(target=10.0, max_replicas=50)
    # Two report 30 each: alone they ask for 6 of 4; with two at nothing the mean is 15.
    assert desired_replicas(hpa, 4, Reading(total=60.0, ready=2, missing=2)) == 6
    # Two report 20 each: with two at nothing the mean is on target.
    assert desired_replicas(hpa, 4, Reading(total=40.0, ready=2, missing=2)) == 4
    # Two report 2 each: alone they ask for 1; with two at 10 the mean is 6, so 3 of 4.
    assert desired_replicas(hpa, 4, Reading(total=4.0, ready=2, missing=2)) == 3
    # Nine in ten at target: within the tolerance.
    assert desired_replicas(hpa, 10, Reading(total=5.0, ready=1, missing=9)) == 10
    # Up, with one that starts and one that is lost: both at nothing.
    assert desired_replicas(hpa, 4, Reading(total=60.0, ready=2, unready=1, missing=1)) == 6


def test_an_external_metric_counts_every_replica() -> None:
    hpa = Hpa(target=10.0, external=True, max_replicas=50)
    assert desired_replicas(hpa, 4, Reading(total=81.0, ready=1, unready=3)) == 9
    assert desired_replicas(hpa, 4, Reading(total=43.9, ready=4)) == 4
    assert desired_replicas(hpa, 4, Reading(total=10.0, ready=0, unready=4)) == 1


def test_bounds_hold() -> None:
    state = HpaState(settings=Hpa(target=1.0, min_replicas=2, max_replicas=6))
    assert state.sync(0.0, 4, per_replica(100.0, 4)) == 6
    state = HpaState(settings=Hpa(target=1.0, min_replicas=2, max_replicas=6))
    state.recommendations.append((0.0, 1))
    assert state.sync(400.0, 4, per_replica(0.0, 4)) == 2


def test_an_hpa_leaves_zero_alone() -> None:
    assert HpaState(settings=Hpa(target=1.0)).sync(0.0, 0, Reading(total=50.0, ready=0)) == 0


def test_keda_wakes_on_its_poll_and_sleeps_after_the_cooldown() -> None:
    keda = KedaState.of(Keda(target=5.0))
    assert keda.poll(0.0, 0, 0.0) == 0
    assert keda.poll(30.0, 0, 3.0) == 1
    assert keda.poll(60.0, 1, 0.0) == 1
    assert keda.poll(300.0, 1, 0.0) == 1
    # 300 s after the trigger was last active, at 30 s.
    assert keda.poll(330.0, 1, 0.0) == 0


def test_keda_cooldown_is_for_zero_only() -> None:
    keda = KedaState.of(Keda(target=5.0, min_replicas=1))
    assert keda.poll(1000.0, 1, 0.0) == 1
    keda = KedaState.of(Keda(target=5.0))
    keda.poll(0.0, 0, 9.0)
    # From several replicas too, zero comes from KEDA, whatever the HPA says.
    assert keda.poll(300.0, 7, 0.0) == 0


def test_keda_activation_threshold() -> None:
    keda = KedaState.of(Keda(target=5.0, activation=10.0))
    assert keda.poll(0.0, 0, 10.0) == 0
    assert keda.poll(30.0, 0, 10.5) == 1


def test_keda_leaves_the_rest_to_its_hpa() -> None:
    keda = KedaState.of(Keda(target=5.0, max_replicas=20))
    assert keda.hpa.sync(0.0, 4, Reading(total=30.0, ready=4)) == 6
    assert keda.hpa.settings.min_replicas == 1
