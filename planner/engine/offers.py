"""Offers as columns: which prices pass the filters, and which filter emptied the list.

A snapshot's offers become arrays once and are kept for as long as the snapshot lives; a plan then
filters with masks. Offers that rent the same hardware share a *shape*, so that hardware is evaluated
once however many prices it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Rejection
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.hardware import Accelerator, CatalogSnapshot, InstanceType, Offer
from planner.engine.sentences import Code, FieldName, Sentence, joined, say
from planner.engine.workload import PlaceAndPurchase

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

ANY_NUMBER: Final = 2**62
WHOLE_GPUS = "whole_gpus"
REAL_OFFERS = "real_offers"
UNASKED = (WHOLE_GPUS, REAL_OFFERS)
"""Filters that always apply: nobody asked for them, so none is named as the one to relax."""
"""The one filter nobody asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of node: what the engine needs to know of it, whoever rents it."""

    accelerator: Accelerator
    gpu_count: float
    intra_node_link: str
    link_domain_gpus: int
    fabric: str
    network_bytes_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfferTable:
    """All offers of a snapshot by column, equal lengths; ``shape`` indexes ``shapes``."""

    offers: tuple[Offer, ...]
    instances: tuple[InstanceType, ...]
    """The instance type of each offer."""
    shapes: tuple[Shape, ...]
    shape: IntArray
    provider: NDArray[np.str_]
    country: NDArray[np.str_]
    accelerator: NDArray[np.str_]
    instance_type: NDArray[np.str_]
    """``provider/name``."""
    purchase_option: NDArray[np.str_]
    gpu_count: FloatArray
    usd_per_node_hour: FloatArray
    as_of_ordinal: IntArray
    available_nodes: IntArray
    """``ANY_NUMBER`` where the seller states no limit."""
    is_average: BoolArray
    """A mean over a seller's listings: a fact about a market, nothing that can be rented."""


_TABLES: WeakKeyDictionary[CatalogSnapshot, OfferTable] = WeakKeyDictionary()


def offer_table(snapshot: CatalogSnapshot) -> OfferTable:
    """The snapshot's offers as columns; built on first use.

    Offers whose accelerator or instance type the snapshot does not describe are left out: without
    them nothing can be said about the hardware.
    """
    if snapshot not in _TABLES:
        _TABLES[snapshot] = _build(snapshot)
    return _TABLES[snapshot]


def _build(snapshot: CatalogSnapshot) -> OfferTable:
    rows = [
        (offer, snapshot.instance_types[offer.provider, offer.instance_type])
        for offer in snapshot.offers
        if offer.accelerator_key in snapshot.accelerators
        and (offer.provider, offer.instance_type) in snapshot.instance_types
    ]
    index: dict[tuple[object, ...], int] = {}
    shapes: list[Shape] = []
    shape_of = []
    for offer, instance in rows:
        key = (
            offer.accelerator_key,
            offer.gpu_count,
            instance.intra_node_link,
            instance.link_domain_gpus,
            instance.fabric,
            instance.network_bytes_s,
        )
        if key not in index:
            index[key] = len(shapes)
            shapes.append(
                Shape(
                    accelerator=snapshot.accelerators[offer.accelerator_key],
                    gpu_count=offer.gpu_count,
                    intra_node_link=instance.intra_node_link,
                    link_domain_gpus=instance.link_domain_gpus,
                    fabric=instance.fabric,
                    network_bytes_s=instance.network_bytes_s,
                )
            )
        shape_of.append(index[key])
    offers = tuple(offer for offer, _ in rows)
    return OfferTable(
        offers=offers,
        instances=tuple(instance for _, instance in rows),
        shapes=tuple(shapes),
        shape=np.array(shape_of, dtype=np.int64),
        provider=np.array([o.provider for o in offers], dtype=np.str_),
        country=np.array([o.country for o in offers], dtype=np.str_),
        accelerator=np.array([o.accelerator_key for o in offers], dtype=np.str_),
        instance_type=np.array([f"{o.provider}/{o.instance_type}" for o in offers], dtype=np.str_),
        purchase_option=np.array([o.purchase_option for o in offers], dtype=np.str_),
        gpu_count=np.array([o.gpu_count for o in offers], dtype=np.float64),
        usd_per_node_hour=np.array([float(o.price_usd_per_node_hour) for o in offers], dtype=np.float64),
        as_of_ordinal=np.array([o.as_of.toordinal() for o in offers], dtype=np.int64),
        available_nodes=np.array(
            [ANY_NUMBER if o.available_nodes is None else o.available_nodes for o in offers], dtype=np.int64
        ),
        is_average=np.array(["average" in o.flags for o in offers], dtype=np.bool_),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """Offers that pass, as a mask over the table, and what each filter took out."""

    mask: BoolArray
    rejections: tuple[Rejection, ...]


def select_offers(table: OfferTable, question: PlaceAndPurchase, today: date) -> Selection:
    """Apply the question's filters, counting what each took out; unknown names are errors.

    Raises ``InvalidQuestion`` when a provider, country or accelerator is not in the catalog at all, and when the
    filters leave nothing: it names the one that took the last offers, and what leaving each out brings back.
    """
    wrong = unknown_names(table, question)
    if wrong:
        raise InvalidQuestion(wrong)
    mask = np.ones(len(table.offers), dtype=np.bool_)
    rejections = []
    filters = list(_filters(table, question, today))
    last_asked = ("purchase_options", "", 0)
    for name, asked, passes in filters:
        removed = int(np.count_nonzero(mask & ~passes))
        mask = mask & passes
        if removed and name not in UNASKED:
            last_asked = (name, asked, removed)
        if removed:
            rejections.append(
                Rejection(
                    subject=say("{count:,} offers", count=removed),
                    code=f"filter_{name}",
                    reason=_left_out(name, asked),
                    value=float(removed),
                    limit=None,
                    unit="offers",
                    count=removed,
                    tried=False,
                )
            )
    if len(mask) and not mask.any():
        raise InvalidQuestion([_emptied(*last_asked, filters)])
    return Selection(mask=mask, rejections=tuple(rejections))


def _left_out(name: str, asked: str) -> str:
    if name == WHOLE_GPUS:
        return say("Less than one GPU: its share of bandwidth is not published.")
    if name == REAL_OFFERS:
        return say("An average over a seller's listings, which nobody can rent.")
    return say("Left out by the filter {field} = {asked}.", field=FieldName(name), asked=_asked(asked))


def _asked(asked: str) -> Sentence:
    """What a filter was asked: its codes, which pages show by name."""
    return joined([Code(code) for code in asked.split(", ")], ", ")


def _emptied(name: str, asked: str, removed: int, filters: list[tuple[str, str, BoolArray]]) -> FieldError:
    """What to say of the filter that took the last ``removed`` offers."""
    return FieldError(
        field=name,
        value=asked,
        message=say("Leaves no offer: it took out the last {count:,}.", count=removed),
        allowed=joined(_ways_back(filters)) or say("fewer filters: no single one brings an offer back"),
        code="empty_filter",
    )


def _filters(table: OfferTable, question: PlaceAndPurchase, today: date) -> Iterator[tuple[str, str, BoolArray]]:
    for name, asked, column in (
        ("providers", question.providers, table.provider),
        ("countries", question.countries, table.country),
        ("accelerators", question.accelerators, table.accelerator),
        ("instance_types", question.instance_types, table.instance_type),
        ("purchase_options", question.purchase_options, table.purchase_option),
    ):
        if asked:
            yield name, ", ".join(asked), np.isin(column, asked)
    if question.max_price_age_days is not None:
        age_days = today.toordinal() - table.as_of_ordinal
        yield "max_price_age_days", str(question.max_price_age_days), age_days <= question.max_price_age_days
    # Part of a card is no unit the engine can size: its share of bandwidth is not published.
    yield WHOLE_GPUS, "at least one GPU", table.gpu_count >= 1
    yield REAL_OFFERS, "no averages over a seller's listings", ~table.is_average


def _ways_back(filters: list[tuple[str, str, BoolArray]]) -> Iterator[str]:
    for position, (name, asked, _) in enumerate(filters):
        others = [passes for place, (_, _, passes) in enumerate(filters) if place != position]
        count = int(np.count_nonzero(np.logical_and.reduce(others))) if others else 0
        if count and name not in UNASKED:
            yield say(
                "Without {field} = {asked}, {count:,} offers are left.",
                field=FieldName(name),
                asked=_asked(asked),
                count=count,
            )


def unknown_names(table: OfferTable, question: PlaceAndPurchase) -> list[FieldError]:
    """A fault for every filter that names what no offer has."""
    errors = []
    for name, asked, column in (
        ("providers", question.providers, table.provider),
        ("countries", question.countries, table.country),
        ("accelerators", question.accelerators, table.accelerator),
        ("instance_types", question.instance_types, table.instance_type),
    ):
        if not asked:
            continue
        known = np.unique(column)
        unknown = [item for item in asked if item not in known]
        if unknown:
            errors.append(
                FieldError(
                    field=name,
                    value=", ".join(unknown),
                    message="Not in the catalog.",
                    allowed=", ".join(str(item) for item in known if item),
                    code="unknown_name",
                )
            )
    return errors


def in_stock(table: OfferTable, offer: IntArray, nodes: IntArray) -> tuple[BoolArray, tuple[Rejection, ...]]:
    """Which (offer, number of nodes) pairs the offer has nodes for; and the offers that have too few for others."""
    enough = nodes <= table.available_nodes[offer]
    rejections = []
    for row in np.unique(offer[~enough]).tolist():
        short = nodes[(offer == row) & ~enough]
        fewest, available = int(short.min()), int(table.available_nodes[row])
        found = table.offers[row]
        rejections.append(
            Rejection(
                subject=f"{found.provider} {found.instance_type}",
                code="available_nodes",
                reason=say("Needs {nodes:,} nodes; {available:,} are to be had.", nodes=fewest, available=available),
                value=float(fewest),
                limit=float(available),
                unit="nodes",
                count=len(short),
            )
        )
    return enough, tuple(rejections)
