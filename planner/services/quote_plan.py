"""From a saved plan to a quote: what is bought, and what else such a plan usually needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from catalog.models import Provider
from planner.documents.wording import wording
from planner.engine.money import plain_decimal
from planner.engine.units import GB, HOURS_PER_MONTH, SECONDS_PER_HOUR
from planner.models import PlanKind, ScenarioVersion
from planner.services.quote_terms import ItemTerms

BYTES_PER_OUTPUT_TOKEN: Final = 5
"""UTF-8 text of a token is 4 to 5 bytes in most languages; streaming and JSON come on top."""
KEPT_CHECKPOINTS: Final = 3
USD: Final = "USD"
GIB_MONTH_STEP: Final = Decimal("0.000001")
ANYWHERE: Final = "*"
"""In the region of offers that state none, or only a country."""
CONTRACT_FLAGS: Final = frozenset({"price_book_discount", "negotiated_price", "private_capacity", "committed_capacity"})


def compute_item(version: ScenarioVersion, language: str = "en", nodes: int | None = None) -> ItemTerms:
    """The compute line: node-hours of a month, or of all that a run or an offline job takes, at the plan's price;
    ``nodes`` for the plan's own.
    """
    option = option_of(version)
    cluster, price = option["cluster"], option["price"]
    nodes = nodes or int(cluster["nodes"]) + int(option.get("spare_nodes", 0))
    ends_after = hours_in_all(version)
    hours = Decimal(HOURS_PER_MONTH) if ends_after is None else ends_after
    per_node, words = f"{cluster['gpus_per_node']:g}x {cluster['accelerator_name']}", wording(language)
    return ItemTerms(
        category="compute",
        label=words.nodes(nodes, per_node),
        detail=words.say("nodes.detail", place=place_text(cluster), n=nodes, hours=words.exact(hours)),
        source=_price_source(option, language),
        quantity=nodes * hours,
        unit="node_hour",
        unit_price=plain_decimal(Decimal(price["usd_per_node_hour"])),
        currency=USD,
        cadence="monthly" if ends_after is None else "once",
    )


def plan_items(version: ScenarioVersion, language: str = "en") -> tuple[ItemTerms, ...]:
    """The lines that a plan's own price is made of: nodes, and of a training run what it stores meanwhile."""
    option = option_of(version)
    stored = Decimal(option.get("usd_storage") or 0)
    if not stored:
        return (compute_item(version, language),)
    question, hours = version.plan["question"], run_hours(option)
    price = Decimal(repr(float(question["storage_usd_per_gib_month"])))
    months = hours / HOURS_PER_MONTH
    gib = Decimal(repr(float(version.plan["stored_gib"])))
    line = ItemTerms(
        category="storage",
        label=wording(language).say("stored"),
        detail=wording(language).say(
            "stored.detail", size=wording(language).fixed(gib, 1), hours=wording(language).exact(hours)
        ),
        source=wording(language).say("stored.source"),
        quantity=(gib * months).quantize(GIB_MONTH_STEP),
        unit="gib_month",
        unit_price=plain_decimal(price),
        currency=USD,
        cadence="once",
    )
    return compute_item(version, language), line


def _price_source(option: Mapping[str, Any], language: str) -> str:
    """Where the price is from, as the buyer may know it: of a contract's nothing, for it is the seller's own."""
    if is_contract(option):
        return ""
    provider = provider_name(option["cluster"]["provider"])
    return wording(language).say("price.list", provider=provider, date=option["price"]["as_of"])[:240]


def is_contract(option: Mapping[str, Any]) -> bool:
    """Whether the price is the organization's own, not the list's."""
    return bool(CONTRACT_FLAGS & set(option["price"]["flags"]))


def place_text(cluster: Mapping[str, Any]) -> str:
    """Instance type, provider by name, region and country; where no place is stated, none is made up."""
    known = [cluster["instance_type"], provider_name(cluster["provider"]), cluster["region"], cluster["country"]]
    return ", ".join(part for part in known if part and ANYWHERE not in part)


def provider_name(code: str) -> str:
    """The provider's name in the catalog; a private one's own code."""
    name = Provider.objects.filter(code=code).values_list("name", flat=True).first()
    return name or code


def suggested_items(version: ScenarioVersion, language: str = "en") -> tuple[ItemTerms, ...]:
    """Lines that such a plan usually needs, with quantities from the plan; their prices are not known here."""
    words = wording(language)
    option, plan = option_of(version), version.plan
    gpus = Decimal(str(option["cluster"]["gpus_billed"]))
    weights = _weights_gib(option)
    items = [
        _suggested("storage", "gib_month", weights, words.say("suggested.weights"), words.say("suggested.one_copy")),
        _suggested("licences", "gpu_month", gpus, words.say("suggested.licences"), words.say("suggested.each_gpu")),
    ]
    if version.scenario.kind == PlanKind.TRAINING:
        size = _term(option, "run", "checkpoint size")
        if size is not None:
            number = int(plan["question"].get("checkpoints_kept", KEPT_CHECKPOINTS))
            kept = Decimal(str(round(size * number, 1)))
            detail = words.say("suggested.kept", n=number, size=words.rounded(size))
            items.append(_suggested("storage", "gib_month", kept, words.say("suggested.checkpoints"), detail))
        each = float(plan["question"].get("bytes_per_token", BYTES_PER_OUTPUT_TOKEN))
        tokens = Decimal(str(round(float(plan["tokens"]) * each / 2**30, 1)))
        detail = words.say("suggested.bytes", n=words.rounded(each))
        items.append(_suggested("storage", "gib_month", tokens, words.say("suggested.data"), detail))
    else:
        out = float(plan["mean_requests_s"]) * float(plan["question"]["output_tokens"])
        gigabytes = out * BYTES_PER_OUTPUT_TOKEN * SECONDS_PER_HOUR * HOURS_PER_MONTH / GB
        detail = words.say("suggested.mean_load", n=BYTES_PER_OUTPUT_TOKEN)
        answers = Decimal(str(round(gigabytes, 1)))
        items.append(_suggested("egress", "gb", answers, words.say("suggested.answers"), detail))
    items.append(_suggested("networking", "month", Decimal(1), words.say("suggested.connection"), ""))
    return tuple(items)


def default_months(version: ScenarioVersion) -> int:
    """The term that goes with the way it is bought, or with the run."""
    option, hours = option_of(version), hours_in_all(version)
    if hours is not None:
        return max(1, math.ceil(hours / HOURS_PER_MONTH))
    return 36 if option["cluster"]["purchase_option"] == "reserved_3y" else 12


def option_of(version: ScenarioVersion) -> Mapping[str, Any]:
    """The option that was chosen, as JSON."""
    option: Mapping[str, Any] = version.plan["options"][0]
    return option


def run_hours(option: Mapping[str, Any]) -> Decimal:
    """Hours of a training run, as its cost was computed with them."""
    hours = _term(option, "run", "wall time")
    return Decimal(repr(hours)) if hours is not None else Decimal(repr(float(option["speed"]["days"]) * 24))


def hours_in_all(version: ScenarioVersion) -> Decimal | None:
    """Hours after which what is planned is done, and nothing more is rented: of a training run, or of an offline job.

    None of a service, which goes on.
    """
    option = option_of(version)
    if version.scenario.kind == PlanKind.TRAINING:
        return run_hours(option)
    job = option.get("job")
    return None if job is None else Decimal(repr(float(job["hours"])))


def _weights_gib(option: Mapping[str, Any]) -> Decimal | None:
    """One copy of the weights: what a GPU of a replica holds, over all of them."""
    held = option["memory"]["parts_gib"].get("weights")
    layout = option["layout"]
    if held is None:
        return None
    return Decimal(str(round(float(held) * layout["tensor"] * layout["pipeline"], 1)))


def _term(option: Mapping[str, Any], group: str, name: str) -> float | None:
    found = (term["value"] for term in option["working"] if term["group"] == group and term["name"] == name)
    return next(found, None)


def _suggested(category: Any, unit: Any, quantity: Decimal | None, label: str, detail: str) -> ItemTerms:
    return ItemTerms(category=category, unit=unit, quantity=quantity, label=label, detail=detail)
