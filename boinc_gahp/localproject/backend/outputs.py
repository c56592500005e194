"""get_output.php: outputs of results, workunits and batches (``web-rpcs.rst``, "get_output")."""

from __future__ import annotations

import hashlib
import secrets
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree

from boinc_gahp.localproject.names import name_key
from boinc_gahp.localproject.server.request import as_integer
from boinc_gahp.localproject.states import Outcome

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from boinc_gahp.localproject.core import Core


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """An output file that a volunteer has uploaded; size in bytes, MD5 in hex."""

    name: str
    nbytes: int
    md5: str


def uploaded_files(result: sqlite3.Row) -> list[UploadedFile]:
    """Return the files listed in ``result.xml_doc_out``, in the order of the output template."""
    if not result["xml_doc_out"]:
        return []
    root = etree.fromstring(f"<files>{result['xml_doc_out']}</files>".encode())
    return [
        UploadedFile(
            name=info.findtext("name", ""),
            nbytes=int(info.findtext("nbytes", "0")),
            md5=info.findtext("md5_cksum", ""),
        )
        for info in root.findall("file_info")
    ]


class OutputFailed(Exception):
    """get_output.php answers in plain text: ``ERROR: `` and the error."""

    def __init__(self, words: str) -> None:
        super().__init__(f"ERROR: {words}")


class MissingArgument(Exception):
    """A number is missing or invalid: the real server redirects to a page that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class NotHandled(Exception):
    """A text is missing, or is of no use: the real server shows an HTML page."""


class BadCommand(OutputFailed):
    """``cmd`` is none of the four."""

    def __str__(self) -> str:
        return "bad command\n"


@dataclass(frozen=True, slots=True)
class SentFile:
    """The answer: a file, with a name; ``temporary`` is removed afterwards.

    ``path`` None: only a promise of ``nbytes``, as the real server makes for a file ``number`` that
    is out of range.
    """

    path: Path | None
    filename: str
    nbytes: int
    temporary: bool = False
    number: int = 0


def get_output(core: Core, arguments: Mapping[str, str]) -> SentFile:
    """Find the output that a request's arguments ask for.

    Raises:
        OutputFailed, MissingArgument, NotHandled: as the real server answers.
    """
    command = text_in(arguments, "cmd")
    auth_str = text_in(arguments, "auth_str")
    with core.db.read() as connection:
        if command == "result_file":
            return _result_file(core, connection, arguments, auth_str)
        if command == "workunit_file":
            return _workunit_file(core, connection, arguments, auth_str)
        if command == "workunit_files":
            return _workunit_files(core, connection, arguments, auth_str)
        if command == "batch_files":
            return _batch_files(core, connection, arguments, auth_str)
    raise BadCommand(command)


def text_in(arguments: Mapping[str, str], name: str) -> str:
    """Return an argument of a page.

    Raises:
        NotHandled: it is missing.
    """
    value = arguments.get(name)
    if not value:
        raise NotHandled("Unable to handle request")
    return value


def number_in(arguments: Mapping[str, str], name: str) -> int:
    """Return an argument of a page that is a number.

    Raises:
        MissingArgument: it is missing, or is none.
    """
    try:
        return as_integer(int(arguments.get(name, "")))
    except ValueError as error:
        raise MissingArgument(name) from error


def _owner_authenticator(connection: sqlite3.Connection, batch_id: int) -> str:
    row = connection.execute(
        "SELECT u.authenticator FROM batch b JOIN user u ON u.id = b.user_id WHERE b.id = ?",
        (batch_id,),
    ).fetchone()
    if row is None:
        # Without an owner there is no secret either.
        raise OutputFailed(f"no batch {batch_id}")
    return str(row["authenticator"])


def _check(given: str, expected: str, words: str = "bad authenticator") -> None:
    if not secrets.compare_digest(given.encode(), expected.encode()):
        raise OutputFailed(words)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _result_file(
    core: Core, connection: sqlite3.Connection, arguments: Mapping[str, str], auth_str: str
) -> SentFile:
    name = text_in(arguments, "result_name")
    number = number_in(arguments, "file_num")
    result = connection.execute("SELECT * FROM result WHERE name = ?", (name,)).fetchone()
    if result is None:
        raise OutputFailed(f"no job instance {name}")
    _check(auth_str, _md5(_owner_authenticator(connection, result["batch"]) + name))
    files = uploaded_files(result)
    if not 0 <= number < len(files):
        raise OutputFailed(f"bad file num: {number} > {len(files)}")
    file = files[number]
    if not core.upload.exists(file.name):
        raise OutputFailed(f"no such file {core.upload.path(file.name)}")
    return _stored(core, file)


def _workunit_file(
    core: Core, connection: sqlite3.Connection, arguments: Mapping[str, str], auth_str: str
) -> SentFile:
    name = text_in(arguments, "wu_name")
    number = number_in(arguments, "file_num")
    job = connection.execute(
        "SELECT * FROM workunit WHERE name_key = ?", (name_key(name),)
    ).fetchone()
    if job is None:
        raise OutputFailed(f"no workunit {name}")
    _check(auth_str, _owner_authenticator(connection, job["batch"]))
    result = _canonical(connection, job)
    files = uploaded_files(result)
    if not 0 <= number < len(files):
        return SentFile(None, "d9", 4096, number=number)
    file = files[number]
    if not core.upload.exists(file.name):
        raise OutputFailed(f"no such file: {core.upload.path(file.name)}")
    return _stored(core, file)


def _canonical(connection: sqlite3.Connection, job: sqlite3.Row) -> sqlite3.Row:
    result: sqlite3.Row | None = connection.execute(
        "SELECT * FROM result WHERE id = ?", (job["canonical_resultid"],)
    ).fetchone()
    if result is None:
        raise OutputFailed(f"no canonical result for wu {job['name']}")
    return result


def _stored(core: Core, file: UploadedFile) -> SentFile:
    path = core.upload.path(file.name)
    return SentFile(path, file.name, path.stat().st_size)


def _workunit_files(
    core: Core, connection: sqlite3.Connection, arguments: Mapping[str, str], auth_str: str
) -> SentFile:
    number = number_in(arguments, "wu_id")
    job = connection.execute("SELECT * FROM workunit WHERE id = ?", (number,)).fetchone()
    if job is None:
        raise OutputFailed(f"no workunit {number}")
    _check(auth_str, _md5(_owner_authenticator(connection, job["batch"]) + str(number)))
    if "." in job["name"]:
        # zip takes the temporary name for an archive's, and writes to a file that nobody sends.
        _canonical(connection, job)
        return _zip(core, f"boinc_wu_{job['name']}_", [])
    return job_zip(core, connection, job)


def _batch_files(
    core: Core, connection: sqlite3.Connection, arguments: Mapping[str, str], auth_str: str
) -> SentFile:
    number = number_in(arguments, "batch_id")
    batch = connection.execute("SELECT id FROM batch WHERE id = ?", (number,)).fetchone()
    if batch is None:
        raise OutputFailed(f"no batch {number}")
    expected = _md5(_owner_authenticator(connection, number) + str(number))
    _check(auth_str, expected, "bad auth str")
    return batch_zip(core, connection, number)


def job_zip(core: Core, connection: sqlite3.Connection, job: sqlite3.Row) -> SentFile:
    """Pack the outputs of a workunit's canonical result.

    Raises:
        OutputFailed: there is none.
    """
    return _zip(core, f"boinc_wu_{job['name']}_", [_canonical(connection, job)])


def batch_zip(core: Core, connection: sqlite3.Connection, batch_id: int) -> SentFile:
    """Pack the outputs of a batch's canonical results."""
    results = connection.execute(
        "SELECT r.* FROM workunit w JOIN result r ON r.id = w.canonical_resultid "
        "WHERE w.batch = ? AND r.outcome = ? ORDER BY w.id",
        (batch_id, Outcome.SUCCESS),
    )
    return _zip(core, "boinc_batch_", results)


def _zip(core: Core, prefix: str, results: Iterable[sqlite3.Row]) -> SentFile:
    """Pack the outputs of results; if there are none, the real server sends a file of 0 bytes."""
    incoming = core.upload.incoming()
    incoming.finish()
    try:
        packed = 0
        with zipfile.ZipFile(incoming.path, "w", zipfile.ZIP_DEFLATED) as archive:
            for result in results:
                for file in uploaded_files(result):
                    if core.upload.exists(file.name):
                        archive.write(core.upload.path(file.name), file.name)
                        packed += 1
        if not packed:
            incoming.path.write_bytes(b"")
    except BaseException:
        incoming.discard()
        raise
    name = f"{prefix}{secrets.token_hex(3)}.zip"
    return SentFile(incoming.path, name, incoming.path.stat().st_size, temporary=True)
