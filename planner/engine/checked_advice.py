"""Ways out, tried: each change is planned with before it is given; two are given together where one is too little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from planner.engine.answers import Advice
from planner.engine.errors import FieldError
from planner.engine.field_spec import read_value, specs
from planner.engine.sentences import FieldName, say

Question = TypeVar("Question")
Tried = tuple[bool, Sequence[Advice]]
"""Whether a plan has options, and the ways out that it names where it has none."""

MOST_TRIES: Final = 8
"""Plans made to try changes, in all."""


def with_change(question: Question, advice: Advice) -> Question | None:
    """The question as the advice changes it, an empty value being the field's default; None where it isn't accepted."""
    spec, default = specs(type(question))[advice.field]
    value = read_value(advice.field, spec, advice.value) if advice.value else default
    if isinstance(value, FieldError):
        return None
    changed: Any = replace(question, **{advice.field: value})  # type: ignore[type-var]
    return changed  # type: ignore[no-any-return]


def checked(question: Question, ways: Sequence[Advice], plan: Callable[[Question], Tried]) -> tuple[Advice, ...]:
    """Those of ``ways`` that lead to an option by themselves; else a pair that does; else all, said to be too little.

    ``plan`` plans a question; the second of a pair is a way out of the plan that the first change leads to.
    """
    left = MOST_TRIES
    alone: list[Advice] = []
    then: list[tuple[Advice, Question, Sequence[Advice]]] = []
    for advice in ways:
        changed = with_change(question, advice)
        if changed is None:
            continue
        left -= 1
        found, more = plan(changed)
        if found:
            alone.append(advice)
        then.append((advice, changed, more))
    if alone:
        return tuple(alone)
    for first, changed, more in then:
        for second in more:
            both = with_change(changed, second)
            if both is None or second.field == first.field or left <= 0:
                continue
            left -= 1
            if plan(both)[0]:
                return _together(first, second), _together(second, first)
    return tuple(replace(advice, suggestion=_too_little(advice)) for advice in ways)


def _together(advice: Advice, other: Advice) -> Advice:
    said = say(
        "{suggestion} It helps only together with the change of {other}.",
        suggestion=advice.suggestion,
        other=FieldName(other.field),
    )
    return replace(advice, suggestion=said)


def _too_little(advice: Advice) -> str:
    return say("{suggestion} By itself that is not enough.", suggestion=advice.suggestion)
