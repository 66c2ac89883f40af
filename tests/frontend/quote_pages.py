"""What tests of scenarios' and quotes' pages share."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client
from django.urls import reverse

from planner.documents.wording import wording
from planner.models import Quote, Role
from planner.services.quotes import priced
from tests.planner.organizations import Tenant

QUERY = "model=Llama 3.1 8B&requests_per_second=5&input_tokens=1000&output_tokens=200&accelerators=h100-sxm"


def signed_in(tenant: Tenant, role: Role) -> Client:
    client = Client()
    client.force_login(tenant.people[role])
    return client


def address(name: str, tenant: Tenant, *rest: Any) -> str:
    return reverse(name, args=[tenant.organization.slug, *rest])


def fields(page: str) -> dict[str, str]:
    """What a browser would send of the draft's form, as it stands."""
    form = re.search(r'<form method="post" class="quote-form".*?</form>', page, re.DOTALL)
    assert form is not None
    found = dict(re.findall(r'<input id="f-[^"]+" type="\w+" name="([^"]+)" value="([^"]*)"', form[0]))
    for name, body in re.findall(r'<select id="f-[^"]+" name="([^"]+)"[^>]*>(.*?)</select>', form[0], re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', body) or re.search(r'<option value="([^"]*)"', body)
        found[name] = chosen[1] if chosen else ""
    found |= dict(re.findall(r'<textarea id="f-[^"]+" name="([^"]+)"[^>]*>(.*?)</textarea>', form[0], re.DOTALL))
    return found


def shown_once(page: str) -> str:
    found = re.search(r'name="once" value="([\w-]{36})"', page)
    assert found is not None
    return found[1]


def in_words_of(quote: Quote) -> str:
    """The total as an English page writes it."""
    snapshot = priced(quote).snapshot
    return wording("en").money(snapshot.total.term, snapshot.currency)
