"""Sentences of the engine in the page's language: templates translated, values as people read them."""

from __future__ import annotations

import copy
import json
import pickle

from django.utils.translation import override

from frontend.sentences import shown
from frontend.words import rejection
from planner.engine.sentences import Code, FieldName, Noun, joined, say

LATE = say("The fastest of them takes {days:,.1f} days, over {limit:,.1f}.", days=1234.5, limit=30.0)


def test_a_sentence_is_its_english_text_wherever_it_goes() -> None:
    text = "The fastest of them takes 1,234.5 days, over 30.0."
    assert text == LATE
    assert json.dumps([LATE]) == json.dumps([text])
    assert pickle.loads(pickle.dumps(LATE)).values == copy.deepcopy(LATE).values == {"days": 1234.5, "limit": 30.0}


def test_indonesian_has_its_words_and_its_separators() -> None:
    assert shown(LATE) == str(LATE)
    with override("id"):
        assert shown(LATE) == "Yang tercepat butuh 1.234,5 hari, di atas 30,0."


def test_fields_are_called_by_their_labels_and_choices_by_their_names() -> None:
    advice = say("Raise {field} to {value:,} {unit}: the closest option meets it.", field=FieldName("finish_days"),
                 value=1000, unit=Noun("days"))  # fmt: skip
    assert advice == "Raise finish_days to 1,000 days: the closest option meets it."
    assert shown(advice) == "Raise Finish within to 1,000 days: the closest option meets it."
    with override("id"):
        assert "1.000 hari" in shown(advice)
        bought = joined([Code("on_demand"), Code("spot")], ", ")
        assert shown(bought) == "On demand, Spot"
        assert rejection("filter_purchase_options") == "Dibuang oleh saringan: Cara beli"


def test_a_translation_short_of_a_value_is_no_error() -> None:
    assert shown(say("{one} of {two:.1f}", one="a", two=2.0)) == "a of 2.0"
