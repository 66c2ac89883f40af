"""The figures of an offline job: how fast it is worked off, and what is left of its time."""

from __future__ import annotations

from django.utils.translation import gettext as _

from frontend import numbers
from frontend.answers import parts
from frontend.answers.shown import KeyFigure
from planner.engine.answers import InferenceOption, OfflineJob


def job_figures(option: InferenceOption, job: OfflineJob, within_hours: object) -> tuple[KeyFigure, ...]:
    """Requests a second of all replicas, and the time that is left; nobody waits for a job's answers one by one."""
    speed = option.speed
    pace = KeyFigure(
        label=_("Speed"),
        value=_("%(n)s requests/s") % {"n": numbers.rounded(speed.capacity_requests_s)},
        exact=f"{speed.capacity_requests_s} req/s",
        notes=(
            _("%(n)s output tokens/s of all replicas") % {"n": numbers.rounded(speed.output_tok_s)},
            parts.in_flight(option),
            parts.kv_pool(option),
        ),
    )
    most = float(within_hours) if isinstance(within_hours, int | float) else job.hours
    left = max(0.0, 1 - job.hours / most)
    room = KeyFigure(
        label=_("Time left"),
        value=numbers.percent(left),
        exact=f"{left:.4f}",
        notes=(
            _("done in %(time)s of %(most)s") % {"time": numbers.days(job.hours / 24), "most": numbers.days(most / 24)},
        ),
    )
    return pace, room
