"""What the engine raises: every error names the field, the value and what is allowed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One wrong input: ``field`` is the question's own name for it, ``allowed`` says what would do."""

    field: str
    value: object
    message: str
    allowed: str = ""
    code: str = "invalid"


class InvalidQuestion(ValueError):
    """A question that can't be planned as asked; carries every fault found, not only the first."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(f"{e.field}: {e.message}" for e in errors))
        self.errors = errors


class UnsupportedModel(ValueError):
    """A config that describes no model the engine can size; ``field`` is the config key at fault."""

    def __init__(self, message: str, *, field: str = "config", value: object = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
