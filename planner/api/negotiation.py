"""Reading bodies and writing answers: JSON in UTF-8 both ways, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.utils.mediatypes import _MediaType

from planner.api.exceptions import TooLarge
from planner.services.json_input import MAX_BODY_BYTES
from planner.services.plan_json import encode
from planner.services.price_book_files import MOST_BYTES

_DRAIN_CHUNK_BYTES = 2**16
_DRAIN_LIMIT_BYTES = 64 * 2**20


class JsonBodyParser(BaseParser):
    """The body's bytes, bounded; planner.services.json_input reads them, for the command line too."""

    media_type = "application/json"

    def parse(  # type: ignore[override]  # a view may get bytes: the framework only hands them on
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> bytes:
        meta = parser_context["request"].META if parser_context else {}
        charset = _MediaType(media_type or self.media_type).params.get("charset", "utf-8")
        if charset.strip("\"'").lower() not in ("utf-8", "utf8"):
            raise UnsupportedMediaType(media_type or "")
        if meta.get("HTTP_CONTENT_ENCODING", "identity").lower() not in ("", "identity"):
            raise UnsupportedMediaType(f"{media_type}, {meta['HTTP_CONTENT_ENCODING']}-encoded")
        body: bytes = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(_drain(stream, len(body)))
        return body


class FileParser(BaseParser):
    """A file's bytes, bounded; the service looks at what they are."""

    media_type = "application/octet-stream"

    def parse(  # type: ignore[override]  # a view may get bytes: the framework only hands them on
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> bytes:
        body: bytes = stream.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise TooLarge(_drain(stream, len(body)), MOST_BYTES)
        return body


def _drain(stream: IO[Any], read_bytes: int) -> int:
    """Read and forget the rest: a server that closes on unread data cuts the client off before it sees the 413."""
    while read_bytes < _DRAIN_LIMIT_BYTES and (chunk := stream.read(_DRAIN_CHUNK_BYTES)):
        read_bytes += len(chunk)
    return read_bytes


class ApiJsonRenderer(JSONRenderer):
    """The same writer as the command line's; ``Accept: application/json; indent=2`` spreads it out."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        if data is None:
            return b""
        indent = self.get_indent(accepted_media_type or self.media_type, dict(renderer_context or {}))
        return encode(data, indent=indent).encode()
