"""Cells and columns that the tables of inference and training share."""

from __future__ import annotations

from decimal import Decimal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import answer_words, numbers
from frontend.answers.parts import confidence_text
from frontend.answers.shown import Cell, Column
from planner.engine.answers import (
    Cluster,
    Confidence,
    Price,
)
from planner.engine.price_book import PRICE_BOOK_FLAGS


def price_age(price: Price) -> Cell:
    """How old a price is, as a badge; where it was read and what is doubtful about it as its note."""
    text = ngettext("%(n)s day", "%(n)s days", price.age_days) % {"n": numbers.fixed(price.age_days)}
    note = _("Read on %(date)s: %(source)s") % {"date": price.as_of.isoformat(), "source": price.source}
    if price.flags:
        note += " · " + ", ".join(answer_words.flag(flag) for flag in price.flags)
    own = [flag for flag in price.flags if flag in PRICE_BOOK_FLAGS]
    doubtful = price.is_stale or len(own) < len(price.flags)
    return Cell(
        text=text,
        sub=answer_words.flag(own[0]) if own else "",
        sort=str(price.age_days),
        note=note,
        badge="old" if doubtful else "fresh",
    )


def money_cell(value: Decimal, places: int = 2, second: Decimal | None = None) -> Cell:
    """A sum in USD, and a second one under it."""
    if second is None:
        return Cell(text=numbers.price(value, places), sort=str(value), exact=f"{value:f} USD")
    return Cell(
        text=numbers.price(value, places),
        sort=str(value),
        exact=f"{value:f} · {second:f} USD",
        sub=numbers.price(second),
        sub_sort=str(second),
    )


def not_applicable(why: str) -> Cell:
    """A figure that has no meaning here: said, not shown as zero."""
    return Cell(text=numbers.NOTHING, sort="", exact=why)


def price_column() -> Column:
    """A GPU's price and its node's: never one alone."""
    return Column(
        key="gpu_hour",
        label=_("$/GPU·h"),
        help=_("USD per GPU and hour"),
        second=_("$/node·h"),
        second_help=_("USD per node and hour"),
    )


def trust_columns(second: str = "", second_help: str = "") -> tuple[Column, ...]:
    """What says how far to trust a row: GPUs paid for (and a second figure of them), the price's age, the band."""
    return (
        Column(key="gpus", label=_("GPUs"), help=_("GPUs used / billed"), second=second, second_help=second_help),
        Column(key="age", label=_("Price read"), help=_("How long ago the price was read")),
        Column(key="band", label=_("Band"), help=_("90 of 100 measured cases lie within it")),
    )


def band_cell(confidence: Confidence) -> Cell:
    return Cell(
        text=numbers.band(confidence.low, confidence.high),
        sort=str(round(confidence.high - confidence.low, 4)),
        exact=confidence_text(confidence),
        sub=str(answer_words.CONFIDENCE[confidence.kind]),
    )


def gpus_cell(cluster: Cluster) -> Cell:
    used, billed = numbers.fixed(cluster.gpus_used), numbers.count(cluster.gpus_billed)
    return Cell(
        # One number where all that is billed is used: two are worth the width only where they differ.
        text=used if cluster.gpus_used == cluster.gpus_billed else f"{used} / {billed}",
        sort=str(cluster.gpus_billed),
        exact=_("%(used)s GPUs used of %(billed)s billed") % {"used": used, "billed": billed},
    )
