"""Typed, bounded access to an untrusted ``config.json``: every wrong value names its key.

A value is found under the first of several spellings; nothing is converted silently and nothing
larger than the bounds gets through, so that products of sizes stay far from overflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from planner.engine.errors import UnsupportedModel

MAX_LAYERS = 1_000
MAX_WIDTH = 1_000_000
"""Hidden sizes, ranks, head dimensions."""
MAX_FFN = 10_000_000
MAX_HEADS = 65_536
MAX_VOCAB = 100_000_000
MAX_EXPERTS = 10_000
MAX_CONTEXT = 1_000_000_000
MAX_NESTING = 3
TEXT_KEYS = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config")
"""Where multimodal configs keep the language model."""


class ConfigReader:
    """Reads one config: keys of the language model first, then those of the level above."""

    def __init__(self, raw: object) -> None:
        if not isinstance(raw, Mapping):
            raise UnsupportedModel("Not a JSON object.", field="config", value=_shown(raw))
        self.top = raw
        self._levels: list[Mapping[Any, Any]] = [raw]
        level: Mapping[Any, Any] = raw
        for _ in range(MAX_NESTING):
            inner = next((level[key] for key in TEXT_KEYS if isinstance(level.get(key), Mapping)), None)
            if inner is None:
                break
            self._levels.insert(0, inner)
            level = inner

    def find(self, *keys: str) -> tuple[str, Any]:
        """The first key with a value, and the value; the first key and None where there is none."""
        for level in self._levels:
            for key in keys:
                if level.get(key) is not None:
                    return key, level[key]
        return keys[0], None

    def has(self, *keys: str) -> bool:
        return self.find(*keys)[1] is not None

    def integer(self, *keys: str, default: int | None = None, minimum: int = 1, maximum: int = MAX_WIDTH) -> int:
        """A whole number within bounds; ``default`` where absent, an error where that is None."""
        key, value = self.find(*keys)
        if value is None:
            if default is None:
                names = " or ".join(keys[:3])
                raise UnsupportedModel(f"{keys[0]}: missing; needed to size a transformer ({names}).", field=keys[0])
            return default
        return check_integer(key, value, minimum=minimum, maximum=maximum)

    def optional(self, *keys: str, minimum: int = 0, maximum: int = MAX_WIDTH) -> int:
        """A whole number, 0 where absent."""
        return self.integer(*keys, default=0, minimum=minimum, maximum=maximum)

    def flag(self, *keys: str, default: bool = False) -> bool:
        key, value = self.find(*keys)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise UnsupportedModel(f"{key}: not true or false.", field=key, value=_shown(value))
        return value

    def text(self, *keys: str, default: str = "") -> str:
        key, value = self.find(*keys)
        if value is None:
            return default
        if not isinstance(value, str) or len(value) > 4 * MAX_LAYERS:
            raise UnsupportedModel(f"{key}: not a short text.", field=key, value=_shown(value))
        return value

    def texts(self, key: str) -> list[str]:
        """The key's text at every level that has one, the language model's first."""
        found = [level[key] for level in self._levels if level.get(key) is not None]
        for value in found:
            if not isinstance(value, str) or not value or len(value) > MAX_LAYERS:
                raise UnsupportedModel(f"{key}: not a short text.", field=key, value=_shown(value))
        return found

    def sequence(self, *keys: str) -> Sequence[Any] | None:
        """A list of at most as many items as a model may have layers; None where absent."""
        key, value = self.find(*keys)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or len(value) > 2 * MAX_LAYERS:
            raise UnsupportedModel(f"{key}: not a list of layers.", field=key, value=_shown(value))
        return value

    def section(self, key: str) -> ConfigReader | None:
        """A nested object as a reader of its own; None where absent."""
        value = self.find(key)[1]
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise UnsupportedModel(f"{key}: not an object.", field=key, value=_shown(value))
        return ConfigReader(value)


def check_integer(key: str, value: object, *, minimum: int, maximum: int) -> int:
    """``value`` as a whole number within bounds, or ``UnsupportedModel`` naming ``key``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnsupportedModel(f"{key}: not a number.", field=key, value=_shown(value))
    if isinstance(value, float) and (not math.isfinite(value) or value != math.floor(value)):
        raise UnsupportedModel(f"{key}: not a whole number.", field=key, value=_shown(value))
    if not minimum <= value <= maximum:
        raise UnsupportedModel(f"{key}: must be {minimum:,} to {maximum:,}.", field=key, value=_shown(value))
    return int(value)


def _shown(value: object) -> str:
    """A value short enough for an error message."""
    if isinstance(value, Mapping | list | tuple | set):
        return type(value).__name__
    if isinstance(value, int) and abs(value) > 10**30:
        return "a huge number"
    return repr(value)[:80]
