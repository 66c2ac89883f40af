"""A config.json inside a link: packed small, unpacked with limits.

Why in the URL and not in a row: a link then works anywhere, for as long as it is kept, and nothing a
person pastes stays on the server. Only what sizes a model is kept; that packs every published
architecture into well under ``MAX_PACKED_CHARS``.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from django.utils.translation import gettext as _

from planner.engine.errors import FieldError

MAX_PACKED_CHARS = 6_000
MAX_ADDRESS_CHARS = 8_000
"""Of a question with its config: the web server takes no longer line (``limit_request_line``)."""
MAX_JSON_BYTES = 262_144
MAX_DEPTH = 6
DROPPED_KEYS = frozenset(
    {
        "_name_or_path",
        "auto_map",
        "bad_words_ids",
        "chat_template",
        "id2label",
        "label2id",
        "long_factor",
        "short_factor",
        "task_specific_params",
        "transformers_version",
    }
)
"""Keys that no size follows from, and that can be long."""


class ConfigRefused(ValueError):
    """A text that is no usable config.json: what is wrong, what was given, what would do."""

    def __init__(self, message: str, value: str, allowed: str = "") -> None:
        super().__init__(message)
        self.value = value
        self.allowed = allowed or _("the config.json object of a model")

    def as_field_error(self) -> FieldError:
        return FieldError(field="config", value=self.value, message=str(self), allowed=self.allowed)


def read_config(text: str) -> dict[str, Any]:
    """The JSON object in ``text``; raises ``ConfigRefused``."""
    if len(text.encode("utf-8", "replace")) > MAX_JSON_BYTES:
        raise ConfigRefused(
            _("Too long."),
            _("%(kb)d kB") % {"kb": len(text) // 1000},
            _("at most %(kb)d kB") % {"kb": MAX_JSON_BYTES // 1000},
        )
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ConfigRefused(_("Not valid JSON: %(why)s") % {"why": str(error)[:120]}, text[:60]) from error
    if not isinstance(value, dict):
        raise ConfigRefused(_("Not a JSON object."), text[:60])
    return value


def pack_config(config: dict[str, Any]) -> str:
    """``config`` without what no size follows from, compressed, as base64url text."""
    small = _trim(config, 0)
    packed = base64.urlsafe_b64encode(
        zlib.compress(json.dumps(small, separators=(",", ":"), sort_keys=True).encode(), 9)
    )
    text = packed.decode("ascii").rstrip("=")
    if len(text) > MAX_PACKED_CHARS:
        raise ConfigRefused(
            _("Too long for a link, even compressed."),
            _("%(n)d characters") % {"n": len(text)},
            _("at most %(n)d characters: remove lists that no size follows from") % {"n": MAX_PACKED_CHARS},
        )
    return text


def unpack_config(text: str) -> dict[str, Any]:
    """A config from a link: packed, or plain JSON; raises ``ConfigRefused``."""
    if text.lstrip().startswith("{"):
        return read_config(text)
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        inflater = zlib.decompressobj()
        plain = inflater.decompress(data, MAX_JSON_BYTES)
        whole = inflater.eof
    except (ValueError, binascii.Error, zlib.error) as error:
        raise ConfigRefused(_("Neither JSON nor a packed config."), text[:60]) from error
    if not whole:
        raise ConfigRefused(_("A packed config that is cut short or too long."), text[:60])
    return read_config(plain.decode("utf-8", "replace"))


def _trim(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ConfigRefused(_("Nested too deeply."), "", _("at most %(n)d levels") % {"n": MAX_DEPTH})
    if isinstance(value, dict):
        return {key: _trim(item, depth + 1) for key, item in value.items() if key not in DROPPED_KEYS}
    if isinstance(value, list):
        return [_trim(item, depth + 1) for item in value]
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)
