"""``boinc_gahp batch run``."""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch.job_options import (
    NEEDS,
    add_needs,
    add_which,
    check_jobs,
    filled_jobs,
    names_file,
    sizes_of,
)
from boinc_gahp.cli.batch.submitting import FOLLOWED, add_sending, send
from boinc_gahp.containers.rules import ASKED
from boinc_gahp.terminal.parsing import Parser, whole_number
from boinc_gahp.text import printable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from boinc_gahp.api.project import Project
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.rows.texts import Patterns
    from boinc_gahp.cli.batch.job_options import CommandLineJobs
    from boinc_gahp.terminal.live import Work

_DESCRIPTION = """\
Lets volunteers run your own program. Each job runs a command line in a container, which has the
files of an image and the job's own files. The project needs an app for this; boinc_gahp check says
whether it is ready.

Behind -- is the command, with placeholders. A program with a slash in its name, such as ./fit.py,
is sent along; python3 is the image's. Files and directories here that other words of the command
name are sent along, too, and so is FILE in --option=FILE. The program finds them at the same paths;
a file from outside of this directory has only its name there. What is in directories of the system,
such as /usr, is the image's.

The program's outputs come back into a folder for each job, with stdout.txt and stderr.txt. If the
program ends with a status other than 0, or cannot be started, its job counts as failed for --wait,
--fetch and the exit status.

Volunteers can read everything: the program, its files, the command and the outputs.

It is safe to repeat a command that has a --name: it completes the batch, or finds it complete, and
creates no job twice. --dry-run shows which files would be sent, and sends nothing.
"""

#: Characters of a program's name that the name of a batch has.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.+-]+")

_EXPECTED = "the command is expected behind --, as in: -- ./fit.py {index}"


class _ProgramParser(Parser):
    """A parser that leaves the words behind ``--`` as they are, as ``options.command``."""

    def read(self, arguments: Sequence[str], config: str | None = None) -> Namespace:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        if end == len(arguments) and arguments and not {"-h", "--help"}.intersection(arguments):
            # argparse would call the options of the command unknown ones of this program.
            self.error(_EXPECTED)
        options = super().read(arguments[:end], config)
        if options.command or end == len(arguments):
            before = "".join(
                f" (found {printable(each)!r} before it)" for each in options.command[:1]
            )
            self.error(f"{_EXPECTED}{before}")
        options.command, options.typed = list(arguments[end + 1 :]), (arguments, config)
        if not options.command or not options.command[0]:
            self.error("there is no command behind --: expected a program and its arguments")
        return options


def run_program_parser() -> Parser:
    """Return the parser of ``batch run``."""
    parser = _ProgramParser(
        "batch run",
        _DESCRIPTION,
        usage="--image IMAGE [OPTION ...] -- CMD [WORD ...]",
        statuses=FOLLOWED,
        examples=(
            "boinc_gahp batch run --image python:3.12-slim --count 100 -- ./fit.py --seed {index}",
            "boinc_gahp batch run --image python:3.12-slim --each 'data/*.csv' --name fit "
            "--fetch results -- ./fit.py --title 'two words' {file}",
            "boinc_gahp batch run --image debian:12-slim --rows params.csv --output result.json "
            "--dry-run -- ./scan --seed {seed} --config=model.toml",
        ),
    )
    command = {
        "[CMD ...]": "the program and its arguments, behind --. {index} is the job's number, from "
        "0, {batch} the batch's name; with --rows, {COLUMN} is the row's value; with --each, "
        "{file} is the file's path, {name} and {stem} its name with and without its extension; "
        "{index:4} is 0000, 0001, ...; {{ and }} are braces"
    }
    image = {
        "--image IMAGE": "the image: python:3.12-slim, ghcr.io/owner/name:tag, or a file: "
        "oci-archive:FILE, rootfs:FILE"
    }
    outputs = {
        "--output NAME ...": "a file or directory that the program makes, relative to its working "
        "directory; may be repeated (default: all new and changed files there; the image needs tar "
        "for these, and for directories)"
    }
    repeated = {
        "--input [NAME=]FILE ...": "another file or directory for the program, with placeholders: "
        "a path, or NAME=FILE for another name in its working directory, where FILE can also be "
        "http(s)://…, staged:PHYSICAL_NAME or inline:TEXT; may be repeated",
        "--env NAME=VALUE ...": "a variable of the program's environment; may be repeated",
        "--allow-env NAME ...": "a variable that is no secret, although its name looks like one; "
        "may be repeated",
    }
    others = {
        "--no-find": "do not send files that words of the command name; only the program and "
        "--input",
        "--app APP": "the project's app for containers (default: the setting container_app)",
    }
    runs = "what runs"
    parser.takes(command, dest="command", type=str).takes(image, runs, required=True)
    parser.takes(repeated, runs, default=[]).takes(outputs, runs).takes(others, runs)
    add_which(parser, "CMD")
    for each in ASKED.values():
        if each.is_flag:
            parser.takes({each.option: each.help}, runs)
            continue
        read = partial(whole_number, each.least, each.most)
        number = {f"{each.option} N": f"{each.help} (default: {each.default})"}
        parser.takes(number, NEEDS, type=read, default=each.default)
    add_needs(parser)
    parser.with_common(project=True, json="print the batch as JSON; with --dry-run, the plan")
    add_sending(parser, "CMD")
    return parser


def run_program(options: Namespace) -> int:
    """Send a program's jobs, or show what would be sent."""
    check_jobs(options, _patterns)
    if options.each is not None and not names_file(_patterns(options, "")):
        options.parser.error(
            "--each: the program is not told its file: write {file} in the command"
        )
    _check_files_are_sent(options)
    program = _NOT_IN_NAMES.sub("_", PurePath(options.command[0]).stem)
    # Until the jobs are known, ``app`` is only what the batch's name is made of.
    options.program, options.app = options.app, program.lstrip(".-") or "program"
    options.app_version = None
    return send(options, {"parameters": sizes_of(options)}, _look_up)


def _check_files_are_sent(options: Namespace) -> None:
    """Refuse a ``{file}`` that is only in the text of a script, as in ``sh -c 'wc {file}'``."""
    having = [word for word in options.command if re.search(r"(?<!\{)\{(file|path)\b", word)]
    if (
        options.each is None
        or options.no_find
        or not having
        or any(re.search(r"\{(file|path)\b", each) for each in options.input)
    ):
        return
    if all(re.search(r"\s", word) for word in having):
        options.parser.error(
            f"the word {printable(having[0])!r} is no path, so its {{file}} would not be "
            "sent: add --input {file} (or --no-find, if the image has these files)"
        )


def _environment(options: Namespace) -> dict[str, str]:
    from boinc_gahp.errors import BadRequest

    found: dict[str, str] = {}
    for text in options.env:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadRequest(f"--env {printable(text)!r}: expected NAME=VALUE")
        found[name] = value
    return found


def _patterns(options: Namespace, batch_name: str) -> Patterns:
    """Return the command's and inputs' placeholders; raises BadRequest."""
    from boinc_gahp.api.rows.texts import Patterns

    words = [*options.command, *options.input]
    return Patterns(words, None, options.name_jobs, batch_name, options.as_data)


def _look_up(project: Project, options: Namespace, work: Work, more: Options) -> CommandLineJobs:
    """Return the jobs, and set what else is known of them."""
    from boinc_gahp.api.programs import Programs, made_programs

    found = filled_jobs(options, _patterns(options, more["name"] or ""), work)
    common = Programs(
        image=options.image,
        outputs=options.output,
        environment=_environment(options),
        app=options.program,
        find_files=not options.no_find,
        allow_environment=tuple(options.allow_env),
        **{name: getattr(options, name) for name in ASKED},
    )
    lengths = len(options.command), len(options.input)
    made = made_programs(project.session, found.jobs, lengths, common, more)
    options.app, options.made = made.app, made
    more.update(made.options)
    found.jobs = made.jobs
    return found
