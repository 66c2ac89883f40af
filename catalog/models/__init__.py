"""Tenant-free facts: what can be rented, what it costs, and which models run on it.

Rows come from the files in ``catalog/data`` through ``load_catalog`` and nowhere else. A row that left
the files is ``retired``, not deleted, because saved plans may point to it.
"""

from catalog.models.facts import CarbonFactor, FxRate, PriceAgeLimit, TaxRule
from catalog.models.hardware import Accelerator, InstanceType, Provider, Region
from catalog.models.model_architecture import ModelArchitecture
from catalog.models.offers import Offer, PriceObservation, TokenPrice
from catalog.models.version import CatalogVersion

__all__ = [
    "Accelerator",
    "CarbonFactor",
    "CatalogVersion",
    "FxRate",
    "InstanceType",
    "ModelArchitecture",
    "Offer",
    "PriceAgeLimit",
    "PriceObservation",
    "Provider",
    "Region",
    "TaxRule",
    "TokenPrice",
]
