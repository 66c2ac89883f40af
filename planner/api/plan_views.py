"""Plans: the two questions, answered at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.auth import prices_scope
from planner.api.base import ApiView
from planner.api.components import ref
from planner.api.openapi import RATE_HEADERS, answer, error_responses
from planner.api.tenant import ORGANIZATION, PRIVATE
from planner.api.throttles import PlanThrottle
from planner.engine.answers import InferencePlan
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_series import TrainingSeries
from planner.engine.workload import InferenceQuestion
from planner.services import planning
from planner.services.json_input import read_question
from planner.services.plan_json import plan_to_json

INFERENCE_EXAMPLE = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "input_tokens": 1155,
    "output_tokens": 211,
    "requests_per_second": 10,
    "peak_factor": 2,
    "ttft_ms": 2000,
    "tpot_ms": 100,
    "max_options": 10,
}
TRAINING_EXAMPLE = {
    "model": "meta-llama/Llama-3.1-8B",
    "method": "continued",
    "tokens": 100_000_000_000,
    "sequence_length": 8192,
    "finish_days": 30,
    "max_options": 10,
}
_SERIES = "Memory by stage, scaling and micro-batches of the option."
LONGEST_OPTION = 1000
_PLAN = "The plan; `options` is empty and `advice` says what to change where nothing fits."


class InferencePlanView(ApiView):
    """Plan GPU clusters that serve a model's traffic."""

    throttle_classes = [PlanThrottle]

    @extend_schema(
        operation_id="plan_inference",
        summary="Plan inference",
        tags=["plans"],
        parameters=[ORGANIZATION, *RATE_HEADERS],
        request={"application/json": ref(InferenceQuestion)},
        responses={200: answer(InferencePlan, _PLAN), **error_responses(400, 401, 403, 404, 413, 415)},
        examples=[OpenApiExample("A chat service", value=INFERENCE_EXAMPLE, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """State a model and its traffic; get ranked, priced clusters with the working shown.

        Traffic is stated in exactly one way: `requests_per_second`, or `users` with `requests_per_user_per_day`, or
        `concurrency`. The model is a catalog name or Hugging Face id in `model`, or a `config`.

        With a key (scope `plans`), or the organization named in the header, its price book in use is planned with.
        """
        return _answer(request, InferenceQuestion, planning.plan_inference)


class TrainingPlanView(ApiView):
    """Plan GPU clusters for a training run."""

    throttle_classes = [PlanThrottle]

    @extend_schema(
        operation_id="plan_training",
        summary="Plan training",
        tags=["plans"],
        parameters=[ORGANIZATION, *RATE_HEADERS],
        request={"application/json": ref(TrainingQuestion)},
        responses={200: answer(TrainingPlan, _PLAN), **error_responses(400, 401, 403, 404, 413, 415)},
        examples=[OpenApiExample("Continued pre-training", value=TRAINING_EXAMPLE, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """State a training run; get layouts and clusters ranked by price, with days, cost and the working shown."""
        return _answer(request, TrainingQuestion, planning.plan_training)


class TrainingSeriesView(ApiView):
    """The series behind the charts of one option of a training plan."""

    throttle_classes = [PlanThrottle]
    query_parameters = ("option",)

    @extend_schema(
        operation_id="plan_training_series",
        summary="Draw a training option",
        tags=["plans"],
        parameters=[
            OpenApiParameter(
                "option", str, description="An option's `id` in the plan of the same question; empty: the recommended."
            ),
            ORGANIZATION,
            *RATE_HEADERS,
        ],
        request={"application/json": ref(TrainingQuestion)},
        responses={200: answer(TrainingSeries, _SERIES), **error_responses(400, 401, 403, 404, 413, 415)},
        examples=[OpenApiExample("Continued pre-training", value=TRAINING_EXAMPLE, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """State a training run; get memory by pipeline stage, strong scaling over nodes, and other micro-batches.

        Of the option named, on the same catalog: ask the plan first. Every size of `scaling` has its own best layout,
        with the seconds of a step by term: bubble, exposed communication, recomputation, stragglers.
        """
        return _answer(request, TrainingQuestion, partial(planning.option_series, option=_option(request)))


def _option(request: Request) -> str:
    option = request.query_params.get("option", "")
    if len(option) > LONGEST_OPTION or "\x00" in option:
        fault = FieldError(
            field="option", value=option[:80], message="Not an option of this plan.", code="unknown_option"
        )
        raise InvalidQuestion([fault])
    return option


def _answer(
    request: Request,
    question_type: type,
    plan: Callable[..., InferencePlan | TrainingPlan | TrainingSeries],
) -> Response:
    scope = prices_scope(request)
    # An empty body never reaches the parser: the framework makes an empty object of it.
    body = request.data if isinstance(request.data, bytes) else b""
    faults_in = partial(planning.faults_in, question_type, scope=scope)
    answer = plan(read_question(question_type, body, faults_in), scope=scope)
    return Response(plan_to_json(answer), headers=PRIVATE if scope is not None else None)
