"""A project whose contents a test decides, and the users of the recordings."""

import hashlib
import shutil
import time

from boinc_gahp.localproject.accounts import SUBMITTER, VOLUNTEERS
from boinc_gahp.localproject.core import name_key
from boinc_gahp.localproject.states import (
    NEVER,
    BatchState,
    ErrorMask,
    Outcome,
    ServerState,
    ValidateState,
)
from boinc_gahp.templates.filling import fill_output
from tests.localproject.bench import JOB, RESULT, insert

ALICE = "a11ce000000000000000000000000001"
BOB = "b0b00000000000000000000000000002"
CAROL = "ca401000000000000000000000000003"
DAVE = "da5e0000000000000000000000000005"

#: What the recordings' staged files hold here.
CONTENTS = b"x" * 18

_DOCUMENT = "<workunit>\n<command_line>\n\n</command_line>\n</workunit>"
_STDERR = (
    "<core_client_version>7.20.5</core_client_version>\n<![CDATA[\n<stderr_txt>\n"
    "said & done\n\n</stderr_txt>\n]]>\n"
)


#: What a job's state says of its results.
_STATES = {
    "unsent": (ServerState.UNSENT, Outcome.INIT),
    "in_progress": (ServerState.IN_PROGRESS, Outcome.INIT),
    "aborted_in_progress": (ServerState.IN_PROGRESS, Outcome.INIT),
    "done": (ServerState.OVER, Outcome.SUCCESS),
    "failed": (ServerState.OVER, Outcome.CLIENT_ERROR),
    "aborted": (ServerState.OVER, Outcome.DIDNT_NEED),
}


def add_recorded_users(project):
    """Add the users of ``wire/``: bob may do nothing, carol submit to one app only."""
    project.add_user("alice", authenticator=ALICE)
    project.add_user("bob", access=False, authenticator=BOB)
    project.add_user("carol", apps=["uppercase"], authenticator=CAROL)
    project.add_user("dave", authenticator=DAVE)


class Stage:
    """Puts rows and files into a running project; the back end leaves them alone."""

    def __init__(self, project):
        self.project = project
        self.core = project.core
        self._templates = {}
        self._table = ""

    def clear(self):
        """Remove all batches, jobs and files, and put back what was taken away."""
        self.core.web_stopped = False
        self.core.database_down = False
        for path, text in self._templates.items():
            path.write_text(text, "utf-8")
        self._templates = {}
        with self.core.db.write() as connection:
            if self._table:
                connection.execute(f"ALTER TABLE missing RENAME TO {self._table}")
                self._table = ""
            for table in (
                "batch_file_assoc",
                "job_file",
                "result",
                "assignment",
                "workunit",
                "batch",
            ):
                connection.execute(f"DELETE FROM {table}")
        for store in (self.core.download, self.core.upload):
            shutil.rmtree(store.root)
            store.root.mkdir()

    def clear_users(self):
        """Remove the users that were added."""
        with self.core.db.write() as connection:
            first = f"NOT IN (SELECT id FROM user WHERE name IN ('{VOLUNTEERS}', '{SUBMITTER}'))"
            connection.execute(f"DELETE FROM user_submit_app WHERE user_id {first}")
            connection.execute(f"DELETE FROM user_submit WHERE user_id {first}")
            connection.execute(f"DELETE FROM user WHERE id {first}")

    def template(self, name, edit):
        """Edit a template file, or take it away."""
        path = self.core.templates / name
        text = self._templates[path] = path.read_text("utf-8")
        if edit is None:
            path.unlink()
        else:
            path.write_text(edit(text), "utf-8")

    def without_table(self, name):
        """Take a table away."""
        with self.core.db.write() as connection:
            connection.execute(f"ALTER TABLE {name} RENAME TO missing")
        self._table = name

    def file(self, name, contents=CONTENTS, *batches):
        """Stage a file, associated with batches."""
        self.core.download.add_bytes(name, contents)
        with self.core.db.write() as connection:
            number = insert(
                connection, "job_file", name=name, create_time=time.time(), delete_time=0
            )
            for batch in batches:
                insert(connection, "batch_file_assoc", batch_id=batch, job_file_id=number)

    def batch(self, batch_id, name, state=BatchState.IN_PROGRESS, *, user="alice", app="uppercase"):
        """Insert a batch."""
        with self.core.db.write() as connection:
            return insert(
                connection,
                "batch",
                id=batch_id,
                user_id=self._id(connection, "user", user),
                create_time=int(time.time()),
                name=name,
                name_key=name_key(name),
                app_id=self._id(connection, "app", app),
                state=state,
            )

    def only(self, state, **details):
        """Insert the submitter's batch 1, named b, with one job, named j."""
        self.job(1, "j", self.batch(1, "b", user="submitter"), state, **details)

    def job(
        self, job_id, name, batch, state="unsent", *, app="uppercase", files=None, exit_status=11
    ):
        """Insert a workunit with its results.

        ``state`` is unsent, in_progress, done, failed, aborted, or aborted_in_progress; ``files``
        are the outputs of a done one, by their number in the template.
        """
        failed, aborted = state == "failed", state.startswith("aborted")
        mask = ErrorMask.TOO_MANY_ERROR_RESULTS if failed else ErrorMask.CANCELLED * aborted
        with self.core.db.write() as connection:
            app_id = self._id(connection, "app", app)
            fields = {
                **JOB,
                "id": job_id,
                "create_time": 1,
                "appid": app_id,
                "name": name,
                "name_key": name_key(name),
                "xml_doc": _DOCUMENT,
                "batch": batch,
                "transition_time": NEVER,
                "error_mask": mask,
                "result_template_file": f"templates/{app}_out",
                "mod_time": time.time(),
            }
            insert(connection, "workunit", **fields)
            template = self.core.output_template(self.core.templates / f"{app}_out")
            for number in range(3 if failed else 1):
                result = f"{name}_{number}"
                document = fill_output(template, result, "http://u", "r799338679")
                self._result(connection, result, state, (job_id, batch, app_id), document)
            connection.execute(
                "UPDATE result SET exit_status = ? WHERE workunitid = ? AND outcome = ?",
                (exit_status, job_id, Outcome.CLIENT_ERROR),
            )
        if state == "done":
            self._finish(job_id, f"{name}_0", files or {0: b"FILE ONE P0_261751"})

    @staticmethod
    def _result(connection, name, state, ids, document):
        server_state, outcome = _STATES[state]
        job, batch, app = ids
        fields = {
            "create_time": 1,
            "workunitid": job,
            "server_state": server_state,
            "outcome": outcome,
            "validate_state": ValidateState.VALID if state == "done" else ValidateState.INIT,
            "name": name,
            "xml_doc_in": document,
            "stderr_out": _STDERR,
            "batch": batch,
            "appid": app,
            "cpu_time": 1.5,
            "elapsed_time": 2,
        }
        insert(connection, "result", **{**RESULT, **fields})

    def _finish(self, job, result, files):
        lists = []
        for number, contents in files.items():
            name = f"{result}_r799338679_{number}"
            self.core.upload.add_bytes(name, contents)
            lists.append(
                f"<file_info><name>{name}</name><nbytes>{len(contents)}</nbytes>"
                f"<md5_cksum>{hashlib.md5(contents).hexdigest()}</md5_cksum></file_info>"
            )
        with self.core.db.write() as connection:
            connection.execute(
                "UPDATE result SET xml_doc_out = ? WHERE name = ?", ("".join(lists), result)
            )
            connection.execute(
                "UPDATE workunit SET canonical_resultid = (SELECT id FROM result WHERE name = ?) "
                "WHERE id = ?",
                (result, job),
            )

    @staticmethod
    def _id(connection, table, name):
        row = connection.execute(f"SELECT id FROM {table} WHERE name = ?", (name,)).fetchone()
        return int(row[0])
