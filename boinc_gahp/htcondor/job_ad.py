"""Reads the ad of a BLAH_JOB_SUBMIT, described in ``gridmanager-batch.rst``, "The submit ad".

A job that cannot be done as asked is refused here. The text becomes its HoldReason, so it uses the
words of submit files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.config import FAILED_JOBS
from boinc_gahp.htcondor.attributes import AdRefused, Attributes, as_text, show
from boinc_gahp.htcondor.boinc_attributes import BoincAttributes, positive
from boinc_gahp.htcondor.description import JobDescription, NamedFile
from boinc_gahp.htcondor.files import (
    check_remap,
    is_directory,
    read_inputs,
    read_outputs,
    read_remote,
    read_stream,
    read_template,
)
from boinc_gahp.secret import hide_logins
from boinc_gahp.submit import Parameters
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from boinc_gahp.config import HTCondor

__all__ = ["AdRefused", "job_directory", "read_ad"]

_MIB = 2**20


def read_ad(text: str, settings: HTCondor) -> JobDescription:
    """Return the job that an ad describes; looks at the files that it names.

    Args:
        text: the ad in the ClassAd language's new syntax, GAHP escapes undone, bytes that are not
            UTF-8 as surrogates. Attributes may be expressions; unknown ones are ignored.
        settings: whether an environment and an executable are ignored.

    Raises:
        AdRefused: the job cannot be done with this ad; says what to change in a submit file.
    """
    attributes = Attributes(text)
    wishes = BoincAttributes(attributes)
    iwd = _directory(attributes)
    project, app = _project_and_app(attributes, wishes, settings, iwd)
    if not settings.ignore_environment:
        _check_environment(attributes)
    stdout = read_stream("output", attributes.text("Out"), iwd)
    stderr = read_stream("error", attributes.text("Err"), iwd)
    _check_streams(stdout, stderr, iwd)
    outputs = attributes.get("TransferOutput")
    return JobDescription(
        job_directory=_job_directory(attributes),
        project=project,
        app_name=app,
        iwd=iwd,
        args=_arguments(attributes),
        inputs=_inputs(attributes, wishes, iwd),
        outputs=None if outputs is None else read_outputs(as_text("TransferOutput", outputs)),
        remaps=_remaps(attributes, iwd),
        stdout=stdout,
        stderr=stderr,
        parameters=Parameters(
            fpops_est=wishes.amount("RscFpopsEst"),
            fpops_bound=wishes.amount("RscFpopsBound"),
            memory_bound=_memory(attributes, wishes),
            disk_bound=wishes.amount("RscDiskBound"),
            delay_bound=wishes.amount("DelayBound"),
        ),
        priority=wishes.whole("Priority", least=-(2**31)),
        app_version_num=wishes.whole("AppVersionNum", least=1),
        input_template=_template(wishes, "InputTemplate", iwd),
        output_template=_template(wishes, "OutputTemplate", iwd),
        failed_jobs=wishes.one_of("FailedJobs", FAILED_JOBS),
    )


def job_directory(text: str) -> str:
    """Return HTCondor's key of the job in an ad, and ignore the rest; raises AdRefused."""
    return _job_directory(Attributes(text))


def _job_directory(attributes: Attributes) -> str:
    """Return HTCondor's key of the job; refuses a key that the ledger cannot store."""
    key = attributes.text("JobDirectory")
    if key is None or not (key.isascii() and key.isprintable()):
        raise AdRefused(
            f"JobDirectory is {'missing' if key is None else show(key)} in the job's ad; an ASCII "
            "text is expected, by which HTCondor 10 or later identifies the job"
        )
    return key


def _directory(attributes: Attributes) -> str:
    iwd = attributes.text("Iwd")
    if iwd is None or not iwd.startswith("/"):
        raise AdRefused(
            f"the job's directory (Iwd) is {'missing' if iwd is None else show(iwd)}; an absolute "
            "path is expected"
        )
    if not is_directory(Path(iwd)):
        raise AdRefused(
            f"the job's directory {show(iwd)} (initialdir) does not exist, or you cannot access it"
        )
    return iwd


def _project_and_app(
    attributes: Attributes, wishes: BoincAttributes, settings: HTCondor, iwd: str
) -> tuple[str | None, str]:
    """Return project and app: BOINC's own attributes, else ``batch_queue = app@project``.

    Without either, the executable's name is the app, but only if the job brings no executable:
    volunteers run the project's apps, and nobody would notice that it was another program. From
    HTCondor 25.12 on StageCmd tells; before, it is a mere name if there is no such file.
    """
    queue_app, _, queue_project = (attributes.text("Queue") or "").partition("@")
    project = wishes.word("Project") or queue_project.strip() or None
    app = wishes.word("App") or queue_app.strip()
    if not app:
        command = Path(attributes.text("Cmd") or "")
        app = command.name
        if not app:
            raise AdRefused(
                'the job names no app; say which with +remote_BoincApp = "name" in the submit file'
            )
        staged = attributes.get("StageCmd")
        is_name = staged is False or (staged is None and _is_nowhere(command, iwd))
        if not is_name and not settings.ignore_executable:
            raise AdRefused(
                f"the job has an executable ({show(app)}), which does not reach volunteers' "
                "computers: they run the project's apps. Say which app with "
                '+remote_BoincApp = "name" in the submit file (the executable is then ignored); '
                "or set executable to the name of the app, and transfer_executable = false (before "
                "HTCondor 25.12 the job's directory must not have a file of that name)"
            )
    for what, name in (("project", project), ("app", app)):
        if name is not None and not _is_utf8(name):
            raise AdRefused(
                f"the job's {what} is {show(name)}, which contains bytes that are not UTF-8"
            )
    return project, app


def _is_nowhere(command: Path, iwd: str) -> bool:
    """Tell whether an executable is a mere name: a path in the job's directory without a file.

    condor_submit refuses such a job unless it has ``transfer_executable = false`` (seen with 23.9.6
    and 25.14.1). A path that cannot be checked may exist.
    """
    if command.parent != Path(iwd):
        return False
    try:
        command.lstat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        pass
    return False


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeError:
        return False
    return True


def _check_environment(attributes: Attributes) -> None:
    text = attributes.text("Environment")
    old = attributes.text("Env")
    if text is None and old is None:
        return
    try:
        entries = list(split_v2(text or "")) + (old or "").split(";")
    except ValueError:
        entries = []
    names = [name for each in entries if (name := each.partition("=")[0].strip())]
    named = shorten(", ".join(names), 200)
    shown = f" ({named if named.isprintable() else ascii(named)})" if named else ""
    raise AdRefused(
        f"the job has an environment{shown}, which does not reach volunteers' computers: leave "
        "environment and getenv out of the submit file, and pass what the app needs in arguments "
        "or in an input file"
    )


def _check_streams(stdout: str | None, stderr: str | None, iwd: str) -> None:
    if stdout is None or stderr is None:
        return
    same, other = (os.path.normpath(Path(iwd, each)) for each in (stdout, stderr))
    if same == other:
        raise AdRefused(
            f"output and error are both {show(stdout)}; a BOINC job writes them to two files: give "
            "these different names"
        )


def _arguments(attributes: Attributes) -> tuple[str, ...]:
    """Return the arguments.

    A submit file in the old syntax (not in double quotes) gives Args: words between white space,
    without any quoting (seen with HTCondor 23.9.6).
    """
    text = attributes.text("Arguments")
    if text is None:
        return tuple(re.findall(r"[^ \t\n\r]+", attributes.text("Args") or ""))
    try:
        return split_v2(text)
    except ValueError as error:
        raise AdRefused(
            f"Arguments is {show(text)}, which cannot be split into arguments: {error}"
        ) from None


def _inputs(attributes: Attributes, wishes: BoincAttributes, iwd: str) -> tuple[NamedFile, ...]:
    local = read_inputs(attributes.text("TransferInput"), attributes.text("In"), iwd)
    remote = wishes.get("RemoteFiles")
    if remote is None:
        return tuple(local)
    return (*local, *read_remote(remote[0], as_text(*remote)))


def _remaps(attributes: Attributes, iwd: str) -> tuple[tuple[str, str], ...]:
    text = attributes.text("TransferOutputRemaps")
    try:
        remaps = read_remaps(text or "")
    except ValueError as error:
        raise AdRefused(f"transfer_output_remaps is {show(text)}: {error}") from None
    for name, path in remaps:
        check_remap(name, path, iwd)
    return remaps


def _memory(attributes: Attributes, wishes: BoincAttributes) -> float | None:
    """Return bytes; ``request_memory`` is in MB, as HTCondor counts them.

    If a vanilla job has none, the Job Router makes it 0 (seen with HTCondor 23.9.6).
    """
    bound = wishes.amount("RscMemoryBound")
    requested = attributes.get("RequestMemory") if bound is None else None
    if requested is None or requested == 0:
        return bound
    return positive("RequestMemory", requested) * _MIB


def _template(wishes: BoincAttributes, name: str, iwd: str) -> str | None:
    said = wishes.get(name)
    return None if said is None else read_template(said[0], as_text(*said), iwd)


#: A stretch between quotes, a stretch without quotes, or a quote that is not closed.
_STRETCH = re.compile(r"'((?:[^']|'')*)'|([^' \t\n\r]+)|(')")
_SPACE = re.compile(r"[ \t\n\r]+")


def split_v2(text: str) -> tuple[str, ...]:
    """Return the words in ``text``.

    Raises:
        ValueError: a quote is not closed; says where it is.
    """
    words = []
    place = 0
    while place < len(text):
        space = _SPACE.match(text, place)
        if space:
            place = space.end()
            continue
        word = []
        while stretch := _STRETCH.match(text, place):
            if stretch[3]:
                raise ValueError(f"the ' in front of {text[place + 1 :][:40]!r} is not closed")
            quoted, bare = stretch[1], stretch[2]
            word.append(bare if quoted is None else quoted.replace("''", "'"))
            place = stretch.end()
        words.append("".join(word))
    return tuple(words)


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
#: Up to a ``;``, or to a ``=``, without a backslash before it; no character can match in two ways.
_ENTRY = re.compile(r"((?:\\[=;]|\\(?![=;])|[^;\\])*)(?:;|\Z)")
_NAME = re.compile(r"((?:\\[=;]|\\(?![=;])|[^=\\])*)=(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([=;])")


def read_remaps(text: str) -> tuple[tuple[str, str], ...]:
    """Return the (output, path) pairs in ``text``.

    A path may be relative to the job's directory, and may name a directory: then the output keeps
    its name there.

    Raises:
        ValueError: an entry is not such a pair, or goes to a URL; says which.
    """
    remaps: dict[str, str] = {}
    for entry in _ENTRY.finditer(text.replace("\t", "").replace("\n", "")):
        if entry[1].strip():
            name, path = _pair(entry[1].strip())
            remaps.setdefault(name, path)
    return tuple(remaps.items())


def _pair(entry: str) -> tuple[str, str]:
    found = _NAME.fullmatch(entry)
    if found is None:
        raise ValueError(f"{entry!r} has no =; name = path is expected, and ; between such pairs")
    name, path = (_ESCAPED.sub(r"\1", each.strip()) for each in found.groups())
    if not (name and path):
        raise ValueError(
            f"{entry!r} lacks the {'path' if name else 'name'}; name = path is expected"
        )
    if _URL.match(path):
        raise ValueError(
            f"{name!r} goes to {hide_logins(path)!r}; outputs can only be put into files here"
        )
    return name, path
