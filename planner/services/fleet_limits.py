"""What a search for the smallest fleet refuses."""

from __future__ import annotations

from planner.engine.errors import FieldError


def no_limits() -> FieldError:
    """The fault of a question without limits."""
    return FieldError(
        field="ttft_ms",
        value=None,
        message="A smallest fleet needs a limit to hold.",
        allowed="ttft_ms, tpot_ms or both",
        code="required",
    )


def never_met(percentile: str, most: int) -> FieldError:
    """The fault of limits that no fleet holds."""
    return FieldError(
        field="ttft_ms",
        value=None,
        message=f"No fleet of up to {most:,} replicas holds the limits at {percentile} for this traffic.",
        allowed="looser limits, or another option",
        code="never_met",
    )
