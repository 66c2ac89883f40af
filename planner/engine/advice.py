"""What a plan advises: a change of the question, given as values that the question takes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

FieldValue = str | float | bool | tuple[str, ...] | None
"""What a question's field takes; None leaves it open, which is its default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A way out when nothing fits, or a remark: what to change, to what, and what that does.

    The question it suggests is the one asked with ``value`` in ``field``, and what ``also`` holds in its fields.
    """

    field: str
    """Empty where nothing is to be changed."""
    suggestion: str
    value: FieldValue = None
    """To be sent as the field's value, unchanged: null leaves the field open."""
    also: dict[str, FieldValue] = dataclasses.field(default_factory=dict)
    """Other fields to send with it, each with its value: where one change is too little, or changes what they mean."""
    is_warning: bool = False
    """To be read before any number."""

    @property
    def changes(self) -> dict[str, FieldValue]:
        """Every field to change, with its value."""
        return {self.field: self.value, **self.also} if self.field else {}
