"""What tests read, and what they do, in a running local project's database."""

import time
from contextlib import contextmanager

from boinc_gahp.localproject.core import name_key
from boinc_gahp.localproject.server import rpc_batches
from boinc_gahp.localproject.server.application import SUBMIT_RPCS
from boinc_gahp.localproject.server.messages import htmlspecialchars
from boinc_gahp.localproject.states import (
    AssimilateState,
    BatchState,
    ErrorMask,
    Outcome,
    ServerState,
)
from boinc_gahp.templates.writing import write_input_template, write_output_template
from tests.helpers import wait_for


def write_templates(project, app, input_template, output_template):
    """Write an app's templates, as an admin does: texts, or what makes them."""
    if not isinstance(input_template, str):
        input_template = write_input_template(input_template)
        output_template = write_output_template(output_template)
    (project.core.templates / f"{app}_in").write_text(input_template)
    (project.core.templates / f"{app}_out").write_text(output_template)


def rows(project, query, *parameters):
    """Return what the project's database answers."""
    return project.core.db.connection().execute(query, parameters).fetchall()


def change(project, statement, *parameters):
    """Change the project's database behind its back."""
    with project.core.db.write() as connection:
        connection.execute(statement, parameters)


@contextmanager
def down(project):
    """Stop the project's web server for a while."""
    project.core.web_stopped = True
    try:
        yield
    finally:
        project.core.web_stopped = False


def workunit_names(project, batch_name=None):
    """Return the names of all workunits, or of those in the oldest batch with a name."""
    found = rows(
        project,
        "SELECT name FROM workunit WHERE ?1 IS NULL OR batch = "
        "(SELECT min(id) FROM batch WHERE name_key = ?1) ORDER BY id",
        None if batch_name is None else name_key(batch_name),
    )
    return [row["name"] for row in found]


def batches(project):
    """Return id, name and state (as last stored) of all batches."""
    found = rows(project, "SELECT id, name, state FROM batch ORDER BY id")
    return [(row["id"], row["name"], BatchState(row["state"])) for row in found]


def staged_files(project):
    """Return the physical names of the files that were staged by upload_files."""
    return [row["name"] for row in rows(project, "SELECT name FROM job_file ORDER BY id")]


def fail_workunit(project, name):
    """Mark a workunit as failed."""
    change(
        project,
        "UPDATE workunit SET error_mask = error_mask | ?, transition_time = ?, "
        "mod_time = clock() WHERE name_key = ?",
        *(ErrorMask.TOO_MANY_ERROR_RESULTS, time.time(), name_key(name)),
    )
    project.core.wake.ring()


def finish_workunit(project, name):
    """Mark a workunit as done, with its first instance."""
    change(
        project,
        "UPDATE workunit SET assimilate_state = ?, mod_time = clock(), canonical_resultid = "
        "(SELECT min(id) FROM result WHERE workunitid = workunit.id) WHERE name_key = ?",
        *(AssimilateState.DONE, name_key(name)),
    )


def fail_attempts(project, batch_id):
    """Let the instances of a batch's jobs, of which it makes one each, fail on a computer."""
    made = "SELECT count(*) FROM result WHERE batch = ?"
    jobs = rows(project, "SELECT count(*) FROM workunit WHERE batch = ?", batch_id)[0][0]
    wait_for(lambda: rows(project, made, batch_id)[0][0] == jobs, "instances")
    change(
        project,
        "UPDATE result SET server_state = ?, outcome = ? WHERE batch = ?",
        *(ServerState.OVER, Outcome.CLIENT_ERROR, batch_id),
    )


def unfinished_jobs(project):
    """Return how many workunits are neither done nor failed."""
    query = "SELECT count(*) FROM workunit WHERE canonical_resultid = 0 AND error_mask = 0"
    return int(rows(project, query)[0][0])


def tell_of_failed_jobs(monkeypatch):
    """Let query_completed_job describe failed jobs too, as BOINC's code means to do.

    In today's BOINC it fails for them (``web-rpcs.rst``, "query_completed_job").
    """

    def answer(core, request, reply):
        row = (
            core.db.connection()
            .execute(
                "SELECT r.*, w.error_mask FROM workunit w JOIN result r ON r.workunitid = w.id "
                "WHERE w.name = ? AND w.canonical_resultid = 0 AND r.outcome = ? "
                "ORDER BY r.id DESC",
                (request.text("job_name"), Outcome.CLIENT_ERROR),
            )
            .fetchone()
        )
        if row is None:
            rpc_batches.query_completed_job(core, request, reply)
            return
        reply.add(
            f"<completed_job><error_mask>{row['error_mask']}</error_mask>"
            f"<error_resultid>{row['id']}</error_resultid>"
            f"<exit_status>{row['exit_status']}</exit_status>"
            f"<elapsed_time>{row['elapsed_time']}</elapsed_time>"
            f"<cpu_time>{row['cpu_time']}</cpu_time>"
            f"<stderr_out><![CDATA[{htmlspecialchars(row['stderr_out'])}]]></stderr_out>"
            "</completed_job>"
        )

    monkeypatch.setitem(SUBMIT_RPCS, "query_completed_job", answer)
