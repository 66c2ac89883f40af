"""A disk without room is a service that can't answer now, and no fault of the code or of the caller."""

from __future__ import annotations

import errno

_OUT_OF_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_out_of_room(error: BaseException | None) -> bool:
    """Whether ``error`` says that a disk, or what may be used of it, is full.

    >>> is_out_of_room(OSError(errno.ENOSPC, "No space left")), is_out_of_room(OSError(errno.ENOENT, "No file"))
    (True, False)
    """
    return isinstance(error, OSError) and error.errno in _OUT_OF_ROOM
