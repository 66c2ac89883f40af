"""What the catalog offers as choices in the form: providers, countries, accelerators."""

from __future__ import annotations

from functools import lru_cache

from django.utils.translation import get_language

from catalog.selectors import catalog_version, list_accelerators, list_countries, list_providers
from frontend import words

Choices = tuple[tuple[str, str], ...]


def listed_choices() -> dict[str, Choices]:
    """(value, label) pairs by field name, in the page's language."""
    return _listed(catalog_version(), get_language() or "en")


@lru_cache(maxsize=8)
def _listed(version: str, language: str) -> dict[str, Choices]:
    countries = ((code, words.country(code)) for code, _name in list_countries())
    return {
        "providers": tuple((provider.code, provider.name) for provider in list_providers()),
        "countries": tuple(sorted(countries, key=lambda pair: pair[1])),
        "accelerators": tuple((item.key, item.name) for item in list_accelerators(rentable_only=True)),
    }
