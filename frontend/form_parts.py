"""What a form is made of, as templates show it: choices, fields, sections."""

from __future__ import annotations

from dataclasses import dataclass

from planner.engine.errors import FieldError

FETCHED = ("instance_types",)
LONG_UNIT, LONG_CHOICE = 8, 16
"""Letters that still fit into half a form's width."""
MANY_CHOICES = 12
"""From so many choices on, a field folds into a list of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value a field may take."""

    value: str
    label: str
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field as shown."""

    name: str
    kind: str
    label: str
    unit: str
    help: str
    value: str
    default: str
    placeholder: str
    choices: tuple[Choice, ...]
    error: str
    allowed: str
    term: str
    required: bool = False
    options: tuple[tuple[str, str], ...] = ()
    """What a text may well be: (value, label) pairs to pick from."""
    fixes: tuple[tuple[str, str], ...] = ()
    """Where something is wrong: labels of what to click, each with the form's query string that has it."""

    @property
    def is_default(self) -> bool:
        return self.value == self.default

    @property
    def is_long_list(self) -> bool:
        return self.kind == "choices" and (len(self.choices) > MANY_CHOICES or self.is_fetched)

    @property
    def is_fetched(self) -> bool:
        """Whether the choices are too many for the page: they come when the list is opened."""
        return self.name in FETCHED

    @property
    def is_wide(self) -> bool:
        """Whether half a form's width is too little for its unit, or for its longest choice."""
        longest = max((len(choice.label) for choice in self.choices), default=0) if self.kind == "choice" else 0
        return len(self.unit) > LONG_UNIT or longest > LONG_CHOICE

    @property
    def chosen_text(self) -> str:
        return ", ".join(choice.label for choice in self.choices if choice.is_chosen)

    @property
    def inputmode(self) -> str:
        return {"integer": "numeric", "number": "decimal", "decimal": "decimal"}.get(self.kind, "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A group of fields; folded ones say in their summary what they hold."""

    key: str
    title: str
    fields: tuple[FormField, ...]
    summary: str
    is_folded: bool
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForm:
    """The whole question as shown, with what is wrong in it."""

    sections: tuple[Section, ...]
    errors: tuple[FieldError, ...]
    traffic_way: str

    @property
    def field(self) -> dict[str, FormField]:
        return {field.name: field for section in self.sections for field in section.fields}

    @property
    def section(self) -> dict[str, Section]:
        return {section.key: section for section in self.sections}

    @property
    def stated(self) -> tuple[FormField, ...]:
        """What was given and is no default: the question as a printed report repeats it."""
        fields = (field for section in self.sections for field in section.fields)
        return tuple(field for field in fields if not field.is_default and field.kind != "config")

    @property
    def folded(self) -> tuple[Section, ...]:
        return tuple(section for section in self.sections if section.is_folded)
