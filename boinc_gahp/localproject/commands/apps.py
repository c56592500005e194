"""``local-project add-app``."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.commands.arguments import (
    action_parser,
    number,
    opened,
    refused,
    whole_number,
)
from boinc_gahp.localproject.settings import SUBMITTER_FILE

if TYPE_CHECKING:
    import argparse

    from boinc_gahp.terminal import Parser

_MOST = 2**31 - 1
#: Before the name of a BUDA app.
_BUDA = "buda:"
#: What the jobs of a container app bring, or its hosts have.
_NOT_WITH_CONTAINER = {
    "command": "--command",
    "inputs": "--in",
    "outputs": "--out",
    "input_template": "--input-template",
    "output_template": "--output-template",
    "max_nbytes": "--max-nbytes",
    "copy": "--copy",
    "gzip_out": "--gzip-out",
    "quorum": "--quorum",
    "work_generator": "--work-generator",
    "work_low": "--work-low",
    "size_classes": "--size-classes",
}
_NOT_WITH_BUDA = {
    **{
        name: option
        for name, option in _NOT_WITH_CONTAINER.items()
        if name not in {"inputs", "outputs", "max_nbytes"}
    },
    "container": "--container",
    "version": "--version",
    "validator": "--validator",
    "assimilator": "--assimilator",
}


def add_app(arguments: list[str], _config: str | None) -> int:
    """Add an app, or a version of one."""
    parser = add_app_parser()
    options = parser.read(arguments)
    from boinc_gahp.localproject import new_app
    from boinc_gahp.localproject.directory import is_running
    from boinc_gahp.localproject.hosts.engine import engine_notice

    is_buda = options.name.startswith(_BUDA)
    if is_buda:
        _check_buda(parser, options)
    elif options.dockerfile or options.files:
        parser.error(f"--dockerfile and --file are for a BUDA app, {_BUDA}NAME")
    elif options.container:
        _check_container(parser, options)
    elif options.command is None:
        parser.error("--command is missing (or --container, for jobs of any program)")
    templates = None
    if options.input_template or options.output_template:
        if not (options.input_template and options.output_template):
            parser.error("--input-template and --output-template go together")
        if options.inputs or options.outputs:
            parser.error("--in and --out are for an app without templates of its own")
        templates = (options.input_template, options.output_template)
    wanted = new_app.NewApp(
        name=options.name,
        command=options.command or "",
        container=options.container,
        dockerfile=options.dockerfile,
        files=tuple(options.files),
        version=options.version,
        inputs=tuple(options.inputs),
        outputs=tuple(options.outputs),
        templates=templates,
        max_nbytes=options.max_nbytes,
        copy_file=options.copy,
        gzip_when_done=options.gzip_out,
        quorum=options.quorum,
        n_size_classes=options.size_classes,
        validator=options.validator,
        assimilator=options.assimilator,
        work_generator=options.work_generator,
        work_low=options.work_low,
    )
    with opened(options.directory) as core, refused():
        added = new_app.add(core, wanted)
        running = is_running(options.directory)
        notice = engine_notice(core.db.connection(), running=running)
    print(f"App {options.name}, version {options.version}: {added.words}")
    for path in added.written:
        print(f"  {path}")
    for warning in added.warnings:
        print(f"warning: {warning}")
    if (options.container or is_buda) and notice:
        print(notice)
    elif options.container:
        print("To run a program with it, while the project runs:")
        print(f"  export BOINC_GAHP_CONFIG={shlex.quote(str(options.directory / SUBMITTER_FILE))}")
        print("  boinc_gahp batch run --image python:3.12-slim --fetch first -- python3 --version")
    return 0


def _check_container(parser: Parser, options: argparse.Namespace) -> None:
    """Refuse what belongs to an app with a command and templates."""
    usual = add_app_parser()
    for name, option in _NOT_WITH_CONTAINER.items():
        if getattr(options, name) != usual.get_default(name):
            parser.error(f"{option} does not go with --container: each job brings its own")


def _check_buda(parser: Parser, options: argparse.Namespace) -> None:
    """Refuse what belongs to another kind of app, or to the app of all BUDA apps."""
    if options.dockerfile is None:
        parser.error("--dockerfile is missing: hosts build the image of a BUDA app from it")
    if any(optional for _, optional in options.outputs):
        parser.error("--optional-out does not go with a BUDA app, which has to make all outputs")
    usual = add_app_parser()
    for name, option in _NOT_WITH_BUDA.items():
        if getattr(options, name) != usual.get_default(name):
            parser.error(f"{option} does not go with a BUDA app, which has a Dockerfile and files")


def add_app_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``add-app``."""
    parser = action_parser(
        "add-app",
        "Adds an app. Volunteers run its command, followed by the job's arguments, in "
        "a new directory that contains the inputs, and send back the outputs that "
        "the command writes there. The command is run without a shell. In it, "
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
            "--command '{python} /home/me/fit.py'",
            "boinc_gahp local-project add-app ~/project sort --version 101 \\\n"
            "--command 'sort -r -o out in'",
            "boinc_gahp local-project add-app ~/project docker --container",
            "boinc_gahp local-project add-app ~/project buda:fit --dockerfile Dockerfile \\\n"
            "--file fit.sh --in data.csv --out fit.json",
        ),
        'DIR NAME (--command "..." [--in NAME]... --out NAME... | --container | --dockerfile FILE) '
        "[OPTION]...",
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="the app's name")
    add(
        "--command",
        metavar='"PROGRAM ARG..."',
        help="the command that volunteers run",
    )
    add(
        "--container",
        action="store_true",
        help="an app for jobs of any program, in containers; instead of --command",
    )
    parser.completes(
        add(
            "--dockerfile",
            type=Path,
            metavar="FILE",
            help="for a BUDA app: the file from which hosts build its image",
        ),
        "file",
    )
    parser.completes(
        add(
            "--file",
            dest="files",
            action="append",
            default=[],
            type=Path,
            metavar="FILE",
            help="for a BUDA app: its program, or another file that it needs; can be given several "
            "times",
        ),
        "file",
    )
    add(
        "--version",
        type=partial(whole_number, 1, _MOST),
        default=100,
        metavar="N",
        help="version of the command; hosts run the highest (default: 100)",
    )
    add(
        "--in",
        dest="inputs",
        action="append",
        default=[],
        metavar="NAME",
        help="name under which the app reads an input file; can be given several times",
    )
    add(
        "--out",
        dest="outputs",
        action="append",
        default=[],
        type=lambda name: (name, False),
        metavar="NAME",
        help="name under which the app writes an output file; can be given several times",
    )
    add(
        "--optional-out",
        dest="outputs",
        action="append",
        type=lambda name: (name, True),
        metavar="NAME",
        help="the same, for an output file that may be missing",
    )
    add(
        "--max-nbytes",
        type=number,
        default=5e6,
        metavar="N",
        help="size in bytes above which an output is an error (default: 5e6)",
    )
    add("--copy", action="store_true", help="copy files instead of linking them (<copy_file/>)")
    add("--gzip-out", action="store_true", help="volunteers compress the outputs")
    add(
        "--quorum",
        type=partial(whole_number, 1, 100),
        default=1,
        metavar="N",
        help="number of results of each job that must agree (default: 1)",
    )
    spec = "a name or module:function (in DIR/modules, or installed)"
    add("--validator", default="trivial", metavar="SPEC", help=f"trivial, bitwise, {spec}")
    add("--assimilator", default="", metavar="SPEC", help=spec)
    add("--work-generator", default="", metavar="SPEC", help=spec)
    add(
        "--work-low",
        type=partial(whole_number, 1, _MOST),
        default=10,
        metavar="N",
        help="ask the work generator for jobs while fewer results than this wait (default: 10)",
    )
    add(
        "--size-classes",
        type=partial(whole_number, 0, 100),
        default=0,
        metavar="N",
        help="number of classes into which hosts are sorted by speed (default: 0, none)",
    )
    for option, place in (("--input-template", "--in"), ("--output-template", "--out")):
        parser.completes(
            add(option, type=Path, metavar="FILE", help=f"use this file instead of {place}"), "file"
        )
    return parser
