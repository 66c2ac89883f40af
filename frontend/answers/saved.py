"""A saved plan as a page shows it: the same sentence, figures and working as on the day it was made."""

from __future__ import annotations

from django.urls import reverse

from frontend.answers.shown import Answer
from frontend.config_link import pack_config
from frontend.kinds import KINDS
from frontend.query import canonical_query, default_text
from planner.models import ScenarioVersion
from planner.services.plan_json import plan_from_json


def present_saved(version: ScenarioVersion) -> Answer:
    """The answer about the option that was saved."""
    kind = version.scenario.kind
    return KINDS[kind].present(plan_from_json(version.plan, kind), given_of(version), version.option_id, None)


def given_of(version: ScenarioVersion) -> dict[str, str]:
    """The saved question as a form gives it."""
    given = {}
    for name, value in version.question.items():
        if name == "config":
            given[name] = pack_config(value) if isinstance(value, dict) else str(value or "")
        elif value not in (None, "", []):
            given[name] = default_text(tuple(value) if isinstance(value, list) else value)
    return {name: text for name, text in given.items() if text}


def question_link(version: ScenarioVersion) -> str:
    """The planning page with the saved question, asked again today."""
    kind = version.scenario.kind
    query = canonical_query(given_of(version), KINDS[kind].question_type, option=version.option_id)
    return f"{reverse(f'plan-{kind}')}?{query}"
