"""Why an answer is as it is: the working's terms by group, and what was left out by reason."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from frontend import answer_words, numbers
from frontend.answers.shown import RejectedGroup, RejectedLine, WorkingGroup, WorkingLine
from frontend.sentences import kept, shown
from planner.engine.answers import (
    Rejection,
    Term,
)

NOT_SUMS = ("distribution", "admission", "speculation", "split")
"""Groups of the working whose terms stand side by side."""
SHOWN_REJECTIONS = 8
"""Subjects listed of each reason."""
MONEY = "USD"
CENT = 0.01


def working_groups(terms: Sequence[Term]) -> tuple[WorkingGroup, ...]:
    """Terms by group in their order; a share of the group where its units agree."""
    groups: dict[str, list[Term]] = {}
    for term in terms:
        groups.setdefault(term.group, []).append(term)
    return tuple(_working_group(name, members) for name, members in groups.items())


def _working_group(name: str, terms: Sequence[Term]) -> WorkingGroup:
    total = sum(term.value for term in terms)
    is_sum = (
        name not in NOT_SUMS
        and len({term.unit for term in terms}) == 1
        and len(terms) > 1
        and min(term.value for term in terms) >= 0
    )
    is_sum = is_sum and total > 0
    return WorkingGroup(
        title=answer_words.group(name),
        lines=tuple(
            WorkingLine(
                name=answer_words.term(term.name),
                value=_with_unit(term.value, term.unit),
                exact=term.value,
                formula=kept(term.formula),
                share=term.value / total if is_sum else None,
            )
            for term in terms
        ),
        total=_with_unit(total, terms[0].unit) if is_sum else "",
    )


def _with_unit(value: float, unit: str) -> str:
    return f"{_exact(value, unit)} {_(unit) if unit else ''}".strip()


def _exact(value: float, unit: str) -> str:
    """Money to the cent and counts in full, as the formulas beside them have them; measures to four digits."""
    if value.is_integer():
        return numbers.fixed(value)
    return numbers.fixed(value, 2) if unit == MONEY and abs(value) >= CENT else numbers.rounded(value, 4)


def rejected_groups(rejections: Sequence[Rejection]) -> tuple[RejectedGroup, ...]:
    """Reasons by what broke, the commonest first; of each the first few subjects with their numbers."""
    by_code: dict[str, list[Rejection]] = {}
    for rejection in rejections:
        by_code.setdefault(rejection.code, []).append(rejection)
    ranked = sorted(by_code.items(), key=lambda item: -_count(item[1]))
    return tuple(_rejected_group(code, members) for code, members in ranked)


def _count(rejections: Sequence[Rejection]) -> int:
    return sum(rejection.count for rejection in rejections)


def _rejected_group(code: str, members: Sequence[Rejection]) -> RejectedGroup:
    commonest: dict[str, Rejection] = {}
    for rejection in sorted(members, key=lambda rejection: -rejection.count):
        commonest.setdefault(rejection.subject, rejection)
    listed = list(commonest.values())[:SHOWN_REJECTIONS]
    return RejectedGroup(
        title=answer_words.rejection(code),
        count=numbers.fixed(_count(members)),
        lines=tuple(
            RejectedLine(
                subject=shown(rejection.subject),
                reason=shown(rejection.reason),
                numbers=broke(rejection),
                count=numbers.fixed(_count([member for member in members if member.subject == rejection.subject])),
            )
            for rejection in listed
        ),
        more=len(commonest) - len(listed),
    )


def broke(rejection: Rejection) -> str:
    """The number that broke and its limit."""
    unit = f" {_(rejection.unit)}" if rejection.unit else ""
    if rejection.value is None and rejection.limit is None:
        return ""
    if rejection.limit is None:
        return numbers.rounded(rejection.value, 4) + unit
    if rejection.value is None:
        return _("limit %(limit)s") % {"limit": numbers.rounded(rejection.limit, 4) + unit}
    return _("%(value)s; limit %(limit)s") % {
        "value": numbers.rounded(rejection.value, 4) + unit,
        "limit": numbers.rounded(rejection.limit, 4) + unit,
    }
