"""Use cases with sourced lengths and limits, and the worked examples: data files, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.utils.translation import gettext as _

from catalog.use_cases import use_case_file

EXAMPLES = Path(__file__).resolve().parent / "data" / "worked_examples.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A use case: the fields it fills and where their values come from."""

    key: str
    label: str
    fields: Mapping[str, str]
    lengths_source: str
    limits_source: str

    @property
    def sources(self) -> str:
        """Where lengths and limits come from, in one line."""
        return _("Lengths: %(lengths)s. Limits: %(limits)s.") % {
            "lengths": _(self.lengths_source),
            "limits": _(self.limits_source),
        }

    @property
    def name(self) -> str:
        """The label in the page's language."""
        return _(self.label)


@lru_cache(maxsize=1)
def presets() -> tuple[Preset, ...]:
    return tuple(
        Preset(
            key=row["key"],
            label=row["label"],
            fields={name: str(value) for name, value in row["fields"].items()},
            lengths_source=row["lengths_source"],
            limits_source=row["limits_source"],
        )
        for row in use_case_file()["presets"]
    )


def preset_by_key(key: str) -> Preset | None:
    return next((preset for preset in presets() if preset.key == key), None)


def preset_of(given: Mapping[str, str]) -> Preset | None:
    """The use case whose fields are just those given."""
    return next(
        (preset for preset in presets() if all(given.get(name, "") == value for name, value in preset.fields.items())),
        None,
    )


@lru_cache(maxsize=1)
def _examples() -> dict[str, dict[str, str]]:
    examples: dict[str, dict[str, str]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples


def worked_example(kind: str) -> dict[str, str]:
    """The question an empty page answers, so that a newcomer sees an answer before typing."""
    return dict(_examples()[kind])
