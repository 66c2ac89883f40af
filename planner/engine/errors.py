"""What the engine raises: every error names the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One wrong input: ``field`` is the question's own name for it, ``allowed`` says what would do."""

    field: str
    value: object
    message: str
    allowed: str = ""
    code: str = "invalid"

    def inside(self, part: str) -> FieldError:
        """The fault by its name in a whole that has ``part``; an empty part is the whole.

        >>> FieldError(field="model", value=None, message="Needed.").inside("question").field
        'question.model'
        """
        return replace(self, field=f"{part}.{self.field}") if part else self


def unknown_fields(raw: Mapping[str, object], known: Collection[str]) -> list[FieldError]:
    """A fault for each member of ``raw`` that isn't ``known``: most often a typing slip, never to be passed over.

    >>> [fault.field for fault in unknown_fields({"modle": "llama", "seed": 1}, ("model", "seed"))]
    ['modle']
    """
    allowed = f"One of: {', '.join(known)}"
    return [
        FieldError(field=name, value=value, message="Unknown field.", allowed=allowed, code="unknown_field")
        for name, value in raw.items()
        if name not in known
    ]


class InvalidQuestion(ValueError):
    """A question that can't be planned as asked; carries every fault found, not only the first."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(f"{e.field}: {e.message}" for e in errors))
        self.errors = errors


@dataclass(slots=True)
class Faults:
    """Faults of several checks, gathered so that all are told at once."""

    found: list[FieldError] = field(default_factory=list)

    def add(self, faults: Iterable[FieldError]) -> None:
        """Keep ``faults`` of fields that had none so far: what comes after is often the same said again."""
        named = {fault.field for fault in self.found}
        self.found += [fault for fault in faults if fault.field not in named]

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep what the block raises as ``InvalidQuestion``."""
        try:
            yield
        except InvalidQuestion as invalid:
            self.add(invalid.errors)

    def raise_any(self) -> None:
        """Raise ``InvalidQuestion`` with what was gathered, if anything."""
        if self.found:
            raise InvalidQuestion(self.found)


class UnsupportedModel(ValueError):
    """A config that describes no model the engine can size; ``field`` is the config key at fault."""

    def __init__(self, message: str, *, field: str = "config", value: object = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
