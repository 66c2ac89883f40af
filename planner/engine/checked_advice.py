"""Ways out, tried: each change is planned with before it is given; two become one where one is too little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, TypeVar

from planner.engine.advice import Advice, FieldValue
from planner.engine.errors import FieldError
from planner.engine.field_spec import read_value, specs
from planner.engine.sentences import say

Question = TypeVar("Question")
Tried = tuple[bool, Sequence[Advice]]
"""Whether a plan has options, and the ways out that it names where it has none."""

MOST: Final = 3
"""Ways out, at most."""
MOST_TRIES: Final = 10
"""Plans made to try changes by themselves."""
MOST_PAIRS: Final = 4
"""And two together, at least."""


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


def checked(
    question: Question,
    ways: Sequence[Advice],
    plan: Callable[[Question], Tried],
    others: Iterable[Advice] = (),
) -> tuple[Advice, ...]:
    """Up to three: those of ``ways``, then of ``others``, that lead to an option by themselves; else two in one that
    do; else all of ``ways`` that are accepted, said to be too little.

    ``plan`` plans a question; the second of a pair is a way out of the plan that the first change leads to.
    """
    left = MOST_TRIES
    accepted: list[Advice] = []
    alone: list[Advice] = []
    then: list[tuple[Advice, Question, Sequence[Advice]]] = []
    for advice in chain(ways, others):
        changed = with_change(question, advice)
        if changed is None or changed == question or any(advice.changes == known.changes for known in alone):
            continue
        if advice in ways:
            accepted.append(advice)
        left -= 1
        found, more = plan(changed)
        if found:
            alone.append(advice)
        if len(alone) == MOST or left <= 0:
            break
        then.append((advice, changed, more))
    pairs: list[Advice] = list(alone)
    left = max(left, MOST_PAIRS)
    for first, changed, more in then:
        # Beside a change that helps alone, two are of use only where they are smaller.
        if len(pairs) == MOST or first in alone or (alone and first in ways):
            continue
        for second in more:
            both = with_change(changed, second)
            if both is None or second.changes.keys() & first.changes.keys() or left <= 0:
                continue
            pair = _together(first, second)
            if not _is_new(question, pair, second, pairs):
                continue
            left -= 1
            if plan(both)[0]:
                pairs.append(pair)
                break
    return tuple(pairs) or tuple(replace(advice, suggestion=_too_little(advice)) for advice in accepted)


def _is_new(question: Any, pair: Advice, second: Advice, known: Sequence[Advice]) -> bool:
    """Whether no way out makes the same changes, or as small a one of the field that ``second`` changes."""
    if any(pair.changes == each.changes for each in known):
        return False
    return not any(
        _size(question, each.changes[second.field], second.field) <= _size(question, second.value, second.field)
        for each in known
        if second.field in each.changes and len(each.changes) < 2
    )


def _size(question: Any, value: FieldValue, field: str) -> float:
    """How far a number is from the one asked; nothing is smaller than a change of what is no number."""
    asked = getattr(question, field)
    if isinstance(value, int | float) and isinstance(asked, int | float):
        return abs(value - asked)
    return 0.0


def _together(first: Advice, second: Advice) -> Advice:
    said = say(
        "{first} {second} One without the other is not enough.", first=first.suggestion, second=second.suggestion
    )
    return replace(first, suggestion=said, also={**first.also, **second.changes})


def _too_little(advice: Advice) -> str:
    return say("{suggestion} By itself that is not enough.", suggestion=advice.suggestion)
