"""What ``check`` finds out about container jobs: whether the project's app can take them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.cli.check.checks import Check, failed, note, ok, warning
from boinc_gahp.containers.image import read_image
from boinc_gahp.errors import GahpError, ProjectError
from boinc_gahp.rpc.types import BatchSubmission, JobSubmission
from boinc_gahp.terminal import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.config.settings import ProjectSettings
    from boinc_gahp.rpc.client import WebRpcs

#: The project's words for a job that states no size, if no template states one either
#: (``containers.rst``, "On the server").
_NO_SIZE = "no rsc_fpops_est given for job"
#: Its words for a template that is there.
_NOT_READ = "couldn't parse input template file"


def check_image(project: ProjectSettings) -> Iterator[Check]:
    """Look at the image for jobs that name none."""
    text = project.container_image
    if project.container_app is None:
        if text is not None:
            yield warning(
                "container_image: not used, since there is no container_app",
                "set it to the name of the project's app for container jobs",
            )
        return
    if text is None:
        yield note(
            "container_image: not set, so a container job from HTCondor that names no image is "
            "held; jobs name one with container_image = docker://NAME (batch run: --image NAME)"
        )
        return
    try:
        image = read_image(text)
    except ValueError as error:
        yield failed(f"container_image: {error}")
        return
    if image.source == "registry":
        yield ok(
            f"container_image: jobs that name no image get {image.name}; only volunteers' "
            "computers will find out whether the registry has it"
        )
        return
    try:
        with Path(image.name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        yield failed(
            f"container_image: the file {image.name!r} cannot be read: {error.strerror or error}"
        )
        return
    yield ok(
        f"container_image: jobs that name no image get the one in {image.name}, a file of "
        f"{words.size(size)}, which each volunteer's computer fetches from the project"
    )


def check_container_app(project: WebRpcs, app: str, *, has_templates: bool) -> Iterator[Check]:
    """Find out whether an app can take container jobs; the account may submit to it.

    Args:
        project: the project.
        app: the app's name.
        has_templates: whether the app has both template files; an app for container jobs has none.
    """
    try:
        is_refused = has_templates or _has_input_template(project, app)
    except GahpError as error:
        yield failed(f"app {app}: {error.with_code()}")
        return
    if is_refused:
        yield failed(
            f"app {app}: the project has a file templates/{app}_in, whose number of input files "
            "would apply to all jobs, so it refuses container jobs, which have numbers of their "
            "own",
            f"ask the project's admin to remove templates/{app}_in",
        )
    else:
        yield ok(f"app {app}: jobs that bring their own programs may be submitted")
    yield note(
        f"app {app}: a project does not tell the largest file that it takes (upload_max_filesize, "
        "2 MiB by default). Programs, images and archives of input directories are often larger: "
        "ask the project's admin how large they may be, and to raise it together with "
        "post_max_size"
    )
    yield note(
        f"app {app}: a project does not tell how many of its volunteers run containers. If jobs "
        "wait for long, ask the project's admin"
    )


def _has_input_template(project: WebRpcs, app: str) -> bool:
    """Tell whether the project has the file ``templates/APP_in``; nothing is stored for that.

    ``get_templates`` does not tell which of the two files is missing. But if a job states no size,
    an estimate can take it only from that file.

    Raises:
        GahpError: the project does not answer as expected.
    """
    try:
        project.estimate_batch(BatchSubmission(app, [JobSubmission()]))
    except ProjectError as error:
        if _NO_SIZE in error.words:
            return False
        if _NOT_READ not in error.words:
            raise
    return True
