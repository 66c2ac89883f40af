"""One option of an inference plan, by its id or its place: as jobs name it, without the simulator."""

from __future__ import annotations

from planner.engine.answers import InferenceOption, InferencePlan
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say


def chosen_option(plan: InferencePlan, wanted: str) -> InferenceOption:
    """The plan's option by id or place (from 0); the first where nothing is named.

    Raises ``InvalidQuestion`` where nothing fits (``nothing_fits``) or there is no such option (``unknown_option``).
    """
    if not plan.options:
        advice = "; ".join(f"{each.field}: {each.suggestion}" for each in plan.advice)
        raise InvalidQuestion(
            [
                FieldError(
                    field="plan",
                    value=None,
                    message=say("Nothing fits this question."),
                    allowed=advice or "another",
                    code="nothing_fits",
                )
            ]
        )
    by_name = {option.id: option for option in plan.options}
    by_name |= {str(place): option for place, option in enumerate(plan.options)}
    if wanted and wanted not in by_name:
        raise InvalidQuestion(
            [
                FieldError(
                    field="option",
                    value=wanted,
                    message=say("Not an option of this plan."),
                    allowed=say("0 to {last}, or an option's id", last=len(plan.options) - 1),
                    code="unknown_option",
                )
            ]
        )
    return by_name[wanted] if wanted else plan.options[0]
