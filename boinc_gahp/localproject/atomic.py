"""Files that are there whole or not at all, whoever writes, reads or is killed meanwhile."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, contents: str | bytes, mode: int = 0o666) -> None:
    """Write a file, in place of what is there; text as UTF-8. ``mode`` is subject to the umask.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    data = contents.encode("utf-8") if isinstance(contents, str) else contents
    # Two at once must not write into the same file, nor take it away from each other.
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
