"""What happened to a fleet: all counted; what breaks always kept, scalings thinned."""

from __future__ import annotations

from itertools import pairwise

from planner.engine.simulate.incidents import ALWAYS, MOST_KEPT, IncidentLog, Incidents, joined, listed
from planner.engine.simulate.lifecycle import Incident

BROKEN = (1_000.5, 50_000.5, 99_999.5)


def log(count: int, broken: tuple[float, ...]) -> Incidents:
    """A scaling each second, and failures between."""
    kept = IncidentLog()
    failures = list(broken)
    for at in range(count):
        kept.note(Incident(at_s=float(at), kind="scaled", pool=0, replicas=at % 7))
        while failures and failures[0] < at + 1:
            kept.note(Incident(at_s=failures.pop(0), kind="failed", pool=0, replica=1, lost_requests=3))
    return kept.read()


def test_much_is_counted_and_thinned_over_the_whole_time() -> None:
    happened = log(100_000, BROKEN)
    assert happened.counts == {"failed": 3, "scaled": 100_000}
    assert happened.rows == happened.counts
    assert (happened.total, happened.lost_requests) == (100_003, 9)
    assert [each.at_s for each in happened.kept if each.kind == "failed"] == list(BROKEN)
    scaled = [each.at_s for each in happened.kept if each.kind == "scaled"]
    assert MOST_KEPT <= len(scaled) < 2 * MOST_KEPT
    assert {after - before for before, after in pairwise(scaled)} == {16.0}
    assert scaled[-1] > 99_980
    assert [each.at_s for each in happened.kept] == sorted(each.at_s for each in happened.kept)


def test_little_is_kept_as_it_was() -> None:
    happened = log(50, (20.5,))
    assert len(happened.kept) == happened.total == 51
    assert [each.kind for each in happened.kept[20:23]] == ["scaled", "failed", "scaled"]


def test_parts_add_up_in_any_order() -> None:
    one, other = log(300, (10.5,)), log(20_000, (3.5, 15_000.5))
    both = joined([one, other])
    assert both.counts == joined([other, one]).counts == {"failed": 3, "scaled": 20_300}
    assert both.total == one.total + other.total
    assert both.lost_requests == 9
    assert [each.at_s for each in both.kept if each.kind == "failed"] == [3.5, 10.5, 15_000.5]


def test_a_node_counts_once_and_each_of_its_replicas_is_kept() -> None:
    """Two nodes fail at one time, one of them again later; two replicas each."""
    kept = IncidentLog()
    for at_s, replica in ((5.0, 0), (5.0, 1), (5.0, 2), (5.0, 3), (9.0, 2), (9.0, 3)):
        kept.note(Incident(at_s=at_s, kind="failed", pool=0, replica=replica, node=replica // 2 * 2, lost_requests=4))
        kept.note(Incident(at_s=at_s, kind="ready", pool=0, replica=replica, node=replica // 2 * 2))
    happened = kept.read()
    assert happened.counts == {"failed": 3, "ready": 6}
    assert happened.rows == {"failed": 6, "ready": 6}
    assert (happened.total, happened.lost_requests, len(happened.kept)) == (12, 24, 12)
    assert joined([happened, happened]).counts == {"failed": 6, "ready": 12}
    assert joined([happened, happened]).total == 24


def test_a_list_has_all_that_broke_and_the_rest_evenly() -> None:
    kinds = ["scaled", "ready", "ready"] * 700
    for place, kind in zip((700, 1500, 2000, 2050), ALWAYS, strict=True):
        kinds[place] = kind
    places = listed(kinds)
    assert len(places) == 1000
    assert {700, 1500, 2000, 2050} <= set(places)
    assert (places[0], places[-1]) == (0, len(kinds) - 1)
    assert max(after - before for before, after in pairwise(places)) <= 4
    assert listed(kinds[:1000]) == list(range(1000))


def test_a_list_stays_bounded_where_all_that_happens_breaks() -> None:
    assert len(listed(["failed", "repaired"] * 20_000)) == MOST_KEPT + 100
    assert len(listed(["failed", "repaired"] * 20_000, 200, 1000)) == 1020
