"""The tax of a quote: stated, or by the catalog's rule of a country; and what the buyer withholds."""

from __future__ import annotations

from dataclasses import fields
from datetime import date
from decimal import Decimal

from catalog.models import TaxRule
from planner.documents.snapshot import (
    Tax,
    Withholding,
)
from planner.engine.errors import FieldError
from planner.engine.money import Currency, to_amount
from planner.engine.quote_math import Amounts, Priced, TaxRate
from planner.engine.sentences import say
from planner.services.quote_terms import QuoteTerms, TaxTerms


def tax_of(terms: TaxTerms, today: date, problems: list[FieldError]) -> Tax | None:
    """The tax asked for, None where the catalog has no rule; what is wrong is added to ``problems``."""
    if terms.rate is not None:
        if not terms.name or not terms.source:
            missing = "name" if not terms.name else "source"
            problems.append(
                FieldError(
                    field=f"tax.{missing}",
                    value="",
                    message=say("A stated tax rate needs it."),
                    allowed=say("a text"),
                    code="required",
                )
            )
        return _tax(terms, terms.rate, None)
    rule = tax_rule(terms.country, today)
    if rule is None:
        problems.append(
            FieldError(
                field="tax.country",
                value=terms.country,
                message=say("The catalog has no tax rule for it on {today}.", today=today),
                allowed=say("a country with a rule, or name, rate and source"),
                code="unknown_tax",
            )
        )
        return None
    return _tax(rule, rule.rate, rule.valid_from)


def _tax(stated: TaxTerms | TaxRule, rate: Decimal, valid_from: date | None) -> Tax:
    """The tax line of what the writer or the catalog states: both call its parts the same."""
    same = {f.name: getattr(stated, f.name) for f in fields(Tax) if f.name not in ("rate", "valid_from")}
    return Tax(**same, rate=rate, valid_from=valid_from)


def tax_rule(country: str, on: date) -> TaxRule | None:
    """The sales tax of a country on a day, from the catalog."""
    rules = TaxRule.objects.filter(country=country, retired=False, valid_from__lte=on).order_by("-valid_from")
    return next((rule for rule in rules if rule.valid_to is None or on < rule.valid_to), None)


def tax_rate(tax: Tax) -> TaxRate:
    """The tax as amounts are reckoned with it."""
    return TaxRate(id="tax-1", **{f.name: getattr(tax, f.name) for f in fields(TaxRate) if f.name != "id"})


def withholding_of(terms: QuoteTerms, priced: Priced, currency: Currency) -> Withholding | None:
    """What the buyer keeps back and pays itself, of the net price."""
    held = terms.withholding
    if held is None:
        return None

    def part(amount: Decimal | None) -> Decimal | None:
        return None if amount is None else to_amount(amount * held.rate, currency)

    once, monthly = part(priced.net.once), part(priced.net.monthly)
    return Withholding(
        name=held.name,
        rate=held.rate,
        amounts=Amounts(
            once=once,
            monthly=monthly,
            term=None if once is None or monthly is None else once + terms.months * monthly,
        ),
        source=held.source,
    )
