"""Programs of people, which volunteers run in containers: as jobs of the project's app for them.

A program is made into ordinary jobs before these are submitted. So each is created exactly once,
compared, listed and sent again as any other.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple, cast

from boinc_gahp.api.program_files import FileFinder, together
from boinc_gahp.api.request import Options, checked, list_of
from boinc_gahp.api.rows.reading import jobs_from, rows_or_jobs
from boinc_gahp.api.rows.texts import split_args
from boinc_gahp.containers.image import read_image
from boinc_gahp.containers.rules import (
    ASKED,
    FPOPS_BOUND,
    JobOptions,
    ProgramOptions,
    check_word,
    default_disk,
    is_variable,
    output_path,
    secret_names,
)
from boinc_gahp.containers.script import Program
from boinc_gahp.errors import BadRequest
from boinc_gahp.quantities import DISK
from boinc_gahp.submit.container_jobs import ContainerJob, make_container_jobs
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.types import CommandRecord, Job, LocalFile, Parameters
from boinc_gahp.text import count, listed, printable, quoted, size

if TYPE_CHECKING:
    from typing import Any

    from boinc_gahp.api.program_files import Source
    from boinc_gahp.api.session import Session
    from boinc_gahp.containers.image import Image
    from boinc_gahp.submit.types import File

#: Seconds for which files that were made for programs are kept: a retry of them needs these, or the
#: project's copies.
_UNUSED = 30 * 86400.0
#: What can be asked for the jobs themselves.
_OF_JOBS = [each.name for each in fields(JobOptions) if each.name in ASKED]
#: The most names of files in a text for people.
_NAMED = 5
_PLACEHOLDER = re.compile(r"\{\w+(:\d+)?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs(ProgramOptions):
    """What the programs of a batch have in common, with what is asked for them.

    Attributes:
        image: in a registry (``python:3.12-slim``), or a file (``oci-archive:FILE``,
            ``rootfs:FILE``).
        outputs: files and directories that the program makes, relative to its directory; None: all
            new and changed files at the top of this directory (then the image needs ``tar``).
        environment: variables in addition to the image's.
        app: the project's app for such jobs; None: the setting ``container_app``.
        find_files: whether files are looked for in the command. The program itself always is.
        allow_environment: names of variables that are no secrets, though they look so.
    """

    image: str
    outputs: Sequence[str] | None = None
    environment: Mapping[str, str] | None = None
    app: str | None = None
    find_files: bool = True
    allow_environment: Iterable[str] = ()


class ProgramKeywords(Options, total=False):
    """What :meth:`boinc_gahp.Project.run` and :meth:`boinc_gahp.Project.function` take alike."""

    environment: Mapping[str, str] | None
    network: bool
    cpus: int
    max_errors: int
    app: str | None
    allow_environment: Iterable[str]
    follow_links: bool


class ProgramBatch(NamedTuple):
    """Jobs that run a program, ready for :meth:`boinc_gahp.Project.submit`.

    Attributes:
        app: the project's app that runs them.
        jobs: the jobs, with templates of their own.
        options: what is given for the whole batch.
        sources: the files and directories of this machine that the commands and inputs name.
    """

    app: str
    jobs: list[Job]
    options: Options
    sources: Sequence[Source] = ()

    @property
    def sent_along(self) -> str:
        """How many files and bytes its sources are, and their names, in a few words."""
        if not self.sources:
            return "No files sent along"
        files = count(sum(each.files for each in self.sources), "file")
        nbytes = size(sum(each.nbytes for each in self.sources))
        names = [
            each.name if each.look is None else f"{each.name}/ ({count(each.files, 'file')})"
            for each in self.sources
        ]
        return f"{files}, {nbytes} sent along: {printable(listed(names, _NAMED))}"


def program_batch(
    session: Session,
    command: Sequence[object] | str,
    *,
    rows: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Iterable[Job] | None = None,
    inputs: Iterable[str | os.PathLike[str]] | Mapping[str, File] = (),
    **given: Any,
) -> ProgramBatch:
    """Return the jobs that run a program in containers; asks the project nothing.

    Args:
        session: the project and the account.
        command: the program and its arguments: words, or one string, which is split as a shell
            would. It may have placeholders, as the ``args`` of :func:`boinc_gahp.jobs_from`. A
            program with a slash in its name, such as ``./fit.py``, goes with the job, if it is a
            file here; ``python3`` is the image's. Other words that name files or directories of
            this machine, and the part of a word behind ``=``, send these along. A relative path
            stays as it is; of an absolute one, or one with ``..``, the job has the last part. Paths
            in the system's directories, such as ``/usr``, are the image's.
        rows: as for :func:`boinc_gahp.jobs_from`; or jobs, whose arguments are added to the
            command, and whose inputs are files in the program's directory. None: one job.
        inputs: further files and directories: paths, or files by the names that they have in the
            program's directory. Both may have placeholders.
        given: fields of :class:`Programs`, and options of :meth:`boinc_gahp.Project.submit`.

    Raises:
        BadRequest: a value is wrong, or two files of a job have one name.
        StagingError: an input cannot be read.
        BadRequest: a row is wrong.
    """
    words = _words(command)
    texts = [] if isinstance(inputs, Mapping) else _paths(inputs)
    listed = _jobs(rows, [*words, *texts], inputs if isinstance(inputs, Mapping) else {})
    names = (*Programs.__slots__, *ASKED)
    common = Programs(**{name: given.pop(name) for name in names if name in given})
    return made_programs(session, listed, (len(words), len(texts)), common, cast("Options", given))


def made_programs(
    session: Session,
    jobs: Sequence[Job],
    lengths: tuple[int, int],
    common: Programs,
    options: Options,
) -> ProgramBatch:
    """Return jobs that run programs, as :func:`program_batch` does.

    Args:
        session: the project and the account.
        jobs: their arguments are the words of a command, then the texts of inputs, then further
            words; all filled in.
        lengths: how many words and how many texts these are.
        common: what the jobs have in common.
        options: what is given for the whole batch.

    Raises:
        BadRequest, StagingError: as :func:`program_batch`.
    """
    options = {**options}
    app_name = common.app or session.project_settings.container_app
    if app_name is None:
        raise BadRequest(
            "it is not known which app of the project runs programs in containers: name it with "
            'app (--app), or in the settings: container_app = "docker". Ask the project\'s admin '
            "whether it has one"
        )
    for each in ("input_template_filename", "output_template_filename"):
        if options.get(each) is not None:
            raise BadRequest(f"{each} is for apps: a program has templates of its own")
    shared = ContainerJob(
        image=_image(common.image),
        command="",
        program=Program(environment=_environment(common)),
        outputs=None if common.outputs is None else _outputs(common.outputs),
        is_persons=True,
        **{name: ASKED[name].checked(getattr(common, name)) for name in _OF_JOBS},
    )
    finder = FileFinder(follow_links=ASKED["follow_links"].checked(common.follow_links))
    image_source = None
    if shared.image.source != "registry":
        image_source = finder.local("image", shared.image.name)
        path = cast("LocalFile", image_source.file).path
        shared = replace(shared, image=replace(shared.image, name=path), image_file=LocalFile(path))
    records: list[CommandRecord] = []
    runs: list[tuple[str, ContainerJob]] = []
    largest = 0
    sources: dict[str, Source] = {}
    for job in jobs:
        record, its_run, needed = _described(job, shared, finder, lengths, common)
        records.append(record)
        runs.append((str(len(runs)), its_run))
        largest = max(largest, sum(each.nbytes for each in needed))
        sources.update((each.shown, each) for each in needed if hasattr(each.file, "path"))
    parameters = checked(options.get("parameters") or Parameters())
    if parameters.fpops_bound is None:
        parameters = replace(parameters, fpops_bound=FPOPS_BOUND)
    if parameters.disk_bound is None:
        size = 0 if image_source is None else image_source.nbytes
        parameters = replace(parameters, disk_bound=default_disk(largest, size))
    options["parameters"] = parameters
    output_bytes = DISK.read(parameters.disk_bound)
    made = make_container_jobs(
        [(number, replace(each, output_bytes=output_bytes)) for number, each in runs],
        session.context.made,
        session.context.digests.md5,
    )
    session.context.made.clean(_UNUSED)
    told = _told(shared)
    return ProgramBatch(
        app_name,
        [
            replace(
                job,
                args=sent.args,
                inputs=sent.inputs,
                input_template=sent.input_template,
                output_template=sent.output_template,
                program=record._replace(shared=told),
            )
            for job, record, (_, sent) in zip(jobs, records, made, strict=True)
        ],
        options,
        list(sources.values()),
    )


def _words(command: Sequence[object] | str) -> list[object]:
    if isinstance(command, (bytes, bytearray)) or not isinstance(command, Iterable):
        raise BadRequest(f"command is a {type(command).__name__}: expected words, or one text")
    words: list[object] = [*(split_args(command) if isinstance(command, str) else command)]
    if not words:
        raise BadRequest("the command has no words: expected a program and its arguments")
    return words


def _paths(inputs: Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(inputs, (str, os.PathLike)):
        raise BadRequest(f"inputs is one path: expected a list, so write [{os.fspath(inputs)!r}]")
    try:
        return [os.fsdecode(each) for each in inputs]
    except TypeError as error:
        raise BadRequest(f"inputs: expected paths: {error}") from None


def _jobs(rows: Any, words: list[object], inputs: Mapping[str, File]) -> list[Job]:
    """Return the jobs, with the words of the command and of inputs as their arguments."""
    rows, are_jobs = rows_or_jobs([{}] if rows is None else rows)
    made = jobs_from([{}] if are_jobs else rows, args=words, inputs=inputs)
    if not made:
        raise BadRequest("there are no rows: expected at least one job")
    if not are_jobs:
        return made
    [like] = made
    return [
        replace(
            each,
            args=(
                *like.args,
                *(split_args(each.args) if isinstance(each.args, str) else each.args),
            ),
            inputs={**like.inputs, **each.inputs},
        )
        for each in list_of(rows)
    ]


def _image(text: str) -> Image:
    if not isinstance(text, str):
        raise BadRequest(f"image is a {type(text).__name__}: expected a name such as python:3.12")
    try:
        return read_image(text)
    except ValueError as error:
        raise BadRequest(f"the image: {error}") from None


def _outputs(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise BadRequest(f"outputs is one text: expected a list, so write [{names!r}]")
    if not isinstance(names, Iterable):
        raise BadRequest(f"outputs is a {type(names).__name__}: expected a list of names")
    found: dict[str, None] = {}
    for name in names:
        if not isinstance(name, str):
            raise BadRequest(f"outputs: expected names, found {name!r}")
        if _PLACEHOLDER.search(name):
            raise BadRequest(
                f"the output {quoted(name)} has a placeholder, but all programs of a batch have "
                "the same outputs: let each write a file of one name, which comes back into the "
                "folder of its job"
            )
        try:
            found[output_path(name)] = None
        except ValueError as error:
            raise BadRequest(f"the output {quoted(name)} {error}") from None
    return tuple(found)


def _environment(common: Programs) -> tuple[tuple[str, str], ...]:
    given, allowed = common.environment or {}, set(common.allow_environment)
    if not isinstance(given, Mapping):
        raise BadRequest(f"environment is a {type(given).__name__}: expected values by their names")
    for name, value in given.items():
        if not isinstance(name, str) or not is_variable(name):
            raise BadRequest(f"the environment has the variable {name!r}, which cannot be")
        if not isinstance(value, str):
            raise BadRequest(f"the environment's variable {name} is {value!r}: expected a text")
        try:
            check_word(f"{name}={value}")
        except ValueError as error:
            raise BadRequest(f"the environment's variable {quoted(name)} {error}") from None
    refused = [name for name in secret_names(given) if name not in allowed]
    if refused:
        names = ", ".join(refused)
        raise BadRequest(
            f"the name of the variable {names} looks like that of a secret, and volunteers can "
            "read the whole environment: leave it out, or, if it is no secret, allow it "
            f"(--allow-env {refused[0]}, in Python allow_environment=[{refused[0]!r}])"
        )
    return tuple(given.items())


def _described(
    job: Job,
    shared: ContainerJob,
    finder: FileFinder,
    lengths: tuple[int, int],
    common: Programs,
) -> tuple[CommandRecord, ContainerJob, Collection[Source]]:
    """Return what a person wrote for a job, what it runs, and its files and directories."""
    for each in ("input_template", "output_template"):
        if getattr(job, each) is not None:
            raise BadRequest(f"a row has an {each}: a program has templates of its own")
    words, texts = lengths
    args = [_text(word) for word in job.args]
    command = (*args[:words], *args[words + texts :])
    program, rest = command[0], list(command[1:])
    sources: list[Source] = [finder.given(text) for text in args[words : words + texts]]
    sources += [finder.named(name, file) for name, file in job.inputs.items()]
    named = {getattr(each.file, "path", "") for each in sources}
    if common.find_files:
        rest, found = finder.in_words(rest, named)
        sources += found
    is_input = False
    if "/" in program:
        _, its = finder.in_word(program) or ("", None)
        if its is not None and not isinstance(its.file, Member):
            sources.append(its)
            is_input, program = True, f"./{its.name}"
        else:
            _check_program(program, sources)
    elif not program:
        raise BadRequest("the first word of the command is empty: expected a program")
    elif common.find_files and os.path.isfile(program):  # noqa: PTH113  (a job has thousands of words)
        raise BadRequest(
            f"the program {quoted(program)} would be one of the image, since its name has no "
            "slash, but there is a file of this name here: write "
            f"{quoted('./' + program)} to send it, or the path that the program has in the image"
        )
    needed = together(sources)
    for source in needed.values():
        if source.look is not None:
            source.look.check(named)
    return (
        CommandRecord(command, "", tuple(each.shown for each in needed.values())),
        replace(
            shared,
            command=program,
            is_input=is_input,
            program=replace(shared.program, arguments=tuple(rest)),
            files=tuple(
                (name, each.file)
                for name, each in needed.items()
                if not isinstance(each.file, Member)
            ),
            trees=tuple(each.file for each in needed.values() if isinstance(each.file, Member)),
        ),
        needed.values(),
    )


def _check_program(program: str, sources: Iterable[Source]) -> None:
    """Raise BadRequest if a job cannot have a program of a relative path."""
    name = os.path.normpath(program)
    if name.startswith("/"):
        return
    for source in sources:
        if source.name == name:
            return
        if isinstance(source.file, Member) and name.startswith(f"{source.name}/"):
            return
    raise BadRequest(
        f"the program {quoted(program)} is no file here: check its path; if it is in the image, "
        "write its name or its absolute path there"
    )


def _text(word: object) -> str:
    if isinstance(word, bool) or not isinstance(word, (str, int, float, os.PathLike)):
        raise BadRequest(f"the command's word {word!r} is a {type(word).__name__}: expected a text")
    text = os.fsdecode(word) if isinstance(word, os.PathLike) else str(word)
    try:
        check_word(text)
    except ValueError as error:
        raise BadRequest(f"the command's word {quoted(text)} {error}") from None
    return text


def _told(shared: ContainerJob) -> str:
    """Return what the jobs have in common, as the manifest keeps it."""
    return json.dumps(
        {
            "image": str(shared.image),
            "outputs": None if shared.outputs is None else list(shared.outputs),
            "environment": dict(shared.program.environment),
            **{name: getattr(shared, name) for name in _OF_JOBS},
        }
    )
