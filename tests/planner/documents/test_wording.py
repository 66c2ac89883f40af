"""Words and glyphs: both languages say everything, and the fonts have what is printed."""

import ast
import json
import re
import string
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from fontTools.ttLib import TTFont

from frontend.answer_words import GROUPS, TERMS
from planner.documents import glyphs
from planner.documents.snapshot import Statement, snapshot_from_json, snapshot_to_json
from planner.documents.wording import LANGUAGES, WORDS_DIR, wording
from planner.engine.money import Currency
from planner.engine.quote_math import CATEGORIES
from tests.planner.documents.quotes import quote

ROOT = Path(__file__).resolve().parents[3]
ENGINE = ROOT / "planner" / "engine"
SPOKEN = (
    *(
        "inference_working",
        "memory_working",
        "training_working",
        "inference_plan",
        "training_plan",
        "training_remarks",
        "training_run",
    ),
    *("regime_notes", "model_summary", "engine_release"),
)
"""Modules of the engine whose words stand in an annex."""
PO = ROOT / "frontend" / "locale" / "id" / "LC_MESSAGES" / "django.po"


def words_of(language: str) -> dict[str, str]:
    words: dict[str, str] = json.loads((WORDS_DIR / f"{language}.json").read_text(encoding="utf-8"))
    return words


def test_every_language_says_the_same_things_with_the_same_values():
    english, indonesian = (words_of(language) for language in LANGUAGES)
    assert english.keys() == indonesian.keys()
    for code, text in english.items():
        assert places(text) == places(indonesian[code]), code


def places(text: str) -> set[str | None]:
    return {name for _text, name, _spec, _conversion in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_category_has_a_name(language):
    assert all(f"category.{category}" in words_of(language) for category in CATEGORIES)


def test_numbers_and_dates_by_language():
    english, indonesian = wording("en"), wording("id")
    assert english.fixed(Decimal("-1234567.5"), 2) == "\u22121,234,567.50"
    assert indonesian.fixed(Decimal("1234567.5"), 2) == "1.234.567,50"
    assert indonesian.money(Decimal(1500), Currency(code="IDR", minor_digits=0)) == "IDR\u00a01.500"
    assert english.day(date(2026, 11, 29)) == "29 November 2026"
    assert indonesian.day(date(2026, 12, 29)) == "29 Desember 2026"
    assert english.share(0.0004) == "< 0.1\u00a0%"
    assert english.rounded(70_553_706_496.0) == "70,553,706,496"
    assert english.rounded(0.0312345) == "0.03123"


def test_values_of_statements_are_written_as_the_language_does():
    hours = Statement(code="run_hours", values={"hours": "1703.7878"})
    stale = Statement(code="stale_price", values={"date": "2026-05-24"})
    assert "1.703,7878 jam" in wording("id").statement(hours)
    assert "24 Mei 2026" in wording("id").statement(stale)
    assert "24 May 2026" in wording("en").statement(stale)
    assert wording("id").nodes(2, "8x H200") == "2 node 8x H200"


def test_coverage_is_that_of_the_fonts():
    folder = Path(glyphs.COVERAGE).parent
    codes: set[int] = set()
    for path in folder.glob("*.ttf"):
        with TTFont(path) as font:
            codes |= set(font.getBestCmap())
    starts, ends = glyphs._ranges()
    assert {code for start, end in zip(starts, ends, strict=True) for code in range(start, end + 1)} == codes


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_can_be_printed(language):
    for text in words_of(language).values():
        assert glyphs.printable(text).replace(glyphs.BREAK, "") == text


def test_a_snapshot_reads_back_from_its_json():
    snapshot = quote()
    assert snapshot_from_json(json.loads(json.dumps(snapshot_to_json(snapshot)))) == snapshot


@pytest.mark.parametrize("change", [{"schema": "other/1"}, {"lines": None}, {"months": None, "lines": [{}]}])
def test_another_documents_json_is_refused(change):
    with pytest.raises(ValueError, match=r"schema|not a quote"):
        snapshot_from_json(snapshot_to_json(quote()) | change)


@pytest.mark.parametrize(
    ("english", "indonesian"),
    [
        ("one GPU in the node", "satu GPU di dalam node"),
        (
            "NVLink in the node; network not stated between nodes",
            "NVLink di dalam node; jaringan tidak disebutkan antarnode",
        ),
        ("300 measured cases: Hopper 9.0, vllm, dense", "300 kasus terukur: Hopper 9.0, vllm, dense"),
        ("no measured case", "tidak ada kasus terukur"),
        (
            "Speed as of vllm, version 0.24.0, the newest one known.",
            "Kecepatan menurut vllm, versi 0.24.0, yang terbaru diketahui.",
        ),
        ("Whatever else it says.", "Whatever else it says."),
    ],
)
def test_a_plans_own_sentences_are_said_in_the_documents_language(english: str, indonesian: str) -> None:
    assert wording("id").planned(english) == indonesian
    assert wording("en").planned(english) == english


def test_those_sentences_are_the_plans_own() -> None:
    """Written here as the engine writes them: a change there that is not made here would show as English."""
    sources = "".join(path.read_text(encoding="utf-8") for path in ENGINE.glob("*.py"))
    english = json.loads((WORDS_DIR / "en.json").read_text(encoding="utf-8"))
    said = [words for code, words in english.items() if code.startswith("planned.")]
    written = re.sub(r"\{(\w+)[^{}]*\}", r"{\1}", sources)
    assert [words for words in said if words not in written] == []


@pytest.mark.parametrize(
    ("english", "indonesian"),
    [
        ("1,234.5 req/s / 3 replicas", "1.234,5 permintaan/dtk / 3 replika"),
        (
            "4 for capacity and headroom (headroom 0.2) + 1 spare",
            "4 untuk kapasitas dan kelonggaran (kelonggaran 0,2) + 1 cadangan",
        ),
        ("2 nodes x 24.5000 USD/h x 730 h", "2 node x 24,5000 USD/jam x 730 jam"),
        ('the engine logs "GPU KV cache size: 80,064 tokens"', 'mesin mencatat "GPU KV cache size: 80,064 tokens"'),
        ("over all requests", "atas semua permintaan"),
        ("nothing that is known", "nothing that is known"),
    ],
)
def test_formulas_are_said_in_the_documents_language(english: str, indonesian: str) -> None:
    assert wording("id").formula(english) == indonesian
    assert wording("en").formula(english) == english


def test_every_sentence_of_a_plan_has_its_indonesian_and_it_is_that_of_the_pages() -> None:
    with PO.open("rb") as file:
        of_pages = {message.id: message.string for message in read_po(file, locale="id")}
    written = {
        str(node.args[0].value)
        for name in SPOKEN
        for node in ast.walk(ast.parse((ENGINE / f"{name}.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say"
        if isinstance(node.args[0], ast.Constant)
    }
    shipped = json.loads((WORDS_DIR / "sentences.id.json").read_text(encoding="utf-8"))
    assert written - shipped.keys() == set()
    assert shipped == {english: of_pages[english] for english in shipped}
    assert shipped.keys() - written == {
        "capacity and headroom",
        "the latency limits",
        "{runs} published runs of {sources} sources, {first} to {last}",
    }


def test_every_term_and_group_of_a_page_has_its_words() -> None:
    english = words_of("en")
    assert [name for name in TERMS if f"working.{name}" not in english] == []
    assert [name for name in GROUPS if f"group.{name}" not in english] == []


def test_thousands_are_written_as_the_language_does_and_versions_are_left_alone() -> None:
    said = wording("id").planned(
        "Lengths are means; up to 256 sequences and 8,192 tokens an iteration, chunked prefill."
    )
    assert "8.192 token" in said
    assert "0.21" in wording("id").planned("Engine profile: vllm, memory as of version 0.21.")
    assert "0.24" in wording("id").planned("Speed as of vllm, version 0.24.")
    assert "0.24" in wording("id").planned("Speed as of vllm, version 0.24, the newest one known.")
