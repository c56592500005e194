"""What ``check`` asks the project: whether it answers, and what the account may do there."""

from __future__ import annotations

import os
import re
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp import errors
from boinc_gahp.cli.apps import default_of, defaults_words, listed_apps, version_words
from boinc_gahp.cli.check.checks import Check, failed, note, ok, warning
from boinc_gahp.config.accounts import no_authenticator
from boinc_gahp.containers.image import read_image
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.site import lacks_buda_app
from boinc_gahp.rpc.types import BatchSubmission, JobSubmission
from boinc_gahp.states import BatchState
from boinc_gahp.submit.checks import buda_name, project_app
from boinc_gahp.submit.published import Published, usage
from boinc_gahp.templates.reading import read_templates
from boinc_gahp.templates.rules import faults
from boinc_gahp.templates.types import InputTemplate, OutputTemplate, Severity, TemplateError
from boinc_gahp.text import count, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.rpc.types import BatchInfo


#: Seconds; if they are too few, the user can start ``check`` again.
RETRY = 5.0
READ = 30.0

#: A file's number in the output template, at the end of its name.
_NUMBER = re.compile(r"_([0-9]{1,6})\s*\Z")

#: Seconds by which the clocks may differ; so little makes no difference to anybody.
CLOCK_DIFFERENCE = 60.0


def check_project(
    settings: Settings, chosen: ProjectSettings, apps: Sequence[str]
) -> Iterator[Check]:
    """Ask the project, point by point; stops when the next points cannot be checked."""
    options = ClientOptions.for_people(settings, chosen, read=READ, retry=RETRY)
    try:
        client = WebRpcs(chosen.url, chosen.authenticator or "", options=options)
    except errors.ConfigError as error:
        yield failed(f"address: {error.with_code()}")
        yield note("account, files and apps: not looked at, since the project cannot be asked")
        return
    with client as project:
        trouble = _trouble(project.ping)
        if trouble is not None:
            yield failed(f"address: {trouble}")
            yield note("account, files and apps: not looked at, since the project did not answer")
            return
        if project.https_url is not None:
            # The request redirected here is a ping, which contains no authenticator.
            yield failed(
                f"address: {project.host} redirects http to https, but each request is first sent "
                "unencrypted, with the authenticator",
                f"set url to {project.https_url}",
            )
        else:
            trusted = ", its certificate is trusted" if project.url.startswith("https:") else ""
            yield ok(f"address: {project.host} answers as a BOINC project{trusted}")
            if not project.url.is_private:
                yield warning(
                    "address: with http:// anybody on the network path can read the authenticator",
                    "use https:// if the project has it",
                )
        yield from _check_account(settings, chosen, project, apps)


def _check_account(
    settings: Settings, chosen: ProjectSettings, project: WebRpcs, apps: Sequence[str]
) -> Iterator[Check]:
    if chosen.authenticator is None:
        yield failed(f"account: {no_authenticator(settings, chosen).with_code()}")
        yield note("files and apps: not looked at without an authenticator")
        return
    try:
        batches = project.query_batches()
    except errors.GahpError as error:
        told, why = _told(error), ", since the project did not answer for the account"
        if isinstance(error, errors.NoSubmitAccess):
            told = error.with_code(
                f"the project knows it, but it has no right to submit ({error.words}): ask the "
                "project's admin for it (a row in user_submit)"
            )
            why = " without the right to submit"
        elif isinstance(error, errors.PermissionDenied):
            why = " without an account that the project knows"
        yield failed(f"account: {told}")
        yield note(f"files and apps: not looked at{why}")
        return
    yield ok("account: the project knows it")
    yield _check_clock(project)
    yield _check_staging(project)
    yield _limits_note(settings, chosen)
    yield from _check_published(settings, chosen)
    if not apps:
        which = "apps" if chosen.container_app is None else "installed apps"
        yield note(f"{which}: not looked at", "name those that you use: boinc_gahp check --app APP")
    wanted = dict.fromkeys(apps)
    if chosen.container_app is not None:
        wanted[chosen.container_app] = None
    for app in wanted:
        yield from _check_app(project, app, chosen, batches)


def _check_clock(project: WebRpcs) -> Check:
    begun = time.time()
    try:
        theirs = float(project.query_batch2([]).server_time)
    except (errors.GahpError, ValueError) as error:
        return note(f"clock: the project does not tell its time ({error})")
    difference = theirs - (begun + time.time()) / 2
    if abs(difference) <= CLOCK_DIFFERENCE:
        return ok(f"clock: the project's differs from this machine's by {abs(difference):.1f} s")
    ahead = "ahead of" if difference > 0 else "behind"
    return warning(
        f"clock: the project's is {abs(difference):.0f} s {ahead} this machine's; for how "
        "long batches and files are kept allows for that, other times are wrong by as much",
        "set the clock that is wrong",
    )


def _check_staging(project: WebRpcs) -> Check:
    # Without batch_id: the project would record it with a batch that does not exist.
    trouble = _trouble(lambda: project.query_files(["boinc_gahp_check"]))
    if trouble is not None:
        return failed(f"files: {trouble}")
    return ok("files: the account may stage input files")


def _limits_note(settings: Settings, chosen: ProjectSettings) -> Check:
    return note(
        "limits: the project's are not known; files over 2 MiB may be refused, until its admin "
        "raises upload_max_filesize. Assumed are requests of "
        f"{chosen.max_post_bytes:,} bytes (max_post_bytes), and uploads of "
        f"{settings.staging.files_per_post} files (files_per_post) and "
        f"{settings.staging.bytes_per_post:,} bytes (bytes_per_post) at a time"
    )


def _check_published(settings: Settings, chosen: ProjectSettings) -> Iterator[Check]:
    """Publish a small file, and ask for it."""
    try:
        published = Published.of(settings, chosen, "check")
        if published is None:
            return
        published.probe()
    except errors.GahpError as error:
        yield failed(f"published files: {error.with_code()}")
        return
    files, nbytes = usage(chosen.publish_directory)
    yield ok(
        f"published files: everybody gets what is put at {published.url}; "
        f"{count(files, 'file')} ({size(nbytes)}) now, and for new jobs each input "
        f"file of more than {size(published.above)} (publish_above)"
    )


def _check_app(
    project: WebRpcs, app: str, chosen: ProjectSettings, batches: Sequence[BatchInfo]
) -> Iterator[Check]:
    try:
        buda, app = buda_name(app), project_app(app)
    except errors.JobRefused as error:
        yield failed(error.with_code())
        return
    takes_containers = buda is not None or app == chosen.container_app
    text = None
    try:
        text = project.get_templates(app_name=app)
    except errors.GahpError as error:
        if not (takes_containers and isinstance(error, errors.TemplatesMissing)):
            yield failed(_refusal(app, error))
            return
    if text is None or takes_containers:
        yield from check_container_app(project, app, has_templates=text is not None)
        yield _check_versions(project, app, takes_containers=True)
        yield from check_outputs(project, app, batches)
        if buda is not None:
            yield _check_buda(project, buda)
        return
    try:
        inputs, outputs = read_templates(text)
    except TemplateError as error:
        yield failed(f"app {app}: its templates cannot be used: {error.with_code()}")
        return
    # Here a project reads the template file itself; nothing is created.
    trouble = _trouble(
        lambda: project.estimate_batch(BatchSubmission(app, [JobSubmission(rsc_fpops_est=1.0)]))
    )
    if trouble is not None:
        yield failed(f"app {app}: no submit can work: {trouble}")
        return
    ins = ", ".join(file.open_name for file in inputs.per_job_files) or "none"
    outs = ", ".join(file.open_name for file in outputs.files) or "none"
    yield ok(f"app {app}: jobs may be submitted; inputs {ins}, outputs {outs}")
    yield ok(
        f"app {app}: a job that states no needs has {defaults_words(inputs)}, "
        f"{default_of(inputs, 'rsc_fpops_bound'):g} floating-point operations"
    )
    yield _check_versions(project, app, takes_containers=False)
    yield from check_outputs(project, app, batches)
    yield from _check_rules(app, inputs, outputs)


def _check_buda(project: WebRpcs, name: str) -> Check:
    if lacks_buda_app(project, name):
        return failed(
            f"app buda:{name}: the project has no such BUDA app",
            "ask its admin for the app's internal name",
        )
    return note(
        f"app buda:{name}: a project does not tell whether it has this BUDA app, nor its inputs "
        "and outputs. Jobs for one that does not exist wait for ever. Jobs have to name the outputs"
    )


def _refusal(app: str, error: errors.GahpError) -> str:
    words = str(error)
    if isinstance(error, errors.AppNotFound):
        words = "the project has no app of this name; check its spelling"
    elif isinstance(error, errors.PermissionDenied):
        words = (
            "the account may not submit to it; ask the project's admin for the right (the project "
            f"says: {error.words})"
        )
    elif isinstance(error, errors.TemplatesMissing):
        words = (
            "the project has no template files for it; if this is its app for container jobs, set "
            f'container_app = "{app}" in the project\'s section of the settings, otherwise ask its '
            f"admin for the files templates/{app}_in and templates/{app}_out"
        )
    return error.with_code(f"app {app}: {words}")


def _check_rules(app: str, *templates: InputTemplate | OutputTemplate) -> Iterator[Check]:
    for template in templates:
        for problem in faults(template):
            text = f"app {app}: {problem.text}"
            is_error = problem.severity is Severity.ERROR
            yield failed(text) if is_error else warning(text, "ask its admin to change it")


def _trouble(ask: Callable[[], object]) -> str | None:
    """Return the error of a request, or None."""
    try:
        ask()
    except errors.GahpError as error:
        return _told(error)
    return None


def _told(error: errors.GahpError) -> str:
    """Return an error, and who has to look into it if it does not say that itself."""
    if isinstance(error, errors.ProtocolError):
        text = f"{error}; if the project's URL is right, its admin has to look into this"
        return error.with_code(text)
    if isinstance(error, errors.ProjectDown | errors.TransportError | errors.PermissionDenied):
        return error.with_code()
    return error.with_code(f"{error}; tell the project's admin")


def _check_versions(project: WebRpcs, app: str, *, takes_containers: bool) -> Check:
    """Tell which versions an app has; one for containers needs a plan class for docker."""
    try:
        listed, why = listed_apps(project)
    except errors.GahpError as error:
        listed, why = {}, str(error)
    if why:
        return note(
            f"app {app}: the project does not tell which versions it has ({why})",
            "if jobs wait for long, ask its admin for them, and for their plan classes",
        )
    found = listed.get(app)
    if found is None or not found.versions:
        what = "is not in the project's list of apps" if found is None else "has no versions"
        return warning(
            f"app {app}: it {what}, so no volunteer gets its jobs",
            "ask the project's admin for an app version",
        )
    if takes_containers and not any("docker" in each.plan_class for each in found.versions):
        return warning(
            f"app {app}: no version has a plan class with docker in its name, for which BOINC's "
            f"clients look; there are {version_words(found)}",
            "ask the project's admin for one",
        )
    return ok(f"app {app}: versions {version_words(found)}")


def check_outputs(project: WebRpcs, app: str, batches: Sequence[BatchInfo]) -> Iterator[Check]:
    """Tell if the first output of the newest complete batch is not where it was uploaded.

    Says nothing if there is no such batch, or if the output is there.
    """
    complete = [
        each for each in batches if each.app_name == app and each.state is BatchState.COMPLETE
    ]
    if not complete:
        return
    newest = max(complete, key=lambda each: each.id)
    try:
        job = next(each for each in project.iter_jobs(newest.id) if each.canonical_instance_id)
        [instance] = (
            each for each in project.query_job(job.id) if each.id == job.canonical_instance_id
        )
        size = instance.outfile_sizes[0]
        project.result_file(instance.name, 0).close()
    except errors.OutputGone as gone:
        number = _NUMBER.search(gone.named)
        if number is not None:
            yield _gone(project, app, instance.id, int(number[1]), size)
    except (errors.GahpError, StopIteration, ValueError, IndexError):
        return  # nothing can be told


def _gone(project: WebRpcs, app: str, instance_id: int, number: int, size: int) -> Check:
    try:
        with closing(project.moved_file(instance_id, number)) as moved:
            is_there, why = moved.length == size, "get_output3.php does not have it"
    except errors.GahpError as error:
        has_page = not (isinstance(error, errors.TransportError) and error.status == 404)
        is_there, why = False, str(error) if has_page else "it has no get_output3.php"
    if is_there:
        return ok(
            f"app {app}: its assimilator moves outputs away (batch_collect_assimilator); they are "
            "fetched with get_output3.php"
        )
    return warning(
        f"app {app}: an output of your newest complete batch is not where it was uploaded ({why})",
        "ask the project's admin for an assimilator that leaves outputs where they are "
        f"(sample_dummy_assimilator -d 3 --app {app}), and for <no_delete/> in the app's output "
        "template",
    )


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
            nbytes = os.fstat(file.fileno()).st_size
    except OSError as error:
        yield failed(
            f"container_image: the file {image.name!r} cannot be read: {error.strerror or error}"
        )
        return
    yield ok(
        f"container_image: jobs that name no image get the one in {image.name}, a file of "
        f"{size(nbytes)}, which each volunteer's computer fetches from the project"
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
    except errors.GahpError as error:
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
    except errors.ProjectError as error:
        if _NO_SIZE in error.words:
            return False
        if _NOT_READ not in error.words:
            raise
    return True
