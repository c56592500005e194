"""A job, as read from its ad: everything that is needed to send it and to fetch its outputs.

A description is written to the ledger as JSON when the job is accepted, and is all that a later
daemon knows about the job: it does not refer to the ad, to settings, or to files other than the
input files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.containers.image import Image
from boinc_gahp.containers.rules import JobOptions
from boinc_gahp.containers.script import Program
from boinc_gahp.htcondor._files import go_to_one_file
from boinc_gahp.submit.container_jobs import ContainerJob
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.types import Job, LocalFile, Parameters, RemoteFile, by_open_name

if TYPE_CHECKING:
    from boinc_gahp.ledger.rows import JobRow

#: Bytes in a submit_batch request besides a job's own texts: tags, a job's name, an MD5.
_JOB_BYTES = 220
_INPUT_BYTES = 160
#: Bytes of an input template that a job takes with it because it asks for other sizes than its
#: app's: one with a few files. The size of larger ones is learned when they are sent.
_TEMPLATE_BYTES = 1500
#: A job in a container takes its templates with it: bytes of an input and of an output in them,
#: without the file's name; and how many files it has at most beside those that it names.
_INPUT_IN_TEMPLATES, _OUTPUT_IN_TEMPLATES = 210, 240
_OWN_INPUTS, _OWN_OUTPUTS = 5, 4

#: Fields of :class:`Parameters` by their names in the ledger.
_SIZES = {name: name.removeprefix("rsc_") for name in Parameters().by_element}
#: Fields of :class:`ContainerJob` that the ledger has as they are.
_OF_CONTAINER = ("command", "is_input", "trees", *(each.name for each in fields(JobOptions)))

NamedFile = tuple[str, LocalFile | RemoteFile]


@dataclass(frozen=True, slots=True)
class JobDescription:
    """A job, read from its ad.

    Attributes:
        job_directory: HTCondor's key of the job.
        project: the project that the job names: a name in the settings or a URL; None: the default
            project.
        args: separate words.
        inputs: open names and files, in the order of the ad; local files as they were when the job
            was accepted, with absolute paths.
        iwd: the job's directory, absolute; other paths may be relative to it.
        outputs: names that the app gives its outputs; None: all outputs.
        remaps: (output, path) pairs; the path may be a directory.
        stdout: path for the standard output; None: it is not wanted.
        stderr: path for the standard error; None: it is not wanted.
        parameters: the sizes that it asks for in addition to the template.
        input_template: XML text; None: the app's.
        output_template: XML text; None: the app's.
        failed_jobs: what to do if its program fails, one of ``settings.FAILED_JOBS``; None: as the
            settings say then.
        container: what of it is only for a container; None: the job runs an installed app.
    """

    job_directory: str
    project: str | None
    app_name: str
    iwd: str
    args: tuple[str, ...] = ()
    inputs: tuple[NamedFile, ...] = ()
    outputs: tuple[str, ...] | None = None
    remaps: tuple[tuple[str, str], ...] = ()
    stdout: str | None = None
    stderr: str | None = None
    parameters: Parameters = field(default_factory=Parameters)
    priority: int | None = None
    app_version_num: int | None = None
    input_template: str | None = None
    output_template: str | None = None
    failed_jobs: str | None = None
    container: ContainerJob | None = None

    def to_json(self) -> str:
        """Return the description as ASCII, without default values."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        values |= values.pop("parameters").by_element
        values["inputs"] = [_file_values(*each) for each in self.inputs]
        if self.container is not None:
            values["container"] = _container_values(self.container)
        present = {name: value for name, value in values.items() if value not in (None, (), [])}
        if self.outputs == ():
            present["outputs"] = []
        return json.dumps(present, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> JobDescription:
        """Return the description that :meth:`to_json` wrote.

        Raises:
            ValueError: the text is something else.
        """
        try:
            values = {"project": None} | json.loads(text)
            values["inputs"] = tuple(_file(each) for each in values.get("inputs", ()))
            sizes = {field: values.pop(name, None) for name, field in _SIZES.items()}
            values["parameters"] = Parameters(**sizes)
            if "container" in values:
                values["container"] = _container(values["container"])
            values["remaps"] = tuple((name, path) for name, path in values.get("remaps", ()))
            for name in ("args", "outputs"):
                if name in values:
                    values[name] = tuple(values[name])
            return cls(**values)
        except (TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"this is not a description of a job: {error}") from error

    @property
    def job(self) -> Job:
        """What of it a request for an installed app has."""
        return Job(
            self.args,
            by_open_name(self.inputs),
            priority=self.priority,
            input_template=self.input_template,
            output_template=self.output_template,
        )

    @property
    def container_job(self) -> ContainerJob | None:
        """The whole job, as it runs in a container; None: it runs an installed app."""
        if self.container is None:
            return None
        outputs = self.outputs
        if outputs is not None:  # without the / that means what is in a directory
            outputs = tuple(dict.fromkeys(name.rstrip("/") for name in outputs))
        return replace(
            self.container,
            program=replace(self.container.program, arguments=self.args),
            files=self.inputs,
            outputs=outputs,
            stdout=self.stdout is not None,
            stderr=self.stderr is not None,
            merged=go_to_one_file(self.stdout, self.stderr, self.iwd),
            priority=self.priority,
            # Each output may be as large as the disk that the job may use.
            output_bytes=self.parameters.by_element["rsc_disk_bound"] or 1e9,
        )

    @property
    def other_outputs(self) -> tuple[str, ...]:
        """The outputs that it names, without stdout and stderr, which always exist."""
        standard = {Path(path).name for path in (self.stdout, self.stderr) if path is not None}
        return tuple(name for name in self.outputs or () if Path(name).name not in standard)

    @property
    def bytes_received(self) -> int | None:
        """Bytes of the job's inputs; None: not known, since there are directories among them."""
        stamps = [
            (file.nbytes, 0) if isinstance(file, RemoteFile) else file.expected
            for _, file in self.inputs
        ]
        has_trees = self.container is not None and self.container.trees
        return None if has_trees or None in stamps else sum(stamp[0] for stamp in stamps if stamp)

    @property
    def group_key(self) -> str:
        """32 hexadecimal digits: equal for jobs of one project that can be in one batch.

        A batch has one app and one set of ``job_params``, which are used if a template lacks the
        element. Its templates could differ, as could the sizes that its jobs ask for. But a project
        that refuses a template does not name the job (``web-rpcs.rst``, "submit_batch"), and its
        PHP keeps a file for each different template, for ever if the batch is refused
        (``make_input_template()``).
        """
        shared = (
            self.app_name,
            *self.parameters.by_element.values(),
            self.app_version_num,
            self.input_template,
            self.output_template,
            # Not the files' names: templates that differ only in these are all accepted.
            *((str(job.image), job.command) if (job := self.container) else ()),
        )
        return sha256(json.dumps(shared).encode()).hexdigest()[:32]

    @property
    def size(self) -> int:
        """Bytes that the job adds to a submit_batch request, estimated rather too high.

        Which input template it takes with it is only known when it is sent.
        """
        texts = [file.url for _, file in self.inputs if isinstance(file, RemoteFile)]
        if self.container is None:
            texts += [*self.args, self.input_template or "", self.output_template or ""]
            nbytes = _JOB_BYTES + _INPUT_BYTES * len(self.inputs)
            nbytes += _TEMPLATE_BYTES * (self.parameters != Parameters())
        else:  # its arguments are in a file
            texts += [*(name for name, _ in self.inputs), *(self.outputs or ())]
            inputs = len(self.inputs) + len(self.container.trees) + _OWN_INPUTS
            outputs = len(self.outputs or ()) + _OWN_OUTPUTS
            nbytes = _JOB_BYTES + _INPUT_IN_TEMPLATES * inputs + _OUTPUT_IN_TEMPLATES * outputs
        return nbytes + sum(map(_xml_size, texts))


def description_of(job: JobRow) -> JobDescription | None:
    """Return a job's description; None if it is damaged, which the sender or fetcher reports."""
    try:
        return JobDescription.from_json(job.description)
    except ValueError:
        return None


def _xml_size(text: str) -> int:
    """Return how many bytes ``text`` and a space take in XML."""
    escaped = sum(text.count(each) for each in "<>&'\"\\")
    return 1 + len(text.encode("utf-8", "surrogateescape")) + 5 * escaped


def _container_values(job: ContainerJob) -> dict[str, Any]:
    """Return what a description does not have otherwise, without default values."""
    default = ContainerJob(job.image, "")
    values = {name: getattr(job, name) for name in _OF_CONTAINER}
    values = {name: value for name, value in values.items() if value != getattr(default, name)}
    values["image"] = str(job.image)
    if job.image_file is not None:
        values["image_state"] = job.image_file.expected
    if job.program.environment:
        values["environment"] = job.program.environment
    if job.program.stdin is not None:
        values["stdin"] = job.program.stdin
    return values


def _container(stored: dict[str, Any]) -> ContainerJob:
    """Return what :func:`_container_values` wrote; raises TypeError or LookupError otherwise."""
    values = dict(stored)
    image, image_file = Image("registry", values.pop("image")), None
    if "image_state" in values:
        source, _, path = image.name.partition(":")
        image = Image("rootfs" if source == "rootfs" else "oci-archive", path)
        image_file = LocalFile(path, tuple(values.pop("image_state")))
    environment = tuple((name, value) for name, value in values.pop("environment", ()))
    program = Program(environment=environment, stdin=values.pop("stdin", None))
    values["trees"] = tuple(Member(*each) for each in values.pop("trees", ()))
    return ContainerJob(image, image_file=image_file, program=program, **values)


def _file_values(name: str, file: LocalFile | RemoteFile) -> list[Any]:
    """Return a file as the ledger has it; only a local file has a number as the last value."""
    if isinstance(file, LocalFile):
        return [file.path, name, *(file.expected or ())]
    return [file.url, file.nbytes, file.md5, name]


def _file(values: list[Any]) -> NamedFile:
    if isinstance(values[-1], int):
        path, name, nbytes, mtime_ns = values
        return name, LocalFile(path, (nbytes, mtime_ns))
    url, nbytes, md5, name = values
    return name, RemoteFile(url, nbytes, md5)
