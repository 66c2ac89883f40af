"""A disk without room is a service that can't answer now, and no fault of the code or of the caller."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Final

RESERVE_BYTES: Final = 512 * 2**20
"""What uploads leave free: where they filled the disk, the database beside them could not be written."""
_OUT_OF_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_out_of_room(error: BaseException | None) -> bool:
    """Whether ``error`` says that a disk, or what may be used of it, is full.

    >>> is_out_of_room(OSError(errno.ENOSPC, "No space left")), is_out_of_room(OSError(errno.ENOENT, "No file"))
    (True, False)
    """
    return isinstance(error, OSError) and error.errno in _OUT_OF_ROOM


def require_room(folder: Path, size_bytes: int) -> None:
    """Raise ``OSError`` where ``size_bytes`` more in ``folder``, which may be yet to make, would leave too little."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if shutil.disk_usage(there).free - size_bytes < RESERVE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
