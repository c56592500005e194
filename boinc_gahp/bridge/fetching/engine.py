"""Puts a job's outputs where they were asked for."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.bridge.destinations import check_destination, explain
from boinc_gahp.bridge.directories import make_directories
from boinc_gahp.bridge.fetching.download import Output, download
from boinc_gahp.bridge.fetching.selection import (
    Delivery,
    checked,
    job_directory,
    named_below,
    plain_names,
    select,
    stderr_path,
    stdout_path,
)
from boinc_gahp.bridge.fetching.unzip import Archive
from boinc_gahp.bridge.fetching.uploaded import Absent
from boinc_gahp.bridge.temporary import registry
from boinc_gahp.bridge.types import OWN
from boinc_gahp.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from boinc_gahp.bridge.context import Context
    from boinc_gahp.bridge.fetching.uploaded import Uploaded
    from boinc_gahp.bridge.gate import Gate
    from boinc_gahp.bridge.temporary import TemporaryDirectory, TemporaryFile
    from boinc_gahp.bridge.types import FetchRequest

_CHUNK = 1 << 20


def deliver(
    context: Context,
    request: FetchRequest,
    outputs: Sequence[Output],
    uploaded: Uploaded,
    instance: str,
    *,
    gate: Gate,
    unpacks: bool = True,
) -> tuple[Path, ...]:
    """Fetch the outputs that are asked for, and rename each into place when it is whole.

    Returns where they are; an optional output that is absent is nowhere.

    What was delivered before and is still there is not fetched again. A job's stdout that no
    output is for becomes an empty file.

    Args:
        context: the project.
        request: what is asked for.
        outputs: the app's outputs.
        uploaded: where they come from.
        instance: the canonical instance's name.
        gate: is entered for each change in the job's directory.
        unpacks: whether an app's one output is unpacked if it is a zip archive.

    Raises:
        OutputError, RpcError: outputs that were complete by then stay.
        Exception: what the gate raises when it is closed.
    """
    delivery = _Delivery(context, request, uploaded, instance, gate=gate)
    if unpacks and len(outputs) == 1 and outputs[0].name.lower().endswith(".zip"):
        delivery.archive(outputs[0])
    else:
        delivery.files({output.name: output for output in outputs})
    delivery.stdout()
    return tuple(dict.fromkeys(delivery.places))


def write_text(request: FetchRequest, path: Path, text: str, gate: Gate) -> None:
    """Write one of a job's standard streams anew; a job ad's gets the directory that it lacks.

    Raises:
        OutputError: it cannot be written.
        Exception: what the gate raises when it is closed.
    """
    if request.ad is not None:
        make_parent(path, gate)
    inside = named_below(request) if request.folder else None
    with registry.file(path, gate, inside) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.commit()


def make_parent(path: Path, gate: Gate) -> None:
    """Make the directory for a file, and those above it; errors as :func:`write_text`."""
    try:
        make_directories(path.parent, gate)
    except OSError as error:
        raise explain(error, path) from error


class _Delivery:
    def __init__(
        self,
        context: Context,
        request: FetchRequest,
        uploaded: Uploaded,
        instance: str,
        *,
        gate: Gate,
    ) -> None:
        self._context = context
        self._request = request
        self._uploaded = uploaded
        self._instance = instance
        self._gate = gate
        self._delivered = context.delivered
        self._stdout = stdout_path(request, {})
        self._has_stdout = False
        #: Where outputs are that are in place.
        self.places: list[Path] = []

    def files(self, outputs: Mapping[str, Output]) -> None:
        """Deliver plain outputs."""
        wanted: dict[str, list[Delivery]] = {}
        for item in self._select(plain_names(list(outputs))):
            if not self._is_there(item):
                self._check(item)
                wanted.setdefault(item.output, []).append(item)
        for name, items in wanted.items():
            self._file(outputs[name], items)

    def stdout(self) -> None:
        """Leave an empty file where stdout is wanted, if nothing else came to be there."""
        path = self._stdout
        if path is not None and not self._has_stdout and path != stderr_path(self._request):
            write_text(self._request, path, "", self._gate)

    def _select(self, outputs: Mapping[str, str]) -> tuple[Delivery, ...]:
        self._stdout = stdout_path(self._request, outputs)
        return select(self._request, outputs)

    def _check(self, item: Delivery) -> None:
        if item.destination == self._stdout and self._request.ad is not None:
            make_parent(item.destination, self._gate)
        check_destination(item.destination, self._gate, item.inside)

    def _note(self, item: Delivery, status: os.stat_result, md5: str) -> None:
        """Remember an output that is in place and on the disk."""
        self.places.append(item.destination)
        self._has_stdout = self._has_stdout or item.destination == self._stdout
        self._delivered.remember(self._key(item.output, item.destination), status, md5)

    def _file(self, output: Output, items: Sequence[Delivery]) -> None:
        self._gate.check()
        with ExitStack() as stack:
            sinks = [
                stack.enter_context(registry.file(item.destination, self._gate, item.inside))
                for item in items
            ]
            try:
                download(self._context, self._uploaded, output, sinks)
            except Absent:
                if output.optional:
                    return
                raise self._missing(output) from None
            for item, sink in zip(items, sinks, strict=True):
                self._note(item, sink.commit(), sink.md5.hexdigest())

    def archive(self, output: Output) -> None:
        """Deliver the files in the app's one output, a zip archive."""
        key = (*self._context.owner, self._instance, output.name)
        names = self._delivered.members(key)
        if names is not None and all(map(self._is_there, self._members(output, names))):
            return
        what = f"output {output.name!r} of job {self._request.job_name!r}"
        jobs = self._context.settings.jobs
        # It gets no name of its own: this one only tells the temporary files of jobs apart.
        job = hashlib.sha256(os.fsencode(self._request.job_name)).hexdigest()[:16]
        archived = job_directory(self._request) / f"{OWN}-archive-{job}"
        self._gate.check()
        with registry.file(archived, self._gate) as packed:
            try:
                download(self._context, self._uploaded, output, [packed])
            except Absent:
                if output.optional:
                    return
                raise self._missing(output) from None
            with (
                packed.contents() as contents,
                Archive(
                    contents,
                    what,
                    max_files=jobs.unzip_max_files,
                    max_bytes=jobs.unzip_max_bytes,
                ) as archive,
            ):
                self._unpack(output, archive, packed)
                self._delivered.remember_members(key, archive.files)

    def _members(self, output: Output, names: Sequence[str]) -> tuple[Delivery, ...]:
        """Return what is asked for: members take the part of the outputs.

        With SOME a pair can still name the archive itself, and what keeps the directories that it
        has in the archive gets them.
        """
        outputs = {name: name for name in names}
        if self._request.mode == "SOME":
            outputs.setdefault(output.name, output.name)
        home = job_directory(self._request)
        return tuple(
            replace(item, inside=home) if item.destination == home / item.output else item
            for item in self._select(outputs)
        )

    def _unpack(self, output: Output, archive: Archive, packed: TemporaryFile) -> None:
        """Extract everything first, so that a damaged archive leaves nothing behind."""
        wanted = self._members(output, archive.files)
        if self._request.mode == "ALL":
            for name in archive.directories:
                self._make_directory(checked(self._request, output.name, name))
        for item in wanted:
            self._check(item)
        with registry.directory(packed.destination, self._gate) as room:
            parts = []
            for number, item in enumerate(wanted):
                md5 = self._extract(archive, item, room, str(number), packed)
                parts.append((item, str(number), md5))
            for item, name, md5 in parts:
                self._note(item, self._place(room, name, item), md5)

    def _make_directory(self, name: str) -> None:
        home = job_directory(self._request)
        check_destination(home / name / OWN, self._gate, home)

    def _key(self, output: str, destination: Path) -> tuple[str, ...]:
        return (*self._context.owner, self._instance, output, str(destination))

    def _is_there(self, item: Delivery) -> bool:
        key = self._key(item.output, item.destination)
        there = self._delivered.is_there(key, item.destination)
        self._has_stdout = self._has_stdout or (there and item.destination == self._stdout)
        if there:
            self.places.append(item.destination)
        return there

    def _missing(self, output: Output) -> OutputError:
        return OutputError(
            f"output {output.name!r} (number {output.number}) of job {self._request.job_name!r} "
            f"is missing on {self._context.project.host}: the volunteer did not upload it, and "
            "the app's output template does not say that it is optional"
        )

    def _extract(
        self,
        archive: Archive,
        item: Delivery,
        room: TemporaryDirectory,
        name: str,
        packed: TemporaryFile,
    ) -> str:
        """Write a member, or the archive itself, to a file in ``room``; return its MD5."""
        digest = hashlib.md5(usedforsecurity=False)
        try:
            with self._gate:
                file = room.create(name)
            with file:

                def write(data: bytes) -> None:
                    digest.update(data)
                    rest = memoryview(data)
                    while rest:
                        with self._gate:
                            rest = rest[file.write(rest) or 0 :]

                if archive.has(item.output):
                    archive.extract(item.output, write)
                else:
                    with packed.contents() as whole:
                        while data := whole.read(_CHUNK):
                            write(data)
                os.fsync(file.fileno())
        except OSError as error:
            raise explain(error, item.destination) from error
        return digest.hexdigest()

    def _place(self, room: TemporaryDirectory, name: str, item: Delivery) -> os.stat_result:
        """Put a complete file in place; return its status there."""
        status = room.place(name, item.destination, item.inside)
        if status is not None:
            return status
        with (
            registry.file(item.destination, self._gate, item.inside) as copy,
            room.open(name) as file,
        ):
            while data := file.read(_CHUNK):
                copy.write(data)
            return copy.commit()
