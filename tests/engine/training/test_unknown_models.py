"""A config whose model type isn't known: its training plan warns, and its speed is extrapolated."""

from __future__ import annotations

from catalog.training_files import training_profiles
from planner.engine.hf_config import parse_hf_config
from planner.engine.question_reading import parse_question
from planner.engine.training_answers import TrainingPlan
from planner.engine.training_plan import plan_training
from planner.engine.training_question import TrainingQuestion
from tests.engine.published_configs import LLAMA_8B_SIZES
from tests.engine.small_catalog import TODAY, snapshot


def plan(model_type: str) -> TrainingPlan:
    config = LLAMA_8B_SIZES | {"model_type": model_type}
    question = parse_question(TrainingQuestion, {"config": config, "tokens": 1e9, "max_nodes": 2})
    return plan_training(question, parse_hf_config(config), snapshot(), training_profiles(), TODAY)


def test_an_unknown_model_type_is_warned_of_and_extrapolated() -> None:
    unknown, known = plan("brand_new"), plan("llama")
    assert unknown.advice[0].suggestion.startswith("Warning: model_type brand_new is not known.")
    assert not any("Warning" in advice.suggestion for advice in known.advice)
    assert {option.confidence.kind for option in unknown.options} == {"extrapolated"}
    assert all("model_type brand_new" in option.confidence.basis for option in unknown.options)
    assert unknown.options[0].confidence.high >= known.options[0].confidence.high
