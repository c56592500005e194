"""The manifest of a batch: all that was sent, to show it, to compare it, and to send it again.

A project does not tell a job's arguments and files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

from boinc_gahp.api.rows.texts import read_file
from boinc_gahp.errors import StagingError
from boinc_gahp.quantities import JOB_SIZES
from boinc_gahp.submit.types import (
    CommandRecord,
    InlineFile,
    Job,
    LocalFile,
    Parameters,
    RemoteFile,
    StagedFile,
)
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.api.request import Options
    from boinc_gahp.submit.types import Input, Parameter, SubmitRequest

_MD5 = re.compile(r"[0-9a-f]{32}")
#: Stands for an inline file, whose text is among the manifest's.
_INLINE = "inline:"
#: Properties of the whole batch; the lease does not affect what is computed.
_OPTIONS = (
    "app_version_num",
    "priority",
    "input_template_filename",
    "output_template_filename",
)
COMMON = ("app_name", *Parameters().by_element, *_OPTIONS)
#: After a submit_batch without an answer, its jobs may still appear for so many seconds: one as
#: large as PHP takes needs 2.2 s, and one of 100,000 jobs 6.6 s (``web-rpcs.rst``, "Timings").
_AT_WORK = 60.0
#: A job's own numbers: their names in the manifest, and in :class:`SubmittedJob`.
NUMBERS = {"priority": "priority", **{size.element: name for name, size in JOB_SIZES.items()}}
TEMPLATES = ("input_template", "output_template")


@dataclass(frozen=True, slots=True)
class SubmittedInput:
    """An input file of a job, as it was sent.

    Attributes:
        md5: of its contents, in hex; None: it is not known.
        source: where it came from, in the words of ``--input``: an absolute path, ``staged:NAME``,
            ``remote:URL,NBYTES,MD5`` or ``inline:TEXT``.
    """

    md5: str | None
    source: str


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job, as it was sent.

    Attributes:
        name: the job's name on the project.
        args: its words.
        inputs: its files by their open names.
        parameters: the values of its row, by their columns.
        priority: its own; None: the batch's. Likewise the next four.
        fpops: floating-point operations.
        memory: bytes of memory.
        disk: bytes of disk.
        delay: seconds that a volunteer has for it.
        input_template: the XML text of its own template; None: the app's, or the batch's.
        output_template: likewise.
        retry_of: the job of the parent batch that this one repeats; None: there is none.
        program: of a job that runs a program in a container: its command line, and what it has in
            common with the others of its batch; None: it runs an app.
    """

    name: str
    args: tuple[str, ...]
    inputs: Mapping[str, SubmittedInput] = field(default_factory=dict)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    priority: int | None = None
    fpops: float | None = None
    memory: float | None = None
    disk: float | None = None
    delay: float | None = None
    input_template: str | None = None
    output_template: str | None = None
    retry_of: str | None = None
    program: CommandRecord | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The command line as a person knows it: of a program, or the arguments of an app."""
        return self.args if self.program is None else self.program.command

    @property
    def files(self) -> dict[str, SubmittedInput]:
        """The inputs as a person knows them: of a program, by their names in its directory.

        Without directories, which are in archives.
        """
        from boinc_gahp.containers.job_files import WORK  # noqa: PLC0415  (not for lists of batches)

        if self.program is None:
            return dict(self.inputs)
        return {
            name.removeprefix(WORK): item
            for name, item in self.inputs.items()
            if name.startswith(WORK)
        }

    @property
    def paths(self) -> list[str]:
        """The paths of the local files."""
        return [item.source for item in self.inputs.values() if item.source.startswith("/")]

    def again(self, md5s: Mapping[str, str] | None = None) -> Job:
        """Return a job that sends the same; it has no name, because names are used once.

        A local file that has changed or is gone is replaced by the project's copy
        (:class:`~boinc_gahp.StagedFile`), which the project may have deleted meanwhile; this is
        not asked here.

        Args:
            md5s: MD5s of the local files as they are now, in hex, by path; None: the files are
                read here.

        Raises:
            StagingError: a file's contents are not known.
        """
        if md5s is None:
            md5s = _md5s_now(self.paths)
        inputs = {name: self._file(name, item, md5s) for name, item in self.inputs.items()}
        own: dict[str, Any] = {
            name: getattr(self, name) for name in (*NUMBERS.values(), *TEMPLATES, "program")
        }
        return Job(self.args, inputs, parameters=dict(self.parameters), **own)

    def _file(self, open_name: str, item: SubmittedInput, md5s: Mapping[str, str]) -> Input:
        from boinc_gahp.submit.checks import extension  # noqa: PLC0415  (not for lists of batches)

        if not item.source.startswith("/"):
            return read_file(item.source)
        path = item.source
        if item.md5 is None:
            raise StagingError(
                f"job {self.name!r}: it is not known what was in its input {open_name!r} "
                f"({path}) when it was submitted: submit it as a new batch",
                path=path,
            )
        if md5s.get(path) == item.md5:
            return LocalFile(path)
        return StagedFile(item.md5 + extension(path))


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a batch repeats.

    Attributes:
        parent: the id of the batch whose jobs are sent again.
        retry_of: the names of its jobs, by the names of the new ones.
    """

    parent: int
    retry_of: Mapping[str, str]


@dataclass(frozen=True)
class Manifest:
    """What was sent for a batch.

    Attributes:
        batch_id: the batch's id on the project.
        at: when it was sent, in seconds since the epoch.
        refused: whether the project answered with an error.
        common: what applies to all jobs, by the names in ``COMMON``.
        jobs: each job as a line of JSON, by name, in their order; :meth:`job` reads one.
        parent: the id of the batch whose jobs this one repeats; None: it repeats none.
        texts: templates and the texts of inline files, by their MD5s in hex.
    """

    batch_id: int
    at: float
    refused: bool
    common: Mapping[str, Any]
    jobs: Mapping[str, str]
    parent: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def app_name(self) -> str:
        """The app that the jobs run."""
        return str(self.common["app_name"])

    @property
    def may_be_sending(self) -> bool:
        """Whether the jobs may still appear that a process has sent, or is about to send."""
        return not self.refused and time.time() < self.at + _AT_WORK

    @property
    def options(self) -> Options:
        """What was given for the whole batch, as :meth:`boinc_gahp.Project.submit` takes it."""
        elements = Parameters().by_element
        sizes = {name.removeprefix("rsc_"): self.common.get(name) for name in elements}
        given = {name: self.common.get(name) for name in _OPTIONS}
        return cast("Options", {"parameters": Parameters(**sizes), **given})

    def job(self, name: str) -> SubmittedJob:
        """Return a job; raises KeyError if no job of this name was sent."""
        line = json.loads(self.jobs[name])
        sources = line.get("sources", {})
        inputs = {
            open_name: self._input(content, sources.get(open_name, ""))
            for open_name, content in line["inputs"].items()
        }
        own: dict[str, Any] = {
            **{known_as: line.get(key) for key, known_as in NUMBERS.items()},
            **{key: self.texts.get(line[key]) for key in TEMPLATES if key in line},
        }
        return SubmittedJob(
            name,
            tuple(line["args"]),
            inputs,
            line.get("parameters", {}),
            **own,
            retry_of=line.get("retry_of"),
            program=self._program(line),
        )

    def columns(self) -> tuple[list[str], list[str]]:
        """Return the names of all parameters and the open names of all inputs of the jobs.

        Without those of programs, whose command lines tell them: each job may have its own.
        """
        parameters: dict[str, None] = {}
        inputs: dict[str, None] = {}
        for text in self.jobs.values():
            line = json.loads(text)
            parameters.update(dict.fromkeys(line.get("parameters", ())))
            if "command" not in line:
                inputs.update(dict.fromkeys(line["inputs"]))
        return list(parameters), list(inputs)

    def _program(self, line: Mapping[str, Any]) -> CommandRecord | None:
        if "command" not in line:
            return None
        return CommandRecord(tuple(line["command"]), self.texts.get(line.get("shared", ""), "{}"))

    def _input(self, content: str | None, source: str) -> SubmittedInput:
        if source == _INLINE:
            text = self.texts.get(content or "")
            source = "" if text is None else _INLINE + text
        md5 = content if content is not None and _MD5.fullmatch(content) else None
        return SubmittedInput(md5, source)


# -- reading one


def check_line(text: str) -> None:
    """Check a job's line of JSON, which somebody may have edited.

    Raises:
        ValueError: :meth:`Manifest.job` could not read it.
    """
    line = json.loads(text)
    if not (
        isinstance(line, dict)
        and _is_list(line.get("args"))
        and "inputs" in line
        and all(isinstance(line.get(key, {}), dict) for key in ("inputs", "sources", "parameters"))
        and _is_list(list(line["inputs"].values()), str, type(None))
        and _is_list(list(line.get("sources", {}).values()))
        and _is_list(line.get("command", []))
        and _is_list([line[key] for key in (*TEMPLATES, "retry_of", "shared") if key in line])
        and _is_list([line[key] for key in NUMBERS if key in line], int, float)
    ):
        raise ValueError(f"the line of a job is {shorten(text, 100)}")


def _is_list(found: object, *kinds: type) -> bool:
    return isinstance(found, list) and all(isinstance(each, kinds or str) for each in found)


# -- making one


def describe(
    request: SubmitRequest, md5s: Mapping[str, str], lineage: Lineage | None = None
) -> Manifest:
    """Return the manifest of a request that was not sent yet.

    Args:
        request: what is to be sent.
        md5s: MD5s of local files, in hex, by path; a file without one matches any content.
        lineage: what the batch repeats; None: nothing.
    """
    texts: dict[str, str] = {}
    inputs = {id(job.inputs): job for _, job in request.jobs}
    files = {key: _files(job, md5s, texts) for key, job in inputs.items()}
    requested = request.parameters.by_element
    common = {n: requested[n] if n in requested else getattr(request, n) for n in COMMON}
    retry_of = {} if lineage is None else lineage.retry_of
    return Manifest(
        0,
        time.time(),
        refused=False,
        common={name: value for name, value in common.items() if value is not None},
        jobs={
            name: _line(job, files[id(job.inputs)], texts, retry_of.get(name))
            for name, job in request.jobs
        },
        parent=None if lineage is None else lineage.parent,
        texts=texts,
    )


def _files(job: Job, md5s: Mapping[str, str], texts: dict[str, str]) -> dict[str, Any]:
    contents: dict[str, str | None] = {}
    sources: dict[str, str] = {}
    for name, item in job.files.items():
        contents[name] = _content(item, md5s)
        sources[name] = _source(item)
        if isinstance(item, InlineFile):
            _keep(item.text, texts)
    return {"inputs": contents, "sources": sources}


def _line(job: Job, files: Mapping[str, Any], texts: dict[str, str], retry_of: str | None) -> str:
    content: dict[str, Any] = {"args": job.args, "inputs": files["inputs"]}
    content["priority"] = job.priority
    content.update(job.sizes)
    for key in TEMPLATES:
        text = getattr(job, key)
        content[key] = None if text is None else _keep(text, texts)
    content["sources"] = files["sources"] or None
    content["parameters"] = {str(name): value for name, value in job.parameters.items()} or None
    content["retry_of"] = retry_of
    if job.program is not None:
        content["command"] = job.program.command
        content["shared"] = _keep(job.program.shared, texts)
    given = {key: value for key, value in content.items() if value is not None}
    return json.dumps(given, default=_plain)


def _plain(value: object) -> int | float | str:
    """Return a parameter of a type that JSON does not know; numbers of numpy stay numbers."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else str(value)


def _keep(text: str, texts: dict[str, str]) -> str:
    """Add a text to those that are kept; return its MD5."""
    digest = _digest(text)
    texts[digest] = text
    return digest


def _content(item: Input, md5s: Mapping[str, str]) -> str | None:
    """Return what identifies a file's content, however it is sent; None: that is unknown."""
    if isinstance(item, LocalFile):
        return md5s.get(item.path)
    if isinstance(item, RemoteFile):
        return item.md5.lower()
    if isinstance(item, InlineFile):
        return _digest(item.text)
    found = _MD5.match(item.physical_name)
    return found[0] if found else item.physical_name


def _source(item: Input) -> str:
    """Return where a file comes from, in the words that :func:`read_file` reads."""
    if isinstance(item, LocalFile):
        return os.path.abspath(item.path)  # noqa: PTH100  (a link's target is not looked for)
    if isinstance(item, RemoteFile):
        return f"remote:{item.url},{item.nbytes},{item.md5}"
    return _INLINE if isinstance(item, InlineFile) else f"staged:{item.physical_name}"


def _digest(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _md5s_now(paths: Iterable[str]) -> dict[str, str]:
    from boinc_gahp.submit.digests import Digests  # noqa: PLC0415  (not for lists of batches)

    return {path: file.md5 for path, file in Digests(None).of(readable(paths)).items()}


def readable(paths: Iterable[str]) -> list[str]:
    """Return the local files that can be read, each once."""
    from boinc_gahp.submit.digests import stat_input  # noqa: PLC0415  (not for lists of batches)

    there = []
    for path in dict.fromkeys(paths):
        with suppress(StagingError):
            stat_input(path)
            there.append(path)
    return there
