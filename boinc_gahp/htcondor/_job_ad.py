"""Reads the ad of a BLAH_JOB_SUBMIT, described in ``gridmanager-batch.rst``, "The submit ad".

A job that cannot be done as asked is refused here. The text becomes its HoldReason, so it uses the
words of submit files.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.containers.rules import FPOPS_BOUND
from boinc_gahp.errors import JobRefused
from boinc_gahp.htcondor._container_ad import (
    disk_bound,
    image_of,
    is_transferred,
    read_container,
    read_container_outputs,
    variables,
)
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.htcondor._files import (
    check_remap,
    go_to_one_file,
    is_directory,
    read_inputs,
    read_outputs,
    read_stream,
    read_template,
)
from boinc_gahp.htcondor.attributes import (
    AdRefused,
    Attributes,
    as_text,
    as_word,
    attribute_of,
    positive,
    show,
)
from boinc_gahp.quantities import SIZES
from boinc_gahp.secret import hide_logins
from boinc_gahp.submit.buda import buda_request
from boinc_gahp.submit.checks import buda_name
from boinc_gahp.submit.types import Parameters, SubmitRequest
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from boinc_gahp.config.settings import HTCondor, ProjectSettings
    from boinc_gahp.quantities import Size

#: What a submit file requests, and the unit of that, for sizes that BOINC's own attributes do not
#: give. BOINC's bound on time is in operations: a client ends a job after bound / speed. So that no
#: fast computer ends it too early, slower ones give it more time.
_REQUESTED = {
    "fpops_bound": ("BatchRuntime", 1e11),
    "memory_bound": ("RequestMemory", 2**20),
    "disk_bound": ("RequestDisk", 2**10),
}


def read_ad(
    text: str,
    settings: HTCondor,
    project_of: Callable[[str | None], ProjectSettings | None] = lambda _: None,
) -> JobDescription:
    """Return the job that an ad describes; looks at the files that it names.

    Args:
        text: the ad in the ClassAd language's new syntax, GAHP escapes undone, bytes that are not
            UTF-8 as surrogates. Attributes may be expressions; unknown ones are ignored.
        settings: what of a job is ignored.
        project_of: returns the settings of the project that a job names; None: of the default one.

    Raises:
        AdRefused: the job cannot be done with this ad; says what to change in a submit file.
    """
    attributes = Attributes(text)
    ignored = attributes.boinc("Ignore", set()).union(settings.ignore.split())
    iwd = _directory(attributes)
    project, app, image = _project_and_app(attributes, ignored, iwd, project_of)
    _check_requests(attributes, ignored, is_in_container=image is not None)
    stdout = read_stream("output", attributes.text("Out"), iwd)
    stderr = read_stream("error", attributes.text("Err"), iwd)
    outputs = attributes.get("TransferOutput")
    sizes = {size.parameter: _size(attributes, size) for size in SIZES}
    if image is None:
        if "environment" not in ignored:
            _check_environment(attributes)
        if go_to_one_file(stdout, stderr, iwd):
            raise AdRefused(
                f"output and error are both {show(stdout)}; a BOINC job writes them to two files: "
                "give these different names"
            )
        container, inputs = None, tuple(read_inputs(attributes, iwd))
    else:
        container, inputs = read_container(attributes, iwd, image)
        sizes["disk_bound"] = sizes["disk_bound"] or disk_bound(container, inputs)
        sizes["fpops_bound"] = sizes["fpops_bound"] or FPOPS_BOUND
    remaps = _remaps(attributes, iwd)
    description = JobDescription(
        job_directory=job_directory(attributes),
        project=project,
        app_name=app,
        iwd=iwd,
        # White space is between words in the old syntax (seen with HTCondor 23.9.6).
        args=attributes.split("Arguments", "Args", r" \t\n\r"),
        inputs=inputs,
        outputs=_outputs(outputs, remaps, is_in_container=image is not None),
        remaps=remaps,
        stdout=stdout,
        stderr=stderr,
        parameters=Parameters(**sizes),
        priority=attributes.boinc("Priority"),
        app_version_num=attributes.boinc("AppVersionNum"),
        input_template=read_template(attributes.given("InputTemplate"), iwd),
        output_template=read_template(attributes.given("OutputTemplate"), iwd),
        failed_jobs=attributes.boinc("FailedJobs"),
        container=container,
    )
    return _with_buda_app(description)


def _with_buda_app(description: JobDescription) -> JobDescription:
    """Return a description for a BUDA app (``+BoincApp = "buda:NAME"``) as an ordinary one.

    It has the project's app, and templates that name the BUDA app. That of a job for another app is
    returned unchanged.

    Raises:
        AdRefused: the job cannot be made, or does not name its outputs.
    """
    try:
        if buda_name(description.app_name) is None:
            return description
        made = buda_request(
            SubmitRequest(
                "",
                description.app_name,
                [("", description.job)],
                parameters=description.parameters,
                outputs={} if description.outputs is None else {"": description.outputs},
            )
        )
    except JobRefused as error:
        raise AdRefused(str(error)) from error
    _, job = made.jobs[0]
    return replace(
        description,
        app_name=made.app_name,
        parameters=made.parameters,
        input_template=job.input_template,
        output_template=job.output_template,
    )


def job_directory(attributes: Attributes) -> str:
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
    attributes: Attributes,
    ignored: Collection[str],
    iwd: str,
    project_of: Callable[[str | None], ProjectSettings | None],
) -> tuple[str | None, str, str | None]:
    """Return project, app, and the image if the job runs in a container.

    Project and app are BOINC's own attributes, else ``batch_queue = app@project``. Without an app,
    a job with an image or an executable of its own runs in a container. Otherwise the executable's
    name is the app.
    """
    queue_app, _, queue_project = (attributes.text("Queue") or "").partition("@")
    project = attributes.boinc("Project") or queue_project.strip() or None
    app = attributes.boinc("App") or queue_app.strip()
    for what, name in (("project", project), ("app", app)):
        as_word(f"the job's {what}", name or "")
    image = image_of(attributes)
    chosen = project_of(project)
    container_app = None if chosen is None else chosen.container_app
    if app and app != container_app:
        return project, app, None
    if not app and image is None:
        app = _named_by_executable(attributes, ignored, iwd)
        if app:
            return project, app, None
    if container_app is None:
        raise AdRefused(_no_containers(attributes, image))
    image = image or (None if chosen is None else chosen.container_image)
    if image is None:
        raise AdRefused(
            "the job has an executable, and no image to run it in: name one with container_image = "
            'docker://NAME (or +remote_BoincImage = "NAME"), or an app of the project with '
            '+remote_BoincApp = "NAME". The site\'s admin can set container_image in '
            "boinc_gahp.toml for jobs that name none"
        )
    return project, container_app, image


def _named_by_executable(attributes: Attributes, ignored: Collection[str], iwd: str) -> str:
    """Return the app that an executable names; empty if the job brings its executable.

    An executable that the job brings is not taken for an app's name, because nobody would notice
    that volunteers ran another program.
    """
    command = Path(attributes.text("Cmd") or "")
    if not command.name:
        raise AdRefused(
            'the job names no app; say which with +remote_BoincApp = "name" in the submit file'
        )
    transferred = is_transferred(attributes)
    is_name = transferred is False or (transferred is None and _is_nowhere(command, iwd))
    if not is_name and "executable" not in ignored:
        return ""
    as_word("the job's app", command.name)
    return command.name


def _no_containers(attributes: Attributes, image: str | None) -> str:
    """Return why a job with an image or an executable is refused."""
    app = (
        'app with +remote_BoincApp = "name" in the submit file (the executable is then ignored); '
        "or set executable to the name of the app, and transfer_executable = false (before "
        "HTCondor 25.12 the job's directory must not have a file of that name)"
    )
    admin = (
        "If the project has an app for containers, the site's admin can set container_app in "
        "boinc_gahp.toml"
    )
    if image is not None:
        return (
            f"the job has an image ({show(image)}), and it is not known that the project runs "
            f"containers. {admin}. For an installed app say which {app}"
        )
    name = Path(attributes.text("Cmd") or "").name
    return (
        f"the job has an executable ({show(name)}), which does not reach volunteers' computers: "
        f"they run the project's apps. Say which {app}. {admin}"
    )


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


def _check_requests(
    attributes: Attributes, ignored: Collection[str], *, is_in_container: bool
) -> None:
    """Refuse what BOINC has nothing for, unless it is to be ignored."""
    cpus = attributes.get("RequestCpus")
    # A container job is given its processors.
    wants_cpus = not is_in_container and cpus not in (None, 1)
    asked = (
        (
            "cpus",
            wants_cpus,
            f"request_cpus = {show(cpus)}: how many processors an installed app uses is decided by "
            "the project",
        ),
        (
            "gpus",
            attributes.get("GPUNumber") or attributes.get("RequestGPUs"),
            "request_gpus: container jobs cannot use a GPU, and whether an installed app does is "
            "decided by the project",
        ),
        (
            "batch_project",
            attributes.get("BatchProject"),
            "batch_project: an account of a batch system, which volunteers do not have",
        ),
    )
    for word, is_asked, why in asked:
        if is_asked and word not in ignored:
            raise AdRefused(
                f"the job has {why}. Leave it out, or have it ignored: "
                f'+remote_BoincIgnore = "{word}" (without remote_ in the vanilla universe)'
            )


def _check_environment(attributes: Attributes) -> None:
    if attributes.text("Environment") is None and attributes.text("Env") is None:
        return
    try:
        names = [name for name, _ in variables(attributes)]
    except AdRefused:
        names = []
    named = shorten(", ".join(names), 200)
    shown = f" ({named if named.isprintable() else ascii(named)})" if named else ""
    raise AdRefused(
        f"the job has an environment{shown}, which does not reach volunteers' computers: leave "
        "environment and getenv out of the submit file, and pass what the app needs in arguments "
        "or in an input file"
    )


def _outputs(
    given: object, remaps: tuple[tuple[str, str], ...], *, is_in_container: bool
) -> tuple[str, ...] | None:
    if given is None:
        return None
    text = as_text("TransferOutput", given)
    return read_container_outputs(text, remaps) if is_in_container else read_outputs(text)


def _remaps(attributes: Attributes, iwd: str) -> tuple[tuple[str, str], ...]:
    text = attributes.text("TransferOutputRemaps")
    try:
        remaps = read_remaps(text or "")
    except ValueError as error:
        raise AdRefused(f"transfer_output_remaps is {show(text)}: {error}") from None
    for name, path in remaps:
        check_remap(name, path, iwd)
    return remaps


def _size(attributes: Attributes, size: Size) -> float | None:
    """Return what a job asks for, or what its submit file requests in its own unit.

    If a vanilla job requests no memory, the Job Router makes it 0 (seen with HTCondor 23.9.6).
    """
    value: float | None = attributes.boinc(attribute_of(size))
    name, unit = _REQUESTED.get(size.parameter, ("", 1))
    asked = attributes.get(name) if name and value is None else None
    if asked is None or (name == "RequestMemory" and asked == 0):
        return value
    value = positive(name, asked) * unit
    if math.isinf(value):
        raise AdRefused(f"{name} is {show(asked)}, more than any computer has")
    return value


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
