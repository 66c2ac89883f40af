"""Traces that simulations serve: what is refused at once, whose they are, and how long they are kept."""

from __future__ import annotations

import gzip
from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.core.files.storage import default_storage

from planner.engine.errors import InvalidQuestion
from planner.models import Run, RunStatus, StoredTrace
from planner.services import runs
from planner.services.run_execution import execute_run
from planner.services.runs import create_run, delete_old_runs
from planner.services.stored_traces import has_trace, may_use_trace, store_trace
from tests.planner.organizations import user_factory
from tests.planner.simulated_jobs import QUESTION, TRACE, TRAFFIC, faults


@pytest.mark.parametrize("trace", ["../../etc/passwd", "0" * 32, 7, ""])
def test_only_a_stored_trace_is_known(catalog: object, trace: object) -> None:
    assert faults({"question": QUESTION, "trace": trace}) == {"trace": "No such trace."}


def test_traffic_and_trace_exclude_each_other(catalog: object) -> None:
    trace = store_trace([TRACE])
    assert "traffic" in faults({"question": QUESTION, "trace": trace, "traffic": TRAFFIC})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "The file is empty."),
        (b"arrival_s,input_tokens,output_tokens\n", "no requests"),
        (b"arrival_s,input_tokens\n1,2\n", "output_tokens"),
        (b"arrival_s,input_tokens,output_tokens\n0,5,5\n1,nan,5\n", "row 3, column input_tokens"),
        (b"arrival_s,input_tokens,output_tokens\n0,-5,5\n", "row 2, column input_tokens"),
        (b"\xff\xfea\x00", "UTF-16"),
    ],
)
def test_a_bad_trace_is_refused_at_once_and_not_kept(content: bytes, message: str) -> None:
    before = len(default_storage.listdir("traces")[1]) if default_storage.exists("traces") else 0
    with pytest.raises(InvalidQuestion) as raised:
        store_trace([content])
    assert message in raised.value.errors[0].message
    assert raised.value.errors[0].field == "trace"
    assert (len(default_storage.listdir("traces")[1]) if default_storage.exists("traces") else 0) == before


@pytest.mark.django_db
def test_an_uploaded_trace_is_served_and_forgotten_with_its_run(catalog: object) -> None:
    trace = store_trace([gzip.compress(TRACE)])
    run = create_run(kind="simulation", params={"question": QUESTION, "trace": trace})
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.status == RunStatus.SUCCEEDED, run.error
    assert run.result is not None
    assert run.result["requests"] == 50
    assert run.result["trace"] == trace
    assert run.catalog_version == run.result["catalog_version"]
    Run.objects.filter(pk=run.pk).update(created_at="2020-01-01T00:00:00Z")
    assert delete_old_runs() == 1
    assert not has_trace(trace)


@pytest.mark.django_db
def test_traces_that_were_never_simulated_go_a_day_later(catalog: object, monkeypatch: pytest.MonkeyPatch) -> None:
    used, unused = store_trace([TRACE]), store_trace([TRACE])
    create_run(kind="simulation", params={"question": QUESTION, "trace": used})
    delete_old_runs()
    assert has_trace(unused)
    monkeypatch.setattr(runs, "UNUSED_TRACE_AGE", timedelta(0))
    delete_old_runs()
    assert (has_trace(used), has_trace(unused)) == (True, False)


@pytest.mark.django_db
def test_a_trace_stays_while_another_run_serves_it(catalog: object) -> None:
    trace = store_trace([TRACE])
    old, _new = (create_run(kind="simulation", params={"question": QUESTION, "trace": trace}) for _ in range(2))
    Run.objects.filter(pk=old.pk).update(created_at="2020-01-01T00:00:00Z")
    assert delete_old_runs() == 1
    assert has_trace(trace)


@pytest.mark.django_db
def test_a_fault_in_a_compressed_trace_fails_the_run_with_its_row(catalog: object) -> None:
    trace = store_trace([gzip.compress(TRACE + b"60,0.5,1\n")])
    run = create_run(kind="simulation", params={"question": QUESTION, "trace": trace})
    execute_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.status == RunStatus.FAILED
    assert run.error is not None
    assert "row 52, column input_tokens" in run.error["detail"]
    assert run.error["errors"][0]["attr"] == "trace"


@pytest.mark.django_db
def test_traces_kept_before_they_had_owners_are_those_of_their_first_run() -> None:
    one, other = (user_factory(name) for name in ("one", "other"))
    mine, anyones, unused = (store_trace([TRACE]) for _ in range(3))
    StoredTrace.objects.all().delete()
    for owner, params in (
        (one, {"trace": mine}),
        (None, {"regions": [{"name": "a", "trace": anyones}, {}]}),
        (other, {}),
    ):
        Run.objects.create(kind="simulation", params=params, owner=owner)
    Run.objects.create(kind="simulation", params={"trace": mine}, owner=other)
    import_module("planner.migrations.0011_stored_trace").own_the_traces_of_runs(apps, None)
    assert dict(StoredTrace.objects.values_list("name", "owner")) == {mine: one.pk, anyones: None}
    assert [may_use_trace(mine, user=user) for user in (one, other, None)] == [True, False, False]
    assert [may_use_trace(anyones, user=user) for user in (one, None)] == [True, True]
    assert not may_use_trace(unused, user=None)
