"""The frame of an answer that inference and training share: titles, charts of parts, and no answer at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import answer_words, numbers, words
from frontend.answers import explanations, parts
from frontend.answers.parts import Option
from frontend.answers.shown import Answer, Chart, Part
from frontend.figures import canvas, scatter, stacks
from frontend.sentences import shown
from planner.engine.answers import GpuMemory, InferencePlan, Rejection
from planner.engine.cost import RECOMMENDABLE_AGE_DAYS
from planner.engine.training_answers import TrainingPlan

COMPARED = 5
"""Bars in a cost chart."""
REACH = 12
"""Times the cheapest that a trade-off chart shows."""
MOST_PAID = 2.0
"""Times the cheapest that a faster option may cost to be worth naming."""
LEAST_SAVED = 0.05
NEAREST = ("finish_days", "budget")
NEARER = (*NEAREST, "ttft_slo", "tpot_slo")
"""Reasons of options that do run: time, money and latency."""


def memory_chart(memory: GpuMemory) -> Chart:
    """One GPU's memory as one bar against its capacity."""
    shown = parts.memory_parts(memory)
    bar = stacks.Bar(label="", parts={**memory.parts_gib, "free": memory.free_gib}, total="")
    return Chart(
        id="memory",
        title=_("%(share)s of each GPU's %(capacity)s GiB is spoken for")
        % {
            "share": numbers.percent(1 - memory.free_gib / memory.capacity_gib),
            "capacity": numbers.rounded(memory.capacity_gib),
        },
        figure=stacks.stack(
            [bar], {part.key: part.label for part in shown}, parts.part_colors(shown), height=64, unit="GiB"
        ),
        parts=shown,
    )


def compared(options: Sequence[Option], chosen: Option) -> list[Option]:
    """The bars of a cost chart: the chosen option, then the best of each other accelerator in rank order."""
    bars = [chosen]
    seen = {chosen.cluster.accelerator}
    for option in options:
        if option.cluster.accelerator not in seen:
            seen.add(option.cluster.accelerator)
            bars.append(option)
    return bars[:COMPARED]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeScale:
    """The unit that an axis of times is drawn in."""

    a_day: float
    """Units in a day."""
    title: str


def time_scale(days: Sequence[float]) -> TimeScale:
    """Days where anything takes two or more, else hours, or minutes where something takes less than some of those.

    >>> time_scale([0.5, 21.0]).a_day, time_scale([0.3, 1.5]).a_day, time_scale([0.0003, 0.5]).a_day
    (1.0, 24.0, 1440.0)
    """
    if max(days, default=0.0) >= 2:
        return TimeScale(a_day=1.0, title=_("Calendar days, log scale"))
    if min(days, default=0.0) * 24 >= 0.1:
        return TimeScale(a_day=24.0, title=_("Hours until it is done, log scale"))
    return TimeScale(a_day=1440.0, title=_("Minutes until it is done, log scale"))


def tradeoff_chart(
    points: Sequence[scatter.Point], x: canvas.Axis, y: canvas.Axis, chosen_id: str, title: str
) -> Chart:
    """Cost against latency or time; what costs over ``REACH`` times the cheapest is left to the table."""
    reach = REACH * min((point.y for point in points), default=0.0)
    near = scatter.mark_front([point for point in points if point.y <= reach or point.id == chosen_id])
    rest = _("Others")
    note = _("Dotted: the Pareto front, where nothing is both cheaper and faster. Ringed: the option described here.")
    if len(near) < len(points):
        left_out = len(points) - len(near)
        note += " " + ngettext(
            "Not drawn: %(n)d option above %(times)d times the cheapest.",
            "Not drawn: %(n)d options above %(times)d times the cheapest.",
            left_out,
        ) % {"n": left_out, "times": REACH}
    legend = tuple(
        Part(key=name, label=name, value="", share="", swatch=f"symbol-{n + 1}")
        for name, n in scatter.legend(near, rest)
    )
    figure = scatter.tradeoff(near, x, y, chosen_id, rest)
    return Chart(id="tradeoff", title=title, figure=figure, parts=legend, note=note)


def priced_lately(options: Sequence[Option]) -> Sequence[Option]:
    """Those with a price young enough to act on; all where none is."""
    return [option for option in options if option.price.age_days <= RECOMMENDABLE_AGE_DAYS] or options


def cheaper_once(options: Sequence[Option], paid: Callable[[Option], Decimal]) -> tuple[str, ...]:
    """Said where something costs less at a price too old to act on."""
    cheapest = min(options, key=paid)
    if paid(cheapest) >= min(paid(option) for option in priced_lately(options)):
        return ()
    said = _("Cheaper, but at a price read %(days)s days ago: %(name)s at %(provider)s for %(money)s.") % {
        "days": numbers.fixed(cheapest.price.age_days),
        "name": parts.short_name(cheapest.cluster),
        "provider": words.provider(cheapest.cluster.provider),
        "money": numbers.money(paid(cheapest)),
    }
    return (said,)


def finding(
    options: Sequence[Option], paid: Callable[[Option], Decimal], takes: Callable[[Option], float], what: str
) -> str:
    """What a trade-off chart shows: the cheapest, and the step in speed that saves the most for what it costs more.

    ``takes`` is a wait or a time, as ``what`` says; of ``options`` none takes or costs nothing.
    """
    lately = priced_lately(options)
    cheapest = min(lately, key=lambda option: (paid(option), takes(option)))

    def saved(option: Option) -> float:
        return 1 - takes(option) / takes(cheapest)

    def more(option: Option) -> float:
        return float(paid(option) / paid(cheapest)) - 1

    better = [option for option in lately if more(option) <= MOST_PAID - 1 and saved(option) >= LEAST_SAVED]
    names = {"name": parts.short_name(cheapest.cluster)}
    if not better:
        return _("%(name)s is cheapest inside your limits; nothing much faster costs under twice as much") % names
    best = max(better, key=lambda option: saved(option) - more(option))
    names |= {
        "fast": parts.short_name(best.cluster),
        "saved": numbers.percent(saved(best)),
        "more": numbers.percent(more(best)),
    }
    said = (
        _("%(name)s is cheapest inside your limits; %(fast)s cuts the wait by %(saved)s for %(more)s more")
        if what == "wait"
        else _("%(name)s is cheapest inside your limits; %(fast)s cuts the time by %(saved)s for %(more)s more")
    )
    return said % names


def bill_legend(names: Mapping[str, str], bill: Mapping[str, float]) -> tuple[Part, ...]:
    return tuple(
        Part(key=key, label=label, value=numbers.money(bill[key]), share=share_text(bill, key), swatch=f"part-{n}")
        for n, (key, label) in enumerate(names.items(), start=1)
    )


def share_text(bill: Mapping[str, float], key: str) -> str:
    total = sum(bill.values())
    return numbers.percent(bill[key] / total) if total else numbers.NOTHING


def nothing_fits(
    plan: InferencePlan | TrainingPlan,
    given: Mapping[str, str],
    question_type: type,
    facts: tuple[tuple[str, str], ...],
) -> Answer:
    """No option: what most of them broke on, and the ways out."""
    return Answer(
        has_options=False,
        warnings=parts.warnings(plan.advice),
        sentence=_("Nothing fits: none of %(n)s options tried meets the question.")
        % {"n": numbers.fixed(plan.options_tried)}
        if plan.options_tried
        else _("Nothing fits: every option is ruled out before it is tried."),
        detail=_what_binds(plan.rejections),
        rejected_title=rejected_title(plan),
        accounted=accounted(plan),
        rejected=explanations.rejected_groups(plan.rejections),
        ways_out=parts.ways_out(plan.advice, given, question_type),
        assumptions=tuple(shown(text) for text in plan.assumptions),
        facts=facts,
        bar_cost=_("Nothing fits"),
    )


def _what_binds(rejections: Sequence[Rejection]) -> str:
    """What most options broke on, and by how much the closest did; a filter only where nothing else did.

    An option that breaks on time, money or latency alone would otherwise do: it is nearer than one that can't run.
    """
    counted = [rejection for rejection in rejections if not rejection.code.startswith("filter_")] or list(rejections)
    counted = [rejection for rejection in counted if rejection.code in NEARER] or counted
    if not counted:
        return ""
    totals: dict[str, int] = {}
    for rejection in counted:
        totals[rejection.code] = totals.get(rejection.code, 0) + rejection.count
    code = max(totals, key=lambda name: totals[name])
    closest = min((rejection for rejection in counted if rejection.code == code), key=_excess)
    said = {
        "why": answer_words.rejection(code),
        "count": numbers.fixed(totals[code]),
        "subject": shown(closest.subject),
        "reason": shown(closest.reason),
    }
    # Of limits of time and money the reason itself names the closest.
    if code in NEAREST:
        return _("%(why)s (%(count)s options). %(reason)s") % said
    return _("%(why)s (%(count)s options). Closest: %(subject)s. %(reason)s") % said


def _excess(rejection: Rejection) -> float:
    """By what factor a rejected option is over its limit."""
    if rejection.value is None or not rejection.limit:
        return math.inf
    return rejection.value / rejection.limit


def table_title(plan: InferencePlan | TrainingPlan) -> str:
    return ngettext(
        "%(found)s option meets the question, of %(tried)s tried",
        "%(found)s options meet the question, of %(tried)s tried",
        plan.options_found,
    ) % {"found": numbers.fixed(plan.options_found), "tried": numbers.fixed(plan.options_tried)}


def rejected_title(plan: InferencePlan | TrainingPlan) -> str:
    count = sum(rejection.count for rejection in plan.rejections)
    return ngettext("%(n)s option rejected, and why", "%(n)s options rejected, and why", count) % {
        "n": numbers.fixed(count)
    }


def accounted(plan: InferencePlan | TrainingPlan) -> str:
    """What became of all options tried; nothing of a saved plan, which keeps no rejections."""
    rejected = sum(rejection.count for rejection in plan.rejections if rejection.tried)
    if plan.options_found + plan.options_beaten + rejected != plan.options_tried or not plan.options_tried:
        return ""
    counts = {
        "tried": numbers.fixed(plan.options_tried),
        "found": numbers.fixed(plan.options_found),
        "beaten": numbers.fixed(plan.options_beaten),
        "rejected": numbers.fixed(rejected),
    }
    said = _("Tried: %(tried)s. Of these %(found)s meet the question and %(rejected)s are rejected.")
    if plan.options_beaten:
        said = _(
            "Tried: %(tried)s. Of these %(found)s meet the question, %(beaten)s would but are neither cheaper nor "
            "faster than another on the same nodes, and %(rejected)s are rejected."
        )
    untried = sum(rejection.count for rejection in plan.rejections if not rejection.tried)
    if not untried:
        return said % counts
    before = _("%(n)s more are ruled out untried, each offer counted once.") % {"n": numbers.fixed(untried)}
    return f"{said % counts} {before}"


def notice(wanted: str, shown: str) -> str:
    """Said when a link's option is gone from the answer."""
    if wanted and wanted != shown:
        return _("The option in the link is no longer in the list; this is the recommended one.")
    return ""
