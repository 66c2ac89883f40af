"""model_architectures.json: what each model is made of, checked by building it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.importers.rows import Problem, Row
from planner.engine.arch_spec import arch_from_spec
from planner.engine.errors import UnsupportedModel

FILE = "model_architectures.json"
TEXTS = {"name": 120, "hf_id": 160, "release": 20, "license": 120, "source": 1000, "note": 1000}
"""Text keys of an entry, with the most characters each may have."""
SIZES = ("published_total_params_b", "published_active_params_b")
KEYS = {*TEXTS, *SIZES, "aliases", "as_of", "spec"}
MAY_BE_EMPTY = {"hf_id", "release", "license", "note"}


def read_model_architectures(folder: Path, problems: list[Problem]) -> list[Row]:
    """Entries of model_architectures.json, keyed by ``name``; no two may share a name, id or alias."""
    rows = []
    for row, entry in _entries(folder / FILE, problems):
        if set(entry) != KEYS:
            for key in sorted(KEYS.symmetric_difference(entry)):
                row.problem(key, "the key is missing" if key in KEYS else "allowed keys: " + ", ".join(sorted(KEYS)))
            continue
        row.values = _values(row, entry)
        rows.append(row)
    owner: dict[str, Row] = {}
    for row in rows:
        for name in {row.values["name"], row.values["hf_id"], *row.values["aliases"]} - {""}:
            other = owner.setdefault(name.casefold(), row)
            if other is not row:
                row.problem("name", f"{name!r} already names the model of line {other.line}")
    return rows


def _entries(path: Path, problems: list[Problem]) -> list[tuple[Row, Mapping[str, Any]]]:
    def fault(line: int, message: str) -> list[tuple[Row, Mapping[str, Any]]]:
        problems.append(Problem(file=path.name, line=line, column="", value="", message=message))
        return []

    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
    except FileNotFoundError:
        return fault(0, "the file is missing")
    except UnicodeDecodeError:
        return fault(0, "must be UTF-8 text")
    except json.JSONDecodeError as error:
        return fault(error.lineno, f"not JSON: {error.msg}")
    models = content.get("models") if isinstance(content, dict) else None
    if not isinstance(models, list) or not all(isinstance(entry, dict) for entry in models):
        return fault(1, 'must be {"models": [ ... ]} with one object a model')
    lines = _lines(text)
    return [(Row(path.name, lines.get(str(entry.get("name")), 1), _cells(entry), problems), entry) for entry in models]


def _lines(text: str) -> dict[str, int]:
    """On which line an entry's name first stands."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        for name in re.findall(r'"name": ("(?:[^"\\]|\\.)*")', line):
            found.setdefault(json.loads(name), number)
    return found


def _cells(entry: Mapping[str, Any]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else json.dumps(value)[:200] for key, value in entry.items()}


def _values(row: Row, entry: Mapping[str, Any]) -> dict[str, Any]:
    for key, most in TEXTS.items():
        if not isinstance(entry[key], str):
            row.problem(key, "must be text")
        else:
            row.text(key, blank=key in MAY_BE_EMPTY, max_length=most)
    for key in SIZES:
        size = entry[key]
        if size is not None and (isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < 1e6):
            row.problem(key, "must be a number of billions above 0, or null")
    aliases = entry["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(name, str) and name for name in aliases):
        row.problem("aliases", "must be a list of names")
        aliases = []
    _check_spec(row, entry["spec"])
    return {
        "name": str(entry["name"]),
        "hf_id": str(entry["hf_id"]),
        "aliases": aliases,
        "spec": entry["spec"],
        "release": entry["release"],
        "license": entry["license"],
        "published_total_params_b": entry["published_total_params_b"],
        "published_active_params_b": entry["published_active_params_b"],
        "source": entry["source"],
        "as_of": row.day("as_of"),
        "notes": entry["note"],
    }


def _check_spec(row: Row, spec: object) -> None:
    if not isinstance(spec, dict):
        row.problem("spec", "must be an object")
        return
    try:
        arch = arch_from_spec(spec)
    except UnsupportedModel as error:
        row.problem("spec", str(error))
        return
    for key, value in (("name", arch.name), ("hf_id", arch.hf_id)):
        if value != row.cells[key]:
            row.problem(key, f"differs from the spec's own, {value!r}")
