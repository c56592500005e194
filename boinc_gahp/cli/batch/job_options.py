"""Options of ``batch submit``, ``estimate`` and ``run`` that describe the jobs.

Jobs come from one of three places: the command line itself (``--input``, ``--args``, ``--count``),
a file with a row per job (``--rows``), or a set of files with a job per file (``--each``).
"""

from __future__ import annotations

import glob
import os
import re
import stat
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from boinc_gahp.errors import BadRequest
from boinc_gahp.quantities import SIZES
from boinc_gahp.terminal.live import remark
from boinc_gahp.terminal.parsing import quantity, whole_number
from boinc_gahp.text import count, listed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from boinc_gahp.api.project import Project
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.rows.texts import Patterns
    from boinc_gahp.submit.types import Job, Parameters
    from boinc_gahp.terminal.live import Work
    from boinc_gahp.terminal.parsing import Parser


#: Titles of groups of options.
_WHICH, NEEDS = "which jobs", "what the jobs need"
#: In errors: a placeholder for part of a file's path.
_OF_FILE = re.compile(r"\{(path|file|name|stem)(:[0-9]+)?\} is not a placeholder")

#: Stands for a template in the project's own directory.
_ON_PROJECT = "project:"
#: The most jobs that --count makes: each takes memory, and has to be sent.
_MOST_JOBS = 1_000_000


def add_job_options(parser: Parser, json: str) -> None:
    """Add the options that describe the jobs, and the resources they may use."""
    inputs = {
        "--input NAME=FILE ...": "an input file of every job. NAME is the app's name for it; FILE "
        "is a path, staged:PHYSICAL_NAME, remote:URL,NBYTES,MD5 or inline:TEXT, with the "
        "placeholders of --args; may be repeated"
    }
    args = {
        "--args WORDS": "arguments of the jobs, split as in a shell. {index} is the job's number, "
        "from 0, {batch} the batch's name; with --rows, {COLUMN} is the row's value; with --each, "
        "{path}, {name} and {stem} are those of the file; {index:4} is 0000, 0001, ...; {{ and }} "
        "are braces"
    }
    own = "your own {} template, or project:NAME for one in the project's template directory"
    of_app = {
        "--input-template FILE": own.format("input"),
        "--output-template FILE": own.format("output"),
    }
    outputs = {
        "--output NAME ...": "an output that each job has to have; may be repeated. A BUDA app "
        "needs them, because a project does not tell them"
    }
    numbers = {
        "--priority N": "priority; jobs with higher numbers are sent first",
        "--app-version N": "use only this version of the app; boinc_gahp cannot check that it "
        "exists",
    }
    parser.takes({"APP": "the app to run; buda:NAME for a BUDA app"})
    parser.takes(inputs, _WHICH, default=[]).takes(args, _WHICH)
    of_each = ": as the input that has no --input, or as the one with --input NAME={path}"
    add_which(parser, "--args", of_each)
    parser.takes(of_app, NEEDS).takes(outputs, NEEDS, dest="outputs")
    parser.takes(numbers, NEEDS, type=partial(whole_number, -(2**31), 2**31 - 1))
    add_needs(parser)
    parser.with_common(project=True, json=json)


def add_which(parser: Parser, words: str, of_each: str = "") -> None:
    """Add the options that tell how many jobs there are.

    Args:
        parser: gets them.
        words: where placeholders are.
        of_each: what each file is for, for the help.
    """
    count = {"--count N": "submit N jobs, which differ only in {index}"}
    each = {
        "--each FILES ...": f"submit a job for each of these files{of_each}; a pattern in quotes "
        "works, too ('data/*.dat', 'a/**/*')"
    }
    rows = {
        "--rows FILE": "submit a job for each row of a table of parameters: a CSV file with a "
        "header, or JSON; - is standard input. Each column is a placeholder. Columns called name, "
        "args, inputs, input:NAME, template, output_template, priority, fpops, memory, disk and "
        "delay are settings of the job, not data"
    }
    data = {
        "--as-data COLUMN ...": "take a column of --rows as a parameter only, although it is "
        "called name, memory or the like; may be repeated"
    }
    names = {
        "--name-jobs PATTERN": f"names for jobs that have none, with the placeholders of {words}, "
        "as in '{batch}_{seed}': a project accepts a job's name only once, for ever (default: the "
        "batch's name and the job's number)"
    }
    parser.takes(count, _WHICH, type=partial(whole_number, 1, _MOST_JOBS)).takes(
        each, _WHICH, nargs="+", action="store"
    )
    parser.takes(rows, _WHICH).takes(data, _WHICH, default=[]).takes(names, _WHICH)


def add_needs(parser: Parser) -> None:
    """Add the options that tell what a job needs."""
    for size in SIZES:
        kind = size.quantity
        option = {f"{size.option} {kind.word}": size.help}
        parser.takes(option, NEEDS, dest=size.parameter, type=quantity(kind))


def patterns_of(options: Namespace, batch_name: str) -> Patterns:
    """Return the placeholders' patterns; raises BadRequest."""
    from boinc_gahp.api.rows.texts import Patterns

    return Patterns(options.args, _inputs(options), options.name_jobs, batch_name, options.as_data)


def check_jobs(
    options: Namespace, patterns_of: Callable[[Namespace, str], Patterns] = patterns_of
) -> None:
    """Exit with status 2 if options of :func:`add_which` do not go together.

    Also if placeholders are wrong, as far as that is known without rows.

    Args:
        options: those of the command.
        patterns_of: returns the patterns with its placeholders, for the name of a batch.
    """
    parser = options.parser
    ways = [f"--{way}" for way in ("rows", "each", "count") if getattr(options, way) is not None]
    if len(ways) > 1:
        parser.error(
            f"{' and '.join(ways)} do not go together: each of them says which jobs there are"
        )
    if options.as_data and options.rows is None:
        parser.error("--as-data is about the columns of --rows")
    try:
        patterns = patterns_of(options, "")
        if options.rows is None:
            patterns.used(values_of(0, "", None if options.each is None else ""))
    except BadRequest as error:
        hint = ""
        if options.each is None and options.rows is None and _OF_FILE.search(str(error)):
            hint = " (path, name and stem are for files of --each, and there is no --each)"
        parser.error(f"{error}{hint}")


def _inputs(options: Namespace) -> dict[str, str]:
    """Return the texts of the files of ``--input`` by open names; raises BadRequest."""
    from boinc_gahp.api.rows.texts import split_named

    inputs: dict[str, str] = {}
    for text in options.input:
        name, file = split_named(text)
        if name in inputs:
            raise BadRequest(f"--input {name}=… is given twice: give the input one file")
        inputs[name] = file
    return inputs


def sizes_of(options: Namespace) -> Parameters:
    """Return what the options of :func:`add_needs` say."""
    from boinc_gahp.submit.types import Parameters

    return Parameters(**{each.parameter: getattr(options, each.parameter) for each in SIZES})


def submit_options(options: Namespace) -> Options:
    """Return the arguments for the Python API other than the jobs."""
    return {
        "parameters": sizes_of(options),
        "priority": options.priority,
        "app_version_num": options.app_version,
        "input_template_filename": _on_project(options.input_template),
        "output_template_filename": _on_project(options.output_template),
    }


def look_up_jobs(
    project: Project, options: Namespace, work: Work, more: Options
) -> CommandLineJobs:
    """Return the jobs that the options describe, for a batch; shows the progress.

    Args:
        project: the project.
        options: those of the command, checked by :func:`check_jobs`.
        work: shows the progress.
        more: what is given for the whole batch; its name is set.

    Raises:
        BadRequest: an option's value is wrong, or a template cannot be read.
        BadRequest: a row is wrong.
    """
    from boinc_gahp.templates.reading import read_input_template, read_output_template

    common = {
        "input_template": _own_template(options.input_template, read_input_template)[0],
        "output_template": _own_template(options.output_template, read_output_template)[0],
        "outputs": options.outputs,
    }
    common = {name: value for name, value in common.items() if value is not None}
    its_input = None if options.each is None else _only_input(project, options)
    made = filled_jobs(options, patterns_of(options, more["name"] or ""), work, its_input)
    if common:
        made.jobs = [_completed(job, common) for job in made.jobs]
    return made


def _completed(job: Job, common: dict[str, Any]) -> Job:
    """Return a job with what is given for all, unless its row has it."""
    return replace(job, **{k: each for k, each in common.items() if getattr(job, k) is None})


def _only_input(project: Project, options: Namespace) -> str | None:
    """Return the only input that has no file yet; None if ``--input`` says where each file goes."""
    from boinc_gahp.api.rows.texts import Patterns
    from boinc_gahp.submit.checks import buda_name
    from boinc_gahp.templates.reading import read_input_template

    shared = _inputs(options)
    if names_file(Patterns(None, shared, None, "")):
        return None
    how = "name the one that gets the files: --input NAME={path}"
    if _on_project(options.input_template) is not None:
        raise BadRequest(f"--each: the inputs of a template on the project are not known: {how}")
    if options.input_template is not None:
        _, template = _own_template(options.input_template, read_input_template)
        wanted: list[str] = [file.open_name for file in template.per_job_files]
    elif buda_name(options.app) is not None:
        raise BadRequest(f"--each: a project does not tell the inputs of a BUDA app: {how}")
    else:
        wanted = [file.open_name for file in project.app(options.app).inputs]
    left = [name for name in wanted if name not in shared]
    if not left:
        raise BadRequest(
            f"--each: --input already gives all inputs of {options.app} "
            f"({', '.join(wanted) or 'it has none'}): {how}"
        )
    if len(left) > 1:
        raise BadRequest(f"--each: {options.app} has the inputs {', '.join(wanted)}: {how}")
    return left[0]


def _on_project(given: str | None) -> str | None:
    """Return the name of a template of the project's, if the option means one."""
    if given is None or not given.startswith(_ON_PROJECT):
        return None
    return given.removeprefix(_ON_PROJECT)


def _own_template(given: str | None, read: Callable[[str], Any]) -> tuple[str | None, Any]:
    """Return the text of a template of one's own, and what ``read`` makes of it; or None, None."""
    from boinc_gahp.api.rows.texts import template_text
    from boinc_gahp.templates.types import TemplateError

    if given is None or _on_project(given) is not None:
        return None, None
    text = template_text(given)
    try:
        return text, read(text)
    except TemplateError as error:
        raise BadRequest(f"{given}: {error}; boinc_gahp template check tells more") from error


#: What columns of a table set.
_SET = {
    "name": "names",
    "priority": "priorities",
    "fpops": "numbers of operations",
    "memory": "memory",
    "disk": "disk space",
    "delay": "deadlines",
}
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

    def places(self, batch_name: str) -> dict[str, str]:
        """Return by the jobs' names where they are in the file with their rows: ``rows.csv:17``.

        If a name is there twice, it is the place of the second.
        """
        from boinc_gahp.api.request import job_names

        places = (f"{self.rows}:{line}" for line in self.lines)
        return dict(zip(job_names(batch_name, self.jobs), places, strict=False))


def values_of(number: int, batch_name: str, path: str | None) -> dict[str, str | None]:
    """Return the values of the placeholders for a job that has no row."""
    values: dict[str, str | None] = {"index": str(number), "batch": batch_name}
    if path is not None:
        pure = PurePath(path)
        values.update(path=path, file=path, name=pure.name, stem=pure.stem)
    return values


def names_file(patterns: Patterns) -> bool:
    """Tell whether a placeholder stands for the file of ``--each``, or for a part of its path."""
    used = patterns.used(values_of(0, "", ""))
    return not used.isdisjoint(("path", "file", "name", "stem"))


def filled_jobs(
    options: Namespace, patterns: Patterns, work: Work, its_input: str | None = None
) -> CommandLineJobs:
    """Return the jobs that the options of :func:`add_which` tell.

    Args:
        options: the options.
        patterns: what a job's values are filled into; it has the name of their batch.
        work: shows the progress.
        its_input: the name of the input that gets the file of ``--each``, if there is one.

    Raises:
        BadRequest: an option's value is wrong.
        BadRequest: a row is wrong.
    """
    if options.rows is not None:
        made = _row_jobs(options, patterns, work)
    else:
        made = _other_jobs(options, patterns, its_input)
    number = len(made.jobs)
    work.show("checking jobs", 0, number, count(number, "job"))
    return made


def _other_jobs(options: Namespace, patterns: Patterns, its_input: str | None) -> CommandLineJobs:
    from boinc_gahp.submit.types import Job, LocalFile

    made = CommandLineJobs()
    files = [None] * (options.count or 1) if options.each is None else _matching(options.each)
    for number, path in enumerate(files):
        values = values_of(number, patterns.batch or "", path)
        inputs = patterns.inputs(values)
        if path is not None and its_input is not None:
            inputs[its_input] = LocalFile(path)
        args, job_name = patterns.args(values), patterns.name(values)
        made.jobs.append(Job(args, inputs, job_name))  # type: ignore[arg-type]
    return made


def _row_jobs(options: Namespace, patterns: Patterns, work: Work) -> CommandLineJobs:
    from boinc_gahp.api.rows.reading import read_rows

    made = CommandLineJobs(rows="standard input" if options.rows == "-" else options.rows)
    for number, (line, job) in enumerate(read_rows(options.rows, None, patterns)):
        if number % _ROWS == 0:
            work.show("reading rows", number, 0)
        made.jobs.append(job)
        made.lines.append(line)
    if not made.jobs:
        raise BadRequest(f"{made.rows}: it has no rows, so there are no jobs")
    settings = patterns.settings
    if settings:
        columns, sets = ("column", "sets") if len(settings) == 1 else ("columns", "set")
        what = _and([_SET[each] for each in settings.values()])
        remark(
            f"boinc_gahp: {made.rows}: {columns} {_and(list(settings))} {sets} the jobs' {what}; "
            "--as-data COLUMN makes one a parameter only"
        )
    unused = [key for key in made.jobs[0].parameters if key not in settings]
    if unused and patterns.seen.isdisjoint(unused):
        way = f"'--{unused[0]} {{{unused[0]}}}'"
        remark(
            f"boinc_gahp: {made.rows}: no placeholder uses the columns ({listed(unused, 3)}), so "
            + (
                f"they are only recorded; --args {way} would give one to the app"
                if hasattr(options, "args")
                else f"they are only recorded; {{{unused[0]}}} in the command would be its value"
            )
        )
    return made


def _and(names: Sequence[str]) -> str:
    """Return names as in ``name, delay and memory``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


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
