"""Ways out, tried: each change is planned with before it is given; two become one where one is too little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from planner.engine.advice import Advice
from planner.engine.errors import FieldError
from planner.engine.field_spec import read_value, specs
from planner.engine.sentences import say

Question = TypeVar("Question")
Tried = tuple[bool, Sequence[Advice]]
"""Whether a plan has options, and the ways out that it names where it has none."""

MOST_TRIES: Final = 8
"""Plans made to try changes, in all."""


def with_change(question: Question, advice: Advice) -> Question | None:
    """The question as the advice changes it; None where one of its values isn't accepted."""
    known, values = specs(type(question)), {}
    for name, given in advice.changes.items():
        spec, default = known[name]
        values[name] = default if given is None else read_value(name, spec, given)
    if any(isinstance(value, FieldError) for value in values.values()):
        return None
    changed: Any = replace(question, **values)  # type: ignore[type-var]
    return changed  # type: ignore[no-any-return]


def checked(question: Question, ways: Sequence[Advice], plan: Callable[[Question], Tried]) -> tuple[Advice, ...]:
    """Those of ``ways`` that lead to an option by themselves; else two in one that do; else all
    that are accepted, said to be too little.

    ``plan`` plans a question; the second of a pair is a way out of the plan that the first change leads to.
    """
    left = MOST_TRIES
    accepted: list[Advice] = []
    alone: list[Advice] = []
    then: list[tuple[Advice, Question, Sequence[Advice]]] = []
    for advice in ways:
        changed = with_change(question, advice)
        if changed is None:
            continue
        accepted.append(advice)
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
            if both is None or second.changes.keys() & first.changes.keys() or left <= 0:
                continue
            left -= 1
            if plan(both)[0]:
                return (_together(first, second),)
    return tuple(replace(advice, suggestion=_too_little(advice)) for advice in accepted)


def _together(first: Advice, second: Advice) -> Advice:
    said = say(
        "{first} {second} One without the other is not enough.", first=first.suggestion, second=second.suggestion
    )
    return replace(first, suggestion=said, also={**first.also, **second.changes})


def _too_little(advice: Advice) -> str:
    return say("{suggestion} By itself that is not enough.", suggestion=advice.suggestion)
