"""Compares a submit with what was submitted from this machine under the same name before."""

from __future__ import annotations

import json
import logging
import shlex
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.api.manifest import COMMON, NUMBERS, TEMPLATES, describe
from boinc_gahp.api.manifest_files import Manifests, log as manifests_log, request_md5s
from boinc_gahp.containers.job_files import OWN_FILES, WORK, is_archive, is_image
from boinc_gahp.errors import (
    BatchConflict,
    GahpError,
    NotFound,
    NotOwner,
    RpcError,
)
from boinc_gahp.quantities import SIZES
from boinc_gahp.submit.abort import drop
from boinc_gahp.submit.journal import Journal
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from boinc_gahp.api.manifest import Lineage, Manifest
    from boinc_gahp.api.session import Session
    from boinc_gahp.rpc.types import BatchInfo
    from boinc_gahp.submit.journal import SubmitState
    from boinc_gahp.submit.types import SubmitRequest

log = logging.getLogger("boinc_gahp.api")

#: After a submit_batch without an answer, its jobs may still appear for so many seconds: one as
#: large as PHP takes needs 2.2 s, and one of 100,000 jobs 6.6 s (``web-rpcs.rst``, "Timings").
_AT_WORK = 60.0
#: How many differences an error names.
_MOST = 3
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
        session: the project and the account.
        request: what is to be submitted.
        lineage: what it repeats; None: nothing.

    Attributes:
        batch: after the submit, the batch as the project showed it with all its jobs.
        existed: whether it had all of them, so that nothing was sent.
    """

    def __init__(
        self, session: Session, request: SubmitRequest, lineage: Lineage | None = None
    ) -> None:
        self._session = session
        self._request = request
        self._lineage = lineage
        self._manifests = Manifests(session)
        self._old: Manifest | None = None
        self._same = False
        self._md5s: Mapping[str, str] = {}
        self._sent = False
        self.batch: BatchInfo | None = None
        self.existed = True

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
        self._md5s = request_md5s(self._session, self._request)
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
            manifests_log.warning(
                "what is submitted as batch %s cannot be kept on this machine, so it cannot be "
                "retried, nor its results be found by their parameters: %s",
                name,
                error,
            )
        self._old, self._same, self._sent = new, True, True

    def _has_jobs(self, batch_id: int) -> bool:
        """Whether the batch was already filled from elsewhere."""
        try:
            return bool(self._session.rpc.query_batch(batch_id=batch_id).jobs)
        except RpcError as error:
            log.warning("The project did not say whether batch %d has jobs: %s", batch_id, error)
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
            log.warning("%s", trouble)

    def _drop(self, batch_id: int) -> None:
        try:
            drop(self._session.context, batch_id, self._request.batch_name)
        except GahpError as error:
            log.warning("Batch %d stays on the project: %s", batch_id, error)

    def _check_none_is_there(self, old: Manifest, text: str) -> None:
        name = self._request.batch_name
        try:
            details = self._session.rpc.query_batch(batch_name=name)
        except (NotFound, NotOwner):
            return  # the submit reports these
        if details.batch.id != old.batch_id:
            return
        if details.jobs:
            raise self._conflict(old.batch_id, text)
        if not old.refused and time.time() < old.at + _AT_WORK:
            raise BatchConflict(
                f"batch {name!r} (id {old.batch_id}) of {self._session.rpc.host} was "
                f"submitted with other jobs a moment ago, and they may still appear: {text}; wait "
                "a minute and try again, or choose another name"
            )

    def _conflict(self, batch_id: int, text: str) -> BatchConflict:
        return BatchConflict(
            f"batch {self._request.batch_name!r} (id {batch_id}) of {self._session.rpc.host} was "
            f"submitted with other jobs than these: {text}; {self._remedy()}"
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
    return ", ".join(told if len(told) <= _MOST else [*told[:_MOST], "and more"])


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
