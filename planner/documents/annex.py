"""The technical annex: what is planned, and every term of the sums behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from planner.documents.snapshot import Fact, Plan
from planner.documents.wording import Wording
from planner.engine.answers import Term

MONEY: Final = "USD"
CENT: Final = 0.01
SHARES: Final = frozenset({"mfu"})
"""Facts that are fractions, told in percent."""
CHOICES: Final = ("purchase_option", "method")
"""Facts that are choices with words of their own."""
HIDDEN_FACTS: Final = frozenset({"run_hours"})
"""Read by the notes, shown elsewhere."""


def annex(plan: Plan, words: Wording) -> dict[str, Any]:
    """The annex's title, facts and one table a group of terms."""
    return {
        "title": words.say("annex.title"),
        "intro": words.say(
            "annex.intro",
            catalog=plan.catalog_version,
            engine=plan.engine_version,
            date=words.day(plan.priced_on),
            scenario=plan.scenario,
            version=plan.version,
        ),
        "facts_title": words.say("annex.facts"),
        "facts": [
            [_fact_name(fact, words), _fact(fact, words)] for fact in plan.facts if fact.code not in HIDDEN_FACTS
        ],
        "working_title": words.say("annex.working"),
        "working_note": words.say("annex.working.note"),
        "columns": [words.say(f"annex.{name}") for name in ("term", "value", "formula")],
        "groups": list(_groups(plan.working, words)),
        "assumptions_title": words.say("annex.assumptions"),
        "assumptions": [words.planned(text) for text in plan.assumptions],
    }


def _groups(terms: tuple[Term, ...], words: Wording) -> Iterator[dict[str, Any]]:
    members: dict[str, list[Term]] = {}
    for term in terms:
        members.setdefault(term.group, []).append(term)
    for code, group in members.items():
        yield {
            "title": words.name("group", code),
            "rows": [
                [
                    words.name("working", term.name),
                    _with_unit(term.value, term.unit, words),
                    words.formula(term.formula),
                ]
                for term in group
            ],
        }


def _fact_name(fact: Fact, words: Wording) -> str:
    # A percentile belongs to the name: "TTFT at p95".
    return (
        words.name("fact", fact.code).replace("{text}", fact.text)
        if fact.number is not None
        else words.name("fact", fact.code)
    )


def _fact(fact: Fact, words: Wording) -> str:
    if fact.number is not None:
        if fact.code in SHARES:
            return words.share(fact.number)
        return _with_unit(fact.number, fact.unit, words)
    if fact.code == "country":
        return words.country(fact.text)
    if fact.code in CHOICES:
        return words.name(fact.code.removesuffix("_option"), fact.text.replace(" ", "_"))
    return words.planned(fact.text)


def _with_unit(value: float, unit: str, words: Wording) -> str:
    # Money to the cent, as the price table has it.
    cents = unit == MONEY and abs(value) >= CENT and not value.is_integer()
    number = words.fixed(value, 2) if cents else words.rounded(value)
    return f"{number}\u00a0{words.name('measure', unit)}" if unit else number
