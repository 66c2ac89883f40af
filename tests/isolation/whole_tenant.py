"""An organization that owns a row of everything, and requests to every address that could reach one.

Both are made from what the code declares: the models that derive from ``TenantRow``, the URL patterns, the operations
of the OpenAPI document. A new model, page or endpoint is walked without a word here, or fails for want of an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver

from catalog.selectors import catalog_snapshot
from planner.models import (
    ApiKey,
    Commitment,
    Discount,
    ExchangeRate,
    Invitation,
    NegotiatedPrice,
    PriceBook,
    PriceBookFile,
    PrivateInstanceType,
    Quote,
    Role,
    Scenario,
    ShareLink,
    TenantRow,
    Webhook,
    WebhookDelivery,
)
from planner.selectors.scenarios import version_of
from planner.selectors.scope import Scope
from planner.services.api_keys import create_key
from planner.services.invitations import invite
from planner.services.json_input import read_form
from planner.services.organization_inputs import InvitationInput, KeyInput
from planner.services.price_book_files import attach_file
from planner.services.price_book_inputs import (
    CommitmentInput,
    DiscountInput,
    ExchangeRateInput,
    NegotiatedPriceInput,
    PriceBookInput,
    PrivateInstanceTypeInput,
)
from planner.services.price_books import add_entry, create_price_book, set_exchange_rate
from planner.services.quotes import create_quote
from planner.services.scenarios import comment_on, save_scenario
from planner.services.share_links import create_link
from planner.services.stored_traces import store_trace
from planner.services.webhook_inputs import WebhookInput
from planner.services.webhooks import create_webhook, ping
from tests.planner.organizations import Tenant, tenant_factory

QUESTION = {"model": "Llama 3.1 8B", "requests_per_second": 5, "accelerators": ["h100-sxm"], "max_options": 2}
MARK = "Zanzibar"
"""In every text that the organization's rows hold: found in another's answer, something leaked."""


def tenant_models() -> list[type[TenantRow]]:
    return [model for model in apps.get_models() if issubclass(model, TenantRow)]


def furnish(tenant: Tenant) -> None:
    """Give the organization a row of everything."""
    scope = tenant.scope()
    invite(scope=scope, values=InvitationInput(email=f"{MARK}@example.org".lower(), role=Role.VIEWER.value))
    create_key(scope=scope, values=KeyInput(name=f"{MARK} key", service_account=f"{MARK} ERP", scopes=("plans",)))
    set_exchange_rate(
        scope=scope,
        values=read_form(ExchangeRateInput, {"base": "USD", "rate": "16500", "quote": "IDR", "source": MARK}),
    )
    book = create_price_book(scope=scope, values=PriceBookInput(name=f"{MARK} book", notes=MARK))
    attach_file(scope=scope, book=book, name=f"{MARK}.txt", content=MARK.encode())
    _add_entries(scope, book)
    scenario = save_scenario(scope=scope, name=f"{MARK} chat", kind="inference", question=QUESTION, note=MARK)
    comment_on(scope=scope, scenario=scenario, text=MARK)
    quote = create_quote(scope=scope, version=version_of(scenario), terms={"title": f"{MARK} quote"})
    # Put there by hand: the quote stays a draft, which no link is made to.
    ShareLink.objects.create(organization=quote.organization, quote=quote, name=MARK, token_hash="0" * 64)
    create_link(scope=scope, shown=scenario, name=MARK)
    hook = WebhookInput(name=f"{MARK} ERP", url=f"https://{MARK}.example/hook".lower(), events=("quote.issued",))
    ping(scope=scope, webhook=create_webhook(scope=scope, values=hook).webhook)


def _add_entries(scope: Scope, book: PriceBook) -> None:
    listed = next(o for o in catalog_snapshot().offers if o.gpu_count == 8 and o.purchase_option == "on_demand")
    node = {"provider": listed.provider, "instance_type": listed.instance_type}
    money = {"amount": "1234567", "currency": "IDR", "reference": MARK}
    add_entry(scope=scope, book=book, values=read_form(DiscountInput, {"percent": "10", "reference": MARK}))
    add_entry(scope=scope, book=book, values=read_form(NegotiatedPriceInput, node | money))
    add_entry(scope=scope, book=book, values=read_form(CommitmentInput, node | money | {"nodes": "3"}))
    private = {"provider": MARK, "name": "node", "accelerator": "h100-sxm", "region": MARK, "country": "ID"}
    add_entry(scope=scope, book=book, values=read_form(PrivateInstanceTypeInput, private | money))


def furnished_tenant(name: str = MARK) -> Tenant:
    tenant = tenant_factory(name)
    furnish(tenant)
    return tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What stands in addresses for the rows of one organization."""

    slug: str
    organization: UUID
    rows: dict[type[TenantRow], UUID]

    @classmethod
    def of(cls, tenant: Tenant) -> Names:
        found = {model: tenant.scope().rows(model).first() for model in tenant_models()}
        missing = [model.__name__ for model, row in found.items() if row is None]
        assert missing == [], f"furnish() makes no {missing}"
        return cls(
            slug=tenant.organization.slug,
            organization=tenant.organization.uuid,
            rows={model: row.uuid for model, row in found.items() if row is not None},
        )


API_PARAMETERS: dict[str, type[TenantRow]] = {}
for _model in tenant_models():
    API_PARAMETERS[f"{_model._meta.model_name}_id"] = _model
API_PARAMETERS |= {
    "key_id": ApiKey,
    "book_id": PriceBook,
    "file_id": PriceBookFile,
    "rate_id": ExchangeRate,
    "link_id": ShareLink,
    "delivery_id": WebhookDelivery,
}
"""Parameters of the API's addresses, by name."""
ENTRY_KINDS: dict[str, type[TenantRow]] = {
    "discounts": Discount,
    "negotiated-prices": NegotiatedPrice,
    "commitments": Commitment,
    "private-instance-types": PrivateInstanceType,
}


def row_named(parameter: str, path: str, names: Names) -> str:
    """What stands for a parameter of an API address where an organization's own row is meant."""
    if parameter == "organization_id":
        return str(names.organization)
    if parameter == "number":
        return "1"
    if parameter == "trace":
        # Of whoever knows its name: what has an owner is theirs alone, in no organization.
        return store_trace([b"arrival_s,input_tokens,output_tokens\n", *(b"%d,9,9\n" % row for row in range(20))])
    if parameter == "entry_id":
        kind = next(kind for kind in ENTRY_KINDS if f"/{kind}/" in path)
        return str(names.rows[ENTRY_KINDS[kind]])
    return str(names.rows[API_PARAMETERS[parameter]])


def api_path(path: str, names: Names) -> str:
    """An address of the OpenAPI document with the names of an organization's rows in it."""
    return re.sub(r"\{(\w+)\}", lambda found: row_named(found.group(1), path, names), path)


PAGE_ROWS: dict[str, type[TenantRow]] = {
    "members/": apps.get_model("planner", "Membership"),
    "invitations/": Invitation,
    "keys/": ApiKey,
    "exchange-rates/": ExchangeRate,
    "price-books/": PriceBook,
    "scenarios/": Scenario,
    "quotes/": Quote,
    "webhooks/": Webhook,
    "deliveries/": WebhookDelivery,
}
"""Whose row ``<uuid:uuid>`` is, by what stands before it."""


def page_paths(names: Names) -> Iterator[str]:
    """Every page below ``organizations/<slug>/``, with the names of an organization's rows in it."""
    for pattern in _patterns(get_resolver()):
        if not pattern.startswith("organizations/<slug:slug>/"):
            continue
        filled = pattern.replace("<slug:slug>", names.slug)
        kinds = list(ENTRY_KINDS) if "<entry_kind:kind>" in filled else [""]
        for kind in kinds:
            yield "/" + _filled(filled, kind, names)


def _filled(path: str, kind: str, names: Names) -> str:
    return re.sub(r"<(\w+:)?(\w+)>", lambda found: _value(found, kind, path, names), path)


def _value(found: re.Match[str], kind: str, path: str, names: Names) -> str:
    match found.group(2):
        case "kind":
            return kind
        case "entry":
            return str(names.rows[ENTRY_KINDS[kind]])
        case "file":
            return str(names.rows[PriceBookFile])
        case "action":
            return "rename"
        case "form":
            return "pdf"
        case _:
            before = path[: found.start()].split("/")[-2] + "/"
            return str(names.rows[PAGE_ROWS[before]])


def _patterns(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for entry in resolver.url_patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _patterns(entry, route)
        elif isinstance(entry, URLPattern):
            yield route


def everything() -> dict[str, list[dict[str, Any]]]:
    """All rows of all organizations, to see a write; only when a key was used last is left out."""
    return {
        model.__name__: [
            {name: value for name, value in row.items() if name != "last_used_at"}
            for row in model._default_manager.order_by("pk").values()
        ]
        for model in tenant_models()
    }
