"""By when, and for how much: the deadline of a question, and what is stored while the run goes on.

Stored are the checkpoints kept and the data read: GiB x USD a GiB and month x months.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.engine.training.recipe import FROZEN_METHODS, OPTIMIZER_BYTES
from planner.engine.training.work import ModelWork
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_remarks import LONGEST_DAYS
from planner.engine.units import GIB, HOURS_PER_MONTH

FloatArray = NDArray[np.float64]

WEIGHT_BYTES = 2.0
"""Of a parameter in a checkpoint, beside the optimizer's states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """The tighter of "within so many days" and "by a date"."""

    field: str
    """Which of the question's fields sets it; finish_days where none does."""
    days: float
    starts: date


def deadline_of(question: TrainingQuestion, today: date) -> Deadline:
    """How long the run may take; a year where nothing was asked.

    Raises ``InvalidQuestion`` when the date asked for is not after the start.
    """
    starts = question.start_on or today
    asked = []
    if question.finish_days is not None:
        asked.append(Deadline(field="finish_days", days=question.finish_days, starts=starts))
    if question.finish_by is not None:
        days = float((question.finish_by - starts).days)
        if days <= 0:
            fault = FieldError(
                field="finish_by",
                value=question.finish_by.isoformat(),
                message=say("Not after the start on {day}.", day=starts.isoformat()),
                allowed=say("a day after {day}", day=starts.isoformat()),
                code="out_of_range",
            )
            raise InvalidQuestion([fault])
        asked.append(Deadline(field="finish_by", days=days, starts=starts))
    unasked = Deadline(field="finish_days", days=LONGEST_DAYS, starts=starts)
    return min(asked, key=lambda deadline: deadline.days, default=unasked)


def checkpoint_gib(question: TrainingQuestion, work: ModelWork, adapter_params: float) -> float:
    """One full checkpoint: 16-bit weights and optimizer states of every trained parameter."""
    trained = adapter_params if question.method in FROZEN_METHODS else float(np.asarray(work.params_total))
    return trained * checkpoint_bytes_per_param(question) / GIB


def checkpoint_bytes_per_param(question: TrainingQuestion) -> float:
    """Bytes a trained parameter: 14 with AdamW and an fp32 master (BLOOM-176B wrote 13.07, chronicles 2022)."""
    return WEIGHT_BYTES + OPTIMIZER_BYTES[question.optimizer]


def data_gib(question: TrainingQuestion, tokens: float) -> float:
    """Training data at rest, every token once."""
    return tokens * question.bytes_per_token / GIB


def storage_usd_per_hour(question: TrainingQuestion, stored_gib: float) -> float:
    """What storage of ``stored_gib`` GiB costs an hour.

    >>> round(storage_usd_per_hour(TrainingQuestion(storage_usd_per_gib_month=0.0247), 10_000.0) * HOURS_PER_MONTH, 2)
    247.0
    """
    return stored_gib * question.storage_usd_per_gib_month / HOURS_PER_MONTH
