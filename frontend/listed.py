"""What the catalog offers as choices in the form: providers, countries, accelerators, nodes, teachers."""

from __future__ import annotations

from functools import lru_cache

from django.utils import timezone
from django.utils.translation import get_language

from catalog.selectors import (
    catalog_snapshot,
    catalog_version,
    list_accelerators,
    list_countries,
    list_providers,
    model_names,
)
from frontend import words
from planner.engine.hardware import CatalogSnapshot, Offer
from planner.selectors.price_books import snapshot_for
from planner.selectors.scope import Scope

Choices = tuple[tuple[str, str], ...]


def node_types(scope: Scope | None) -> Choices:
    """Kinds of node with offers, by provider: what a question's ``instance_types`` may hold.

    A name with a comma can't stand in a comma-separated list and is left out.
    """
    snapshot = catalog_snapshot() if scope is None else snapshot_for(scope, timezone.localdate())
    sold = {(offer.provider, offer.instance_type): offer for offer in snapshot.offers}
    pairs = (
        (f"{provider}/{name}", f"{words.provider(provider)} · {name} · {offer.gpu_count:g}× {_card(snapshot, offer)}")
        for (provider, name), offer in sold.items()
        if "," not in name
    )
    return tuple(sorted(pairs, key=lambda pair: pair[1].casefold()))


def _card(snapshot: CatalogSnapshot, offer: Offer) -> str:
    card = snapshot.accelerators.get(offer.accelerator_key)
    return card.name if card else offer.accelerator_key


def listed_choices() -> dict[str, Choices]:
    """(value, label) pairs by field name, in the page's language."""
    return _listed(catalog_version(), get_language() or "en")


@lru_cache(maxsize=8)
def _listed(version: str, language: str) -> dict[str, Choices]:
    countries = ((code, words.country(code)) for code, _name in list_countries())
    return {
        "providers": tuple((provider.code, provider.name) for provider in list_providers()),
        "countries": tuple(sorted(countries, key=lambda pair: pair[1])),
        "teacher": tuple((name, "") for name in model_names()),
        "accelerators": tuple((item.key, item.name) for item in list_accelerators(rentable_only=True)),
    }
