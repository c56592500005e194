"""The files that a job's ad names, looked at when the job is accepted.

All functions here raise :class:`AdRefused` for a file that cannot be sent, and name it as the
submit file does: the scientist is told at once, not when the batch is sent.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from boinc_gahp.fetch.placements import DEV_NULL
from boinc_gahp.htcondor.attributes import AdRefused, as_text, show
from boinc_gahp.submit.types import LocalFile, RemoteFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.htcondor.attributes import Attributes

#: In bytes; projects' templates are far smaller.
MAX_TEMPLATE = 65_536

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
#: What a URL may contain (RFC 3986, 2.2 and 2.3), apart from ``'``, which a project's database
#: would not take.
_URL_TEXT = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&()*+,;=%-]+")
#: Three words, then a comma or the end: so a URL may contain commas.
_REMOTE = re.compile(r"\s*(\S+)\s+(\S+)\s+([^\s,]+)\s*(?:,|$)")
_MD5 = re.compile(r"[0-9a-fA-F]{32}")
_LARGEST = 2**63 - 1

_REMOTE_FORM = '"url nbytes md5, url nbytes md5, ..."'


def names_in(text: str | None) -> list[str]:
    """Return the names in a list as HTCondor has them: between commas, with spaces inside."""
    return [name for each in (text or "").split(",") if (name := each.strip())]


def read_inputs(attributes: Attributes, iwd: str) -> Iterator[tuple[str, LocalFile | RemoteFile]]:
    """Yield the files of ``transfer_input_files`` and ``input`` with their names, each once."""
    stdin = attributes.text("In")
    wanted = [("transfer_input_files", name) for name in names_in(attributes.text("TransferInput"))]
    if stdin not in {None, DEV_NULL}:
        wanted.append(("input", str(stdin)))
    seen = set()
    for source, name in wanted:
        file = look_at_file(source, name, iwd)
        if file.path not in seen:
            seen.add(file.path)
            yield Path(file.path).name, file
    yield from read_remote(attributes.given("RemoteFiles"))


def read_remote(given: tuple[str, object] | None) -> Iterator[tuple[str, RemoteFile]]:
    """Yield the files in a ``BoincRemoteFiles``, each with its name."""
    shown, text = ("", "") if given is None else (given[0], as_text(*given))
    place = 0
    while text[place:].strip():
        found = _REMOTE.match(text, place)
        if found is None:
            rest = text[place:].partition(",")[0]
            raise AdRefused(f"{shown} has {show(rest)}; {_REMOTE_FORM} is expected")
        yield _remote_file(shown, *found.groups())
        place = found.end()


def read_outputs(text: str) -> tuple[str, ...]:
    """Return the names in ``transfer_output_files``; an empty list means no outputs."""
    names = names_in(text)
    for name in names:
        refuse_url("transfer_output_files", name)
        if name.endswith("/"):
            raise AdRefused(
                f"transfer_output_files names {show(name)}; a BOINC job has no output "
                "directories: name the files"
            )
    return tuple(dict.fromkeys(names))


def read_stream(source: str, name: str | None, iwd: str) -> str | None:
    """Return where ``output`` or ``error`` goes; None for nowhere."""
    if name in {None, "", DEV_NULL}:
        return None
    path = str(name)
    refuse_url(source, path)
    if path.endswith("/") or is_directory(Path(iwd, path)):
        raise AdRefused(f"{source} is {show(path)}, which is a directory; name a file in it")
    return path


def check_remap(name: str, path: str, iwd: str) -> None:
    """Refuse a remap into a directory that does not exist, before volunteers work for nothing.

    HTCondor does not make such a directory either; those of ``output`` and ``error`` are made.
    """
    directory = Path(iwd, path) if path.endswith("/") else Path(iwd, path).parent
    if not is_directory(directory):
        raise AdRefused(
            f"transfer_output_remaps sends {show(name)} to {show(path)}, and there is no directory "
            f"{show(directory)}: create it, or name another"
        )


def read_template(given: tuple[str, object] | None, iwd: str) -> str | None:
    """Return the text of a template, if one is given; it is only checked when the job is sent."""
    if given is None:
        return None
    shown, name = given[0], as_text(*given)
    path = Path(iwd, name)
    where = f"{shown} is {show(name)}: {show(path)}"
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise AdRefused(f"{where} is not a file")
        with path.open("rb") as file:
            content = file.read(MAX_TEMPLATE + 1)
    except (OSError, ValueError) as error:
        raise AdRefused(f"{where} cannot be read ({_why(error)})") from None
    if len(content) > MAX_TEMPLATE:
        raise AdRefused(f"{where} is larger than {MAX_TEMPLATE} bytes; a job template is expected")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise AdRefused(f"{where} is not UTF-8 (at byte {error.start + 1})") from None


def go_to_one_file(stdout: str | None, stderr: str | None, iwd: str) -> bool:
    """Tell whether ``output`` and ``error`` name the same file."""
    if stdout is None or stderr is None:
        return False
    return os.path.normpath(Path(iwd, stdout)) == os.path.normpath(Path(iwd, stderr))


def is_directory(path: Path) -> bool:
    """Tell whether there is a directory at ``path``, as far as this user can see."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _why(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def look_at_file(source: str, name: str, iwd: str) -> LocalFile:
    """Return a file that a submit file names in ``source``, as it is now."""
    refuse_url(source, name)
    path = Path(iwd, name)
    where = f"{source} names {show(name)}"
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise AdRefused(f"{where}: {show(path)} cannot be read ({_why(error)})") from None
    if stat.S_ISDIR(status.st_mode) or name.endswith("/"):
        raise AdRefused(
            f"{where}, which is a directory; a BOINC job has input files only: "
            "name the files, or put them into one archive that the app can read"
        )
    if not stat.S_ISREG(status.st_mode):
        raise AdRefused(f"{where}: {show(path)} is not a file")
    if not os.access(path, os.R_OK):
        raise AdRefused(f"{where}: you may not read {show(path)}")
    return LocalFile(path, (status.st_size, status.st_mtime_ns))


def _remote_file(shown: str, url: str, size: str, md5: str) -> tuple[str, RemoteFile]:
    wrong = f"{shown} has {show(url)}"
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not (is_url and _URL_TEXT.fullmatch(url)):
        raise AdRefused(
            f"{wrong}; an http or https URL is expected, with %XX for characters that a URL "
            f"cannot contain, in {_REMOTE_FORM}"
        )
    name = parts.path.rsplit("/", 1)[-1]
    if not name:
        raise AdRefused(f"{wrong}; its path does not end with a file's name")
    if not (size.isascii() and size.isdigit() and len(size) < 20 and int(size) <= _LARGEST):
        raise AdRefused(f"{wrong} with nbytes {show(size)}; the file's size in bytes is expected")
    if not _MD5.fullmatch(md5):
        raise AdRefused(f"{wrong} with md5 {show(md5)}; 32 hexadecimal digits are expected")
    return name, RemoteFile(url, int(size), md5.lower())


def refuse_url(source: str, name: str) -> None:
    """Refuse a URL where the name of a local file is expected."""
    found = _URL.match(name)
    if found is None:
        return
    remedy = "name a local file"
    if source == "transfer_input_files":
        remedy = "volunteers get files from http and https servers: give its size and MD5 as well, "
        remedy += 'as in +remote_BoincRemoteFiles = "url nbytes md5"'
        if found[1].lower() not in {"http", "https"}:
            remedy = "volunteers get files from http and https servers only: name a local file"
    raise AdRefused(f"{source} names {show(name)}; {remedy}")
