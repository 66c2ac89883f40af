"""What an entry of a price book must be for a plan to use it: known to the catalog, convertible, whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from catalog.importers.rows import COUNTRIES
from catalog.selectors import catalog_snapshot, list_providers
from planner.engine.errors import FieldError
from planner.engine.sentences import say
from planner.models import Commitment
from planner.selectors.price_books import exchange_rate, known_currencies
from planner.selectors.scope import Scope
from planner.services.organizations import is_showable
from planner.services.price_book_inputs import LINKS

Columns = dict[str, Any]
_SCALE_UP = tuple(link for link in LINKS if link not in ("auto", "pcie", "none"))
_SEPARATORS = ",/"
_MOST_NAMED = 12


def check_discount(_scope: Scope, columns: Columns) -> list[FieldError]:
    """Faults of a discount."""
    columns["purchase_options"] = list(columns["purchase_options"])
    return _provider_faults(columns) if columns["provider"] else []


def check_negotiated(scope: Scope, columns: Columns) -> list[FieldError]:
    """Faults of a negotiated price; completes its columns."""
    columns["agreed_on"] = columns["agreed_on"] or timezone.localdate()
    return [*_provider_faults(columns), *_instance_faults(columns), *_region_faults(columns), *_money(scope, columns)]


def check_commitment(scope: Scope, columns: Columns) -> list[FieldError]:
    """Faults of a commitment; completes its columns."""
    faults = [*_provider_faults(columns), *_money(scope, columns)]
    if columns["kind"] == Commitment.Kind.SPEND:
        columns |= {"instance_type": "", "region": "", "country": "", "nodes": None, "purchase_option": "", "unit": ""}
        return faults
    if columns["nodes"] is None:
        faults.append(
            FieldError(field="nodes", value=None, message="Needed.", allowed=say("1 or more"), code="required")
        )
    return [*faults, *_instance_faults(columns), *_region_faults(columns)]


def check_private(scope: Scope, columns: Columns) -> list[FieldError]:
    """Faults of a private instance type; completes its columns."""
    snapshot = catalog_snapshot()
    columns["agreed_on"] = columns["agreed_on"] or timezone.localdate()
    faults = [*_country_faults(columns), *_money(scope, columns)]
    faults += [
        _fault(columns, name, "Not a usable name.", say("printable characters without commas and slashes"))
        for name in ("provider", "name", "region")
        if not is_showable(columns[name]) or any(mark in columns[name] for mark in _SEPARATORS)
    ]
    if (columns["provider"], columns["name"]) in snapshot.instance_types:
        faults.append(_fault(columns, "name", "In the catalog.", say("another name, or a negotiated price for it")))
    _by_name(columns, "accelerator", ((key, each.name) for key, each in snapshot.accelerators.items()))
    accelerator = snapshot.accelerators.get(columns["accelerator"])
    if accelerator is None:
        faults.append(_unknown(columns, "accelerator", "Not in the catalog.", snapshot.accelerators))
        return faults
    is_linked = columns["gpu_count"] > 1 and accelerator.link_bytes_s > 0
    if columns["link"] == "auto":
        columns["link"] = accelerator.link if is_linked else "pcie" if columns["gpu_count"] > 1 else "none"
    elif columns["link"] in _SCALE_UP and not is_linked:
        faults.append(
            _fault(
                columns,
                "link",
                say("{accelerator} has no such link.", accelerator=accelerator.name),
                "auto, pcie, none",
            )
        )
    elif columns["link"] == "none" and columns["gpu_count"] > 1:
        faults.append(_fault(columns, "link", say("Several GPUs are joined by something."), "auto, pcie"))
    columns["link_domain_gpus"] = columns["gpu_count"] if columns["link"] in _SCALE_UP else 1
    return faults


def _money(scope: Scope, columns: Columns) -> list[FieldError]:
    columns["currency"] = columns["currency"].upper()
    columns["tax_percent"] = columns["tax_percent"] or 0
    if exchange_rate(scope.organization, columns["currency"], timezone.localdate()) is None:
        known = ", ".join(known_currencies(scope))
        return [
            _fault(
                columns,
                "currency",
                "No exchange rate is known.",
                say("{known}; or state a rate for it first", known=known),
            )
        ]
    return []


def _by_name(columns: Columns, field: str, names: Iterable[tuple[str, str]]) -> None:
    """Put the catalog's key in the place of a name that one thing alone has, however it is capitalized."""
    said = " ".join(columns[field].split()).casefold()
    known = list(names)
    keys = {key for key, name in known if said in (name.casefold(), _without_remark(name).casefold())}
    if len(keys) == 1 and columns[field] not in dict(known):
        columns[field] = keys.pop()


def _without_remark(name: str) -> str:
    """``B200 SXM (HGX) 180GB`` -> ``B200 SXM 180GB``, as pages call it."""
    return " ".join(re.sub(r"\([^)]*\)", " ", name).split())


def _provider_faults(columns: Columns) -> list[FieldError]:
    _by_name(columns, "provider", ((provider.code, provider.name) for provider in list_providers()))
    codes = {provider.code for provider in list_providers()} | {key[0] for key in catalog_snapshot().instance_types}
    return [] if columns["provider"] in codes else [_unknown(columns, "provider", "Not in the catalog.", codes)]


def _instance_faults(columns: Columns) -> list[FieldError]:
    types = catalog_snapshot().instance_types
    if (columns["provider"], columns["instance_type"]) in types:
        return []
    names = [name for provider, name in types if provider == columns["provider"]]
    return [_unknown(columns, "instance_type", "The provider has none of this name in the catalog.", names)]


def _region_faults(columns: Columns) -> list[FieldError]:
    """A region the catalog does not list needs its country: the plan's filter goes by it."""
    faults = _country_faults(columns)
    if not columns["region"] or columns["country"]:
        return faults
    known = {offer.region for offer in catalog_snapshot().offers if offer.provider == columns["provider"]}
    if columns["region"] not in known:
        faults.append(_unknown(columns, "region", "Not in the catalog: give its country too.", known))
    return faults


def _country_faults(columns: Columns) -> list[FieldError]:
    columns["country"] = columns["country"].upper()
    if not columns["country"] or columns["country"] in COUNTRIES:
        return []
    return [
        _fault(columns, "country", "Not a country.", say("an ISO 3166 code of two letters, such as {code}", code="ID"))
    ]


def _fault(columns: Columns, name: str, message: str, allowed: str) -> FieldError:
    return FieldError(field=name, value=columns[name], message=message, allowed=allowed)


def _unknown(columns: Columns, name: str, message: str, known: Iterable[str]) -> FieldError:
    listed = sorted(item for item in known if item)
    more = ", …" if len(listed) > _MOST_NAMED else ""
    return _fault(columns, name, message, ", ".join(listed[:_MOST_NAMED]) + more)
