"""``local-project stage-file`` and ``create-work``, with the options of BOINC's programs."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.commands import action_parser, number, opened
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.types import TemplateError
from boinc_gahp.terminal.parsing import Parser, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boinc_gahp.localproject.backend.new_job import NewJob, RemoteInput
    from boinc_gahp.localproject.core import Core

#: The parameters of ``templates.rst``, "Job parameters", with their meanings.
_REAL = {
    "rsc_fpops_est": "estimated floating-point operations",
    "rsc_fpops_bound": "floating-point operations after which the job is aborted",
    "rsc_memory_bound": "bytes of memory",
    "rsc_disk_bound": "bytes of disk space",
    "rsc_bandwidth_bound": "download speed that a host must have, in bytes per second",
    "delay_bound": "seconds from sending the job to its deadline",
}
_WHOLE = {
    "min_quorum": "number of results that must agree",
    "target_nresults": "number of results to create at first",
    "max_error_results": "number of failed results allowed; one more ends the job",
    "max_total_results": "total number of results allowed",
    "max_success_results": "number of successful results allowed without agreement",
    "size_class": "size class (no host here prefers one)",
    "app_version_num": "use only this version of the app",
    "batch": "a batch that exists, by its number",
    "target_host": "send the job only to this host, by its number",
    "target_user": "send the job only to this user's hosts, by the user's number",
}
#: As large as a database column.
_MOST = 2**31 - 1
_REMOTE = "\0remote\0"


def stage_file(arguments: list[str], _config: str | None) -> int:
    """Stage input files."""
    options = stage_file_parser().read(arguments)
    with opened(options.directory) as core:
        from boinc_gahp.localproject.backend.create_work import stage_file as stage

        for file in options.files:
            print(stage(core, file, gzip=options.gzip))
    return 0


def stage_file_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``stage-file``."""
    parser = action_parser(
        "stage-file",
        "Copies files to the project's download directory. Their names become their "
        "physical names. A staged file never changes: a different file with the same "
        "name is refused.",
        (
            "boinc_gahp local-project stage-file ~/project data1.txt data2.txt",
            "boinc_gahp local-project stage-file ~/project --gzip big.dat",
        ),
        "DIR [--gzip] FILE...",
    )
    gzip = "also stage FILE.gz, for templates with <gzip/>; volunteers then download FILE.gz"
    parser.takes({"FILE ...": "file to copy"}, dest="files", type=Path).takes({"--gzip": gzip})
    return parser


def create_work(arguments: list[str], _config: str | None) -> int:
    """Make jobs."""
    parser = create_work_parser()
    options = parser.read(arguments)
    if options.stdin and (options.wu_name or options.files):
        parser.error("with --stdin, names and files stand in the lines")
    with opened(options.directory) as core:
        from boinc_gahp.localproject.backend.create_work import create_work as make
        from boinc_gahp.localproject.backend.new_job import NewJob

        own = {name: getattr(options, name) for name in (*_REAL, *_WHOLE, "priority")}
        batch_id = own.pop("batch") or 0
        defaults = NewJob(
            name=options.wu_name,
            command_line=options.command_line,
            files=tuple(options.files),
            input_template=_template(core, options.wu_template, read_input_template),
            output_template=_template(core, options.result_template, read_output_template),
            **own,
        )
        jobs = list(_jobs_from(sys.stdin, defaults)) if options.stdin else [defaults]
        ids = make(core, options.app, jobs, batch_id=batch_id)
        names = core.db.connection().execute(
            "SELECT name FROM workunit WHERE id BETWEEN ? AND ? ORDER BY id",
            (min(ids, default=0), max(ids, default=-1)),
        )
        for (name,) in names:
            print(name)
    return 0


class _CreateWorkParser(Parser):
    """A parser for options that argparse cannot read as BOINC's program does."""

    def read(self, arguments: Sequence[str], config: str | None = None) -> argparse.Namespace:
        """Read arguments; --remote_file has a place among the FILEs, and a command line dashes."""
        return super().read(list(_joined(arguments)), config)


def create_work_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``create-work``."""
    parser = action_parser(
        "create-work",
        "Creates a job of an app, or several with --stdin, and prints their names. FILEs are the "
        "physical names of staged files, in the order of the input template. The options are those "
        "of BOINC's create_work. As there, sizes, deadline and instances that the template sets "
        "win over the options.\n\n"
        "with --stdin each line is a job:\n"
        '  [--wu_name X] [--command_line "X"] [--priority N] [--wu_template X]\n'
        "   [--result_template X] [--target_host ID] [--target_user ID]\n"
        "  [--remote_file URL NBYTES MD5]... [FILE]...\n\n"
        "The options of this command apply to all lines that do not set them. Empty lines are "
        "skipped. Either all jobs are created, or none.",
        (
            "boinc_gahp local-project create-work ~/project uppercase --wu_name job1 data1.txt",
            "boinc_gahp local-project create-work ~/project uppercase --priority 2 \\\n"
            "--command_line '--sleep 5' data1.txt",
            "seq -f '--command_line \"--sleep %g\" data1.txt' 5 | \\\n"
            "boinc_gahp local-project create-work ~/project uppercase --stdin",
        ),
        "DIR APP [OPTION]... [FILE]...",
        kind=_CreateWorkParser,
    )
    files = {"[FILE ...]": "physical names of staged files"}
    parser.takes({"APP": "the app's name"}).takes(files, dest="files", type=_file)
    name = "the job's name, unique on the project (default: chosen by the project)"
    parser.takes({"--wu_name X": name}, type=str, default="")
    line = "arguments for the app, stored unchanged: write &lt; for <, and &amp; for &"
    parser.takes({"--command_line X": line}, type=str)
    priority = {"--priority N": "priority; jobs with higher numbers are sent first"}
    parser.takes(priority, type=partial(whole_number, -(2**31), _MOST))
    parser.takes({f"--{name} X": text for name, text in _REAL.items()}, type=number)
    numbers = {f"--{name} N": text for name, text in _WHOLE.items()}
    parser.takes(numbers, type=partial(whole_number, 0, _MOST))
    own = "use this file instead of the app's template"
    parser.takes({"--wu_template FILE": own, "--result_template FILE": own}, type=Path)
    remote = {
        "--remote_file URL": "an input file that volunteers download from another server; may "
        "appear among the FILEs"
    }
    parser.takes(remote, type=str, nargs=3, metavar=("URL", "NBYTES", "MD5"))
    parser.takes({"--stdin": "read jobs from standard input"})
    return parser


def _joined(words: Iterable[str]) -> Iterable[str]:
    """Yield words as argparse can read them: an option and its words as one."""
    rest = iter(words)
    for word in rest:
        if word == "--remote_file":
            yield _REMOTE + "\0".join(islice(rest, 3))
        elif word == "--command_line":
            yield "=".join((word, *islice(rest, 1)))
        else:
            yield word


def _file(text: str) -> str | RemoteInput:
    if not text.startswith(_REMOTE):
        return text
    from boinc_gahp.localproject.backend.new_job import RemoteInput

    words = text.removeprefix(_REMOTE).split("\0")
    if len(words) < 3 or not (words[1].isascii() and words[1].isdigit()):
        raise argparse.ArgumentTypeError(
            f"--remote_file {' '.join(words)} was given; expected URL NBYTES MD5, with a whole "
            "number of bytes"
        )
    return RemoteInput(words[0], float(words[1]), words[2])


def _template(core: Core, path: Path | None, read: Callable[[str], object]) -> str:
    """Copy a template for its jobs, so that the original may be edited; return the copy's path."""
    if path is None:
        return ""
    from boinc_gahp.localproject.backend.new_job import keep_template

    text = path.read_text("utf-8")
    try:
        read(text)
    except TemplateError as error:
        raise LocalProjectTrouble(f"{path}: {error}") from error
    return keep_template(core, text)


def _jobs_from(lines: Iterable[str], defaults: NewJob) -> Iterable[NewJob]:
    from boinc_gahp.localproject.backend.new_job import read_job_line
    from boinc_gahp.localproject.errors import RpcFailed

    for place, line in enumerate(lines, 1):
        try:
            for job in read_job_line(line.rstrip("\r\n")):
                yield job.over(defaults)
        except RpcFailed as error:
            said = error.message.removeprefix("create_work failed: ").strip()
            raise LocalProjectTrouble(f"line {place}: {said}; no job was made") from error
