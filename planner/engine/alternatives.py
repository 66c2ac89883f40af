"""Other ways out when nothing fits, beside raising the limit that binds: less load, shorter prompts, smaller
weights, spot nodes, a filter left open.

They are guesses with numbers: whoever takes them plans with each before it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import floor, isfinite, log10

from planner.engine.advice import Advice
from planner.engine.answers import Rejection
from planner.engine.engine_support import ANYWHERE, EngineSupport
from planner.engine.field_spec import specs
from planner.engine.sentences import FieldName, Noun, say
from planner.engine.training_question import TrainingQuestion
from planner.engine.workload import InferenceQuestion

LOADS = ("requests_per_second", "users", "concurrency", "offline_requests")
FILTERS = ("accelerators", "instance_types", "providers", "countries")
FOUR_BIT = ("awq_int4", "gguf_q4_k_m")
MARGIN = 0.9
"""Of what fits by proportion: nodes and replicas come whole."""
LONG_TAIL = ("p90", "p95", "p99")
LIGHTER = {"full_finetune": ("lora", "qlora"), "lora": ("qlora",)}
"""Methods that train less of the same model."""
SCALED_BY_LOAD = ("budget", "max_nodes", "replicas")


def serving_alternatives(
    question: InferenceQuestion, rejections: Sequence[Rejection], support: Mapping[str, EngineSupport]
) -> tuple[Advice, ...]:
    """Changes of a serving question, the likeliest to be taken first."""
    closest = _closest(rejections)
    found: list[Advice] = [*_less_load(question, closest)]
    if "ttft_slo" in closest:
        found += _shorter_input(question, closest["ttft_slo"])
    if closest.keys() & {"ttft_slo", "tpot_slo"} and question.slo_percentile in LONG_TAIL:
        suggestion = say(
            "Set {field} to {value}: the limits then hold for half of the requests.",
            field=FieldName("slo_percentile"),
            value="p50",
        )
        found.append(Advice(field="slo_percentile", suggestion=suggestion, value="p50"))
    if closest.keys() & {"tpot_slo", "budget", "max_nodes"}:
        found += _smaller_weights(question, support.get(question.engine, ANYWHERE))
    found += _spot(question.purchase_options, closest)
    found += _open_filters(question)
    return tuple(found)


def training_alternatives(question: TrainingQuestion, rejections: Sequence[Rejection]) -> tuple[Advice, ...]:
    """Changes of a training question, the likeliest to be taken first."""
    closest = _closest(rejections)
    found: list[Advice] = []
    if question.precision not in ("fp8", "mxfp8"):
        suggestion = say("FP8 multiplies up to twice as fast where accelerators have it.")
        found.append(Advice(field="precision", suggestion=suggestion, value="fp8"))
    for method in LIGHTER.get(question.method, ()):
        suggestion = say("Adapters on a frozen base need a fraction of the memory.")
        found.append(Advice(field="method", suggestion=suggestion, value=method))
    found += _spot(question.purchase_options, closest)
    found += _open_filters(question)
    return tuple(found)


def _closest(rejections: Sequence[Rejection]) -> dict[str, Rejection]:
    """By reason, the rejected option that was nearest to its limit."""
    closest: dict[str, Rejection] = {}
    for rejection in rejections:
        best = closest.get(rejection.code)
        if best is None or _times(rejection) < _times(best):
            closest[rejection.code] = rejection
    return closest


def _times(rejection: Rejection) -> float:
    """How many times its limit an option needs."""
    if rejection.value is None or not rejection.limit or not isfinite(rejection.value):
        return float("inf")
    return rejection.value / rejection.limit


def _less_load(question: InferenceQuestion, closest: Mapping[str, Rejection]) -> Iterator[Advice]:
    field = next((name for name in LOADS if getattr(question, name) is not None), None)
    times = min((_times(closest[code]) for code in SCALED_BY_LOAD if code in closest), default=0.0)
    if field is None or not 1.0 < times < float("inf"):
        return
    spec = specs(InferenceQuestion)[field][0]
    value = _two_digits(getattr(question, field) / times * MARGIN)
    if spec.kind == "integer":
        value = floor(value)
    if spec.minimum is None or value >= max(spec.minimum, 1e-3):
        suggestion = say(
            "Lower {field} to {value:,g} {unit}.",
            field=FieldName(field),
            value=value,
            unit=Noun(spec.unit),
        )
        yield Advice(field=field, suggestion=suggestion, value=value)


def _shorter_input(question: InferenceQuestion, slow: Rejection) -> Iterator[Advice]:
    times = _times(slow)
    if not 1.0 < times < float("inf"):
        return
    value = floor(_two_digits(question.input_tokens / times * MARGIN))
    if value >= 1:
        suggestion = say(
            "Shorten {field} to {value:,} tokens: a first token waits for its whole prompt.",
            field=FieldName("input_tokens"),
            value=value,
        )
        yield Advice(field="input_tokens", suggestion=suggestion, value=value)


def _smaller_weights(question: InferenceQuestion, support: EngineSupport) -> Iterator[Advice]:
    smaller = next((name for name in FOUR_BIT if support.knows_weights(name)), "")
    if smaller and question.weight_formats != (smaller,):
        suggestion = say("4-bit weights take a quarter of 16-bit ones, in memory and in each step.")
        yield Advice(field="weight_formats", suggestion=suggestion, value=(smaller,))


def _spot(purchase_options: tuple[str, ...], closest: Mapping[str, Rejection]) -> Iterator[Advice]:
    if "budget" in closest and purchase_options and "spot" not in purchase_options:
        suggestion = say("Let spot nodes in: they cost less and can be taken away at short notice.")
        yield Advice(field="purchase_options", suggestion=suggestion, value=(*purchase_options, "spot"))


def _open_filters(question: InferenceQuestion | TrainingQuestion) -> Iterator[Advice]:
    for field in FILTERS:
        if getattr(question, field):
            suggestion = say("Leave {field} open: what it leaves out would do.", field=FieldName(field))
            yield Advice(field=field, suggestion=suggestion)


def _two_digits(value: float) -> float:
    """Rounded down to two significant digits.

    >>> _two_digits(1234.0), _two_digits(0.0567)
    (1200.0, 0.056)
    """
    if value <= 0:
        return 0.0
    places = floor(log10(value)) - 1
    return float(f"{floor(value / 10.0**places + 1e-9) * 10.0**places:.12g}")
