"""Ways out that raise all limits in the way at once, as far as the cheapest option needs that no limit keeps out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, isfinite

from planner.engine.advice import Advice
from planner.engine.answers import InferenceOption
from planner.engine.checked_advice import with_change
from planner.engine.field_spec import specs
from planner.engine.sentences import FieldName, Noun, Sentence, joined, say
from planner.engine.workload import InferenceQuestion

CheapestOf = Callable[[InferenceQuestion], InferenceOption | None]


def relaxed(question: InferenceQuestion, cheapest_of: CheapestOf, changes: Sequence[Advice]) -> Iterator[Advice]:
    """The limits raised to what the cheapest option needs without them; then each of ``changes``, by itself where
    that is enough, else with the limits raised less far.

    ``cheapest_of`` plans a question: its cheapest option, None where even so nothing fits. Each value is rounded up.
    """
    plain, option = _needed(question, cheapest_of)
    if option is None:
        return
    # Fewer nodes than the cheapest option has are the closest one's: they are a way out already.
    if plain and plain.keys() != {"max_nodes"}:
        (field, value), *rest = plain.items()
        yield Advice(field=field, suggestion=_raise(plain, option), value=value, also=dict(rest))
    for change in changes:
        changed = with_change(question, change)
        if changed is None:
            continue
        if cheapest_of(changed) is not None:
            yield change
            continue
        values, option = _needed(changed, cheapest_of)
        if option is None or not _is_less(values, plain):
            continue
        said = say("{first} {second}", first=change.suggestion, second=_raise(values, option))
        yield replace(change, suggestion=said, also={**change.also, **values})


def _is_less(values: Mapping[str, float], plain: Mapping[str, float]) -> bool:
    """Whether nothing is raised further, and something less far or not at all."""
    return all(value <= plain.get(name, 0.0) for name, value in values.items()) and dict(values) != dict(plain)


def _needed(question: InferenceQuestion, cheapest_of: CheapestOf) -> tuple[dict[str, float], InferenceOption | None]:
    """What each limit that keeps the cheapest option out must be raised to."""
    most = int(specs(InferenceQuestion)["max_nodes"][0].maximum or question.max_nodes)
    free = replace(question, ttft_ms=None, tpot_ms=None, budget_usd_per_month=None, max_nodes=most)
    best = cheapest_of(_at_full_headroom(free))
    if best is None:
        return {}, None
    needed = {
        "ttft_ms": best.speed.ttft_ms[question.slo_percentile],
        "tpot_ms": best.speed.tpot_ms[question.slo_percentile],
        "budget_usd_per_month": float(best.price.usd_per_month),
        "max_nodes": best.cluster.nodes,
    }
    raised: dict[str, float] = {}
    for name, value in needed.items():
        limit = getattr(question, name)
        if value is not None and limit is not None and value > limit:
            raised[name] = _rounded_up(name, value)
    return raised, best if all(isfinite(value) for value in raised.values()) else None


def _at_full_headroom(question: InferenceQuestion) -> InferenceQuestion:
    """The same fleet, with its speed at the load that limits hold at: the peak and what headroom keeps free."""
    if question.concurrency is not None or question.offline_requests is not None:
        return question
    return replace(question, peak_factor=question.peak_factor / (1.0 - question.headroom), headroom=0.0)


def _raise(values: Mapping[str, float], option: InferenceOption) -> Sentence:
    return say(
        "Raise {limits}: {cluster} at {usd:,.0f} USD a month then does.",
        limits=joined([_limit(name, value) for name, value in values.items()], " & "),
        cluster=f"{option.cluster.gpus_billed:,g}x {option.cluster.accelerator_name}",
        usd=float(option.price.usd_per_month),
    )


def _rounded_up(name: str, value: float) -> float:
    """Whole, or a hundredth of a millisecond where a time is short."""
    if not isfinite(value):
        return value
    if name in ("ttft_ms", "tpot_ms") and value < 10:
        return ceil(value * 100) / 100
    return ceil(value) if name == "max_nodes" else float(ceil(value))


def _limit(name: str, value: float) -> Sentence:
    unit = "USD a month" if name == "budget_usd_per_month" else specs(InferenceQuestion)[name][0].unit
    return say("{field} to {value:,.12g} {unit}", field=FieldName(name), value=value, unit=Noun(unit))
