"""Clusters joined with the offers that rent them: time, cost, limits, the Pareto front, and what to list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Rejection
from planner.engine.offers import OfferTable, in_stock
from planner.engine.training.search_types import BestLayouts
from planner.engine.training_clusters import Clusters
from planner.engine.training_limits import storage_usd_per_hour
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_run import Run, useful_share, wall_hours
from planner.engine.units import HOURS_PER_MONTH

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

LISTED_PER_RENTAL = 2
"""Options listed of one instance type and purchase option, beside those on the Pareto front."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingRanking:
    """Options as (offer, best layout) pairs, cheapest first; equal lengths."""

    offer: IntArray
    best: IntArray
    """Row of ``BestLayouts``."""
    nodes: IntArray
    useful: FloatArray
    """Goodput."""
    hours: FloatArray
    usd: FloatArray
    usd_per_hour: FloatArray
    in_time: BoolArray
    in_budget: BoolArray
    pareto: BoolArray
    listed: IntArray
    shape: IntArray
    """Of each row's offer."""
    rejections: tuple[Rejection, ...]
    """Offers with too few nodes."""

    @property
    def accepted(self) -> BoolArray:
        return self.in_time & self.in_budget


def rank_options(
    best: BestLayouts,
    clusters: Clusters,
    table: OfferTable,
    offer_rows: IntArray,
    run: Run,
    question: TrainingQuestion,
) -> TrainingRanking:
    """Every offer with every cluster of its shape that has a layout, ordered by total cost."""
    kinds = np.array([clusters.sizes[c].node for c in best.cluster.tolist()], dtype=np.int64)
    nodes_of = np.array([clusters.sizes[c].nodes for c in best.cluster.tolist()], dtype=np.int64)
    gpus = np.array([clusters.sizes[c].gpus for c in best.cluster.tolist()], dtype=np.float64)
    nodes_trained = nodes_of.astype(np.float64)
    kept = useful_share(run, question, gpus, nodes_trained, is_spot=False)
    taken = useful_share(run, question, gpus, nodes_trained, is_spot=True)
    by_kind = [np.flatnonzero(kinds == index) for index in range(len(clusters.shapes))]
    kind_of_shape = {shape: index for index, shape in enumerate(clusters.shapes)}
    rows, offers = [], []
    for offer in offer_rows.tolist():
        kind = kind_of_shape.get(int(table.shape[offer]))
        if kind is not None and len(by_kind[kind]):
            rows.append(by_kind[kind])
            offers.append(np.full(len(by_kind[kind]), offer, dtype=np.int64))
    row = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    offer_of = np.concatenate(offers) if offers else np.zeros(0, dtype=np.int64)
    enough, refused = in_stock(table, offer_of, nodes_of[row] + question.spare_nodes)
    row, offer_of = row[enough], offer_of[enough]
    useful = np.where(table.purchase_option[offer_of] == "spot", taken[row], kept[row])
    hours = wall_hours(run, best.tokens_per_s[row], useful)
    hourly = table.usd_per_node_hour[offer_of] * (nodes_of[row] + question.spare_nodes)
    usd = (hourly + storage_usd_per_hour(question, run.stored_gib)) * hours
    order = np.lexsort((hours, usd))
    row, offer_of, useful = row[order], offer_of[order], useful[order]
    hourly, usd, hours = hourly[order], usd[order], hours[order]
    in_time = (hours <= run.deadline.days * 24.0) & (useful > 0.0)
    in_budget = np.ones(len(row), dtype=np.bool_)
    if question.budget_usd is not None:
        in_budget &= usd <= question.budget_usd
    if question.budget_usd_per_month is not None:
        in_budget &= hourly * HOURS_PER_MONTH <= question.budget_usd_per_month
    accepted = in_time & in_budget
    pareto = np.zeros(len(row), dtype=np.bool_)
    pareto[accepted] = _front(hours[accepted])
    return TrainingRanking(
        offer=offer_of,
        best=row,
        nodes=nodes_of[row],
        useful=useful,
        hours=hours,
        usd=usd,
        usd_per_hour=hourly,
        in_time=in_time,
        in_budget=in_budget,
        pareto=pareto,
        listed=_listed(table, offer_of, pareto, accepted, question.max_options),
        shape=table.shape[offer_of],
        rejections=refused,
    )


def _front(hours: FloatArray) -> BoolArray:
    """Rows, cheapest first, that are faster than every cheaper one.

    >>> _front(np.array([9.0, 10.0, 4.0])).tolist()
    [True, False, True]
    """
    before = np.concatenate([[np.inf], np.minimum.accumulate(hours)[:-1]]) if len(hours) else hours
    return np.asarray(hours < before)


def _listed(table: OfferTable, offer: IntArray, pareto: BoolArray, accepted: BoolArray, most: int) -> IntArray:
    """The Pareto front (at most half the list) and the cheapest of each rental."""
    front = np.flatnonzero(pareto)
    if len(front) > max(most // 2, 1):
        # Keep the front's span: its ends and what lies evenly between.
        front = front[np.unique(np.linspace(0, len(front) - 1, max(most // 2, 1)).round().astype(np.int64))]
    chosen = set(front.tolist())
    seen: dict[tuple[str, str, str], int] = {}
    for row in np.flatnonzero(accepted).tolist():
        if len(chosen) >= most:
            break
        found = table.offers[offer[row]]
        rental = (found.provider, found.instance_type, found.purchase_option)
        if row not in chosen and seen.get(rental, 0) < LISTED_PER_RENTAL:
            seen[rental] = seen.get(rental, 0) + 1
            chosen.add(row)
    return np.array(sorted(chosen), dtype=np.int64)
