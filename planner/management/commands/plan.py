"""``manage.py plan {inference,training} FILE.json``: the same JSON in and out as the REST API."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from catalog.selectors import CatalogNotLoaded
from planner.engine.answers import InferencePlan
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_series import TrainingSeries
from planner.engine.workload import InferenceQuestion, PlaceAndPurchase
from planner.services import planning
from planner.services.error_envelope import envelope
from planner.services.json_input import MAX_BODY_BYTES, read_question
from planner.services.plan_json import encode, plan_to_json

EXIT_BAD_INPUT = 2


class Command(BaseCommand):
    help = "Plan inference or training from a JSON question; prints the plan as JSON."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=("inference", "training"))
        parser.add_argument("file", metavar="FILE.json", help="the question; - reads it from standard input")
        parser.add_argument(
            "--series",
            nargs="?",
            const="",
            metavar="OPTION",
            help="of training: draw this option (the recommended one without an id) instead of planning",
        )
        parser.add_argument("--indent", type=int, metavar="N", help="spread the answer out, N spaces a level")

    def handle(self, *args: Any, kind: str, file: str, indent: int | None, series: str | None, **options: Any) -> None:
        """Exit 0 and the plan on standard output; 2 and the error envelope on standard error for bad input."""
        try:
            if series is not None and kind != "training":
                raise CommandError("--series draws options of training plans.")
            plan = _plan(kind, _read(file), series)
        except InvalidQuestion as invalid:
            self.stderr.write(encode(envelope(invalid.errors), indent=2), self.style.NOTICE)
            sys.exit(EXIT_BAD_INPUT)
        except (CatalogNotLoaded, OperationalError) as error:
            raise CommandError(f"No catalog can be read ({error}): run manage.py prepare.") from error
        self.stdout.write(encode(plan_to_json(plan), indent=indent))


def _read(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(MAX_BODY_BYTES + 1)
        with Path(file).open("rb") as stream:
            return stream.read(MAX_BODY_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fault = FieldError(
            field="", value=file, message=f"Can't read the file: {reason}.", allowed="a readable file, or -"
        )
        raise InvalidQuestion([fault]) from error


def _plan(kind: str, data: bytes, series: str | None) -> InferencePlan | TrainingPlan | TrainingSeries:
    if kind == "inference":
        return planning.plan_inference(_question(InferenceQuestion, data))
    question = _question(TrainingQuestion, data)
    return planning.plan_training(question) if series is None else planning.option_series(question, series)


def _question(question_type: type[PlaceAndPurchase], data: bytes) -> dict[str, Any]:
    return read_question(question_type, data, partial(planning.faults_in, question_type, scope=None))
