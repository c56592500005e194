"""Options of ``batch submit`` and ``batch estimate`` that describe the jobs.

Jobs come from one of three places: the command line itself (``--input``, ``--args``, ``--count``),
a file with a row per job (``--rows``), or a set of files with a job per file (``--each``).
"""

from __future__ import annotations

import argparse
import glob
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch import placeholders
from boinc_gahp.cli.batch.arguments import add_common, span, whole_number
from boinc_gahp.cli.batch.placeholders import nbytes, operations
from boinc_gahp.errors import BadRequest
from boinc_gahp.terminal import not_empty

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp.api import File, Job, LocalFile, Options
    from boinc_gahp.templates import InputTemplate
    from boinc_gahp.terminal import Parser

#: Stands for a template in the project's own directory.
_ON_PROJECT = "project:"
#: Options whose value may begin with a dash.
_DASHED = ("--args",)

#: The most jobs that --count makes: each takes memory, and has to be sent.
_MOST_JOBS = 1_000_000

#: Rows between two progress messages.
_ROWS = 100


@dataclass
class CommandLineJobs:
    """The jobs that a command line describes.

    Attributes:
        jobs: in order.
        rows: the name of the file with their rows, if there is one.
        lines: each job's line in it.
    """

    jobs: list[Job] = field(default_factory=list)
    rows: str | None = None
    lines: list[int] = field(default_factory=list)

    def place(self, number: int) -> str:
        """Return a job's place, for errors: ``rows.csv:17``; empty for a command line."""
        return f"{self.rows}:{self.lines[number]}" if self.rows else ""


def add_job_options(parser: Parser, config: str | None, json: str) -> None:
    """Add the options that describe the jobs, and the resources they may use."""
    parser.completes(
        parser.add_argument("app", metavar="APP", type=not_empty, help="the app to run"), "app"
    )
    which = parser.add_argument_group("which jobs")
    which.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an input file of every job. NAME is the app's name for it; FILE is a path, "
        "staged:PHYSICAL_NAME, http(s)://…, remote:URL,NBYTES,MD5 or inline:TEXT; may "
        "be repeated",
    )
    which.add_argument(
        "--args",
        metavar="WORDS",
        help="arguments of the jobs, split as in a shell. {index} is the job's number, "
        "from 0; with --each, {path}, {name} and {stem} are those of its file; {{ and "
        "}} are braces",
    )
    which.add_argument(
        "--count", type=_count, metavar="N", help="submit N jobs, which differ only in {index}"
    )
    parser.completes(
        which.add_argument(
            "--each",
            nargs="+",
            metavar="FILES",
            help="submit a job for each of these files; a pattern in quotes works, too "
            "('data/*.dat', 'a/**/*')",
        ),
        "file",
    )
    which.add_argument(
        "--as",
        dest="as_",
        metavar="NAME",
        help="the input that gets the file of --each (default: the only input of the app "
        "that has no --input)",
    )
    parser.completes(
        which.add_argument(
            "--rows",
            metavar="FILE",
            type=not_empty,
            help="submit a job for each row of a CSV file with a header (name, args, inputs, "
            "input:NAME, template, output_template, priority, fpops), or of a file of "
            "JSON lines; - is standard input",
        ),
        "file",
    )
    which.add_argument(
        "--format",
        choices=("csv", "jsonl"),
        help="the format of --rows (default: from the file's name or its first character)",
    )
    which.add_argument(
        "--name-jobs",
        metavar="PATTERN",
        help="names for jobs that have none, with the placeholders of --args; {index:4} "
        "gives 0000, 0001, ... (default: the batch's name and the job's number)",
    )
    needs = parser.add_argument_group("what the jobs need", "The app's template has the defaults.")
    for name in ("input", "output"):
        parser.completes(
            needs.add_argument(
                f"--{name}-template",
                metavar="FILE",
                help=f"your own {name} template, or project:NAME for one in the project's template "
                "directory",
            ),
            "file",
        )
    needs.add_argument(
        "--priority",
        type=_whole,
        metavar="N",
        help="priority; jobs with higher numbers are sent first",
    )
    needs.add_argument(
        "--app-version",
        type=_whole,
        metavar="N",
        help="use only this version of the app; boinc_gahp cannot check that it exists",
    )
    needs.add_argument(
        "--fpops-est",
        type=operations,
        metavar="X",
        help="estimated floating-point operations of a job: 2e12 or 2T",
    )
    needs.add_argument(
        "--fpops-bound",
        type=operations,
        metavar="X",
        help="floating-point operations after which a job is aborted",
    )
    needs.add_argument(
        "--memory",
        type=nbytes,
        metavar="SIZE",
        help="memory that a job may use: 500MB, 2GB, 1.5GiB",
    )
    needs.add_argument("--disk", type=nbytes, metavar="SIZE", help="disk space that a job may use")
    needs.add_argument(
        "--delay",
        type=span,
        metavar="SPAN",
        help="time that a volunteer has for a job: 12h, 7d, 2w",
    )
    add_common(parser, config, json=json)


def read_options(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; exits with status 2 if some do not go together."""
    options = parser.read(list(_joined(arguments)))
    ways = [f"--{way}" for way in ("rows", "each", "count") if getattr(options, way) is not None]
    if len(ways) > 1:
        parser.error(
            f"{' and '.join(ways)} do not go together: each of them says which jobs there are"
        )
    if options.rows is not None and options.args is not None:
        parser.error("--rows and --args do not go together: the rows have a column args")
    if options.rows is None and options.format is not None:
        parser.error("--format is the format of --rows, and there is no --rows")
    if options.each is None and options.as_ is not None:
        parser.error("--as is for the files of --each, and there is no --each")
    for option in ("args", "name_jobs"):
        pattern = getattr(options, option)
        if pattern is not None:
            try:
                placeholders.check(pattern, with_file=options.each is not None)
            except placeholders.WrongPattern as error:
                parser.error(f"--{option.replace('_', '-')}: {error}")
    from boinc_gahp.api import split_args

    try:
        _shared_inputs(options.input)
        split_args(options.args or "")
    except BadRequest as error:
        parser.error(str(error))
    return options


def _joined(arguments: Sequence[str]) -> list[str]:
    """Return the words; values that argparse would take for options are joined to their option."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] in _DASHED:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def submit_options(options: argparse.Namespace) -> Options:
    """Return the arguments for the Python API other than the jobs."""
    from boinc_gahp.api import Parameters

    made: Options = {
        "parameters": Parameters(
            fpops_est=options.fpops_est,
            fpops_bound=options.fpops_bound,
            memory_bound=options.memory,
            disk_bound=options.disk,
            delay_bound=options.delay,
        ),
        "priority": options.priority,
        "app_version_num": options.app_version,
        "input_template_filename": _on_project(options.input_template),
        "output_template_filename": _on_project(options.output_template),
    }
    return made


def read_jobs(
    options: argparse.Namespace,
    inputs: Callable[[], Sequence[str]],
    progress: Callable[[int], None],
) -> CommandLineJobs:
    """Return the jobs that the options describe.

    Args:
        options: from :func:`read_options`.
        inputs: returns the open names of the app's inputs; called only if they matter.
        progress: called now and then with the number of rows read.

    Raises:
        BadRequest: an option's value is wrong, or a template cannot be read.
        WrongRow: a row is wrong.
    """
    from boinc_gahp.api import Job, split_args

    templates = {
        "input_template": _own_template(options.input_template, is_input=True),
        "output_template": _own_template(options.output_template, is_input=False),
    }
    shared = _shared_inputs(options.input)
    if options.rows is not None:
        return _row_jobs(options, shared, templates, progress)
    words = split_args(options.args or "")
    files: list[str] | None = None
    name = ""
    if options.each is not None:
        files = _matching(options.each)
        name = options.as_ or _only_input(shared, options, inputs)
        if name in shared:
            raise BadRequest(
                f"--as {name} and --input {name}=… do not go together: give the input one file"
            )
    made = CommandLineJobs()
    for number in range(len(files) if files is not None else options.count or 1):
        path = None if files is None else files[number]
        fill = placeholders.Filling(number, path)
        made.jobs.append(
            Job(
                args=tuple(map(fill, words)),
                inputs=shared if path is None else {**shared, name: _local(path)},
                name=None if options.name_jobs is None else fill(options.name_jobs),
                input_template=templates["input_template"],
                output_template=templates["output_template"],
            )
        )
    return made


def _row_jobs(
    options: argparse.Namespace,
    shared: dict[str, File],
    templates: dict[str, str | None],
    progress: Callable[[int], None],
) -> CommandLineJobs:
    from dataclasses import replace

    from boinc_gahp.api import read_rows

    made = CommandLineJobs(rows="standard input" if options.rows == "-" else options.rows)
    for number, row in enumerate(read_rows(options.rows, options.format)):
        job = row.job
        if number % _ROWS == 0:
            progress(number)
        if shared:
            job = replace(job, inputs={**shared, **job.inputs})
        if options.name_jobs is not None and job.name is None:
            job = replace(job, name=placeholders.Filling(number)(options.name_jobs))
        for kind, text in templates.items():
            if text is not None and getattr(job, kind) is None:
                job = replace(job, **{kind: text})  # type: ignore[arg-type]
        made.jobs.append(job)
        made.lines.append(row.line)
    if not made.jobs:
        raise BadRequest(f"{made.rows}: it has no rows, so there are no jobs")
    return made


def _shared_inputs(given: Sequence[str]) -> dict[str, File]:
    from boinc_gahp.api import read_named

    inputs: dict[str, File] = {}
    for text in given:
        try:
            name, file = read_named(text)
        except BadRequest as error:
            raise BadRequest(f"--input: {error}") from error
        if name in inputs:
            raise BadRequest(f"--input {name}=… is given twice: give the input one file")
        inputs[name] = file
    return inputs


def _only_input(
    shared: dict[str, File], options: argparse.Namespace, inputs: Callable[[], Sequence[str]]
) -> str:
    """Return the name of the app's only input that has no file yet."""
    if _on_project(options.input_template) is not None:
        raise BadRequest(
            "--each: with a template on the project, it is not known which input gets the files: "
            "name it with --as NAME"
        )
    if options.input_template is not None:
        wanted = [file.open_name for file in _read_input(options.input_template).per_job_files]
    else:
        wanted = list(inputs())
    left = [name for name in wanted if name not in shared]
    if not left:
        raise BadRequest(
            f"--each: --input already gives all inputs of {options.app} "
            f"({', '.join(wanted) or 'it has none'}): leave out the one that --each is to give"
        )
    if len(left) > 1:
        raise BadRequest(
            f"--each: {options.app} has the inputs {', '.join(wanted)}: name the one that gets the "
            "files with --as NAME, and give the others with --input"
        )
    return left[0]


def _matching(patterns: Sequence[str]) -> list[str]:
    """Return the files that the words of ``--each`` match, sorted, each once."""
    found: dict[str, None] = {}
    for pattern in patterns:
        # A file that exists is meant literally, whatever characters its name has.
        matches = [pattern] if _is_file(pattern) else glob.glob(pattern, recursive=True)  # noqa: PTH207
        files = [path for path in matches if _is_file(path)]
        if not files:
            what = "only directories" if matches else "no file"
            raise BadRequest(
                f"--each {pattern!r} matches {what} (looked for from {Path.cwd()}): correct the "
                "pattern"
            )
        found.update(dict.fromkeys(files))
    return sorted(found)


def _is_file(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  (a path may hold bytes)
    except (OSError, ValueError):
        return False


def _local(path: str) -> LocalFile:
    from boinc_gahp.api import LocalFile

    return LocalFile(path)


# -- templates


def _on_project(given: str | None) -> str | None:
    """Return the name of a template of the project's, if the option means one."""
    if given is None or not given.startswith(_ON_PROJECT):
        return None
    return given.removeprefix(_ON_PROJECT)


def _own_template(given: str | None, *, is_input: bool) -> str | None:
    """Return the text of a template file; reading it makes sure that it is a template."""
    from boinc_gahp.templates import TemplateError, read_output_template

    if given is None or _on_project(given) is not None:
        return None
    text = _text(given)
    if is_input:
        _read_input(given)
        return text
    try:
        read_output_template(text)
    except TemplateError as error:
        raise _wrong_template(given, error) from error
    return text


def _read_input(path: str) -> InputTemplate:
    from boinc_gahp.templates import TemplateError, read_input_template

    try:
        return read_input_template(_text(path))
    except TemplateError as error:
        raise _wrong_template(path, error) from error


def _wrong_template(path: str, error: Exception) -> BadRequest:
    return BadRequest(f"{path}: {error}; boinc_gahp template check tells more")


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadRequest(f"the template {path!r} cannot be read: {reason}") from error


def _count(text: str) -> int:
    number = whole_number(text)
    if number > _MOST_JOBS:
        raise argparse.ArgumentTypeError(
            f"{number:,} jobs are too many: a batch has at most {_MOST_JOBS:,}"
        )
    return number


def _whole(text: str) -> int:
    digits = text[1:] if text[:1] in {"-", "+"} else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or int(digits) >= 2**31:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number, or is too large for a project"
        )
    return int(text)
