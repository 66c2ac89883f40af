"""What a search for the smallest fleet refuses."""

from __future__ import annotations

from planner.engine.errors import FieldError
from planner.engine.sentences import say


def no_limits() -> FieldError:
    """The fault of a question without limits."""
    return FieldError(
        field="ttft_ms",
        value=None,
        message=say("A smallest fleet needs a limit to hold."),
        allowed=say("ttft_ms, tpot_ms or both"),
        code="required",
    )


def never_met(percentile: str, most: int) -> FieldError:
    """The fault of limits that no fleet holds."""
    return FieldError(
        field="ttft_ms",
        value=None,
        message=say(
            "No fleet of up to {most:,} replicas holds the limits at {percentile} for this traffic.",
            most=most,
            percentile=percentile,
        ),
        allowed=say("looser limits, or another option"),
        code="never_met",
    )
