"""The error table: rows supported, median and 90th-percentile absolute error per measured quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.services.validation.replay import Case, Prediction, ReplayKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLine:
    """Errors of one quantity in one group of cases."""

    group: str
    value: str
    quantity: str
    cases: int
    """Rows that state the quantity."""
    supported: int
    median: float
    """Median absolute relative error of the supported ones; NaN where there is none."""
    p90: float


def relative_errors(
    cases: Sequence[Case], predictions: Sequence[Prediction], kind: ReplayKind
) -> dict[str, list[float | None]]:
    """Absolute relative error by quantity, one entry a case: None where not measured, NaN where unsupported."""
    errors: dict[str, list[float | None]] = {}
    for quantity in kind.quantities:
        errors[quantity.name] = [
            _error(quantity.measured(case), prediction, quantity.predicted)
            for case, prediction in zip(cases, predictions, strict=True)
        ]
    return errors


def _error(measured: float | None, prediction: Prediction, column: str) -> float | None:
    if measured is None or measured == 0:
        return None
    predicted = prediction.values.get(column)
    if not prediction.supported or not isinstance(predicted, int | float):
        return float("nan")
    return abs(predicted / measured - 1)


def error_lines(cases: Sequence[Case], predictions: Sequence[Prediction], kind: ReplayKind) -> list[ErrorLine]:
    """The table's lines: all cases, then by source, GPU and precision."""
    errors = relative_errors(cases, predictions, kind)
    groupings: list[tuple[str, Callable[[Case], str]]] = [
        ("all", lambda case: ""),
        ("source", lambda case: case.get("source", "")),
        ("gpu", lambda case: case.get("gpu", "")),
        ("precision", lambda case: case.get(kind.precision, "")),
        *((column, _cell_of(column)) for column in kind.groups if cases and column in cases[0]),
    ]
    lines: list[ErrorLine] = []
    for group, key in groupings:
        keys = [key(case) for case in cases]
        for value in sorted(set(keys)):
            chosen = [index for index, found in enumerate(keys) if found == value]
            for name, column in errors.items():
                stated = [error for error in (column[index] for index in chosen) if error is not None]
                if stated:
                    lines.append(_line(group, value, name, stated))
    return lines


def _cell_of(column: str) -> Callable[[Case], str]:
    return lambda case: case[column]


def _line(group: str, value: str, quantity: str, stated: Sequence[float]) -> ErrorLine:
    found = [error for error in stated if not np.isnan(error)]
    median, p90 = np.percentile(found, [50, 90]) if found else (np.nan, np.nan)
    return ErrorLine(
        group=group,
        value=value,
        quantity=quantity,
        cases=len(stated),
        supported=len(found),
        median=float(median),
        p90=float(p90),
    )


def format_report(cases: Sequence[Case], predictions: Sequence[Prediction], kind: ReplayKind) -> str:
    """The table as text."""
    supported = sum(prediction.supported for prediction in predictions)
    share = f" ({supported / len(cases):.1%})" if cases else ""
    rows = [f"rows supported: {supported} of {len(cases)}{share}", ""]
    rows.append(f"{'group':10} {'value':52} {'quantity':24} {'rows':>5} {'median':>8} {'p90':>8}")
    for line in error_lines(cases, predictions, kind):
        rows.append(
            f"{line.group:10} {line.value[:52]:52} {line.quantity:24} {line.supported:5d} "
            f"{_percent(line.median):>8} {_percent(line.p90):>8}"
        )
    return "\n".join(rows)


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.1%}"
