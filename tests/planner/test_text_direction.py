"""Texts that turn the direction of what stands beside them are refused; scripts from the right are not."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.errors import InvalidQuestion
from planner.engine.field_spec import TURNS, read_fields
from planner.services.price_book_inputs import PriceBookInput
from planner.services.quotes import change_quote, create_quote, priced
from planner.services.scenarios import comment_on, save_scenario
from tests.planner.organizations import tenant_factory
from tests.planner.quote_terms import BUYER, QUESTION, TERMS

ARABIC, HEBREW = "\u0634\u0631\u0643\u0629", "\u05e9\u05dc\u05d5\u05dd"


def fault_of(terms: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(InvalidQuestion) as caught:
        create_quote(scope=tenant_factory().scope(), terms=terms)
    (error,) = caught.value.errors
    return error.field, error.message


@pytest.mark.django_db
@pytest.mark.parametrize("turn", sorted(TURNS), ids=lambda turn: f"U+{ord(turn):04X}")
def test_a_name_that_turns_the_amounts_beside_it_is_refused(turn: str) -> None:
    named = TERMS | {"buyer": BUYER | {"name": f"{turn}PT Pembeli"}}
    assert fault_of(named) == ("buyer.name", "Not a usable text.")
    _values, (error,) = read_fields(PriceBookInput, {"name": f"Contract{turn}"})
    assert (error.field, error.message) == ("name", "Not a short text.")


@pytest.mark.django_db
def test_names_in_scripts_from_the_right_are_kept() -> None:
    quote = create_quote(scope=tenant_factory().scope(), terms=TERMS | {"title": HEBREW, "buyer": {"name": ARABIC}})
    assert (quote.title, quote.terms["buyer"]["name"]) == (HEBREW, ARABIC)
    assert read_fields(PriceBookInput, {"name": ARABIC})[0]["name"] == ARABIC


@pytest.mark.django_db
def test_a_draft_from_before_is_shown_without_them_and_asks_for_another_name() -> None:
    scope = tenant_factory().scope()
    quote = create_quote(scope=scope, terms=TERMS)
    quote.terms = {**quote.terms, "buyer": {**quote.terms["buyer"], "name": "\u202ePT Pembeli"}}
    quote.save()
    assert priced(quote).snapshot.buyer.name == "PT Pembeli"
    with pytest.raises(InvalidQuestion) as caught:
        change_quote(scope=scope, quote=quote, changes={"months": 3})
    assert [error.field for error in caught.value.errors] == ["buyer.name"]
    assert change_quote(scope=scope, quote=quote, changes={"buyer": {"name": "PT Pembeli"}}).title == quote.title


@pytest.mark.django_db
@pytest.mark.usefixtures("catalog")
def test_comments_too() -> None:
    scope = tenant_factory().scope()
    scenario = save_scenario(scope=scope, name="Chat", kind="inference", question=QUESTION)
    with pytest.raises(InvalidQuestion):
        comment_on(scope=scope, scenario=scenario, text="\u202e001 $")
    assert comment_on(scope=scope, scenario=scenario, text=HEBREW).text == HEBREW
