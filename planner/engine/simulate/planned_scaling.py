"""A scenario's autoscaler: what isn't stated is as the real ones have it by default."""

from __future__ import annotations

from planner.engine.simulate.autoscaling import Hpa, Keda, ScalingPolicy, ScalingRules
from planner.engine.simulate.lifecycle import Autoscaler
from planner.engine.simulate.question import SimulationQuestion


def planned_scaling(settings: SimulationQuestion, replicas: int) -> Autoscaler | None:
    """The autoscaler of a pool that has ``replicas`` at the start; none where none is asked for."""
    if settings.autoscaler == "none":
        return None
    fewest, most = settings.min_replicas, settings.max_replicas or 2 * replicas
    rules: Hpa | Keda
    if settings.autoscaler == "keda":
        rules = Keda(
            target=settings.scaling_target,
            activation=settings.keda_activation,
            min_replicas=fewest,
            max_replicas=most,
            polling_s=settings.polling_s,
            cooldown_s=settings.cooldown_s,
            hpa_sync_s=settings.hpa_sync_s,
            tolerance=settings.hpa_tolerance,
            up=_up(settings),
            down=_down(settings),
        )
    else:
        rules = Hpa(
            target=settings.scaling_target,
            min_replicas=fewest,
            max_replicas=most,
            sync_s=settings.hpa_sync_s,
            tolerance=settings.hpa_tolerance,
            up=_up(settings),
            down=_down(settings),
        )
    return Autoscaler(settings=rules, metric=settings.scaling_metric, scrape_s=settings.scrape_s)  # type: ignore[arg-type]


def _up(settings: SimulationQuestion) -> ScalingRules:
    return ScalingRules(
        stabilization_s=settings.scale_up_window_s,
        policies=(
            ScalingPolicy(kind="percent", value=settings.scale_up_percent),
            ScalingPolicy(kind="pods", value=float(settings.scale_up_replicas)),
        ),
    )


def _down(settings: SimulationQuestion) -> ScalingRules:
    return ScalingRules(
        stabilization_s=settings.scale_down_window_s,
        policies=(ScalingPolicy(kind="percent", value=settings.scale_down_percent),),
    )
