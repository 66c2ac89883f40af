"""The tables of docs/api.md that list a question's fields; ``python -m tests.api.field_tables`` writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from planner.engine.field_spec import FieldSpec, allowed_range, specs
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
QUESTIONS = {question.__name__: question for question in (InferenceQuestion, TrainingQuestion)}
_MARKED = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TYPES = {"text": "text", "choice": "text", "choices": "list of texts", "flag": "boolean", "config": "object"}


def with_tables(page: str) -> str:
    """The page with each marked table written anew."""
    return _MARKED.sub(lambda found: found[1] + field_table(QUESTIONS[found[2]]) + found[3], page)


def field_table(question_type: type) -> str:
    """One row a field: type, default, what is allowed, what it means."""
    rows = ["| field | type | default | allowed | what |", "|---|---|---|---|---|"]
    for name, (spec, default) in specs(question_type).items():
        kind = _TYPES.get(spec.kind, spec.kind)
        rows.append(f"| `{name}` | {kind} | {_default(default)} | {_allowed(name, spec)} | {spec.help} |")
    return "\n".join(rows) + "\n"


def _default(default: Any) -> str:
    match default:
        case None | "" | ():
            return ""
        case tuple():
            return ", ".join(f"`{item}`" for item in default)
        case _:
            return f"`{default}`"


def _allowed(name: str, spec: FieldSpec) -> str:
    if spec.choices:
        return ", ".join(f"`{choice}`" for choice in spec.choices)
    if spec.kind in ("number", "integer"):
        return allowed_range(spec)
    return "a config.json" if spec.kind == "config" else "*catalog*"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
