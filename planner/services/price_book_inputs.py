"""What a price book's parts are written with: the fields of form and API, read by ``planner.services.json_input``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from planner.engine.field_spec import choice, choices, day, decimal, integer, number, text
from planner.engine.workload import PURCHASE_OPTIONS
from planner.models import PriceUnit

LONG_TERM_OPTIONS = ("on_demand", "reserved_1y", "reserved_3y", "monthly", "capacity_block")
"""What a contract's discount usually covers: not the markets whose prices move by the hour."""
LINKS = ("auto", "nvlink", "nvlink_bridge", "xgmi", "pcie", "ici", "neuronlink", "none")
FABRICS = ("infiniband", "roce", "efa", "ethernet", "none")
_UNITS = tuple(PriceUnit.values)
_MOST_MONEY = 1e11


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBookInput:
    """A price book itself."""

    name: str = text("Name", "Such as the contract it stands for.", required=True, max_length=100)
    markup_percent: Decimal | None = decimal(
        "Mark-up", 0, 1000, "%", "Added in quotes as a line of its own; plans show what you pay.", places=4
    )
    notes: str = text("Notes", "For your colleagues.", max_length=2000)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """When an entry holds, and what it rests on."""

    valid_from: date | None = day("From", "First day; empty: already.", section="term")
    valid_until: date | None = day("Until", "Last day; empty: open.", section="term")
    reference: str = text("Reference", "Contract or offer number.", section="term")
    attachment: str = text("Attachment", "Name of an uploaded file.", max_length=120, section="term")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscountInput(_Term):
    """A share off list prices."""

    provider: str = text("Provider", "Empty: every provider.", max_length=40)
    percent: Decimal = decimal("Discount", 0.0001, 99.9999, "%", "Off the list price.", required=True, places=4)
    purchase_options: tuple[str, ...] = choices(
        "Purchase options", LONG_TERM_OPTIONS, PURCHASE_OPTIONS, "What it covers.", "advanced"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Price(_Term):
    """Money as the contract states it."""

    amount: Decimal = decimal("Amount", 0.000001, _MOST_MONEY, "", "As the contract states it.", required=True)
    currency: str = text("Currency", "ISO 4217, such as USD, EUR or IDR.", required=True, max_length=3)
    tax_percent: Decimal | None = decimal(
        "Tax included", 0, 100, "%", "Tax inside the amount; empty: the amount is without tax.", places=4
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiatedPriceInput(_Price):
    """What one instance type costs under a contract."""

    provider: str = text("Provider", "Its code in the catalog.", required=True, max_length=40)
    instance_type: str = text("Instance type", "Its name in the catalog.", required=True, max_length=100)
    region: str = text("Region", "Empty: every region.", max_length=60)
    country: str = text("Country", "ISO code; of a region the catalog doesn't list.", max_length=2)
    purchase_option: str = choice("Purchase option", "on_demand", PURCHASE_OPTIONS, "How it is bought.", "advanced")
    unit: str = choice("For each", "node_hour", _UNITS, "A month is 730 hours.", "advanced")
    agreed_on: date | None = day("Agreed on", "Empty: today.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentInput(_Price):
    """Spend promised to a provider, or nodes bought ahead."""

    kind: str = choice("Kind", "capacity", ("capacity", "spend"), "Nodes bought ahead, or spend promised.", "advanced")
    provider: str = text("Provider", "Its code in the catalog.", required=True, max_length=40)
    instance_type: str = text("Instance type", "Of a capacity.", max_length=100)
    region: str = text("Region", "Of a capacity.", max_length=60)
    country: str = text("Country", "ISO code; of a region the catalog doesn't list.", max_length=2)
    nodes: int | None = integer("Nodes", None, 1, 100_000, "nodes", "Of a capacity.")
    purchase_option: str = choice(
        "Shown as", "reserved_1y", PURCHASE_OPTIONS, "Where plans list a capacity.", "advanced"
    )
    unit: str = choice("For each", "node_hour", _UNITS, "Of a capacity; a spend is for its term.", "advanced")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateInstanceTypeInput(_Price):
    """A node nobody else can rent: on premises, or of a local provider."""

    provider: str = text("Provider", "Who runs it, such as your data centre.", required=True, max_length=40)
    name: str = text("Name", "Of the instance type.", required=True, max_length=100)
    accelerator: str = text("Accelerator", "Its key in the catalog.", required=True, max_length=40)
    gpu_count: int = integer("GPUs in a node", 8, 1, 1024, "GPUs", "Whole cards.")
    vcpus: float | None = number("vCPUs", None, 1, 10_000, "vCPU", "Empty: not stated.")
    ram_gib: float | None = number("Memory", None, 1, 1_000_000, "GiB", "Empty: not stated.")
    local_disk_gb: float | None = number("Local disk", None, 1, 100_000_000, "GB", "Empty: not stated.")
    link: str = choice("Link between GPUs", "auto", LINKS, "auto takes the accelerator's own.", "advanced")
    fabric: str = choice("Network", "ethernet", FABRICS, "Between nodes.", "advanced")
    network_gbit_s: float | None = number(
        "Network speed", None, 0.1, 100_000, "Gbit/s", "One node, one direction; empty: not known."
    )
    region: str = text("Place", "City or site.", required=True, max_length=60)
    country: str = text("Country", "ISO code, such as ID.", max_length=2)
    nodes: int | None = integer("Nodes", None, 1, 100_000, "nodes", "How many there are; empty: any number.")
    purchase_option: str = choice("Listed as", "on_demand", PURCHASE_OPTIONS, "Where plans list it.", "advanced")
    unit: str = choice("For each", "node_hour", _UNITS, "A month is 730 hours.", "advanced")
    agreed_on: date | None = day("Price of", "Empty: today.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRateInput:
    """A rate you state yourselves."""

    base: str = text("One", "Currency, ISO 4217; one of the two is USD.", required=True, max_length=3)
    rate: Decimal = decimal("Buys", 1e-8, 1e9, "", "1 EUR buys 1.1567 USD.", required=True, places=8)
    quote: str = text("Of", "Currency, ISO 4217.", required=True, max_length=3)
    rate_date: date | None = day("Date", "Empty: today.")
    source: str = text("Source", "Such as your bank.", required=True)
