"""Options beyond the deadline or the budget: how far the closest is, and what would bring one inside."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from planner.engine.advice import Advice
from planner.engine.answers import Rejection
from planner.engine.field_spec import specs
from planner.engine.offers import OfferTable
from planner.engine.sentences import FieldName, Noun, say
from planner.engine.training_clusters import most_nodes, next_size, node_words
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_ranking import TrainingRanking
from planner.engine.training_run import Run
from planner.engine.units import HOURS_PER_MONTH

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Slowdown = Callable[[int, float], float]
"""By what factor a token takes longer on a ranking's row when the run has only so many."""

MARGIN = 0.995
"""Of tokens: covers the rounding of a number to its text."""
ROUNDS = 3
MOSTLY_WASTED = 0.5
"""Below this share of useful time, failures and checkpoints are what stands in the way."""
WASTE: dict[str, Callable[[float, float], bool]] = {
    "checkpoint_minutes": operator.ne,
    "checkpoint_stall_s": operator.gt,
    "restart_minutes": operator.gt,
    "replacement_minutes": operator.gt,
    "gpu_hours_per_interruption": operator.lt,
    "spot_interruptions_per_node_day": operator.gt,
}
"""What costs time beside training, and in which direction from its usual value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent, and what each option of a ranking costs in the same unit."""

    field: str
    unit: str
    limit: float
    usd: FloatArray


def reject_options(
    ranking: TrainingRanking, table: OfferTable, run: Run, question: TrainingQuestion
) -> Iterator[Rejection]:
    """Options that take too long or cost too much, each limit named by the option that came closest."""
    yield from ranking.rejections
    late, dear = ~ranking.in_time, ~ranking.in_budget
    if late.any():
        yield _late(ranking, table, run, late, dear)
    budget = budget_of(ranking, question)
    if budget is not None and (dear & ~late).any():
        yield _dear(ranking, table, budget, dear & ~late)


def budget_of(ranking: TrainingRanking, question: TrainingQuestion) -> Budget | None:
    """The budget asked: for the run, else by month."""
    if question.budget_usd is not None:
        return Budget(field="budget_usd", unit="USD", limit=question.budget_usd, usd=ranking.usd)
    if question.budget_usd_per_month is not None:
        monthly = ranking.usd_per_hour * HOURS_PER_MONTH
        return Budget(
            field="budget_usd_per_month", unit="USD a month", limit=question.budget_usd_per_month, usd=monthly
        )
    return None


def _name(ranking: TrainingRanking, table: OfferTable, row: int) -> str:
    """Nodes of an option: ``16 x 8x H100 SXM``."""
    return f"{int(ranking.nodes[row]):,} x {node_words(table.shapes[int(ranking.shape[row])])}"


def _readable(days: float) -> float:
    """Days to a tenth, fewer than ten to two digits.

    >>> _readable(0.0513), _readable(6.37), _readable(123.456)
    (0.051, 6.4, 123.5)
    """
    return round(days, 1) if days >= 10 else float(f"{days:.2g}")


def _least(values: FloatArray, among: BoolArray) -> int:
    rows = np.flatnonzero(among)
    return int(rows[np.argmin(values[rows])])


def _late(ranking: TrainingRanking, table: OfferTable, run: Run, late: BoolArray, dear: BoolArray) -> Rejection:
    """The fastest of those within the budget; of all where none is."""
    affordable = late & ~dear
    row = _least(ranking.hours, affordable if affordable.any() else late)
    days = float(ranking.hours[row]) / 24.0
    sentence = (
        say(
            "The fastest of them, {name}, takes {days:,.12g} days, over {limit:,.12g}, and costs {usd:,.0f} USD.",
            name=_name(ranking, table, row),
            days=_readable(days),
            limit=_readable(run.deadline.days),
            usd=float(ranking.usd[row]),
        )
        if affordable.any()
        else say(
            "All of them cost too much besides; the fastest, {name}, takes {days:,.12g} days, over {limit:,.12g}, "
            "and costs {usd:,.0f} USD.",
            name=_name(ranking, table, row),
            days=_readable(days),
            limit=_readable(run.deadline.days),
            usd=float(ranking.usd[row]),
        )
    )
    return Rejection(
        subject=say("{count:,} options", count=int(late.sum())),
        code="finish_days",
        reason=sentence,
        value=days,
        limit=run.deadline.days,
        unit="days",
        count=int(late.sum()),
    )


def _dear(ranking: TrainingRanking, table: OfferTable, budget: Budget, dear: BoolArray) -> Rejection:
    row = _least(budget.usd, dear)
    return Rejection(
        subject=say("{count:,} options", count=int(dear.sum())),
        code="budget",
        reason=say(
            "The cheapest of them, {name}, costs {usd:,.0f} {unit}, over {limit:,.0f}, and takes {days:,.12g} days.",
            name=_name(ranking, table, row),
            usd=float(budget.usd[row]),
            unit=Noun(budget.unit),
            limit=budget.limit,
            days=_readable(float(ranking.hours[row]) / 24.0),
        ),
        value=float(budget.usd[row]),
        limit=budget.limit,
        unit=budget.unit,
        count=int(dear.sum()),
    )


def advise_limits(
    ranking: TrainingRanking, table: OfferTable, run: Run, question: TrainingQuestion, slowdown: Slowdown
) -> Iterator[Advice]:
    """What brings an option inside, where none is: more time, more money, fewer tokens, more nodes.

    Each number is an option's own, so that the question with it has that option as an answer.
    """
    late, dear = ~ranking.in_time, ~ranking.in_budget
    budget = budget_of(ranking, question)
    if (late & ~dear).any():
        yield from _more_time(ranking, table, run, _least(ranking.hours, late & ~dear))
    if budget is not None and (dear & ~late).any():
        yield from _more_money(ranking, table, budget, _least(budget.usd, dear & ~late))
    if len(late) and (late | dear).all():
        yield from _less_work(ranking, table, run, budget, slowdown)
    if (late & ~dear).any():
        yield from _less_waste(ranking, question, _least(ranking.hours, late & ~dear))
    if (late & ~dear).any() and question.nodes is None and question.gpus is None:
        yield from _more_nodes(ranking, run, question, late & ~dear)


def _more_time(ranking: TrainingRanking, table: OfferTable, run: Run, row: int) -> Iterator[Advice]:
    # A hundredth of a day covers the rounding of a limit to its text.
    days = math.ceil(float(ranking.hours[row]) / 24.0 * 100.0) / 100.0
    if run.deadline.field == "finish_by":
        day = (run.deadline.starts + timedelta(days=math.ceil(days))).isoformat()
        sentence = say(
            "Move {field} to {day}: {name} is done by then.",
            field=FieldName("finish_by"),
            day=day,
            name=_name(ranking, table, row),
        )
        yield Advice(field="finish_by", suggestion=sentence, value=day)
        return
    if days <= (specs(TrainingQuestion)["finish_days"][0].maximum or days):
        sentence = say(
            "Raise {field} to {days:,.12g} days: {name} meets it.",
            field=FieldName("finish_days"),
            days=days,
            name=_name(ranking, table, row),
        )
        yield Advice(field="finish_days", suggestion=sentence, value=days)


def _more_money(ranking: TrainingRanking, table: OfferTable, budget: Budget, row: int) -> Iterator[Advice]:
    usd = math.ceil(float(budget.usd[row]))
    if usd <= (specs(TrainingQuestion)[budget.field][0].maximum or usd):
        sentence = say(
            "Raise {field} to {usd:,} USD: {name} meets it.",
            field=FieldName(budget.field),
            usd=usd,
            name=_name(ranking, table, row),
        )
        yield Advice(field=budget.field, suggestion=sentence, value=usd)


def _less_work(
    ranking: TrainingRanking, table: OfferTable, run: Run, budget: Budget | None, slowdown: Slowdown
) -> Iterator[Advice]:
    """Tokens that the option with the least excess manages within both limits: time and cost go with tokens."""
    excess = ranking.hours / 24.0 / run.deadline.days
    if budget is not None and budget.field == "budget_usd":
        excess = np.maximum(excess, budget.usd / budget.limit)
    elif budget is not None:
        excess = np.where(ranking.in_budget, excess, np.inf)
    row = int(np.argmin(excess))
    tokens = _manageable(run.tokens, float(excess[row]), lambda tokens: slowdown(row, tokens))
    if tokens >= 1.0:
        sentence = say(
            "Train on {tokens:,.3g} billion tokens: that is what {name} does within the limits.",
            tokens=tokens / 1e9,
            name=_name(ranking, table, row),
        )
        yield Advice(field="tokens", suggestion=sentence, value=int(tokens))


def _manageable(tokens: float, excess: float, slowdown: Callable[[float], float]) -> float:
    """Tokens that fit limits exceeded ``excess`` times: fewer tokens may call for a smaller batch, which is slower.

    0 where no number holds.

    >>> _manageable(1000.0, 4.0, lambda tokens: 1.0), _manageable(1000.0, 4.0, lambda tokens: 1.25)
    (249.0, 199.0)
    """
    if not math.isfinite(excess):
        return 0.0
    tried = tokens / excess
    for _ in range(ROUNDS):
        slower = slowdown(tried)
        kept = tokens / excess / slower
        if slowdown(kept) <= slower:
            return float(f"{kept * MARGIN:.3g}")
        tried = kept
    return 0.0


def _less_waste(ranking: TrainingRanking, question: TrainingQuestion, row: int) -> Iterator[Advice]:
    """Where most of the time goes to failures and checkpoints: what of them is worse than usual."""
    useful = float(ranking.useful[row])
    if useful >= MOSTLY_WASTED:
        return
    known = specs(TrainingQuestion)
    for field, worse in WASTE.items():
        usual, asked = known[field][1], getattr(question, field)
        if usual is None and asked is not None:
            sentence = say(
                "Leave {field} open: failures and checkpoints take {lost:.0%} of the time, less at the best interval.",
                field=FieldName(field),
                lost=1.0 - useful,
            )
            yield Advice(field=field, suggestion=sentence)
        elif usual is not None and worse(asked, usual):
            sentence = say(
                "Set {field} to {usual:,g} {unit}, as usual: failures and checkpoints take {lost:.0%} of the time.",
                field=FieldName(field),
                usual=usual,
                unit=Noun(known[field][0].unit),
                lost=1.0 - useful,
            )
            yield Advice(field=field, suggestion=sentence, value=usual)


def _more_nodes(ranking: TrainingRanking, run: Run, question: TrainingQuestion, late: BoolArray) -> Iterator[Advice]:
    """The next size with so many nodes as it takes at least, were they to keep the pace of those tried."""
    row = _least(ranking.hours, late)
    most = most_nodes(question)
    needed = math.ceil(int(ranking.nodes[row]) * float(ranking.hours[row]) / 24.0 / run.deadline.days)
    top = math.floor(specs(TrainingQuestion)["max_nodes"][0].maximum or needed)
    allowed = min(next_size(needed), top)
    if int(ranking.nodes[row]) * 2 > most and most < needed <= top:
        sentence = say(
            "Allow {nodes:,} nodes: at the pace of {tried:,}, it takes at least {needed:,}.",
            nodes=allowed,
            tried=int(ranking.nodes[row]),
            needed=needed,
        )
        yield Advice(field="max_nodes", suggestion=sentence, value=allowed)
