"""Files of a price book: contracts and offers, small, of known types, kept in the database."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import Final

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.models import PriceBook, PriceBookFile
from planner.selectors.scope import Scope
from planner.services.audit import note_export
from planner.services.organizations import checked_name
from planner.services.tenancy import Conflict, tenant_write

MOST_BYTES: Final = 10 * 2**20
MOST_FILES: Final = 50
NAME_LENGTH: Final = 120
_ZIP = b"PK\x03\x04"
TYPES: Final[dict[str, tuple[str, bytes]]] = {
    ".pdf": ("application/pdf", b"%PDF-"),
    ".png": ("image/png", b"\x89PNG\r\n\x1a\n"),
    ".jpg": ("image/jpeg", b"\xff\xd8\xff"),
    ".jpeg": ("image/jpeg", b"\xff\xd8\xff"),
    ".xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", _ZIP),
    ".docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", _ZIP),
    ".csv": ("text/csv", b""),
    ".txt": ("text/plain", b""),
}
"""By ending: the media type, and the bytes such a file begins with; none: it must be UTF-8 text."""


@tenant_write
def attach_file(*, scope: Scope, book: PriceBook, name: str, content: bytes) -> PriceBookFile:
    """Keep a file with the book.

    Raises ``InvalidQuestion`` for a name that is taken, for a type that is not kept, for one too large or empty, and
    for content that is not of the type its name says.
    """
    scope.require("planner.change_price_book")
    book = scope.get(PriceBook, book.uuid, lock=True)
    name = checked_name(PurePosixPath(name.replace("\\", "/")).name, longest=NAME_LENGTH)
    files = scope.rows(PriceBookFile).filter(price_book=book)
    if files.count() >= MOST_FILES:
        raise Conflict(
            "too_many",
            say("The price book has {most} files.", most=MOST_FILES),
            say("delete one that is not needed"),
        )
    if files.filter(name=name).exists():
        raise _fault(name, "There is a file of this name.", "another name")
    media_type = _media_type(name, content)
    return PriceBookFile.objects.create(
        organization=scope.organization,
        price_book=book,
        name=name,
        media_type=media_type,
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        content=content,
        uploaded_by=scope.user,
    )


@tenant_write
def remove_file(*, scope: Scope, file: PriceBookFile) -> None:
    """Delete the file; entries that named it name none."""
    scope.require("planner.change_price_book")
    scope.get(PriceBookFile, file.uuid, lock=True).delete()


@tenant_write
def download_file(*, scope: Scope, file: PriceBookFile) -> bytes:
    """The file's content; the audit log notes who took it."""
    scope.require("planner.view_price_book")
    note_export(scope=scope, subject=file, what="file", size_bytes=file.size_bytes)
    return bytes(file.content)


def _media_type(name: str, content: bytes) -> str:
    ending = PurePosixPath(name).suffix.lower()
    if ending not in TYPES:
        raise _fault(name, "Not a type of file that is kept.", ", ".join(TYPES))
    if not 0 < len(content) <= MOST_BYTES:
        raise _fault(
            name, say("It has {size:,} bytes.", size=len(content)), say("1 to {most:,} bytes", most=MOST_BYTES)
        )
    media_type, start = TYPES[ending]
    if not (content.startswith(start) if start else _is_text(content)):
        raise _fault(name, "The content is not what the name says.", say("a {ending} file", ending=ending))
    return media_type


def _is_text(content: bytes) -> bool:
    try:
        return "\x00" not in content.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _fault(name: str, message: str, allowed: str) -> InvalidQuestion:
    return InvalidQuestion([FieldError(field="file", value=name, message=message, allowed=allowed)])
