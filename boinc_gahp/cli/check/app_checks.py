"""What ``check`` finds out about an app's versions, and about the outputs of its jobs."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

from boinc_gahp.cli.check.checks import Check, note, ok, warning
from boinc_gahp.cli.known_apps import listed_apps, version_words
from boinc_gahp.errors import GahpError, OutputGone, TransportError
from boinc_gahp.states import BatchState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import BatchInfo

#: A file's number in the output template, at the end of its name.
_NUMBER = re.compile(r"_([0-9]{1,6})\s*\Z")


def check_versions(project: WebRpcs, app: str, *, takes_containers: bool) -> Check:
    """Tell which versions an app has; one for containers needs a plan class for docker."""
    try:
        listed, why = listed_apps(project)
    except GahpError as error:
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
    except OutputGone as gone:
        number = _NUMBER.search(gone.named)
        if number is not None:
            yield _gone(project, app, instance.id, int(number[1]), size)
    except (GahpError, StopIteration, ValueError, IndexError):
        return  # nothing can be told


def _gone(project: WebRpcs, app: str, instance_id: int, number: int, size: int) -> Check:
    try:
        with closing(project.moved_file(instance_id, number)) as moved:
            is_there, why = moved.length == size, "get_output3.php has it not"
    except GahpError as error:
        has_page = not (isinstance(error, TransportError) and error.status == 404)
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
