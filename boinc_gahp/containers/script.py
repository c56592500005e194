"""The script that a container runs: one for many jobs, which only differ in words and environment.

A job's command line is its number in the script. The wrapper passes it on as ``$ARGS``, through the
host's shell; so nothing else may travel there (``containers.rst``, "What the wrapper does").

The script itself always ends with 0: after another status a client's outputs are not reliable. So
the program's status is an output. When the script ends, nothing but regular files stands at the
open names of outputs: a client renames whatever does, and the upload of a directory never ends
(``containers.rst``, "The client"). The program is started with ``exec``, so that no builtin command
of the shell is taken for it, and its environment is set with ``env``, so that no name is special.
"""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.containers.ending import OUTPUTS
from boinc_gahp.containers.job_files import APP, ENDING, PACKED, STDERR, STDOUT, WORK
from boinc_gahp.quantities import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

T = TypeVar("T")

#: When this exists, the input directories are unpacked; older files are inputs.
_STARTED = f"{APP}/_started"
#: What links lead to, until it takes their places.
_COPY = f"{APP}/_copy"
#: New and changed files are linked into this directory.
_NEW = f"{APP}/_new"

#: The most bytes of the jobs in a script. Every host that runs one of them fetches all of it.
LARGEST = 60_000

#: ``tell`` ends the script. ``only_files`` gets the outputs that may be files of the result by
#: themselves; what links lead to is copied first, for one output may lead to another.
_FUNCTIONS = f"""\
#!/bin/sh
# Made by boinc_gahp: runs the program of one job, whose number is in $ARGS.
is_plain() {{
    rest=$1/ at=.
    while [ -n "$rest" ]; do
        at=$at/${{rest%%/*}} rest=${{rest#*/}}
        [ -L "$at" ] && return 1
    done
    [ -f "$at" ]
}}
only_files() {{
    cd {APP}/{WORK} 2>/dev/null || return
    rm -rf {_COPY}
    for name; do
        is_plain "$name" || [ ! -f "./$name" ] && continue
        at={_COPY}/$name
        mkdir -p "${{at%/*}}" && cp "./$name" "$at"
    done
    for name; do
        is_plain "$name" && continue
        rest=$name/ at=.
        while [ -n "$rest" ]; do
            at=$at/${{rest%%/*}} rest=${{rest#*/}}
            [ -L "$at" ] || [ -z "$rest" ] && rm -rf "$at" 2>/dev/null
        done
        [ -f "{_COPY}/$name" ] && mkdir -p "${{at%/*}}" && mv -f "{_COPY}/$name" "$at"
    done
    rm -rf {_COPY}
}}
tell() {{
    told=$*
    outputs
    cd {APP} || exit 0
    for name in {STDOUT} {STDERR} {PACKED}; do
        [ -f $name ] && [ ! -L $name ] || rm -rf $name
    done
    rm -rf {ENDING}
    printf '%s\\n' "$told" >{ENDING}
    # The engine may run as another user than the client, which has to read and remove the files.
    chmod -R a+rwX {WORK} {STDOUT} {STDERR} {PACKED} {ENDING} 2>/dev/null
    exit 0
}}
"""

_BEGIN = f"""\
set -- $ARGS
job=$1
unset ARGS
rm -rf {APP}/{ENDING} {APP}/{STDOUT} {APP}/{STDERR} {APP}/{PACKED}
mkdir -p {APP}/{WORK} && cd {APP}/{WORK} || tell no-directory
"""

#: After a status that may mean that the program did not begin. A script names what it is run with.
_WHY_NOT_RUN = """\
    [ -f {0} ] || tell no-program {0}
    [ -x {0} ] || tell not-executable {0}
    IFS= read -r line <{0}
    case $line in
    '#!'*)
        set -f
        set -- ${{line#??}}
        [ "${{1##*/}}" = env ] && [ -x "$1" ] && shift
        [ "$1" = -S ] && shift
        command -v "$1" >/dev/null 2>&1 || tell no-interpreter "$1"
        set +f;;
"""
#: A compiled program that the job brings is of another processor, or lacks its libraries. One of
#: the image has what it needs, and the status is its own: ``sh -c`` has it for a missing command.
_WRONG_SYSTEM = "    ?ELF*) tell wrong-system {0};;\n"
_WHY_NO_NAME = "    command -v {0} >/dev/null 2>&1 || tell no-program {0};;\n"


@dataclass(frozen=True, slots=True)
class Program:
    """What one job runs. Bytes that are not UTF-8 are surrogates (PEP 383).

    Attributes:
        arguments: of the program.
        environment: (name, value) pairs in addition to the image's; a name is not empty, and has
            no ``=`` and no ``-`` at its beginning.
        stdin: the file that it reads, relative to its directory; None: nothing.
    """

    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """What the jobs of one script have in common.

    Attributes:
        program: the program: a name that is looked up in the image's PATH, or a path; relative
            paths are relative to the job's directory.
        is_input: whether the job brings the program.
        archives: open names of the tar archives that are unpacked into the job's directory.
        inputs: names of the files in the job's directory, which are outputs only if they change.
        outputs: names of files and directories, relative to the job's directory; None: all new or
            changed files there.
        packed: those of the outputs that are in the archive of outputs even if they are files.
        stdout: whether the standard output is kept.
        stderr: whether the standard error is kept.
        merged: whether the standard error goes where the standard output goes.
        tells: whether the names of the outputs are written beside the status: a project does not
            tell them to another machine (``web-rpcs.rst``, "Queries"). Then ``inputs`` is empty:
            all files that are there at the start are inputs.
    """

    program: str
    is_input: bool = False
    archives: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] | None = None
    packed: frozenset[str] = frozenset()
    stdout: bool = True
    stderr: bool = True
    merged: bool = False
    tells: bool = False

    @property
    def alone(self) -> list[str]:
        """Those of the outputs that are files of the result by themselves."""
        return [name for name in self.outputs or () if name not in self.packed]

    @property
    def output_files(self) -> list[tuple[str, bool]]:
        """The open names of a job's outputs, and whether each is optional."""
        # Outputs are fetched by their places, also those of jobs that an earlier version has sent:
        # so the order must never change.
        files = [(ENDING, False)]
        if self.stdout:
            files.append((STDOUT, True))
        if self.stderr and not self.merged:
            files.append((STDERR, True))
        files += [(WORK + name, True) for name in self.alone]
        if self.outputs is None or self.outputs:
            files.append((PACKED, True))
        return files


def write_script(layout: Layout, programs: Sequence[Program]) -> bytes:
    """Return the script for some jobs.

    A job's number is its place in ``programs``, from 1: PHP drops a command line ``0``
    (``web-rpcs.rst``, "Command lines").
    """
    names = " ".join(map(quote, layout.alone))
    lines = [_FUNCTIONS, f"outputs() {{ only_files {names}; }}\n", _BEGIN]
    lines += _unpacking(layout)
    lines += _running(layout, programs)
    lines += _packing(layout)
    told = ["", OUTPUTS, *layout.alone] if layout.tells else []
    lines.append(f'tell "$status"{quote(chr(10).join(told)) if told else ""}\n')
    return "".join(lines).encode("utf-8", "surrogateescape")


def by_script(jobs: Iterable[T], program_of: Callable[[T], Program]) -> Iterator[list[T]]:
    """Yield the jobs for each script, so that none has many more than :data:`LARGEST` bytes."""

    def size_of(job: T) -> int:
        return len(_arm(program_of(job), 0, "").encode("utf-8", "surrogateescape"))

    return in_parts(jobs, size_of, LARGEST)


def _unpacking(layout: Layout) -> Iterator[str]:
    yield f"if [ ! -f {_STARTED} ]; then\n"
    if layout.archives:
        yield "    command -v tar >/dev/null 2>&1 || tell no-tar\n"
    for name in layout.archives:
        yield f"    tar -xf {quote(f'{APP}/{name}')} || tell no-unpacking {quote(name)}\n"
    if layout.outputs is None and layout.tells:
        # Without their names, so that jobs with other files have the same script.
        yield "    for name in * .[!.]* ..?*; do\n"
        yield '        [ -f "$name" ] && touch -t 200001010000 "./$name" 2>/dev/null\n    done\n'
    elif layout.outputs is None and layout.inputs:
        # Some shells compare times in whole seconds; unpacked files are of 1970.
        names = " ".join(quote(f"./{name}") for name in layout.inputs)
        yield f"    touch -t 200001010000 {names} 2>/dev/null\n"
    yield f"    : >{_STARTED}\nfi\n"


def _running(layout: Layout, programs: Sequence[Program]) -> Iterator[str]:
    program = quote(layout.program)
    if layout.is_input:
        yield f"chmod +x {program} 2>/dev/null\n"
    environments = {each.environment for each in programs}
    run = program
    if "=" in layout.program and environments != {()}:
        # ``env`` takes a word with a = for a variable.
        run = f'sh -c \'exec "$0" "$@"\' {program}'
    common = [run] if len(environments) == 1 else []
    if environments != {()}:
        common = ["env", *(_variables(programs[0]) if common else ()), *common]
    own_environment = len(environments) > 1
    yield "stdin=/dev/null\ncase $job in\n"
    for number, each in enumerate(programs, 1):
        yield _arm(each, number, run if own_environment else None)
    yield '*) tell no-job "$job";;\nesac\n'
    yield f'( exec {" ".join(common)} "$@" ) <"$stdin" {_streams(layout)}\nstatus=$?\n'
    yield "case $status in 126|127)\n"
    if "/" in layout.program:
        yield _WHY_NOT_RUN.format(program)
        if layout.is_input:
            yield _WRONG_SYSTEM.format(program)
        yield "    esac;;\n"
    else:
        yield _WHY_NO_NAME.format(program)
    yield "esac\n"


def _arm(each: Program, number: int, program: str | None) -> str:
    """Return the lines for one job; with ``program``, in a shell's words, its environment, too."""
    words = [] if program is None else [*_variables(each), program]
    words += map(quote, each.arguments)
    stdin = "" if each.stdin is None else f" stdin={quote(f'./{each.stdin}')};"
    return f"{number}){stdin} set -- {' '.join(words)};;\n"


def _variables(each: Program) -> list[str]:
    return [quote(f"{name}={value}") for name, value in each.environment]


def _streams(layout: Layout) -> str:
    out = f"{APP}/{STDOUT}" if layout.stdout else "/dev/null"
    if layout.merged:
        return f">{out} 2>&1"
    err = f"{APP}/{STDERR}" if layout.stderr else "/dev/null"
    return f">{out} 2>{err}"


def _packing(layout: Layout) -> Iterator[str]:
    """Yield the lines that make the archive of outputs.

    Links are followed as far as they can be: nobody unpacks links from a stranger.
    """
    if layout.outputs is None:
        yield from _new_files(layout)
        source, names = _NEW, "."
    else:
        yield "set --\n"
        for name in layout.outputs:
            test = "-e" if name in layout.packed else "-d"
            word = quote(f"./{name}")
            yield f'[ {test} {word} ] && set -- "$@" {word}\n'
        source, names = f"{APP}/{WORK}", '"$@"'
    yield f"""\
if [ $# -gt 0 ]; then
    command -v tar >/dev/null 2>&1 || tell no-tar
    tar -chf {APP}/{PACKED} -C {source} {names} || tar -cf {APP}/{PACKED} -C {source} {names} ||
        tell no-packing
fi
rm -rf {_NEW}
"""


def _new_files(layout: Layout) -> Iterator[str]:
    """Yield the lines that link new and changed files into a directory of their own.

    A file is changed if it is not older than the start; the job's program is no output. A name may
    be anything, so it is no word of a list; and there may be more files than a command line holds.
    """
    yield f"set --\nrm -rf {_NEW}\nmkdir {_NEW} || tell no-packing\n"
    yield "for name in * .[!.]* ..?*; do\n"
    yield '    [ -f "$name" ] || continue\n'
    if layout.is_input:
        yield f'    [ "./$name" = {quote(layout.program)} ] && continue\n'
    older = f'[ "$name" -ot {_STARTED} ] && continue'
    if layout.archives or layout.tells:
        yield f"    {older}\n"
    elif layout.inputs:
        inputs = "|".join(quote(f"./{name}") for name in layout.inputs)
        yield f"    case ./$name in {inputs}) {older};; esac\n"
    yield f'    if [ -L "$name" ] || ! ln "./$name" {_NEW}/ 2>/dev/null; then\n'
    yield f'        cp "./$name" {_NEW}/ || tell no-packing\n    fi\n    set -- new\ndone\n'
