"""Which sized candidates are worth showing, on which offers, in what order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Rejection
from planner.engine.cost import RECOMMENDABLE_AGE_DAYS
from planner.engine.inference_evaluate import Evaluated
from planner.engine.offers import OfferTable, in_stock
from planner.engine.serving import Cycle
from planner.engine.sizing import Sizing
from planner.engine.split_pools import PrefillPools
from planner.engine.units import HOURS_PER_MONTH
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

LISTED_PER_RENTAL: Final = 3
"""Layouts listed of one instance type and purchase option; further ones differ little from them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sized:
    """Accepted candidates: equal lengths."""

    evaluated: Evaluated
    sizing: Sizing
    replicas: IntArray
    """Spares included."""
    nodes: IntArray
    latency_s: FloatArray
    """A whole request at the SLO percentile: TTFT + (output - 1) x TPOT; of a job, all of it."""
    cycle: Cycle
    """At the peak's load."""
    full_limit: tuple[str, ...]
    """What binds a replica with every place taken: kv_memory, batch_limit, prefill_compute or decode."""
    prefill: PrefillPools
    """The side that prefills, where pools are split."""

    @property
    def gpus_used(self) -> IntArray:
        """Of all replicas, spares included."""
        prefill = self.prefill.replicas * self.prefill.gpus_per_replica
        return self.replicas * self.evaluated.gpus_per_replica + prefill


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """Options as (offer, candidate) pairs, cheapest first (a job's by what it costs); equal lengths."""

    offer: IntArray
    """Row of the offer table."""
    candidate: IntArray
    """Row of ``Sized``."""
    usd_per_hour: FloatArray
    latency_s: FloatArray
    pareto: BoolArray
    within_budget: BoolArray
    listed: IntArray
    """Rows of this ranking that the answer lists, cheapest first."""
    rejections: tuple[Rejection, ...]
    """Offers with too few nodes."""


def nodes_needed(gpu_count: FloatArray, gpus_per_replica: IntArray, replicas: IntArray) -> IntArray:
    """Nodes that hold ``replicas``: replicas share a node, or each fills nodes of its own.

    >>> nodes_needed(np.array([8., 8., 8.]), np.array([2, 16, 3]), np.array([5, 2, 3])).tolist()
    [2, 4, 2]
    """
    gpus = np.maximum(gpu_count.astype(np.int64), 1)
    per_node = np.maximum(gpus // gpus_per_replica, 1)
    nodes_each = -(-gpus_per_replica // gpus)
    shared = -(-replicas // per_node)
    return np.where(gpus_per_replica <= gpus, shared, replicas * nodes_each)


def split_nodes(
    gpu_count: FloatArray, decode_gpus: IntArray, decode: IntArray, prefill_gpus: IntArray, prefill: IntArray
) -> IntArray:
    """Nodes of split pools: replicas of both share nodes where their sizes divide one, else each pool has its own.

    >>> one = np.array([2])
    >>> split_nodes(np.array([8.]), np.array([4]), one, np.array([2]), one).tolist()
    [2]
    >>> split_nodes(np.array([8.]), np.array([8]), one, np.array([16]), one).tolist()
    [6]
    """
    gpus = np.maximum(gpu_count.astype(np.int64), 1)
    apart = nodes_needed(gpu_count, decode_gpus, decode) + nodes_needed(gpu_count, prefill_gpus, prefill)
    shared = -(-(decode_gpus * decode + prefill_gpus * prefill) // gpus)
    larger, smaller = np.maximum(decode_gpus, prefill_gpus), np.minimum(decode_gpus, prefill_gpus)
    fits = (gpus % larger == 0) & (larger % smaller == 0)
    return np.where(fits, shared, apart)


def request_latency_s(sizing: Sizing, question: InferenceQuestion) -> FloatArray:
    """Time of a whole request at the question's percentile; of a job, all of it."""
    if question.offline_requests is not None:
        rate = np.asarray(sizing.estimate.requests_s, dtype=np.float64) * sizing.replicas
        with np.errstate(divide="ignore"):
            return np.asarray(question.offline_requests / rate, dtype=np.float64)
    at = question.slo_percentile
    tokens = max(question.output_tokens - 1, 0)
    return np.asarray(sizing.estimate.ttft_s[at] + tokens * sizing.estimate.tpot_s[at], dtype=np.float64)


def paid_for(usd_per_hour: FloatArray, latency_s: FloatArray, question: InferenceQuestion) -> FloatArray:
    """What options are ranked by: the rent, or of a job, what its own hours cost."""
    return usd_per_hour if question.offline_requests is None else usd_per_hour * latency_s


def frontier(group: IntArray, cost: FloatArray, latency: FloatArray) -> BoolArray:
    """Rows that no other row of their group beats on both cost and latency.

    >>> frontier(np.array([0, 0, 0]), np.array([1., 2., 3.]), np.array([9., 9.5, 4.])).tolist()
    [True, False, True]
    """
    order = np.lexsort((latency, cost, group))
    keep = np.zeros(len(group), dtype=np.bool_)
    best, current = np.inf, None
    for row in order.tolist():
        if group[row] != current:
            best, current = np.inf, group[row]
        if latency[row] < best:
            best = float(latency[row])
            keep[row] = True
    return keep


def rank(
    sized: Sized,
    used_shapes: IntArray,
    table: OfferTable,
    offer_rows: IntArray,
    question: InferenceQuestion,
    today: date,
) -> Ranking:
    """Join accepted candidates with the offers of their shape, and order them by price.

    ``used_shapes`` are the table's shapes that candidates index, ascending.
    """
    shape_of = sized.evaluated.candidates.shape
    by_shape = [np.flatnonzero(shape_of == index) for index in range(len(used_shapes))]
    offer_shape = np.searchsorted(used_shapes, table.shape[offer_rows])
    counts = np.array([len(by_shape[s]) for s in offer_shape.tolist()], dtype=np.int64)
    offer = np.repeat(offer_rows, counts)
    candidate = (
        np.concatenate([by_shape[s] for s in offer_shape.tolist()]) if counts.sum() else np.zeros(0, dtype=np.int64)
    )
    enough, refused = in_stock(table, offer, sized.nodes[candidate])
    offer, candidate = offer[enough], candidate[enough]
    usd = table.usd_per_node_hour[offer] * sized.nodes[candidate]
    order = np.lexsort((sized.latency_s[candidate], paid_for(usd, sized.latency_s[candidate], question)))
    offer, candidate, usd = offer[order], candidate[order], usd[order]
    latency = sized.latency_s[candidate]
    budget = question.budget_usd_per_month
    within = np.ones(len(usd), dtype=np.bool_) if budget is None else usd * HOURS_PER_MONTH <= budget
    pareto = np.zeros(len(usd), dtype=np.bool_)
    cost = paid_for(usd, latency, question)
    pareto[within] = frontier(np.zeros(int(within.sum()), dtype=np.int64), cost[within], latency[within])
    return Ranking(
        offer=offer,
        candidate=candidate,
        usd_per_hour=usd,
        latency_s=latency,
        pareto=pareto,
        within_budget=within,
        listed=_listed(table, offer, candidate, pareto, within, question.max_options, today),
        rejections=refused,
    )


def _listed(
    table: OfferTable,
    offer: IntArray,
    candidate: IntArray,
    pareto: BoolArray,
    within: BoolArray,
    most: int,
    today: date,
) -> IntArray:
    """The Pareto front (at most half the list) and the cheapest: one region and a few layouts a rental.

    The cheapest with a young price is always among them, so that there is one to recommend.
    """
    front = np.flatnonzero(pareto)[: max(most // 2, 1)].tolist()
    young = within & (today.toordinal() - table.as_of_ordinal[offer] <= RECOMMENDABLE_AGE_DAYS)
    front = list(dict.fromkeys([*front, *np.flatnonzero(young)[:1].tolist()]))[-most:]
    chosen = set(front)
    seen: dict[tuple[str, str, str], set[int]] = {}
    for row in front:
        seen.setdefault(_rental(table, offer[row]), set()).add(int(candidate[row]))
    for row in np.flatnonzero(within).tolist():
        if len(chosen) >= most:
            break
        layouts = seen.setdefault(_rental(table, offer[row]), set())
        if row not in chosen and int(candidate[row]) not in layouts and len(layouts) < LISTED_PER_RENTAL:
            layouts.add(int(candidate[row]))
            chosen.add(row)
    return np.array(sorted(chosen), dtype=np.int64)


def _rental(table: OfferTable, row: int) -> tuple[str, str, str]:
    offer = table.offers[row]
    return offer.provider, offer.instance_type, offer.purchase_option
