"""``local-project stage-file`` and ``create-work``, with BOINC's names and options."""

from __future__ import annotations

import sys
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.commands.arguments import (
    LocalProjectTrouble,
    action_parser,
    any_whole_number,
    number,
    opened,
    whole_number,
)
from boinc_gahp.templates import TemplateError, read_input_template, read_output_template
from boinc_gahp.terminal import Parser, complain, not_empty

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from boinc_gahp.localproject.backend.new_job import NewJob, RemoteInput
    from boinc_gahp.localproject.core import Core

#: The parameters of ``templates.rst``, "Job parameters", by BOINC's own names, with their meanings.
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
    "size_class": "size class, for apps that have size classes",
    "app_version_num": "use only this version of the app",
}
#: Other spellings of options: BOINC's own, and with underscores.
_SPELLINGS = {
    "--wu_name": "--name",
    "--wu_template": "--input-template",
    "--result_template": "--output-template",
    "--input_template": "--input-template",
    "--output_template": "--output-template",
    "--command_line": "--command-line",
    "--remote_file": "--remote-file",
    "--target_host": "--target-host",
    "--target_user": "--target-user",
    **{f"--{name.replace('_', '-')}": f"--{name}" for name in (*_REAL, *_WHOLE)},
}
_REMOTE = "\0remote\0"


def stage_file(arguments: list[str], _config: str | None) -> int:
    """Stage input files."""
    options = stage_file_parser().read(arguments)
    with opened(options.directory) as core:
        from boinc_gahp.localproject.backend.staging import stage_file as stage

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
    parser.completes(
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="file to copy"),
        "file",
    )
    parser.add_argument(
        "--gzip",
        action="store_true",
        help="also stage FILE.gz, for templates with <gzip/>; volunteers then download FILE.gz",
    )
    return parser


def create_work(arguments: list[str], _config: str | None) -> int:
    """Make jobs."""
    parser = create_work_parser()
    options = parser.read(arguments)
    if options.stdin and (options.name or options.files):
        parser.error("with --stdin, names and files stand in the lines")
    with opened(options.directory) as core:
        from boinc_gahp.localproject.backend.new_job import NewJob

        defaults = NewJob(
            name=options.name,
            command_line=options.command_line,
            files=tuple(map(_file, options.files)),
            priority=options.priority,
            input_template=_template(core, options.input_template, read_input_template),
            output_template=_template(core, options.output_template, read_output_template),
            target_host=_target(core, "host", options.target_host),
            target_user=_target(core, "user", options.target_user),
            **{name: getattr(options, name) for name in (*_REAL, *_WHOLE)},
        )
        jobs = list(_jobs_from(sys.stdin, defaults)) if options.stdin else [defaults]
        _say_what_wins(core, options, jobs)
        ids = _create(core, options.app, jobs, options.batch)
        names = {
            row["id"]: row["name"]
            for row in core.db.connection().execute(
                "SELECT id, name FROM workunit WHERE id BETWEEN ? AND ?",
                (min(ids, default=0), max(ids, default=-1)),
            )
        }
    for workunit_id in ids:
        print(names[workunit_id])
    return 0


class _CreateWorkParser(Parser):
    """A parser that also accepts the spellings of BOINC's program."""

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read arguments as BOINC's program does."""
        return super().read(list(_joined(arguments)))


def create_work_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``create-work``."""
    parser = action_parser(
        "create-work",
        "Creates a job of an app, or several with --stdin, and prints their names. FILEs are the "
        "physical names of staged files, in the order of the input template. The options are those "
        "of BOINC's create_work; its spellings (--wu_name, --command_line, --wu_template, "
        "--remote_file, ...) work, too. As in BOINC, sizes, deadline and instances that the "
        "template sets take precedence over the options.\n\n"
        "with --stdin each line is a job:\n"
        '  [--wu_name X] [--command_line "X"] [--priority N] [--wu_template X]\n'
        "   [--result_template X] [--target_host ID] [--target_user ID]\n"
        "  [--remote_file URL NBYTES MD5]... [FILE]...\n\n"
        "The options of this command apply to all lines that do not set them. Empty lines are "
        "skipped. Either all jobs are created, or none.",
        (
            "boinc_gahp local-project create-work ~/project uppercase --name job1 data1.txt",
            "boinc_gahp local-project create-work ~/project uppercase --batch first \\\n"
            "--min_quorum 2 data1.txt",
            "seq -f '--command_line \"--sleep %g\" data1.txt' 5 | \\\n"
            "boinc_gahp local-project create-work ~/project uppercase --batch b --stdin",
        ),
        "DIR APP [OPTION]... [FILE]...",
        kind=_CreateWorkParser,
    )
    parser.add_argument("app", metavar="APP", help="the app's name")
    parser.add_argument("files", nargs="*", metavar="FILE", help="physical names of staged files")
    add = parser.add_argument
    add(
        "--name",
        default="",
        help="the job's name, unique on the project (default: chosen by the project)",
    )
    add(
        "--batch",
        type=not_empty,
        metavar="ID|NAME",
        help="a batch; a new name creates a batch, which belongs to the submitter",
    )
    add(
        "--command-line",
        metavar="X",
        help="arguments for the app, stored unchanged: write &lt; for <, and &amp; for &",
    )
    add(
        "--priority",
        type=any_whole_number,
        metavar="N",
        help="priority; jobs with higher numbers are sent first",
    )
    for name, text in _REAL.items():
        add(f"--{name}", type=number, metavar="X", help=text)
    for name, text in _WHOLE.items():
        add(f"--{name}", type=partial(whole_number, 0, 2**31 - 1), metavar="N", help=text)
    add("--target-host", metavar="HOST", help="send the job only to this host, given by name or id")
    add(
        "--target-user",
        metavar="USER",
        help="send the job only to this user's hosts; the user is given by name or id",
    )
    for option in ("--input-template", "--output-template"):
        parser.completes(
            add(
                option,
                type=Path,
                metavar="FILE",
                help="use this file instead of the app's template",
            ),
            "file",
        )
    add(
        "--remote-file",
        nargs=3,
        metavar=("URL", "NBYTES", "MD5"),
        help="an input file that volunteers download from another server; may appear among "
        "the FILEs",
    )
    add("--stdin", action="store_true", help="read jobs from standard input")
    return parser


def _joined(words: Iterable[str]) -> Iterable[str]:
    """Yield words as argparse can read them.

    Spellings are unified; --command-line takes the next word, whatever that begins with; a remote
    file becomes one word among the FILEs, because its place among them matters.
    """
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        option = _SPELLINGS.get(option, option)
        if option == "--remote-file" and not equals:
            three = list(islice(rest, 3))
            if len(three) == 3:
                yield _REMOTE + "\0".join(three)
            else:
                yield from (option, *three)
        elif option == "--command-line" and not equals:
            following = next(rest, None)
            yield option if following is None else f"{option}={following}"
        elif word.startswith("--"):
            yield option + equals + value
        else:
            yield word


def _file(text: str) -> str | RemoteInput:
    from boinc_gahp.localproject.backend.new_job import RemoteInput

    if not text.startswith(_REMOTE):
        return text
    url, nbytes, md5 = text.removeprefix(_REMOTE).split("\0")
    if not nbytes.isascii() or not nbytes.isdigit():
        raise LocalProjectTrouble(
            f"--remote-file {url}: {nbytes!r} was given as its size: a number of bytes is expected"
        )
    return RemoteInput(url, float(nbytes), md5)


def _template(core: Core, path: Path | None, read: Callable[[str], object]) -> str:
    """Copy a template for its jobs, so that the original may be edited; return the copy's path."""
    if path is None:
        return ""
    from boinc_gahp.localproject.backend.job_templates import keep_template

    text = path.read_text("utf-8")
    try:
        read(text)
    except TemplateError as error:
        raise LocalProjectTrouble(f"{path}: {error}") from error
    return keep_template(core, text)


def _say_what_wins(core: Core, options: argparse.Namespace, jobs: Iterable[NewJob]) -> None:
    """Print which options have no effect because the jobs' templates have other values."""
    paths = {job.input_template or f"{core.templates.name}/{options.app}_in" for job in jobs}
    for path in sorted(paths):
        try:
            template = core.input_template(core.directory / path)
        except (OSError, TemplateError):
            continue  # the jobs are refused because of it
        for name in (*_REAL, *_WHOLE):
            given, said = getattr(options, name), getattr(template, name, None)
            if given is not None and said not in (None, given):
                complain(
                    f"--{name} {given:g} has no effect: {path} says {said:g}, and a template's "
                    "values take precedence; give another one with --input-template"
                )


def _target(core: Core, table: str, given: str | None) -> int | None:
    if given is None:
        return None
    column = {"host": "domain_name", "user": "name"}[table]
    row = (
        core.db.connection()
        .execute(
            f"SELECT id FROM {table} WHERE {column} = ? OR id = ?",  # noqa: S608
            (given, int(given) if given.isascii() and given.isdigit() else 0),
        )
        .fetchone()
    )
    if row is None:
        names = ", ".join(
            row[0]
            for row in core.db.connection().execute(
                f"SELECT {column} FROM {table} ORDER BY id LIMIT 20"  # noqa: S608
            )
        )
        raise LocalProjectTrouble(
            f"--target-{table} {given!r} was given: there is no such {table}; there are {names}"
        )
    return int(row["id"])


def _jobs_from(lines: Iterable[str], defaults: NewJob) -> Iterable[NewJob]:
    from boinc_gahp.localproject.server.job_line import read_job_line
    from boinc_gahp.localproject.server.replies import RpcFailed

    for place, line in enumerate(lines, 1):
        try:
            for job in read_job_line(line.rstrip("\r\n")):
                yield job.over(defaults)
        except RpcFailed as error:
            said = error.message.removeprefix("create_work failed: ").strip()
            raise LocalProjectTrouble(f"line {place}: {said}; no job was made") from error


def _create(core: Core, app_name: str, jobs: list[NewJob], batch: str | None) -> list[int]:
    from boinc_gahp.localproject.backend import create_work as work

    connection = core.db.connection()
    if batch is None:
        return work.create_work(core, app_name, jobs)
    batch_id = _batch_id(core, batch)
    if batch_id:
        return work.create_work(core, app_name, jobs, batch_id=batch_id)
    if not jobs:
        return []
    batch_id = work.submit_as_submitter(core, app_name, batch, jobs)
    rows = connection.execute("SELECT id FROM workunit WHERE batch = ? ORDER BY id", (batch_id,))
    return [row["id"] for row in rows]


def _batch_id(core: Core, given: str) -> int:
    """Return a batch's id; 0 for a new name."""
    from boinc_gahp.localproject.backend import batches

    connection = core.db.connection()
    if given.isascii() and given.isdigit() and batches.by_id(connection, int(given)) is not None:
        return int(given)
    batch = batches.by_name(connection, given)
    if batch is None and given.isascii() and given.isdigit():
        raise LocalProjectTrouble(f"--batch {given} was given: there is no such batch")
    return 0 if batch is None else int(batch["id"])
