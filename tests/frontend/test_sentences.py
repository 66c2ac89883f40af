"""Sentences of the engine in the page's language: templates translated, values as people read them."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from django.utils.translation import override

from frontend.answer_words import rejection
from frontend.sentences import kept, shown
from planner.engine.sentences import Code, FieldName, Noun, joined, say

LATE = say(
    "Allow {nodes:,} nodes: at the pace of {tried:,}, it takes at least {needed:,}.",
    nodes=2048,
    tried=1024,
    needed=1259,
)


def test_a_sentence_is_its_english_text_wherever_it_goes() -> None:
    text = "Allow 2,048 nodes: at the pace of 1,024, it takes at least 1,259."
    assert text == LATE
    assert json.dumps([LATE]) == json.dumps([text])
    assert (
        pickle.loads(pickle.dumps(LATE)).values
        == copy.deepcopy(LATE).values
        == {"nodes": 2048, "tried": 1024, "needed": 1259}
    )


def test_indonesian_has_its_words_and_its_separators() -> None:
    assert shown(LATE) == str(LATE)
    with override("id"):
        assert shown(LATE) == "Izinkan 2.048 node: pada laju 1.024 node, dibutuhkan setidaknya 1.259."


def test_fields_are_called_by_their_labels_and_choices_by_their_names() -> None:
    advice = say(
        "Raise {field} to {value:,} {unit}: that much is needed by the closest ({subject}).",
        field=FieldName("finish_days"),
        value=1000,
        unit=Noun("days"),
        subject="8x H100",
    )
    assert advice == "Raise finish_days to 1,000 days: that much is needed by the closest (8x H100)."
    assert shown(advice) == "Raise “Finish within” to 1,000 days: that much is needed by the closest (8x H100)."
    with override("id"):
        assert "1.000 hari" in shown(advice)
        bought = joined([Code("on_demand"), Code("spot")], ", ")
        assert shown(bought) == "On demand, Spot"
        assert rejection("filter_purchase_options") == "Dibuang oleh saringan: Cara beli"


def test_a_translation_short_of_a_value_is_no_error() -> None:
    assert shown(say("{one} of {two:.1f}", one="a", two=2.0)) == "a of 2.0"


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("279 measured cases: megatron, dense", "279 kasus terukur: Megatron-LM, dense"),
        ("3 nodes x 3.7500 USD/h x 730 h", "3 node x 3,7500 USD/jam x 730 jam"),
        (
            "4 for capacity and headroom (headroom 0.2) + 0 spare",
            "4 untuk kapasitas dan kelonggaran (kelonggaran 0,2) + 0 cadangan",
        ),
        ("8x H100 SXM5 80GB", "8x H100 SXM5 80GB"),
        ("What somebody wrote to somebody else", "What somebody wrote to somebody else"),
    ],
)
def test_a_sentence_kept_as_text_is_said_in_the_pages_language(kept: str, said: str) -> None:
    with override("id"):
        assert shown(kept) == said
    with override("en"):
        assert shown(kept) == kept


def test_a_text_longer_than_any_sentence_is_not_looked_for() -> None:
    """Of so many words the templates' patterns would be tried for minutes."""
    text = "row 1: " * 20_000
    with override("id"):
        assert kept(text) == text
