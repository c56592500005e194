"""A job of Snakemake as what a container runs: a shell command, files in and files out.

The command is the rule's, with its wildcards filled in. It runs in the job's own directory, where
the inputs have the paths that they have here. What it makes comes back under numbers, and only this
machine knows which path each number has: a volunteer's computer names no path.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.settings import DeploymentMethod

from boinc_gahp.api.program_files import check_public
from boinc_gahp.errors import GahpError
from boinc_gahp.text import listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

__all__ = ["COMMAND", "RuleJob", "check_rules", "members", "read_job"]

#: The directory of a job's outputs in the container, and in the job's folder here.
_OUTPUTS = "boinc_outputs"
#: Runs a command as Snakemake would: in bash if there is one, which stops at the first error, with
#: the outputs' directories made. Then the outputs become numbers. Its arguments: the command, how
#: many outputs the command has to make, these outputs, and log files.
_SCRIPT = f"""\
command=$1 needed=$2
shift 2
for path do
    mkdir -p "$(dirname "./$path")" || exit
done
mkdir -p /tmp
if command -v bash >/dev/null 2>&1; then
    bash -c "set -euo pipefail; $command"
else
    sh -c "set -eu; $command"
fi
status=$?
mkdir {_OUTPUTS} || exit
number=0
for path do
    if [ -e "./$path" ]; then
        mv "./$path" {_OUTPUTS}/$number || exit
    elif [ $number -ge "$needed" ]; then
        : >{_OUTPUTS}/$number
    elif [ $status = 0 ]; then
        echo "the command has not made $path" >&2
        status=1
    fi
    number=$((number + 1))
done
exit $status
"""
#: The command line of all jobs; the words of :attr:`RuleJob.words` follow. Braces would be
#: placeholders.
COMMAND = ("sh", "-c", _SCRIPT, "sh")

#: What a rule may have instead of ``shell:``.
_KINDS = ("script", "notebook", "wrapper", "cwl", "template_engine")
#: Flags of outputs that only make sense on one computer, or that need the file's earlier contents.
_FLAGS = ("pipe", "service", "update")
#: As Snakemake sets them for each shell command.
_THREADS = ("OMP", "GOTO", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")
_MEGABYTE = 1e6
#: Operations that a volunteer's computer does in a minute, for estimates.
_PER_MINUTE = 60 * 5e9
_NAMED = 5


@dataclass(frozen=True)
class RuleJob:
    """What is sent for a job of Snakemake.

    Attributes:
        rule: the name of its rule, or group.
        command: the shell command.
        image: the image of ``container:``; None: there is none.
        inputs: paths in the working directory, of files and directories.
        outputs: likewise; the command has to make each of them.
        logs: likewise; it may make them.
        directories: those of the outputs that are directories.
        threads: processors.
        memory, disk: bytes; None: as for other jobs.
        fpops: operations, about; None: not known.
    """

    rule: str
    command: str
    image: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    logs: tuple[str, ...]
    directories: frozenset[str]
    threads: int
    memory: float | None
    disk: float | None
    fpops: float | None

    @property
    def words(self) -> list[str]:
        """Its words in the command line."""
        return [self.command, str(len(self.outputs)), *self.outputs, *self.logs]

    @property
    def like(self) -> tuple[str, str | None, int, int]:
        """Jobs with the same value can be in one batch."""
        return self.rule, self.image, self.threads, len(self.outputs) + len(self.logs)

    @property
    def output_names(self) -> list[str]:
        """The outputs and logs by the names that they have in the job's folder."""
        return [f"{_OUTPUTS}/{number}" for number in range(len(self.outputs) + len(self.logs))]

    @property
    def environment(self) -> dict[str, str]:
        """Variables that tell programs how many threads they have."""
        return {f"{name}_NUM_THREADS": str(self.threads) for name in _THREADS}

    @property
    def digest(self) -> str:
        """The same for a job that would compute the same from files that have not changed."""
        states = [(path, list(_state(Path(path)))) for path in self.inputs]
        told = [self.image, self.words, self.threads, states]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]

    def bring(self, folder: Path) -> None:
        """Move what has come into a folder to where the workflow expects it.

        Raises:
            OSError: a file cannot be written, or is a directory in place of a file.
        """
        for name, path in zip(self.output_names, [*self.outputs, *self.logs], strict=True):
            source, target = folder / name, Path(path)
            if not source.exists():  # only of a job that failed
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if path in self.directories:
                if target.is_dir() and not target.is_symlink():
                    shutil.rmtree(target)
            elif source.is_dir() or target.is_dir():
                which = source if source.is_dir() else target
                raise OSError(f"{path!r} is not moved into place: {str(which)!r} is a directory")
            # The clock of a volunteer's computer may be wrong; Snakemake compares times.
            os.utime(source)
            shutil.move(source, target)


def check_rules(rules: Iterable[Any]) -> None:
    """Refuse rules that only this machine could run, before anything is sent.

    Raises:
        WorkflowError: says which, and what to do.
    """
    found = [(rule.name, kind) for rule in rules if (kind := _kind(rule)) is not None]
    if found:
        shown = listed([f"{name} ({kind}:)" for name, kind in found], _NAMED)
        raise WorkflowError(
            f"only rules with shell: can run on volunteers' computers, which have no Snakemake; "
            f"these have something else: {shown}. Write the command as shell:, such as "
            '"python3 scripts/fit.py {input} {output}", or let the rule run here with '
            "localrule: True"
        )


def members(job: Any) -> list[Any]:
    """Return the jobs of a group in the order in which they have to run; or the job itself."""
    return [each for level in job.toposorted for each in level] if job.is_group() else [job]


def read_job(job: Any, deployed: Iterable[DeploymentMethod] = ()) -> RuleJob:
    """Return what is sent for a job, or for a group of jobs, which run one after the other.

    Args:
        job: one of Snakemake's jobs, ready to run.
        deployed: what Snakemake was told to deploy software with (``--sdm``).

    Raises:
        WorkflowError: it cannot run on a volunteer's computer; says why, and what to do.
    """
    several = members(job)
    for each in several:
        _check(each, deployed)
    images = {each.container_img_url for each in several}
    if len(images) > 1:
        raise WorkflowError(f"the rules of group {job.groupid} name several images: name one")
    commands = [_command(each) for each in several]
    outputs = [path for each in several for path in _paths(each, each.output, "output")]
    logs = [path for each in several for path in _paths(each, each.log, "log file")]
    inputs = [path for each in several for path in _paths(each, each.input, "input")]
    inputs += [path for text in commands for path in _files_in(text, inputs)]
    made = {*outputs, *logs}
    resources = dict(job.resources.items())
    return RuleJob(
        rule=job.groupid if job.is_group() else job.rule.name,
        command=" && ".join(f"(\n{text}\n)" for text in commands)
        if job.is_group()
        else commands[0],
        image=images.pop(),
        inputs=tuple(path for path in dict.fromkeys(inputs) if path not in made),
        outputs=tuple(dict.fromkeys(outputs)),
        logs=tuple(dict.fromkeys(logs)),
        directories=frozenset(
            posixpath.normpath(str(path))
            for each in several
            for path in each.output
            if "directory" in getattr(path, "flags", ())
        ),
        threads=max(each.threads for each in several),
        memory=_times(resources.get("mem_mb"), _MEGABYTE),
        disk=_times(resources.get("disk_mb"), _MEGABYTE),
        fpops=_times(resources.get("runtime"), _PER_MINUTE),
    )


def _kind(rule: Any) -> str | None:
    """Return what a rule has instead of a shell command; None: it has one, or does nothing."""
    if rule.norun or rule.shellcmd is not None:
        return None
    return next((name for name in _KINDS if getattr(rule, name, None) is not None), "run")


def _check(job: Any, deployed: Iterable[DeploymentMethod]) -> None:
    check_rules([job.rule])
    methods = set(deployed)
    why = None
    flagged = {flag for path in job.output for flag in getattr(path, "flags", ()) if flag in _FLAGS}
    if flagged:
        why = f"has an output that is {min(flagged)}(), which needs the same computer"
    elif job.benchmark:
        why = "has benchmark:, which measures on this computer only"
    elif job.conda_env_spec and DeploymentMethod.CONDA in methods:
        why = "has conda:, and volunteers' computers have an image instead: name it with container:"
    elif job.env_modules and DeploymentMethod.ENV_MODULES in methods:
        why = "has envmodules:, which volunteers' computers lack: name an image with container:"
    if why is not None:
        raise WorkflowError(
            f"rule {job.rule.name} {why}; or let the rule run here with localrule: True"
        )


def _command(job: Any) -> str:
    # Snakemake only knows the directory for temporary files where Snakemake runs.
    resources = _Resources({**dict(job.resources.items()), "tmpdir": "/tmp"})  # noqa: S108
    return str(job.format_wildcards(job.rule.shellcmd, resources=resources))


class _Resources(dict[str, Any]):
    """Resources that a command may name as ``{resources.mem_mb}``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _paths(job: Any, files: Iterable[object], what: str) -> Iterator[str]:
    """Yield the paths of files, but of those that Snakemake itself touches."""
    for file in files:
        if "touch" in getattr(file, "flags", ()):
            continue
        path = posixpath.normpath(str(file))
        if path.startswith(("/", "..")) or path == ".":
            raise WorkflowError(
                f"rule {job.rule.name} has the {what} {str(file)!r}, which is not below the "
                "working directory, the only one that a volunteer's computer has: move or link it "
                "there, and use a relative path"
            )
        yield path


def _files_in(command: str, inputs: Collection[str]) -> Iterator[str]:
    """Yield the files of the working directory that a command names, such as a script.

    Raises:
        WorkflowError: one is none of the ``inputs``, and may be secret.
    """
    for word in _words(command):
        for text in (word, word.partition("=")[2]):
            path = posixpath.normpath(text) if text else "/"
            if not path.startswith(("/", "..")) and Path(path).is_file():
                try:
                    if path not in inputs:
                        check_public(str(Path(path).absolute()))
                except GahpError as error:
                    raise WorkflowError(str(error)) from error
                yield path


def _words(command: str) -> Sequence[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # a quote without its pair, as in a here-document
        return command.split()


def _times(number: object, unit: float) -> float | None:
    return number * unit if isinstance(number, (int, float)) and number > 0 else None


def _state(path: Path) -> Iterator[object]:
    """Yield what changes with a file, or with a file in a directory."""
    status = path.stat()
    yield from (status.st_size, status.st_mtime_ns)
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            yield from (str(each), *_state(each)) if each.is_file() else (str(each),)
