"""Codes in words: choices, names, labels of fields.

Names of products are facts and come from ``catalog/data/display_names.json``, those of providers from the catalog.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache

from babel import Locale
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from catalog.display_names import display_names
from catalog.selectors import list_providers
from planner.engine.field_spec import specs
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion

CHOICES: dict[str, str | Promise] = {
    "auto": _("Automatic"),
    "on_demand": _("On demand"),
    "spot": _("Spot"),
    "reserved_1y": _("Reserved, 1 year"),
    "reserved_3y": _("Reserved, 3 years"),
    "marketplace": _("Marketplace"),
    "monthly": _("By the month"),
    "capacity_block": _("Capacity block"),
    "mean": _("mean"),
    "pretrain": _("Pre-training"),
    "continued": _("Continued pre-training"),
    "full_finetune": _("Full fine-tuning"),
    "distillation": _("Distillation from a teacher"),
    "packed": _("Packed"),
    "padded": _("Padded"),
    "1f1b": "1F1B",
    "interleaved": _("Interleaved"),
    "zero_bubble": _("Zero bubble"),
    "no": _("No"),
    "yes": _("Yes"),
    "balanced": _("Balanced"),
    "natural": _("As the router decides"),
    "8bit": _("8 bit"),
    "1bit": _("1 bit"),
    "states": _("All states"),
    "none": _("None"),
    "together": _("Together"),
    "split": _("Split"),
    "both": _("Both"),
    "continuous": _("Continuous"),
    "dynamic": _("Dynamic"),
    "static": _("Static"),
    "tensor": _("Tensor parallel"),
    "data": _("Data parallel"),
    "private": _("Private"),
    "shared": _("Shared"),
    "draft_model": _("Draft model"),
    "selective": _("Selective"),
    "full": _("Full"),
    "owner": _("Owner"),
    "planner": _("Planner"),
    "buyer": _("Buyer"),
    "viewer": _("Viewer"),
    "node_hour": _("node and hour"),
    "gpu_hour": _("GPU and hour"),
    "node_month": _("node and month"),
    "capacity": _("Capacity"),
    "spend": _("Spend"),
    "on": _("On"),
    "off": _("Off"),
    "quote.issued": _("Quote issued"),
    "quote.accepted": _("Quote accepted"),
    "quote.superseded": _("Quote superseded"),
    "scenario.saved": _("Scenario saved"),
    "scenario.version_saved": _("Scenario version saved"),
    "ping": _("Trial"),
    "round_robin": _("Round robin"),
    "least_outstanding": _("Least outstanding"),
    "power_of_two": _("Better of two"),
    "least_kv": _("Least KV in use"),
    "prefix_aware": _("By shared prefix"),
    "session_affinity": _("By session"),
    "hpa": "Kubernetes HPA",
    "keda": "KEDA",
    "queue": _("Queue"),
    "concurrency": _("Concurrency"),
    "kv_use": _("KV use"),
    "requests_per_s": _("Requests/s"),
    "utilization": _("Share of time busy"),
}
UNKNOWN = _("unknown")


def plain(code: str) -> str:
    """A code with no words of its own, readable: ``decode_bandwidth`` -> ``decode bandwidth``."""
    return code.replace("_", " ")


def named(words: Mapping[str, str | Promise], code: str) -> str:
    """A code's own words, else the code made readable."""
    return str(words.get(code, plain(code)))


def inside(name: str) -> str:
    """A heading's words inside a sentence: no capital, unless the first word is an abbreviation.

    >>> inside("Overhead"), inside("Data, DP8"), inside("TTFT limit")
    ('overhead', 'data, DP8', 'TTFT limit')
    """
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


@lru_cache(maxsize=1)
def _labels() -> dict[str, str]:
    return {
        name: spec.label
        for question_type in (TrainingQuestion, InferenceQuestion)
        for name, (spec, _default) in specs(question_type).items()
    }


def field_label(name: str) -> str:
    """What a form calls a question's field."""
    label = _labels().get(name)
    return gettext(label) if label else name


def run_title(kind: str) -> str:
    """What a job of that kind is called."""
    titles = {
        "plan_sweep": gettext("Cost against load"),
        "simulation": gettext("Simulation"),
        "capacity_search": gettext("Smallest fleet"),
    }
    return titles.get(kind, kind)


def choice(code: str) -> str:
    """A choice of a field: a product's own name, else words, else the code."""
    return str(CHOICES.get(code) or display_names().get(code) or code)


@lru_cache(maxsize=2)
def _provider_names(minute: int) -> dict[str, str]:
    """Names by code; read anew each minute, so that a reloaded catalog shows without a restart."""
    return {provider.code: provider.name for provider in list_providers()}


def provider(code: str) -> str:
    """A provider's name, as the catalog has it."""
    return _provider_names(int(time.monotonic() // 60)).get(code, code)


def catalog_version(version: str) -> str:
    """A catalog's version; with prices of an organization's own over it, that and their version.

    >>> catalog_version("2026-11-09.66fc6f1+22b4385b-d7e0-48f3-8526-78b4675657bb.3")
    '2026-11-09.66fc6f1, own prices version 3'
    """
    listed, _plus, own = version.partition("+")
    if not own:
        return listed
    return gettext("%(catalog)s, own prices version %(n)s") % {"catalog": listed, "n": own.rpartition(".")[2]}


def country(code: str) -> str:
    """A country's name in the page's language; an unknown code as it is."""
    territories = Locale.parse(get_language() or "en", sep="-").territories
    return str(territories.get(code, code)) if code else ""
