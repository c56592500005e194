"""Reads files that may hold an authenticator, and checks who else can read or write them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from boinc_gahp.errors import ConfigError
from boinc_gahp.files import (
    NotOurs,
    check_directories_above,
    trusted_users,
    user_name,
    who_else_can_write,
)

if TYPE_CHECKING:
    from pathlib import Path

#: A settings file has a few kilobytes; a larger one was named by mistake.
MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text, with the file's owner and permissions when it was opened."""

    path: Path
    text: str
    status: os.stat_result

    def must_be_private(self) -> str | None:
        """Return a warning if the file's group can read it, else None.

        Raises:
            ConfigError: everyone can read it, or write another account's into it.
        """
        for right, verb in ((stat.S_IROTH, "read"), (stat.S_IWOTH, "write")):
            if self.status.st_mode & right:
                raise ConfigError(
                    f"{self.path} holds an authenticator, and everyone can {verb} it; run: "
                    f"chmod 600 {quote(str(self.path))}"
                )
        if self.status.st_mode & stat.S_IRGRP:
            return (
                f"{self.path} holds an authenticator, and its group can read it; if that is not "
                f"intended, run: chmod 600 {quote(str(self.path))}"
            )
        return None

    def must_be_trusted(self) -> list[str]:
        """Return warnings if others than this user and root can write or replace the file.

        Raises:
            ConfigError: everyone can, and it decides where jobs are sent.
        """
        try:
            warnings = check_directories_above(self.path)
        except NotOurs as error:
            raise ConfigError(str(error)) from error
        if self.status.st_mode & stat.S_IWOTH:
            raise ConfigError(
                f"everyone can write {self.path}, which tells where jobs are sent; run: "
                f"chmod o-w {quote(str(self.path))}"
            )
        writers = who_else_can_write(self.status)
        if self.belongs_to_another():
            warnings.append(
                f"{self.path} belongs to user {self.owner}, who can change where your jobs are sent"
            )
        elif writers is not None:
            warnings.append(
                f"{writers} can write {self.path}, which tells where jobs are sent; if that is not "
                f"intended, run: chmod g-w {quote(str(self.path))}"
            )
        return warnings

    def must_be_ours(self, remedy: str) -> None:
        """Raise ConfigError if another user owns the file; ``remedy`` says what to do."""
        if self.belongs_to_another():
            raise ConfigError(
                f"{self.path} belongs to user {self.owner}, so it is not read: {remedy}"
            )

    @property
    def owner(self) -> str:
        """The name of the file's owner."""
        return user_name(self.status.st_uid)

    def belongs_to_another(self) -> bool:
        """Tell whether the file belongs to anybody except this user and root."""
        return self.status.st_uid not in trusted_users()


def read(path: Path) -> FileText:
    """Return the text of ``path``, which must be a regular file in UTF-8.

    Raises:
        OSError: it cannot be opened or read.
        ConfigError: it is not such a file.
    """
    # Without O_NONBLOCK, the daemon would wait for the other end of a named pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path} is not an ordinary file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_BYTES} bytes: that is not a settings file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (at byte {error.start})") from None
    return FileText(path, text, status)
