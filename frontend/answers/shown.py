"""What an answer page shows, as plain values: the same shapes for inference and training."""

from __future__ import annotations

from dataclasses import dataclass

from frontend.figures.canvas import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """One of the three figures under the sentence."""

    label: str
    value: str
    notes: tuple[str, ...]
    exact: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a stack: legend, value and share, the table twin of a chart."""

    key: str
    label: str
    value: str
    share: str
    swatch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A chart's figures as a table."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure with its finding as title, and its table twin."""

    id: str
    title: str
    figure: Figure
    parts: tuple[Part, ...] = ()
    note: str = ""
    twin: Twin | None = None

    @property
    def has_symbols(self) -> bool:
        """Whether its legend shows symbols instead of swatches."""
        return any(part.swatch.startswith("symbol") for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartGroup:
    """Charts that are looked at together: at most four, one group open at a time."""

    key: str
    title: str
    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisCost:
    """What one axis of a layout costs of a step, in numbers and in words."""

    name: str
    seconds: str
    share: str
    meter: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCosts:
    """Where a step's time goes besides useful arithmetic, and what to know of batch and failures."""

    title: str
    axes: tuple[AxisCost, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the options table; ``second`` is what stands smaller under each value, and sorts too."""

    key: str
    label: str
    help: str = ""
    is_text: bool = False
    second: str = ""
    second_help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value in the table: as read, as sorted, in full on hover; a badge opens its note.

    ``sub`` stands smaller under it, with a sort key of its own where the column has a second value.
    """

    text: str
    sort: str
    exact: str = ""
    sub: str = ""
    sub_sort: str = ""
    badge: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One option."""

    id: str
    title: str
    subtitle: str
    query: str
    cells: tuple[Cell, ...]
    is_chosen: bool
    is_front: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingLine:
    name: str
    value: str
    exact: float
    formula: str
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingGroup:
    """Terms that belong together; where all have one unit they have shares and a total."""

    title: str
    lines: tuple[WorkingLine, ...]
    total: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedLine:
    """One thing tried, and the number that broke."""

    subject: str
    reason: str
    numbers: str
    count: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedGroup:
    """All that broke on the same thing: the commonest first, the rest as a count."""

    title: str
    count: str
    lines: tuple[RejectedLine, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """A change that helps, with the link that makes it."""

    text: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything the answer column shows."""

    sentence: str
    detail: str
    has_options: bool = True
    notice: str = ""
    warnings: tuple[str, ...] = ()
    """To be read before any number."""
    figures: tuple[KeyFigure, ...] = ()
    charts: tuple[Chart, ...] = ()
    costs: StepCosts | None = None
    deeper: tuple[Chart, ...] = ()
    """Charts that stand beside what the axes cost."""
    table_title: str = ""
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    working_title: str = ""
    working: tuple[WorkingGroup, ...] = ()
    rejected_title: str = ""
    accounted: str = ""
    """What became of all options that were tried."""
    rejected: tuple[RejectedGroup, ...] = ()
    ways_out: tuple[WayOut, ...] = ()
    remarks: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """What the engine understood, as label and value."""
    bar_cost: str = ""
    bar_speed: str = ""
    """The phone's bottom bar."""
    chosen_id: str = ""
    rate: str = ""
    clients: str = ""
    """The traffic of this answer, as requests a second and as requests in flight: fills another way to state it."""
