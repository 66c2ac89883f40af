"""Values whose fields are the parts of one sum."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Parts:
    """A dataclass of arrays in one unit, one entry a candidate, that sum to ``total``."""

    __slots__ = ()

    @property
    def total(self) -> FloatArray:
        """In the unit of the parts."""
        parts = fields(self)  # type: ignore[arg-type]  # whoever takes this as a base is a dataclass
        total: FloatArray = np.zeros_like(getattr(self, parts[0].name))
        for part in parts:
            total = total + getattr(self, part.name)
        return total
