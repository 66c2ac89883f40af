"""One measured figure beside its target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure beside its target."""

    name: str
    value: float
    unit: str
    target: float
    larger_is_better: bool = False

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.target if self.larger_is_better else self.value <= self.target
