"""A limit on uploads that is checked before the body is read: the framework's own handlers would take any length."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler

MOST_BYTES = 257 * 2**20
"""A trace of the largest size, and the form around it."""


class LengthLimit(FileUploadHandler):
    """Stands before the other handlers and refuses a body that says it is too long."""

    def handle_raw_input(
        self,
        input_data: Any,
        META: Any,  # noqa: N803
        content_length: int,
        boundary: Any,
        encoding: Any = None,
    ) -> None:
        """Raise ``RequestDataTooBig`` above the limit; the others read what is within it."""
        if content_length > MOST_BYTES:
            raise RequestDataTooBig(f"Uploads are limited to {MOST_BYTES // 2**20} MiB.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        """Hand every piece on."""
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """The next handler has the file."""
