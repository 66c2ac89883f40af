"""Gates over all prices together: a price that cannot be right is refused unless someone looked at it.

A price of one accelerator is compared with what the same accelerator costs, bought in the same way, from
sellers of the same segment: hyperscaler list prices are several times those of others, so they are
compared with each other. Every provider counts once, by its own median, whatever its number of regions.
price_reviews.csv holds the prices that lie outside and are right, with bounds and a reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import median

from catalog.importers.offers import OFFER_KEY
from catalog.importers.rows import Problem, Row, read_rows, unique_rows
from catalog.models import Provider

LOWEST, HIGHEST = Decimal("0.3"), Decimal(3)
"""Times the median of the group."""

REVIEW_KEY = ("provider", "instance_type", "purchase_option")
REVIEW_COLUMNS = ",".join(REVIEW_KEY) + ",lowest_usd_per_gpu_hour,highest_usd_per_gpu_hour,reason,reviewed_on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Bounds within which an unusual price was looked at and found right."""

    lowest: Decimal
    highest: Decimal


def read_price_reviews(folder: Path, problems: list[Problem]) -> dict[tuple[str, str, str], Review]:
    """price_reviews.csv by provider, instance type and purchase option."""
    rows, reviews = [], {}
    for row in read_rows(folder / "price_reviews.csv", REVIEW_COLUMNS, problems):
        low, high = row.decimal("lowest_usd_per_gpu_hour"), row.decimal("highest_usd_per_gpu_hour")
        row.text("reason")
        row.day("reviewed_on")
        if low is not None and high is not None:
            if high < low:
                row.problem("highest_usd_per_gpu_hour", f"must not be below the lowest, {low}")
            provider, instance_type, option = (row.text(name) for name in REVIEW_KEY)
            reviews[provider, instance_type, option] = Review(lowest=low, highest=high)
        rows.append(row)
    unique_rows(rows, REVIEW_KEY)
    return reviews


def check_price_level(
    offers: list[Row], kinds: Mapping[str, str], reviews: Mapping[tuple[str, str, str], Review]
) -> None:
    """Refuse prices of one accelerator outside 0.3 to 3 times the median of their group."""
    groups: defaultdict[tuple[str, ...], defaultdict[str, list[Decimal]]]
    groups = defaultdict(lambda: defaultdict(list))
    offers = [row for row in offers if "usd_per_gpu_hour" in row.values and row.values["provider"] in kinds]
    for row in offers:
        groups[_group(row, kinds)][row.values["provider"]].append(row.values["usd_per_gpu_hour"])
    medians = {group: median(median(prices) for prices in found.values()) for group, found in groups.items()}
    for row in offers:
        usual = medians[_group(row, kinds)]
        price = row.values["usd_per_gpu_hour"]
        if LOWEST * usual <= price <= HIGHEST * usual:
            continue
        review = reviews.get((row.values["provider"], row.values["instance_type"], row.values["purchase_option"]))
        if review is None or not review.lowest <= price <= review.highest:
            row.problem(
                "usd_per_gpu_hour",
                f"{price / usual:.2f} x the median {usual:.4g} of {' '.join(_group(row, kinds))}; allowed 0.3 to 3: "
                "correct it, or add reviewed bounds and a reason to price_reviews.csv",
            )


def check_discounts(offers: list[Row]) -> None:
    """Refuse spot and reserved prices above the on-demand price of the same shape in the same region."""
    latest: dict[tuple[str, ...], Row] = {}
    for row in (row for row in offers if row.sound):
        key = tuple(row.values[name] for name in OFFER_KEY)
        if key not in latest or row.values["observed_on"] > latest[key].values["observed_on"]:
            latest[key] = row
    for (*place, option), row in latest.items():
        base = latest.get((*place, "on_demand"))
        if base is None or option not in ("spot", "reserved_1y", "reserved_3y"):
            continue
        if row.values["usd_per_node_hour"] > base.values["usd_per_node_hour"]:
            row.problem(
                "usd_per_node_hour",
                f"{option} above on demand, {base.values['usd_per_node_hour']} (line {base.line}): "
                "swapped columns or another product",
            )


def _group(row: Row, kinds: Mapping[str, str]) -> tuple[str, str, str]:
    hyperscaler = kinds[row.values["provider"]] == Provider.Kind.HYPERSCALER
    segment = "hyperscalers" if hyperscaler else "other sellers"
    return row.cells["accelerator"], row.values["purchase_option"], f"at {segment}"
