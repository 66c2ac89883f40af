"""The catalog's facts as ordered queries: each has one unique column, ``list_key``, so that paging is stable."""

from __future__ import annotations

from django.db.models import F, QuerySet, Value
from django.db.models.functions import Concat

from catalog.models import Accelerator, InstanceType, ModelArchitecture, PriceObservation, TokenPrice

_SLASH = Value("/")


def accelerators() -> QuerySet[Accelerator]:
    """Every accelerator, by key."""
    return Accelerator.objects.filter(retired=False).annotate(list_key=F("key")).order_by("list_key")


def instance_types() -> QuerySet[InstanceType]:
    """Every instance type with its provider and accelerator, by ``provider/name``."""
    return (
        InstanceType.objects.filter(retired=False)
        .select_related("provider", "accelerator")
        .annotate(list_key=Concat("provider__code", _SLASH, "name"))
        .order_by("list_key")
    )


def current_prices() -> QuerySet[PriceObservation]:
    """The current price of every offer, by the offer's id ``provider/instance type/region/purchase option``."""
    return (
        PriceObservation.objects.filter(retired=False, effective_to=None, offer__retired=False)
        .select_related("offer__instance_type__provider", "offer__instance_type__accelerator", "offer__region")
        .annotate(
            list_key=Concat(
                "offer__instance_type__provider__code",
                _SLASH,
                "offer__instance_type__name",
                _SLASH,
                "offer__region__code",
                _SLASH,
                "offer__purchase_option",
            ),
            usd_per_gpu_hour=F("usd_per_node_hour") / F("offer__instance_type__gpu_count"),
        )
        .order_by("list_key")
    )


def model_architectures() -> QuerySet[ModelArchitecture]:
    """Every model architecture, by name."""
    return ModelArchitecture.objects.filter(retired=False).annotate(list_key=F("name")).order_by("list_key")


def api_token_prices() -> QuerySet[TokenPrice]:
    """Every token API's price, by ``provider/model id``."""
    return (
        TokenPrice.objects.filter(retired=False)
        .annotate(list_key=Concat("provider", _SLASH, "provider_model_id"))
        .order_by("list_key")
    )
