"""The notes under the prices: validity, tax, rates, what is assumed and left out, how sure it is."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from planner.documents.snapshot import Plan, QuoteSnapshot, Statement
from planner.documents.wording import Wording


def notes(snapshot: QuoteSnapshot, words: Wording) -> list[dict[str, Any]]:
    """Titled lists of sentences, without empty ones."""
    made = [
        ("validity", [_validity(snapshot, words)]),
        ("tax", [_tax(snapshot, words)]),
        ("withholding", _withholding(snapshot, words)),
        ("fx", _fx(snapshot, words)),
        ("terms", _said(snapshot.terms, words)),
        ("assumptions", _said(snapshot.assumptions, words)),
        ("exclusions", _said(snapshot.exclusions, words)),
        ("confidence", confidence(snapshot.plan, words) if snapshot.plan else []),
    ]
    return [{"title": words.say(f"notes.{code}"), "items": items} for code, items in made if items]


def confidence(plan: Plan, words: Wording) -> list[str]:
    """The band of the estimate, and what its low end would mean for the cluster."""
    band = plan.confidence
    if band is None:
        return []
    low = words.fixed(band.low, 2)
    reach = (
        words.say("confidence.from", low=low)
        if band.high is None
        else words.say("confidence.between", low=low, high=words.fixed(band.high, 2))
    )
    said = [words.say(f"confidence.{band.kind}", basis=words.planned(band.basis), reach=reach)]
    facts = {fact.code: fact.number for fact in plan.facts}
    nodes, hours, job_hours = facts.get("nodes"), facts.get("run_hours"), facts.get("job_hours")
    if band.kind == "exact" or not 0 < band.low < 1:
        return said
    if plan.kind == "training" and hours:
        slow = words.fixed(math.ceil(hours / band.low), 0)
        said.append(words.say("confidence.hours", hours=slow, planned=words.fixed(math.ceil(hours), 0)))
    elif job_hours:
        slow = words.rounded(job_hours / band.low)
        said.append(words.say("confidence.job_hours", hours=slow, planned=words.rounded(job_hours)))
    elif plan.kind == "inference" and nodes and math.ceil(nodes / band.low) > nodes:
        slow = words.fixed(math.ceil(nodes / band.low), 0)
        said.append(words.say("confidence.nodes", nodes=slow, planned=words.fixed(nodes, 0)))
    return said


def _said(statements: tuple[Statement, ...], words: Wording) -> list[str]:
    return [words.statement(statement) for statement in statements]


def _validity(snapshot: QuoteSnapshot, words: Wording) -> str:
    term = words.months(snapshot.months)
    if snapshot.valid_until is None:
        return words.say("notes.validity.none", term=term)
    return words.say("notes.validity.text", date=words.day(snapshot.valid_until), term=term)


def _tax(snapshot: QuoteSnapshot, words: Wording) -> str:
    tax = snapshot.tax
    if tax is None:
        return words.say("notes.tax.none")
    rate = words.percent(tax.rate * 100)
    if tax.base_numerator == tax.base_denominator:
        return words.say("notes.tax.whole", name=tax.name, rate=rate, source=tax.source)
    effective = tax.rate * 100 * tax.base_numerator / tax.base_denominator
    return words.say(
        "notes.tax.text",
        name=tax.name,
        rate=rate,
        numerator=tax.base_numerator,
        denominator=tax.base_denominator,
        effective=words.percent(effective.quantize(Decimal("0.01"))),
        source=tax.source,
    )


def _withholding(snapshot: QuoteSnapshot, words: Wording) -> list[str]:
    held = snapshot.withholding
    if held is None:
        return []
    due = [
        f"{words.money(value, snapshot.currency)} ({words.say(f'due_{name}').lower()})"
        for name, value in (("once", held.amounts.once), ("monthly", held.amounts.monthly))
        if value is None or value
    ]
    return [
        words.say(
            "notes.withholding.text",
            name=held.name,
            rate=words.percent(held.rate * 100),
            amounts=words.listed(due) or words.money(held.amounts.term, snapshot.currency),
            source=held.source,
        )
    ]


def _fx(snapshot: QuoteSnapshot, words: Wording) -> list[str]:
    return [
        words.say(
            "notes.fx.text",
            base=rate.base,
            quote=rate.quote,
            rate=words.exact(rate.rate),
            date=words.day(rate.rate_date),
            source=rate.source,
        )
        for rate in snapshot.fx
    ]
