"""Keeps manifests of what was submitted from here, a file for each batch, and compares with them.

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
import shlex
import time
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.api.manifest import (
    COMMON,
    NUMBERS,
    TEMPLATES,
    Manifest,
    check_line,
    describe,
    readable,
)
from boinc_gahp.api.request import similar_names
from boinc_gahp.config.places import state_dir
from boinc_gahp.config.urls import url_identity
from boinc_gahp.containers.job_files import OWN_FILES, WORK, is_archive, is_image
from boinc_gahp.errors import BatchConflict, ConfigError, GahpError, NotFound, NotOwner, RpcError
from boinc_gahp.files import make_private_directory, open_private_file, whole_file, write_whole
from boinc_gahp.quantities import SIZES
from boinc_gahp.submit.abort import drop
from boinc_gahp.submit.journal import Journal
from boinc_gahp.submit.types import LocalFile
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from boinc_gahp.api.manifest import Lineage
    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import BatchInfo, UploadFile
    from boinc_gahp.submit.journal import SubmitState
    from boinc_gahp.submit.types import SubmitRequest

log = logging.getLogger("boinc_gahp.api.manifest_files")
#: For what commands do not print.
quiet_log = logging.getLogger("boinc_gahp.api")

#: Seconds after its last use when a manifest is removed: by then its batch is over.
_KEEP = 365 * 86400.0
#: Changes with each release that writes another form; a file of any other format is refused.
_FORMAT = 2
#: What the first line tells of a manifest, and its types: somebody may have edited it.
_HEAD: dict[str, Callable[[Any], Any]] = {
    "batch_id": int,
    "at": float,
    "refused": bool,
    "parent": lambda number: None if number is None else int(number),
    "common": dict,
    "texts": dict,
}
#: How many manifests a list of batches reads, and how many characters of each.
_MOST = 200
_LONGEST = 1_000_000
#: What reading a file that was damaged or edited raises.
_UNREADABLE = (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError)


class Manifests:
    """The manifests of one project and one account; a file that cannot be read is left out.

    Args:
        rpc: the project and the account.
        settings: they name the directory.
    """

    def __init__(self, rpc: WebRpcs, settings: Settings) -> None:
        self._place = _place(rpc.url, rpc.account)
        self._directory: Path | None = None
        with suppress(ConfigError):
            self._directory = state_dir(settings) / "submitted"

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
        **{key: getattr(manifest, key) for key in _HEAD},
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
    return Manifest(jobs=jobs, **{key: kind(head[key]) for key, kind in _HEAD.items()})


def readable_md5s(context: FetchContext, paths: Iterable[str], **how: Any) -> dict[str, str]:
    """Return the MD5s, in hex, of the local files that can be read.

    Raises:
        StagingError: a file changed while it was read.
        Exception: whatever ``progress`` raises.
    """
    from boinc_gahp.submit.staging import physical_names  # noqa: PLC0415  (heavy)

    names = physical_names(context, readable(paths), **how)
    return {path: name[:32] for path, name in names.items()}


def request_md5s(context: FetchContext, request: SubmitRequest) -> dict[str, str]:
    """Return the :func:`readable_md5s` of a request's files, and raise what that raises."""
    items = (item for _, job in request.jobs for item in job.files.values())
    paths = (item.path for item in items if isinstance(item, LocalFile))
    return readable_md5s(context, paths, progress=request.progress)


#: How many differences an error names.
_TOLD = 3
#: What people call values, where it is not the manifest's key.
_NAMES = {
    "app_name": "the app",
    **{size.element: size.job or size.parameter.replace("_", " ") for size in SIZES},
    "app_version_num": "the app's version",
    "input_template_filename": "the project's input template",
    "output_template_filename": "the project's output template",
}


class ManifestJournal(Journal):
    """Compares a request with the manifest of its name, and keeps what is sent.

    Args:
        context: the project and the account.
        manifests: what was submitted before.
        request: what is to be submitted.
        lineage: what it repeats; None: nothing.

    Attributes:
        batch: after the submit, the batch as the project showed it with all its jobs.
        existed: whether it had all of them, so that nothing was sent.
        published: the files that were published for it.
    """

    def __init__(
        self,
        context: FetchContext,
        manifests: Manifests,
        request: SubmitRequest,
        lineage: Lineage | None = None,
    ) -> None:
        self._context = context
        self._request = request
        self._lineage = lineage
        self._manifests = manifests
        self._old: Manifest | None = None
        self._same = False
        self._md5s: Mapping[str, str] = {}
        self._sent = False
        self.batch: BatchInfo | None = None
        self.existed = True
        self.published: Sequence[UploadFile] = ()

    def check(self) -> None:
        """Compare the request with what was sent under its name; reads local files.

        Raises:
            BatchConflict: other jobs were sent, and exist or may still appear; says what
                differs.
            StagingError: a local file changed while it was read.
            RpcError: the project could not be asked about jobs that differ.
        """
        self._old = self._manifests.find(self._request.batch_name)
        if self._old is None:
            return
        self._md5s = request_md5s(self._context, self._request)
        text = difference(self._old, describe(self._request, self._md5s, self._lineage))
        self._same = not text
        if text:
            self._check_none_is_there(self._old, text)

    def knows(self, batch_id: int) -> bool:
        """Return whether the batch's jobs are known to be those of the request."""
        old = self._old
        return self._sent or (old is not None and self._same and old.batch_id == batch_id)

    def files_read(self, md5s: Mapping[str, str]) -> None:
        """See :class:`~boinc_gahp.submit.journal.Journal`."""
        self._md5s = {**self._md5s, **md5s}

    def files_published(self, files: Sequence[UploadFile]) -> None:
        """See :class:`~boinc_gahp.submit.journal.Journal`."""
        self.published = files

    def about_to_send(self, batch_id: int) -> None:
        """Write down what is about to be sent; see :class:`~boinc_gahp.submit.journal.Journal`.

        Raises:
            BatchConflict: another process is sending other jobs into the batch.
        """
        self.existed = False
        name = self._request.batch_name
        if self._old is None and self._has_jobs(batch_id):
            return  # this machine has no manifest of those jobs
        new = describe(self._request, self._md5s, self._lineage)
        if self._old is not None and self._same and self._old.batch_id == batch_id:
            # The old manifest knows the contents of files that may be deleted by now.
            new = self._old
        new = replace(new, batch_id=batch_id, at=time.time(), refused=False)
        try:
            if not self._manifests.write(name, new, new=self._old is None):
                old = self._manifests.find(name)
                text = "" if old is None or old.batch_id != batch_id else difference(old, new)
                if text:
                    raise self._conflict(batch_id, text)
                self._manifests.write(name, new, new=False)
        except OSError as error:
            log.warning(
                "what is submitted as batch %s cannot be kept on this machine, so it cannot be "
                "retried, nor its results be found by their parameters: %s",
                name,
                error,
            )
        self._old, self._same, self._sent = new, True, True

    def _has_jobs(self, batch_id: int) -> bool:
        """Whether the batch was already filled from elsewhere."""
        try:
            return bool(self._context.project.query_batch(batch_id=batch_id).jobs)
        except RpcError as error:
            quiet_log.warning("The project did not say if batch %d has jobs: %s", batch_id, error)
            return True

    def done(self, batch_id: int, sending: SubmitState) -> None:  # noqa: ARG002
        """See :class:`~boinc_gahp.submit.journal.Journal`."""
        self.batch = sending.batch

    def failed(self, sending: SubmitState, error: BaseException) -> None:
        """Note a final refusal: jobs that do not exist by now will not appear.

        If the same jobs would be refused again, their batch is retired, though nobody can use its
        name again: otherwise it would be listed as a batch that is being made, and one would wait
        for it in vain. After any other refusal (of a template's name, a quota, by a full disk) the
        same request may succeed later: then the batch stays, so that it can be completed under its
        name.
        """
        if not isinstance(error, GahpError):
            return
        if error.spoils_batch and sending.made and sending.ours:
            self._drop(sending.batch_id or 0)
        if not (self._sent and self._old is not None and error.is_final):
            return
        try:
            self._manifests.write(
                self._request.batch_name, replace(self._old, refused=True), new=False
            )
        except OSError as trouble:
            quiet_log.warning("%s", trouble)

    def _drop(self, batch_id: int) -> None:
        try:
            drop(self._context, batch_id, self._request.batch_name)
        except GahpError as error:
            quiet_log.warning("Batch %d stays on the project: %s", batch_id, error)

    def _check_none_is_there(self, old: Manifest, text: str) -> None:
        name = self._request.batch_name
        try:
            details = self._context.project.query_batch(batch_name=name)
        except (NotFound, NotOwner):
            return  # the submit reports these
        if details.batch.id != old.batch_id:
            return
        if details.jobs:
            raise self._conflict(old.batch_id, text)
        if old.may_be_sending:
            raise BatchConflict(
                f"batch {name!r} (id {old.batch_id}) of {self._context.project.host} was "
                f"submitted with other jobs a moment ago, and they may still appear: {text}; wait "
                "a minute and try again, or choose another name"
            )

    def _conflict(self, batch_id: int, text: str) -> BatchConflict:
        return BatchConflict(
            f"batch {self._request.batch_name!r} (id {batch_id}) of {self._context.project.host} "
            f"was submitted with other jobs than these: {text}; {self._remedy()}"
        )

    def _remedy(self) -> str:
        """Return what to do to submit the request beside the batch that has its name."""
        name = self._manifests.free_name(self._request.batch_name)
        old = {} if self._old is None else self._old.jobs
        text = f"to submit these as a new batch, give it another name: --name {shlex.quote(name)}"
        text += f" (in Python name={name!r})"
        # Names made from the batch's name are new with it.
        own = (each for each, job in self._request.jobs if type(job.name) is str)
        if any(each in old for each in own):
            text += ", and its jobs, too: a job's name is used once"
        return text


# -- how two differ


def difference(old: Manifest, new: Manifest) -> str:
    """Return what differs between a request and what was sent; empty: nothing, as far as is known.

    As in ``arguments of job pi_3, memory of 3 jobs``. Parameters are not compared: without other
    arguments or files, the jobs compute the same.
    """
    told = [_said(key) for key in COMMON if old.common.get(key) != new.common.get(key)]
    jobs: dict[str, list[str]] = {}
    for name, line in new.jobs.items():
        before = old.jobs.get(name)
        if before is None:
            jobs.setdefault("new", []).append(name)
        elif before != line:
            lines = _line(before, old.texts), _line(line, new.texts)
            for what in dict.fromkeys(_differences(*lines)):
                jobs.setdefault(what, []).append(name)
    missing = [name for name in old.jobs if name not in new.jobs]
    if missing:
        jobs["missing"] = missing
    for what, names in jobs.items():
        which = f"job {_name(names[0])}" if len(names) == 1 else f"{len(names):,} jobs"
        told.append(f"{what} {which}" if what in ("new", "missing") else f"{what} of {which}")
    return ", ".join(told if len(told) <= _TOLD else [*told[:_TOLD], "and more"])


def _line(text: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a job's line, with what its program has in common with others as an object."""
    line: dict[str, Any] = json.loads(text)
    shared = texts.get(line.pop("shared", ""))
    return {**line, "shared": json.loads(shared)} if "command" in line and shared else line


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield what people call the values that differ in two lines."""
    made: frozenset[str] = frozenset()
    if "shared" in old and "shared" in new:
        if old["command"] != new["command"]:
            yield "command"
        before, now = old["shared"], new["shared"]
        yield from (_said(key) for key in now if before.get(key) != now[key])
        # Another version of this program may write the same otherwise.
        made = OWN_FILES
    elif old["args"] != new["args"]:
        yield "arguments"
    unknown = object()
    for open_name in {**old["inputs"], **new["inputs"]}:
        contents = [each["inputs"].get(open_name, unknown) for each in (old, new)]
        # What is gone by now cannot be compared.
        if contents[0] != contents[1] and None not in contents and open_name not in made:
            yield _file(open_name)
    for key in (*NUMBERS, *(() if made else TEMPLATES)):
        if old.get(key) != new.get(key):
            yield _said(key)


def _file(open_name: str) -> str:
    """Return what people call an input: that of a program by its name in its directory."""
    if is_image(open_name):
        return "image"
    if is_archive(open_name):
        return "an input directory"
    return f"file {quoted(open_name.removeprefix(WORK))}"


def _name(name: str) -> str:
    """Return a job's name without quotes, if it needs none."""
    return quoted(name).strip('"') if shlex.quote(name) == name else quoted(name)


def _said(key: str) -> str:
    """Return what people call a value."""
    return _NAMES.get(key, key.replace("_", " "))
