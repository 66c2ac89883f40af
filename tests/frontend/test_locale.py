"""Every text has its Indonesian: extracted anew from code and templates, and compared with what is shipped."""

from __future__ import annotations

import ast
import io
import re
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from django.utils.translation import override
from django.utils.translation.template import templatize

from frontend import presets
from frontend.account_texts import TEXTS as ACCOUNT_TEXTS
from frontend.engine_texts import TEXTS as ENGINE_TEXTS
from frontend.forms import build_form
from frontend.question_texts import TEXTS as QUESTION_TEXTS
from frontend.simulation_texts import TEXTS as SIMULATION_TEXTS
from planner.api.schema import BODIES
from planner.engine.field_spec import specs
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion
from planner.models import RunStatus

TEXTS = {*ENGINE_TEXTS, *QUESTION_TEXTS, *SIMULATION_TEXTS, *ACCOUNT_TEXTS}
ROOT = Path(__file__).resolve().parents[2]
FRONTEND, PLANNER = ROOT / "frontend", ROOT / "planner"
PO = FRONTEND / "locale" / "id" / "LC_MESSAGES" / "django.po"
KEYWORDS: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), None),
    "ngettext": (1, 2),
}
TEMPLATE_CALL = re.compile(r"""\b(?:gettext|ngettext|_)\(u?('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""")
CODES = re.compile(r"[\w-]+(, [\w-]+)*", re.ASCII)
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w+(?::[^}]*)?\}")


@pytest.fixture(scope="module")
def indonesian() -> Catalog:
    with PO.open("rb") as file:
        return read_po(file, locale="id")


def texts_in_use() -> Iterator[str]:
    for path in FRONTEND.rglob("*.py"):
        for _line, message, _comments, _context in extract("python", io.BytesIO(path.read_bytes()), KEYWORDS):
            yield message if isinstance(message, str) else message[0]
    for path in sorted(PLANNER.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "planner.engine.sentences import" in source:
            yield from _templates(ast.parse(source))
    for path in FRONTEND.rglob("*.html"):
        for literal in TEMPLATE_CALL.findall(templatize(path.read_text(encoding="utf-8"))):
            yield literal_eval(literal)


def _templates(tree: ast.Module) -> Iterator[str]:
    """Sentences of the engine: the literal that ``say`` is called with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("say", "Noun"):
            template = node.args[0]
            if isinstance(template, ast.Constant):
                yield str(template.value)
            else:
                assert node.func.id == "Noun", f"say() needs a literal: {ast.unparse(node)}"


def test_every_text_in_use_is_translated_and_no_other(indonesian: Catalog) -> None:
    shipped = {message.id if isinstance(message.id, str) else message.id[0] for message in indonesian if message.id}
    assert shipped == set(texts_in_use())
    unfinished = [message.id for message in indonesian if message.id and (not message.string or message.fuzzy)]
    assert unfinished == []


def test_faults_can_be_said_in_indonesian(indonesian: Catalog) -> None:
    """Whatever a fault says is a text of the list or a sentence that keeps its template; lists of codes are neither."""
    unsaid = []
    for path in sorted([*(PLANNER / "engine").rglob("*.py"), *(PLANNER / "services").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "FieldError":
                continue
            for said in (keyword.value for keyword in node.keywords if keyword.arg in ("message", "allowed")):
                plain = str(said.value) if isinstance(said, ast.Constant) else ""
                if isinstance(said, ast.JoinedStr) or not (plain in indonesian or CODES.fullmatch(plain) or not plain):
                    unsaid.append(f"{path.name}: {ast.unparse(said)}")
    assert unsaid == []


def test_placeholders_are_the_same(indonesian: Catalog) -> None:
    for message in indonesian:
        english = message.id if isinstance(message.id, str) else message.id[1]
        translated = message.string if isinstance(message.string, str) else (message.string or [""])[0]
        assert sorted(PLACEHOLDER.findall(english)) == sorted(PLACEHOLDER.findall(translated)), english


def test_the_compiled_file_is_that_of_the_text(indonesian: Catalog) -> None:
    compiled = io.BytesIO()
    write_mo(compiled, indonesian)
    assert PO.with_suffix(".mo").read_bytes() == compiled.getvalue(), (
        "run: pybabel compile -D django -d frontend/locale"
    )


@pytest.mark.parametrize("question_type", [InferenceQuestion, TrainingQuestion])
def test_the_engines_texts_are_listed(question_type: type) -> None:
    used = {
        text for spec, _default in specs(question_type).values() for text in (spec.label, spec.unit, spec.help) if text
    }
    assert used - TEXTS == set()


@pytest.mark.parametrize("input_type", [SimulationQuestion, TrafficQuestion])
def test_what_a_simulation_was_started_with_is_listed(input_type: type, indonesian: Catalog) -> None:
    """A run's page states the fields by label and unit, those that no form has too."""
    used = {text for spec, _default in specs(input_type).values() for text in (spec.label, spec.unit) if text}
    assert {text for text in used if text not in indonesian} == set()


@pytest.mark.parametrize("input_type", BODIES)
def test_the_inputs_texts_are_listed(input_type: type) -> None:
    used = {text for spec, _ in specs(input_type).values() for text in (spec.label, spec.unit, spec.help) if text}
    assert used - TEXTS == set()


def test_labels_of_use_cases_and_jobs_are_listed() -> None:
    labels = {preset.label for preset in presets.presets()} | {str(label) for label in RunStatus.labels}
    assert labels - TEXTS == set()


def test_a_form_in_indonesian_has_no_english_label() -> None:
    with override("id"):
        form = build_form(InferenceQuestion, {}, listed={}, page={})
    assert form.section["traffic"].title == "Seberapa banyak, seberapa cepat?"
    assert form.field["requests_per_second"].label == "Beban rata-rata"
    assert form.field["users"].unit == "pengguna"
