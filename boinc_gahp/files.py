"""Opens files where no other user can have put them, and writes them completely or not at all.

On a submit node, users share directories: /tmp, a group's, the admin's directory for all users'
state. Others can create links and files there, under names that they guess. Writing through these
would use the rights of this process's user. This module does not protect against root, or against
the owner of a directory.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

#: Makes the directory of this name in the one with this descriptor.
Make = Callable[[str, int], object]

#: A descriptor that only identifies a directory; needs no right to read it.
_STAND = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: The most links in a path, the same limit as the kernel's.
_MOST_LINKS = 40

#: A directory that can be written but not read cannot be opened for syncing, and some file systems
#: cannot sync directories. Then only the file's own fsync remains.
_CANNOT_SYNC = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EROFS}


class NotOurs(OSError):
    """A part of a path is another user's, or others can change it; says which, and the remedy."""


def open_directory(path: Path, *, make: Make | None = None, private: bool = False) -> int:
    """Return a descriptor of a directory for use as ``dir_fd``, which always means this directory.

    Links in the path are followed as the kernel's ``protected_symlinks`` does (proc(5)): in a
    directory that everyone can write, such as /tmp, only links of this user and of the directory's
    owner. Here this holds also before the last part of the path, and without the sticky bit.

    Args:
        path: the directory.
        make: called for missing directories, but not behind a link that leads nowhere.
        private: follow only links of this user and of root, anywhere.

    Raises:
        NotOurs: the path has another link.
        OSError: the path cannot be followed.
    """
    parts, behind_link = deque(path.absolute().parts), deque[str]()
    at, links = -1, 0
    where: list[str] = []
    try:
        while parts or behind_link:
            is_named = not behind_link
            part = parts.popleft() if is_named else behind_link.popleft()
            try:
                below = _step(part, at, make if is_named else None)
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                target = _target(part, at, Path(*where, part), private=private)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
                behind_link.extendleft(reversed(Path(target).parts))
                continue
            if at >= 0:
                os.close(at)
            at = below
            where.append(part)
    except BaseException:
        if at >= 0:
            os.close(at)
        raise
    return at


def check_links(path: Path) -> None:
    """Refuse a file's path if it has a link that :func:`open_directory` would not follow.

    Raises:
        NotOurs: it has one; it may be the file itself.
        OSError: the path cannot be followed.
    """
    for _ in range(_MOST_LINKS):
        if not path.name:  # the root
            return
        at = open_directory(path.parent)
        try:
            path = path.parent / _target(path.name, at, path, private=False)
        except NotADirectoryError:
            return
        finally:
            os.close(at)


def open_below(at: int, name: str, make: Make | None = None) -> int:
    """Return a descriptor of the directory ``name``, a single part, in another one; not of a link.

    Raises:
        OSError: ENOTDIR if it is a link, or not a directory.
    """
    return _step(name, at, make)


def _step(part: str, at: int, make: Make | None) -> int:
    if part.startswith("/"):
        return os.open("/", _STAND)
    try:
        return os.open(part, _STAND, dir_fd=at)
    except FileNotFoundError:
        if make is None:
            raise
    with suppress(FileExistsError):
        make(part, at)
    return os.open(part, _STAND, dir_fd=at)


def _target(part: str, at: int, where: Path, *, private: bool) -> str:
    """Return the target of a link; ``where`` is for messages.

    Raises:
        NotOurs: the link must not be followed.
        NotADirectoryError: it is not a link.
    """
    link = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        status, around = os.fstat(link), os.fstat(at)
        if not stat.S_ISLNK(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(where))
        if private and status.st_uid not in trusted_users():
            raise NotOurs(
                f"{where} is a symbolic link that user {user_name(status.st_uid)} made: it is not "
                "followed; name the directory that is meant, or have root run: "
                f"rm {quote(str(where))}"
            )
        is_everyones = bool(around.st_mode & stat.S_IWOTH)
        if is_everyones and status.st_uid not in (os.geteuid(), around.st_uid):
            raise NotOurs(
                f"{where} is a symbolic link that user {user_name(status.st_uid)} made in a "
                "directory that everyone can write: it is not followed; name another directory"
            )
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


@contextmanager
def whole_file(
    path: Path, mode: int = 0o666, *, replace: bool = True, durable: bool = False
) -> Iterator[BinaryIO]:
    """Lend a file to write; it gets its name when the block ends, and is deleted if that fails.

    Readers, other writers and a killed process leave or find a complete file, or none.

    Args:
        path: its name.
        mode: its permissions, subject to the umask.
        replace: whether to replace an existing file.
        durable: whether to sync the file and its name to the disk.

    Raises:
        FileExistsError: the name is taken, and ``replace`` is not set.
        OSError: it cannot be written; an existing file is unchanged.
    """
    # Two writers must not use the same temporary file, or remove each other's.
    new = path.with_name(f"{path.name}.{os.urandom(4).hex()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(descriptor)
        if replace or not _linked(new, path):
            new.replace(path)
        if durable:
            sync_directory(path.parent)
    finally:
        new.unlink(missing_ok=True)


def write_whole(path: Path, contents: str | bytes, mode: int = 0o666) -> None:
    """Write a :func:`whole_file`, replacing any other; text as UTF-8. Raises the same errors."""
    with whole_file(path, mode) as file:
        file.write(contents.encode("utf-8") if isinstance(contents, str) else contents)


def _linked(new: Path, path: Path) -> bool:
    """Give a file another name, which must be free; False if the file system has no links."""
    try:
        path.hardlink_to(new)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to the disk; raises as :func:`sync`."""
    descriptor = open_directory(path)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync(directory: int) -> None:
    """Sync the names in a directory to the disk, if the file system can.

    Raises:
        OSError: the disk failed, ...
    """
    try:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def make_private_directory(path: Path, *, or_shared: bool = False) -> None:
    """Create a directory and its parents if missing; check that it is this user's alone.

    Args:
        path: the directory.
        or_shared: also accept root's directory, if no user can touch another's files in it.

    Raises:
        NotOurs: it belongs to another user, others can write it, or everyone can replace it; or
            this user may not create or reach it.
        OSError: it cannot be created.
    """
    check_directories_above(path)
    me = user_name(os.geteuid())
    try:
        descriptor = open_directory(path, make=_make_private, private=True)
    except PermissionError as error:
        way = (each for each in reversed(path.absolute().parents) if not os.access(each, os.X_OK))
        closed = next(way, None)
        enter = f"let {me} enter {closed}, and " if closed and os.path.lexists(closed) else ""
        raise NotOurs(
            f"the directory {path} cannot be made or reached ({error.strerror}): {enter}have root "
            f"run: install -d -m 700 -o {quote(me)} {quote(str(path))}"
        ) from error
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    sticky = bool(status.st_mode & stat.S_ISVTX)
    writers = who_else_can_write(status)
    if or_shared and status.st_uid in trusted_users() and (sticky or writers is None):
        return
    if status.st_uid != os.geteuid():
        raise NotOurs(
            f"the directory {path} belongs to user {user_name(status.st_uid)}, not to {me}: have "
            f"root run: mv {quote(str(path))} {quote(f'{path}.not-mine')} && "
            f"install -d -m 700 -o {quote(me)} {quote(str(path))}"
        )
    if writers is not None:
        raise NotOurs(
            f"the directory {path} can be written by {writers}: make sure that everything in it "
            f"belongs to {me}, and run: chmod go-w {quote(str(path))}"
        )


def check_directories_above(path: Path) -> list[str]:
    """Look for others who can move a path away and put something else in its place.

    These are the users who can write a directory above it, or above what a link in it leads to. In
    a sticky directory, such as /tmp, only its owner can move what belongs to another user.

    Returns:
        a warning for each directory that a group can write.

    Raises:
        NotOurs: everyone can write one of the directories.
    """
    warnings: list[str] = []
    seen: set[Path] = set()
    paths = deque([path.absolute()])
    while paths:
        lowest = paths.popleft()
        for each in (lowest, *lowest.parents):
            if each in seen:
                continue
            seen.add(each)
            if each.is_symlink():
                paths.append(each.parent / each.readlink())
            if each != lowest and each.is_dir():
                warnings += _replaceable(each, path)
    return warnings


def _replaceable(directory: Path, path: Path) -> Iterator[str]:
    status = directory.stat()
    writers = who_else_can_write(status)
    if status.st_mode & stat.S_ISVTX or writers is None:
        return
    told = f"{writers} can write the directory {directory}, and so replace what is in it"
    if status.st_mode & stat.S_IWOTH:
        raise NotOurs(
            f"{path} is not used: {told}; as {user_name(status.st_uid)}, run: chmod o-w "
            f"{quote(str(directory))}, or chmod +t if everyone is to write there"
        )
    yield f"{told}; if that is not intended, run: chmod g-w {quote(str(directory))}"


def _make_private(name: str, at: int) -> None:
    os.mkdir(name, 0o700, dir_fd=at)
    sync(at)


def open_private_file(path: Path, flags: int) -> int:
    """Open a file of this user, with mode 600 if it is new, in a directory as above.

    Raises:
        NotOurs: it is not an ordinary file, or another user's.
        OSError: it cannot be opened.
    """
    # Without O_NONBLOCK, the process would wait for the other end of a named pipe.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _is_link(path) from error
        raise
    try:
        _check_file(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_private_file(path: Path) -> None:
    """Refuse a file that :func:`open_private_file` would refuse; a missing one is accepted.

    Raises:
        NotOurs: it is not an ordinary file, or another user's.
    """
    with suppress(FileNotFoundError):
        os.close(open_private_file(path, os.O_PATH))


def _check_file(path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _is_link(path)
    if not stat.S_ISREG(status.st_mode):
        raise NotOurs(f"{str(path)!r} is not an ordinary file: have it moved away")
    if status.st_uid != os.geteuid():
        raise NotOurs(
            f"{str(path)!r} belongs to user {user_name(status.st_uid)}, not to "
            f"{user_name(os.geteuid())}: have it moved away"
        )
    if status.st_nlink > 1 and not _is_ours(path.parent):
        raise NotOurs(
            f"{str(path)!r} is a file that has other names, too (hard links), and another user may "
            "have given it this one: have it moved away"
        )


def _is_link(path: Path) -> NotOurs:
    return NotOurs(
        f"{str(path)!r} is a symbolic link: it is not followed; name the file itself in the "
        f"settings, or run: rm {quote(str(path))}"
    )


def _is_ours(directory: Path) -> bool:
    status = directory.stat()
    return status.st_uid == os.geteuid() and who_else_can_write(status) is None


def trusted_users() -> set[int]:
    """Return the users who can do everything here anyway: this one and root.

    In a container whose root is not the machine's root, root's files seem to belong to nobody.
    """
    return {os.geteuid(), 0, os.stat("/").st_uid}  # noqa: PTH116


def who_else_can_write(status: os.stat_result) -> str | None:
    """Return who can write a file or directory besides its owner and root, in words; None: nobody.

    On many systems each user is alone in a group of the same name, and the umask lets it write.
    """
    if status.st_mode & stat.S_IWOTH:
        return "everyone"
    if status.st_mode & stat.S_IWGRP and not _is_alone_in(status.st_gid, status.st_uid):
        return f"group {_group_name(status.st_gid)}"
    return None


def _is_alone_in(gid: int, uid: int) -> bool:
    if gid == 0:
        return True
    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    alone = user.pw_gid == gid and user.pw_name == group.gr_name
    return alone and set(group.gr_mem) <= {user.pw_name}


def user_name(uid: int) -> str:
    """Return a user's name, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
