"""``local-project add-app``."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import SUBMITTER_FILE
from boinc_gahp.localproject.commands import action_parser, number, opened, refused
from boinc_gahp.terminal.parsing import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Set as AbstractSet

    from boinc_gahp.terminal.parsing import Parser

#: Before the name of a BUDA app.
_BUDA = "buda:"
#: The options of a container app, whose jobs bring the rest, and of a BUDA app.
_OF_CONTAINER = {"container", "version", "validator", "assimilator"}
_OF_BUDA = {"dockerfile", "file", "in", "out", "max_nbytes"}


def add_app(arguments: list[str], _config: str | None) -> int:
    """Add an app, or a version of one."""
    parser = add_app_parser()
    options = parser.read(arguments)
    from boinc_gahp.localproject import new_app
    from boinc_gahp.localproject.directory import is_running
    from boinc_gahp.localproject.hosts.engine import engine_notice

    given = vars(options)
    is_buda = options.name.startswith(_BUDA)
    if is_buda:
        _refuse_others(parser, given, _OF_BUDA, "a BUDA app, which has a Dockerfile and files")
        if options.dockerfile is None:
            parser.error("--dockerfile is missing: hosts build the image of a BUDA app from it")
        if any(optional for _, optional in options.out):
            parser.error(
                "--optional-out does not go with a BUDA app, which has to make all outputs"
            )
    elif options.dockerfile or options.file:
        parser.error(f"--dockerfile and --file are for a BUDA app, {_BUDA}NAME")
    elif options.container:
        _refuse_others(parser, given, _OF_CONTAINER, "--container: each job brings its own")
    elif options.command is None:
        parser.error("--command is missing (or --container, for jobs of any program)")
    wanted = new_app.NewApp(
        name=options.name,
        command=options.command or "",
        container=options.container,
        dockerfile=options.dockerfile,
        files=tuple(options.file),
        version=options.version,
        inputs=tuple(given["in"]),
        outputs=tuple(options.out),
        max_nbytes=options.max_nbytes,
        quorum=options.quorum,
        validator=options.validator,
        assimilator=options.assimilator,
        work_generator=options.work_generator,
        work_low=options.work_low,
    )
    with opened(options.directory) as core, refused():
        command, written = new_app.add(core, wanted)
        running = is_running(options.directory)
        notice = engine_notice(core.db.connection(), running=running)
    print(f"App {options.name}, version {options.version}: {command}")
    for path in written:
        print(f"  {path}")
    if (options.container or is_buda) and notice:
        print(notice)
    elif options.container:
        print("To run a program with it, while the project runs:")
        print(f"  export BOINC_GAHP_CONFIG={shlex.quote(str(options.directory / SUBMITTER_FILE))}")
        print("  boinc_gahp batch run --image python:3.12-slim --fetch first -- python3 --version")
    return 0


def _refuse_others(
    parser: Parser, given: Mapping[str, object], own: AbstractSet[str], what: str
) -> None:
    """Refuse options that belong to another kind of app."""
    for name, value in given.items():
        if name not in {*own, "directory", "name"} and value != parser.get_default(name):
            parser.error(f"--{name.replace('_', '-')} does not go with {what}")


def add_app_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``add-app``."""
    parser = action_parser(
        "add-app",
        "Adds an app. Volunteers run its command, followed by the job's arguments, in "
        "a new directory that contains the inputs, and send back the outputs that "
        "the command writes there. What it prints comes back only with --out stdout.txt; "
        "what it writes to standard error always does, as stderr.txt. The command is run without "
        "a shell. In it, "
        "{python}, {apps} and {project} stand for this Python, the supplied apps and "
        "the project's directory. Both job templates are written to DIR/templates, "
        "and can be edited there. The app can be used at once. If the app exists, "
        "this adds another --version with its --command.\n\n"
        "With --container the app's program is BOINC's docker_wrapper, which runs any program in a "
        "container. Its jobs bring everything else: their templates, a Dockerfile, job.toml, and "
        "a script. They go only to hosts with podman or docker.\n\n"
        "buda:NAME is a BUDA app: docker_wrapper, too, but with a Dockerfile and files of its own, "
        "so that a job only brings its inputs.",
        (
            "boinc_gahp local-project add-app ~/project sort --in in --out out \\\n"
            "--command 'sort -o out in'",
            "boinc_gahp local-project add-app ~/project fit --in data.csv --in start.txt \\\n"
            "--out fit.json --optional-out plot.png --quorum 2 --validator bitwise \\\n"
            "--command '{python} fit.py'",
            "boinc_gahp local-project add-app ~/project sort --version 101 \\\n"
            "--command 'sort -r -o out in'",
            "boinc_gahp local-project add-app ~/project docker --container",
            "boinc_gahp local-project add-app ~/project buda:fit --dockerfile Dockerfile \\\n"
            "--file fit.sh --in data.csv --out fit.json",
        ),
        'DIR NAME (--command "..." [--in NAME]... --out NAME... | --container | --dockerfile FILE) '
        "[OPTION]...",
    )
    spec = "a name or module:function (in DIR/modules, or installed)"
    quorum = {"--quorum N": "number of results of each job that must agree (default: 1)"}
    moves = "batch_collect_assimilator (moves outputs to results/, as BOINC's)"
    parser.takes({"NAME": "the app's name"})
    command = {"--command WORDS": "the command that volunteers run"}
    parser.takes(command, metavar='"PROGRAM ARG..."')
    container = "an app for jobs of any program, in containers; instead of --command"
    parser.takes({"--container": container})
    dockerfile = "for a BUDA app: the file from which hosts build its image"
    parser.takes({"--dockerfile FILE": dockerfile}, type=Path)
    file = "for a BUDA app: its program, or another file that it needs; can be given several times"
    parser.takes({"--file FILE ...": file}, type=Path, default=[])
    version = "version of the command; hosts run the highest (default: 100)"
    parser.takes({"--version N": version}, default=100)
    names = "name under which the app {} file; can be given several times"
    parser.takes({"--in NAME ...": names.format("reads an input")}, default=[])
    out = {"--out NAME ...": names.format("writes an output")}
    parser.takes(out, type=lambda name: (name, False), default=[])
    optional = {"--optional-out NAME ...": "the same, for an output file that may be missing"}
    parser.takes(optional, type=lambda name: (name, True), dest="out")
    largest = {"--max-nbytes N": "size in bytes above which an output is an error (default: 5e6)"}
    parser.takes(largest, type=number, default=5e6)
    parser.takes(quorum, type=partial(whole_number, 1, 100), default=1)
    parser.takes({"--validator SPEC": f"trivial, bitwise, {spec}"}, default="trivial")
    others = {"--assimilator SPEC": f"{moves}, {spec}", "--work-generator SPEC": spec}
    parser.takes(others, type=str, default="")
    low = "ask the work generator for jobs while fewer results than this wait (default: 10)"
    parser.takes({"--work-low N": low}, default=10)
    return parser
