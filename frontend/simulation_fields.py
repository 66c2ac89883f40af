"""The simulation form's own fields: which have a box, what the others hold, and all of them as a job's parameters.

What a run was started with may say more than the form has boxes for (a run through the API, a scenario file): that is
kept in hidden fields and named on the page, so that the form starts the same run again where nothing was changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.http import QueryDict

from frontend.query import Asked, default_text
from frontend.stated import stated
from frontend.typed_numbers import NUMBER_KINDS, clear_number, read_typed
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.field_spec import FieldSpec, specs
from planner.engine.question_reading import parse_question
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.models import Run
from planner.services.capacity_question import CapacityQuestion
from planner.services.planned_traffic import traffic_of_plan

TRAFFIC: Final = (
    *(
        "requests_per_second",
        "clients",
        "requests",
        "think_s",
        "hours",
        "gap_cv",
        "daily_peak",
        "peak_hour",
        "weekend",
        "burst_factor",
    ),
    *("input_median", "input_sigma", "output_median", "output_sigma", "seed"),
)
MORE: Final = (
    *("trend_per_week", "burst_share", "burst_s", "rates", "rate_s"),
    *("input_lengths", "input_max", "output_lengths", "output_max", "length_correlation"),
    *("prefixes", "prefix_share", "prefix_tokens", "prefix_lengths", "prefix_zipf"),
    *("prefix_with_input", "prefix_with_output"),
)
FLEET: Final = ("replicas", "policy", "max_outstanding", "queue_timeout_s", "client_timeout_s")
CHANGES: Final = (
    *("autoscaler", "scaling_metric", "scaling_target", "min_replicas", "max_replicas", "provision_s"),
    *("node_failure_hours", "spot_interruptions_per_hour", "upgrade_at_s"),
)
PARTS: Final[dict[str, tuple[type, Sequence[str]]]] = {
    "traffic": (TrafficQuestion, (*TRAFFIC, *MORE)),
    "fleet": (SimulationQuestion, ("option", *FLEET, *CHANGES)),
    "search": (CapacityQuestion, ()),
}
"""Each part of the form: what it asks for, and which of it has a box."""
OF_JOB: Final = {"traffic": "traffic", "fleet": "scenario", "search": "search"}
"""What a job's parameters call them."""
LONGEST: Final = 20_000
"""Letters of one field: a list of lengths has some thousands."""
LONGEST_IN_ADDRESS: Final = 200


def names_of(part: str) -> list[str]:
    """All fields of a part, with a box or without."""
    return [f"{part}-{name}" for name in specs(PARTS[part][0])]


def boxes() -> list[str]:
    """The fields that the page shows, and the option."""
    return [f"{part}-{name}" for part, (_type, names) in PARTS.items() for name in names]


def spec_of(name: str) -> tuple[FieldSpec, Any]:
    """What the field of a name with its part before it accepts, and its default."""
    part, _dash, own = name.partition("-")
    return specs(PARTS[part][0])[own]


def typed_fields(query: QueryDict) -> dict[str, str]:
    """What was typed, or kept, by field name with its part before it; empty where a box was emptied."""
    names = [name for part in PARTS for name in names_of(part)]
    return {name: str(query[name])[:LONGEST].replace("\0", "") for name in names if name in query}


def fields_of(run: Run | None) -> dict[str, str]:
    """What a run was started with, as it would be typed."""
    if run is None:
        return {}
    found: dict[str, str] = {}
    for part in PARTS:
        given = run.params.get(OF_JOB[part])
        found |= as_typed(part, given) if isinstance(given, dict) else {}
    return found


def as_typed(part: str, given: Mapping[str, Any]) -> dict[str, str]:
    """One part's values, by field name with the part before it."""
    return {
        f"{part}-{name}": _as_typed(spec, given[name])
        for name, (spec, _default) in specs(PARTS[part][0]).items()
        if given.get(name) is not None
    }


def _as_typed(spec: FieldSpec, value: Any) -> str:
    if spec.kind == "flag":
        return "true" if value in (True, "true", "on", "1") else "false"
    text = default_text(tuple(value) if isinstance(value, list) else value)
    return clear_number(text) if spec.kind in NUMBER_KINDS else text


def filled(asked: Asked, given: Mapping[str, str], *, with_regions: bool = False) -> dict[str, str]:
    """What the form's fields hold for what is ``given``: the traffic that it leaves out is the plan's, as in a job.

    Each of several regions takes what is left out by itself, so the plan's is only shown there.
    """
    given = {name: text for name, text in given.items() if text}
    stated_traffic = {} if with_regions else _values("traffic", given)
    like = _from_plan(asked, stated_traffic, given.get("fleet-option", ""))
    typed = {**like, **given}
    if typed.get("traffic-clients") or typed.get("traffic-requests"):
        # Clients that wait, and a job, have no load of their own, not even the default one.
        typed = {"traffic-requests_per_second": "", **typed}
    return {"traffic-hours": "", **typed} if typed.get("traffic-requests") else typed


def plans_load(asked: Asked) -> str | None:
    """The plan's mean load, as the form is filled in with it."""
    return _from_plan(asked, {}).get("traffic-requests_per_second")


def _from_plan(asked: Asked, given: Mapping[str, Any], option: str = "") -> dict[str, str]:
    """Traffic like the plan's: its mean load or its clients, and lengths whose mean is the asked one."""
    try:
        like = traffic_of_plan(asked.raw, parse_question(InferenceQuestion, asked.raw), given, option)
    except InvalidQuestion:
        return {}
    return {f"traffic-{name}": _as_typed(spec_of(f"traffic-{name}")[0], value) for name, value in like.items()}


def _values(part: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """What can be read of a part's fields."""
    read, _faults = _read(part, typed)
    return read


def _read(part: str, typed: Mapping[str, str]) -> tuple[dict[str, Any], list[FieldError]]:
    raw = {name.removeprefix(f"{part}-"): text for name, text in typed.items() if name.startswith(f"{part}-") and text}
    values, errors = read_typed(PARTS[part][0], raw)
    faults = [replace(fault, field=f"{part}-{fault.field}") for fault in errors]
    return {name: values[name] for name in raw if name in values}, faults


def read_part(part: str, typed: Mapping[str, str], faults: list[FieldError]) -> dict[str, Any]:
    """One part of the form as JSON values, what was left empty left out; what is wrong is added to ``faults``."""
    values, errors = _read(part, typed)
    faults += errors
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def as_before(part: str, run: Run, asked: Asked, typed: Mapping[str, str], read: dict[str, Any]) -> dict[str, Any]:
    """``read`` from the form, where nothing was changed as the run before had it: what that left open stays open.

    So the same run again is the same to the letter, and what its regions say for themselves still goes before.
    """
    given = run.params.get(OF_JOB[part])
    before: dict[str, Any] = given if isinstance(given, dict) else {}
    shown = filled(asked, fields_of(run), with_regions="regions" in run.params)
    held = _values(part, {name: shown.get(name, _as_typed(*spec_of(name))) for name in names_of(part)})
    now = _values(part, typed)
    found: dict[str, Any] = {}
    for name in specs(PARTS[part][0]):
        if f"{part}-{name}" not in typed or now.get(name) == held.get(name):
            found |= {name: before[name]} if name in before else {}
        elif name in read:
            found[name] = read[name]
    return found


def in_address(typed: Mapping[str, str], emptied: Mapping[str, str] | None = None) -> dict[str, str]:
    """What an address holds of it, with those fields ``emptied``; long lists are the run's before."""
    named = emptied or {}
    return {name: text for name, text in typed.items() if (text or name in named) and len(text) <= LONGEST_IN_ADDRESS}


def hidden(typed: Mapping[str, str]) -> dict[str, str]:
    """Fields without a box that differ from their defaults."""
    shown = boxes()
    return {
        name: text
        for part in PARTS
        for name in names_of(part)
        if name not in shown and (text := typed.get(name, "")) and text != _as_typed(*spec_of(name))
    }


def hidden_words(kept: Mapping[str, str]) -> str:
    """Those fields as people read them, apart by dots."""
    said = (stated(input_type, _values(part, kept)) for part, (input_type, _names) in PARTS.items())
    return " · ".join(text for text in said if text)


def on_page(fault: FieldError) -> FieldError:
    """A job's fault by the name of the form's field."""
    part, dot, name = fault.field.partition(".")
    own = next((f"{page}-{name}" for page, job in OF_JOB.items() if job == part), "")
    return replace(fault, field=own) if dot and own in boxes() else fault
