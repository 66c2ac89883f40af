"""Uploaded traces: kept in the site's file storage under a name of their own until their runs are gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import SpooledTemporaryFile
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db.models import Q
from django.utils import timezone

from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import say
from planner.models import StoredTrace, User
from planner.services.disk import require_room
from planner.services.trace_columns import TraceError
from planner.services.trace_files import GZIP_MAGIC, read_trace_stream

MAX_TRACE_BYTES = 256 * 2**20
CHECKED_AT_ONCE_BYTES = 2**20
"""Plain files up to this size are read through before a run is started; a worker checks the others."""
IN_MEMORY_BYTES = 2**20
FOLDER = "traces"
_ID = re.compile(r"[0-9a-f]{32}")


def store_trace(chunks: Iterable[bytes], *, owner: User | None = None) -> str:
    """Keep a trace as it comes in, never whole in memory; returns its id. Only ``owner`` may simulate it.

    Raises ``InvalidQuestion`` for an empty file, one that is too large, or, where it is small, a row that is wrong; and
    ``OSError`` where the disk has no room for it.
    """
    with SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as kept:
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if size > MAX_TRACE_BYTES:
                raise _refused(
                    say("Too large."), allowed=say("up to {most} MiB; gzip helps", most=MAX_TRACE_BYTES // 2**20)
                )
            kept.write(chunk)
        if size == 0:
            raise _refused(say("The file is empty."), allowed=say("at least one row after the header"))
        kept.seek(0)
        if size <= CHECKED_AT_ONCE_BYTES and kept.read(2) != GZIP_MAGIC:
            kept.seek(0)
            _check(kept)
        kept.seek(0)
        trace = uuid4().hex
        require_room(Path(settings.MEDIA_ROOT), size)
        try:
            default_storage.save(_path(trace), File(kept))
        except OSError:
            # On a full disk the half that was written would keep it full.
            with suppress(OSError):
                default_storage.delete(_path(trace))
            raise
    StoredTrace.objects.create(name=trace, owner=owner)
    return trace


def _check(kept: SpooledTemporaryFile[bytes]) -> None:
    try:
        read_trace_stream(kept)  # type: ignore[arg-type]
    except TraceError as error:
        raise trace_refused(error) from error


def trace_refused(error: TraceError) -> InvalidQuestion:
    """A trace's fault, with its row and column, as the fault of the parameter ``trace``."""
    return _refused(error.sentence, allowed=error.allowed, value=error.value)


def _refused(message: str, *, allowed: str, value: object = None) -> InvalidQuestion:
    return InvalidQuestion(
        [FieldError(field="trace", value=value, message=message, allowed=allowed, code="invalid_trace")]
    )


def has_trace(trace: str) -> bool:
    """Whether a trace of this id is kept."""
    return bool(_ID.fullmatch(trace)) and default_storage.exists(_path(trace))


def may_use_trace(trace: str, *, user: User | AnonymousUser | None) -> bool:
    """Whether a trace of this id is kept that ``user`` may simulate: their own, or one sent without an account."""
    if not has_trace(trace):
        return False
    owner = Q(owner__isnull=True)
    if user is not None and user.is_authenticated:
        owner |= Q(owner=user)
    return StoredTrace.objects.filter(owner, name=trace).exists()


def open_trace(trace: str) -> File[bytes]:
    """The trace's bytes, to be closed; raises ``InvalidQuestion`` where it is gone."""
    if not has_trace(trace):
        raise _refused(say("The trace is not kept any more."), allowed=say("an uploaded trace"))
    return default_storage.open(_path(trace), "rb")


def stored_bytes(trace: str) -> int:
    """How large a trace is; 0 where it is gone."""
    return default_storage.size(_path(trace)) if has_trace(trace) else 0


def delete_trace(trace: str) -> None:
    """Forget a trace; one that is gone already is no fault."""
    if _ID.fullmatch(trace):
        default_storage.delete(_path(trace))
        StoredTrace.objects.filter(name=trace).delete()


def traces_older_than(age: timedelta) -> Iterator[str]:
    """The traces that were stored longer ago."""
    if not default_storage.exists(FOLDER):
        return
    limit = timezone.now() - age
    for trace in default_storage.listdir(FOLDER)[1]:
        if _ID.fullmatch(trace) and default_storage.get_modified_time(_path(trace)) < limit:
            yield trace


def _path(trace: str) -> str:
    return f"{FOLDER}/{trace}"
