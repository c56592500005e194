"""Keeps manifests of what was submitted from this machine: a file for each batch.

They are written before the jobs are sent, into the directory ``submitted`` of the state directory.
If that is not possible, jobs are submitted all the same.

A file has gzipped lines: a JSON object about the whole batch, then for each job its name, a tab,
and a JSON object. Templates and the texts of inline files are in the first line, each once.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.api.manifest import Manifest, check_line, readable
from boinc_gahp.api.request import similar_names
from boinc_gahp.config.places import state_dir
from boinc_gahp.config.urls import url_identity
from boinc_gahp.errors import BatchConflict, ConfigError
from boinc_gahp.files import make_private_directory, open_private_file, whole_file, write_whole
from boinc_gahp.submit.types import LocalFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from boinc_gahp.api.session import Session
    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.submit.types import SubmitRequest

log = logging.getLogger("boinc_gahp.api.manifest_files")

#: Seconds after its last use when a manifest is removed: by then its batch is over.
_KEEP = 365 * 86400.0
#: Changes with each release that writes another form; a file of any other format is refused.
_FORMAT = 2
#: How many manifests a list of batches reads, and how many characters of each.
_MOST = 200
_LONGEST = 1_000_000
#: What reading a file that was damaged or edited raises.
_UNREADABLE = (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError)


class Manifests:
    """The manifests of one project and one account; a file that cannot be read is left out.

    Args:
        session: the project, the account, and the settings, which name the directory.
    """

    def __init__(self, session: Session) -> None:
        self._place = _place(session.rpc.url, session.rpc.account)
        self._directory: Path | None = None
        with suppress(ConfigError):
            self._directory = state_dir(session.settings) / "submitted"

    def free_name(self, batch_name: str) -> str:
        """Return a similar name under which nothing was submitted from here: ``sweep-2``."""
        paths = ((name, self._path(name)) for name in similar_names(batch_name))
        return next(name for name, path in paths if path is None or not path.exists())

    def find(self, batch_name: str) -> Manifest | None:
        """Return what was sent under this name; None: this machine does not know.

        Raises:
            BatchConflict: another version of boinc_gahp has written it down.
        """
        path = self._path(batch_name)
        if path is None:
            return None
        try:
            with (
                os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as file,
                gzip.open(file, "rt", encoding="utf-8") as lines,
            ):
                head = json.loads(lines.readline())
                if head.get("format") == _FORMAT:
                    return _read(head, lines)
                # What a damaged file says of its form is not believed: its end has the checksum.
                for _ in lines:
                    pass
        except FileNotFoundError:
            return None
        except _UNREADABLE as error:
            log.warning("the file with what was submitted cannot be read: %s: %s", path, error)
            return None
        raise BatchConflict(
            f"what was submitted as batch {batch_name!r} was written down by another version of "
            f"boinc_gahp, in a form that this one does not read: {path}; go on with the batch in "
            "that version, or move the file away, then nothing is compared"
        )

    def of(self, batch_name: str, batch_id: int) -> Manifest | None:
        """Return what was sent for a batch; None: this machine does not know, or cannot read it."""
        try:
            manifest = self.find(batch_name)
        except BatchConflict as error:
            log.warning("%s", error)
            return None
        return manifest if manifest is not None and manifest.batch_id == batch_id else None

    def common(self, batch_name: str, batch_id: int) -> Mapping[str, Any]:
        """Return what applies to all jobs of a batch; empty if this machine does not know."""
        manifest = self.of(batch_name, batch_id)
        return {} if manifest is None else manifest.common

    def write(self, batch_name: str, manifest: Manifest, *, new: bool) -> bool:
        """Write a manifest before sending; return False if ``new`` is set and there is one already.

        The file gets its name only when it is complete.

        Raises:
            OSError: it cannot be written.
        """
        path = self._path(batch_name)
        if path is None:
            raise FileNotFoundError("there is no state directory")
        self._make(path.parent)
        try:
            with (
                whole_file(path, 0o600, replace=not new, durable=True) as file,
                gzip.open(file, "wt", 6, encoding="utf-8") as lines,
            ):
                lines.writelines(_lines(manifest, batch_name, self._place))
        except FileExistsError:
            return False
        return True

    def forget(self, batch_name: str, batch_id: int) -> None:
        """Remove the manifest of a retired batch, if it is of that batch."""
        path = self._path(batch_name)
        if path is not None and self.of(batch_name, batch_id) is not None:
            with suppress(OSError):
                path.unlink()

    # -- where batches were fetched

    def note_fetch(
        self, batch_id: int, directory: Path | None = None, zipped: Iterable[int] = ()
    ) -> None:
        """Remember into which directory a batch is fetched, or the ids of jobs in an archive."""
        path = self._named(f"id {batch_id}", "fetched.json")
        if path is None:
            return
        before, ids = self._fetched(batch_id)
        place = directory or before
        noted = {"directory": place and str(place), "zipped": sorted(ids.union(zipped))}
        try:
            self._make(path.parent)
            write_whole(path, json.dumps(noted), 0o600)
        except OSError as error:
            log.warning("Cannot remember where batch %d is fetched: %s", batch_id, error)

    def fetched_into(self, batch_id: int) -> Path | None:
        """Return the directory of a batch's last fetch; None: none is known on this machine."""
        return self._fetched(batch_id)[0]

    def zipped(self, batch_id: int) -> frozenset[int]:
        """Return the ids of a batch's jobs that were fetched into archives on this machine."""
        return self._fetched(batch_id)[1]

    def _fetched(self, batch_id: int) -> tuple[Path | None, frozenset[int]]:
        path = self._named(f"id {batch_id}", "fetched.json")
        if path is None:
            return None, frozenset()
        try:
            with os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as file:
                noted = json.load(file)
            directory = noted["directory"]
            return directory and Path(directory), frozenset(map(int, noted.get("zipped", ())))
        except FileNotFoundError:
            return None, frozenset()
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("Where batch %d was fetched cannot be read: %s", batch_id, error)
            return None, frozenset()

    def _path(self, batch_name: str) -> Path | None:
        return self._named(batch_name, "json.gz")

    def _named(self, what: str, ending: str) -> Path | None:
        if self._directory is None:
            return None
        text = f"{self._place} {what}".encode("utf-8", "surrogatepass")
        return self._directory / f"{hashlib.sha256(text).hexdigest()[:40]}.{ending}"

    def _make(self, directory: Path) -> None:
        make_private_directory(directory)
        limit = time.time() - _KEEP
        for path in directory.iterdir():
            with suppress(OSError):
                if path.lstat().st_mtime < limit:
                    path.unlink()


class SubmittedBatch(NamedTuple):
    """A batch that was submitted from this machine."""

    id: int
    name: str
    app_name: str


def submitted_batches(settings: Settings, project: ProjectSettings) -> list[SubmittedBatch]:
    """Return the batches of an account that were submitted from here, the latest first.

    Raises:
        ConfigError, OSError: the state directory cannot be read.
    """
    key = project.authenticator
    place = None if key is None else _place(project.url, key.account)
    paths = (state_dir(settings) / "submitted").glob("*.json.gz")
    found = []
    for path in sorted(paths, key=lambda path: path.lstat().st_mtime, reverse=True)[:_MOST]:
        with (
            suppress(*_UNREADABLE),
            os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as file,
            gzip.open(file, "rt", encoding="utf-8") as lines,
        ):
            head = json.loads(lines.readline(_LONGEST))
            if head["place"] == place and not head["refused"]:
                app_name = head["common"]["app_name"]
                found.append(SubmittedBatch(head["batch_id"], head["name"], app_name))
    return found


def _place(url: str, account: str) -> str:
    return f"{url_identity(url)} {account}"


def _lines(manifest: Manifest, batch_name: str, place: str) -> Iterator[str]:
    head = {
        "format": _FORMAT,
        "name": batch_name,
        "place": place,
        "batch_id": manifest.batch_id,
        "at": manifest.at,
        "refused": manifest.refused,
        "parent": manifest.parent,
        "common": manifest.common,
        "texts": manifest.texts,
    }
    yield json.dumps(head) + "\n"
    for name, line in manifest.jobs.items():
        yield f"{json.dumps(name)}\t{line}\n"


def _read(head: Mapping[str, Any], lines: Iterable[str]) -> Manifest:
    jobs = {}
    for text in lines:
        name, _, line = text.rstrip("\n").partition("\t")
        check_line(line)
        jobs[json.loads(name)] = line
    parent = head["parent"]
    return Manifest(
        int(head["batch_id"]),
        float(head["at"]),
        refused=bool(head["refused"]),
        common=dict(head["common"]),
        jobs=jobs,
        parent=None if parent is None else int(parent),
        texts=dict(head["texts"]),
    )


def readable_md5s(session: Session, paths: Iterable[str], **how: Any) -> dict[str, str]:
    """Return the MD5s, in hex, of the local files that can be read.

    Raises:
        StagingError: a file changed while it was read.
        Exception: whatever ``progress`` raises.
    """
    from boinc_gahp.submit.staging import physical_names  # noqa: PLC0415  (heavy)

    names = physical_names(session.context, readable(paths), **how)
    return {path: name[:32] for path, name in names.items()}


def request_md5s(session: Session, request: SubmitRequest) -> dict[str, str]:
    """Return the :func:`readable_md5s` of a request's files, and raise what that raises."""
    items = (item for _, job in request.jobs for item in job.files.values())
    paths = (item.path for item in items if isinstance(item, LocalFile))
    return readable_md5s(session, paths, progress=request.progress)
