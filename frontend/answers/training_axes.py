"""What each axis of a training layout costs of a step: bubble, exposed communication, recomputation, in words.

A step's terms come from the option's working; they sum to the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers, words
from frontend.answers.shown import AxisCost, StepCosts
from planner.engine.training_answers import TrainingOption, TrainingPlan
from planner.engine.training_series import TrainingSeries

USEFUL = ("compute", "attention", "elementwise", "teacher")
"""Terms that advance the run; a teacher's forward pass belongs to distillation."""
FINETUNES = ("full_finetune", "lora", "qlora")


def step_costs(plan: TrainingPlan, option: TrainingOption, series: TrainingSeries | None) -> StepCosts:
    """Every axis that is in use, the dearest first, and notes on the batch and on failures."""
    seconds = {term.name: term.value for term in option.working if term.group == "step_time"}
    total = sum(seconds.values()) or 1.0
    useful = sum(seconds.get(name, 0.0) for name in USEFUL)
    axes = sorted(_axes(option, seconds, total, series), key=lambda axis: -axis.meter)
    return StepCosts(
        title=_title(useful / total, axes),
        axes=tuple(axes),
        notes=(*_batch_notes(plan, option), *_failure_notes(plan, option)),
    )


def _title(useful: float, axes: list[AxisCost]) -> str:
    share = numbers.percent(useful)
    if not axes:
        return _("%(share)s of a step is arithmetic of the model") % {"share": share}
    return _("%(share)s of a step is arithmetic of the model; the largest other share is %(axis)s, %(most)s") % {
        "share": share,
        "axis": words.inside(axes[0].name),
        "most": axes[0].share,
    }


def _axes(
    option: TrainingOption, seconds: Mapping[str, float], total: float, series: TrainingSeries | None
) -> Iterator[AxisCost]:
    layout = option.layout
    found = (
        (_("Tensor, TP%(n)d") % {"n": layout.tensor}, ("tensor_comm",), layout.tensor > 1, _tensor(option)),
        (
            _("Pipeline, PP%(n)d") % {"n": layout.pipeline},
            ("pipeline_bubble", "pipeline_comm"),
            layout.pipeline > 1,
            _pipeline(option, seconds),
        ),
        (_("Context, CP%(n)d") % {"n": layout.context}, ("context_comm",), layout.context > 1, _context(option)),
        (_("Expert, EP%(n)d") % {"n": layout.expert}, ("expert_comm",), layout.expert > 1, _expert(option)),
        (_("Data, DP%(n)d") % {"n": layout.replicas}, ("data_comm",), layout.replicas > 1, _data(option)),
        (_("Recompute"), ("recompute",), option.recompute != "none", _recompute(option, series)),
        (_("Nodes"), ("straggler",), option.cluster.nodes > 1, _straggler(option)),
        (_("Optimizer"), ("optimizer", "offload"), True, _optimizer(seconds)),
        (_("Overhead"), ("overhead",), True, _("Launches and host work of every layer and step.")),
    )
    for name, terms, is_used, text in found:
        spent = sum(seconds.get(term, 0.0) for term in terms)
        if is_used or spent > 0:
            yield AxisCost(
                name=name,
                seconds=numbers.duration(spent * 1000),
                share=numbers.percent(spent / total, 1),
                meter=spent / total,
                words=text,
            )


def _tensor(option: TrainingOption) -> str:
    return _(
        "Four reductions of activations in every layer, over %(n)d GPUs: what the multiplications do not hide. "
        "Fewer ranks cost less and need more memory."
    ) % {"n": option.layout.tensor}


def _pipeline(option: TrainingOption, seconds: Mapping[str, float]) -> str:
    return _(
        "Bubble %(bubble)s: stages wait while the pipe fills and drains, (p − 1) / v micro-batches of %(m)s with p = "
        "%(p)d stages and v = %(v)d chunks a stage. Handing activations over: %(comm)s. A larger batch makes it a "
        "smaller share."
    ) % {
        "bubble": numbers.duration(seconds.get("pipeline_bubble", 0.0) * 1000),
        "comm": numbers.duration(seconds.get("pipeline_comm", 0.0) * 1000),
        "p": option.layout.pipeline,
        "v": option.virtual_stages,
        "m": numbers.fixed(option.grad_accumulation),
    }


def _context(option: TrainingOption) -> str:
    return _("Keys and values go round a ring of %(n)d GPUs: what attention does not hide.") % {
        "n": option.layout.context
    }


def _expert(option: TrainingOption) -> str:
    return _(
        "Tokens are sent to their experts on %(n)d GPUs and back, forward and backward: what compute does not hide."
    ) % {"n": option.layout.expert}


def _data(option: TrainingOption) -> str:
    return _(
        "Gradients are reduced over %(n)s ranks, and weights gathered as %(sharding)s asks: what the last micro-batch "
        "does not hide. More micro-batches a step make it a smaller share."
    ) % {"n": numbers.fixed(option.layout.replicas), "sharding": words.choice(option.sharding)}


def _recompute(option: TrainingOption, series: TrainingSeries | None) -> str:
    saved = _saved_gib(option, series)
    if saved is None:
        return _("Activations are computed again in the backward pass.")
    return _("Activations are computed again in the backward pass; that saves %(gib)s GiB on each GPU.") % {
        "gib": numbers.rounded(saved)
    }


def _saved_gib(option: TrainingOption, series: TrainingSeries | None) -> float | None:
    """Memory of the same micro-batch without recomputation, less that of the option."""
    if series is None:
        return None
    need = {
        point.recompute: point.memory_gib for point in series.micro_batches if point.micro_batch == option.micro_batch
    }
    if "none" not in need or option.recompute not in need:
        return None
    return need["none"] - need[option.recompute]


def _straggler(option: TrainingOption) -> str:
    return _("All wait for the slowest of %(n)s nodes; a share for each doubling.") % {
        "n": numbers.fixed(option.cluster.nodes)
    }


def _optimizer(seconds: Mapping[str, float]) -> str:
    if seconds.get("offload"):
        return _("States are updated on the host and cross its bus.")
    return _("Weights, gradients and states are read and written once a step.")


def _batch_notes(plan: TrainingPlan, option: TrainingOption) -> Iterator[str]:
    length = int(str(plan.question.get("sequence_length") or 0)) or 1
    sequences = option.global_batch_tokens / length
    text = _(
        "Global batch: %(tokens)s tokens, %(sequences)s sequences, %(micro)s × %(steps)s on each of %(ranks)s ranks."
    )
    yield text % {
        "tokens": numbers.fixed(option.global_batch_tokens),
        "sequences": numbers.fixed(sequences),
        "micro": numbers.fixed(option.micro_batch),
        "steps": numbers.fixed(option.grad_accumulation),
        "ranks": numbers.fixed(option.layout.replicas),
    }
    asked = plan.question.get("global_batch_tokens")
    if isinstance(asked, int | float) and round(asked) != option.global_batch_tokens:
        yield _("You asked for %(asked)s: a step takes whole sequences, as many as divide over the ranks.") % {
            "asked": numbers.fixed(asked)
        }
    elif option.global_batch_tokens != plan.global_batch_tokens:
        yield _("Chosen were %(chosen)s; this layout takes what divides over its ranks.") % {
            "chosen": numbers.fixed(plan.global_batch_tokens)
        }
    yield from _critical_note(plan, option)


def _critical_note(plan: TrainingPlan, option: TrainingOption) -> Iterator[str]:
    critical = plan.critical_batch_tokens
    if critical <= 0:
        return
    if plan.question.get("method") in FINETUNES:
        yield _("The critical batch is a law of pre-training; fine-tuning is rarely limited by it.")
        return
    share = option.global_batch_tokens / critical
    values = {"share": numbers.percent(share), "critical": numbers.compact(critical)}
    if share > 1:
        yield (
            _(
                "That is %(share)s of the critical batch of about %(critical)s tokens: beyond it a larger batch hardly "
                "saves steps, so more GPUs buy little."
            )
            % values
        )
    else:
        yield (
            _(
                "That is %(share)s of the critical batch of about %(critical)s tokens: below it, more GPUs with a "
                "larger batch still save time."
            )
            % values
        )


def _failure_notes(plan: TrainingPlan, option: TrainingOption) -> Iterator[str]:
    speed = option.speed
    if not speed.checkpoint_interval_s:
        return
    run = {term.name: term.value for term in option.working if term.group == "run"}
    stops = speed.interruptions_per_day * speed.days
    yield ngettext(
        "About %(n)s interruption during the run; a checkpoint of %(size)s GiB every %(minutes)s min.",
        "About %(n)s interruptions during the run; a checkpoint of %(size)s GiB every %(minutes)s min.",
        round(stops),
    ) % {
        "n": numbers.rounded(stops, 2),
        "size": numbers.rounded(run.get("checkpoint size")),
        "minutes": numbers.rounded(speed.checkpoint_interval_s / 60, 2),
    }
    lost = run.get("lost to failures")
    if lost is not None:
        asked = 1 - speed.goodput
        yield _(
            "Failures and checkpoints lose %(lost)s of the time; the plan counts %(counted)s lost, the larger of that "
            "and what your goodput leaves."
        ) % {"lost": numbers.percent(lost, 1), "counted": numbers.percent(asked, 1)}
    if option.spare_nodes:
        yield ngettext("%(n)s spare node is rented.", "%(n)s spare nodes are rented.", option.spare_nodes) % {
            "n": numbers.fixed(option.spare_nodes)
        }
    if option.usd_storage:
        yield _("Storing %(gib)s GiB of checkpoints and data costs %(usd)s of the total.") % {
            "gib": numbers.rounded(plan.stored_gib),
            "usd": numbers.money(option.usd_storage),
        }
