"""One workunit and whatever happens to it, on a project's directory, without threads."""

import hashlib

from boinc_gahp.localproject.backend.assimilator import assimilate_pass
from boinc_gahp.localproject.backend.cleaning import delete_pass
from boinc_gahp.localproject.backend.scheduler import Report, Scheduler
from boinc_gahp.localproject.backend.transitioner import transition_pass
from boinc_gahp.localproject.backend.validator import validate_pass
from boinc_gahp.localproject.core import Core, Php
from boinc_gahp.localproject.states import Outcome, ServerState, ValidateState
from boinc_gahp.templates.documents import read_result
from boinc_gahp.templates.filling import JobFile, fill_input
from boinc_gahp.templates.types import OutputTemplate
from boinc_gahp.templates.writing import write_output_template

#: Before NEVER, and later than the clock by which a page or an RPC of a bench makes jobs.
NOW = 2_100_000_000.0
HOSTS = 6

#: Short names of states, for tables of rules.
IN_PROGRESS, OVER = ServerState.IN_PROGRESS, ServerState.OVER
SUCCESS, ERROR, NO_REPLY = Outcome.SUCCESS, Outcome.CLIENT_ERROR, Outcome.NO_REPLY
INIT, VALID, INVALID = ValidateState.INIT, ValidateState.VALID, ValidateState.INVALID
INCONCLUSIVE, NO_CHECK = ValidateState.INCONCLUSIVE, ValidateState.NO_CHECK

#: What workunits have that nobody has thought about.
JOB = {
    "appid": 1,
    "rsc_fpops_est": 1e9,
    "min_quorum": 1,
    "target_nresults": 1,
    "max_error_results": 2,
    "max_total_results": 5,
    "max_success_results": 3,
    "result_template_file": "templates/uppercase_out",
    "rsc_fpops_bound": 1e12,
    "rsc_memory_bound": 1e6,
    "rsc_disk_bound": 1e6,
    "delay_bound": 100.0,
}
#: The same of results.
RESULT = {"xml_doc_in": "", "batch": 1, "random": 1, "appid": 1}


def insert(connection, table, **columns):
    """Insert a row; return its id."""
    marks = ", ".join("?" * len(columns))
    return connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values())
    ).lastrowid


class Bench:
    """A project's back end; time stands still unless it is moved."""

    def __init__(self, directory, hosts=HOSTS):
        self.directory = directory
        self.now = NOW
        self.open()
        self.add_hosts(range(1, hosts + 1))

    def open(self):
        self.core = Core(self.directory, Php())
        self.scheduler = Scheduler(self.core)

    def add_hosts(self, numbers):
        """Add the hosts that are not there yet."""
        capacities = dict.fromkeys(("p_fpops", "m_nbytes", "d_free", "n_bwdown"), 1e9)
        for number in sorted({*numbers} - {*self.column("host", "id")}):
            host = {"id": number, "userid": 1, "domain_name": f"h{number}"}
            self.insert("host", create_time=0, **host, **capacities)

    def close(self):
        self.core.db.close()

    # What there is.

    def workunit(self, name="w", **columns):
        """Make a workunit of the app uppercase; return its id."""
        core = self.core
        core.download.add_bytes("in.txt", b"x")
        template = core.input_template(core.templates / "uppercase_in")
        fields = {
            **JOB,
            "create_time": NOW,
            "name": name,
            "name_key": name,
            "xml_doc": fill_input(template, [JobFile("in.txt", 1, "0", ("http://h/",))]),
            "batch": 1,
            "transition_time": NOW,
            "mod_time": NOW,
        }
        return self.insert("workunit", **{**fields, **columns})

    def made(self, name="w", **columns):
        """Make a workunit and let the transitioner make its results; return its id."""
        number = self.workunit(name, **columns)
        self.transition()
        return number

    def result(self, state, outcome=Outcome.INIT, **columns):
        """Add a result to the newest workunit, as something has left it; return its id."""
        [(workunit, name)] = self.rows("SELECT id, name FROM workunit ORDER BY id DESC LIMIT 1")
        [(number,)] = self.rows("SELECT count(*) FROM result WHERE workunitid = ?", workunit)
        fields = {"create_time": NOW, "workunitid": workunit, "name": f"{name}_{number}"}
        states = {"server_state": state, "outcome": outcome}
        return self.insert("result", **{**RESULT, **fields, **states, **columns})

    def batch(self, state, **columns):
        """Make batch 1, that of all workunits."""
        names = {"name": "b", "name_key": "b", "app_id": 1}
        self.insert("batch", id=1, user_id=1, create_time=0, state=state, **names, **columns)

    def finished(self, name="w"):
        """Make a workunit, and let a host do it; what comes after the validator is not done."""
        self.made(name)
        self.answer(self.send())
        self.transition()
        self.validate()

    def outputs(self, *files):
        """Let the results that are made from now on have these output files."""
        text = write_output_template(OutputTemplate(files))
        (self.core.templates / "uppercase_out").write_text(text)

    def module(self, name, source):
        """Put a module of plug-ins into the project's directory."""
        directory = self.directory / "modules"
        directory.mkdir(exist_ok=True)
        (directory / f"{name}.py").write_text(source)

    def insert(self, table, **columns):
        with self.core.db.write() as connection:
            return insert(connection, table, **columns)

    def set(self, table, where="1", **columns):
        with self.core.db.write() as connection:
            assignments = ", ".join(f"{column} = ?" for column in columns)
            connection.execute(
                f"UPDATE {table} SET {assignments} WHERE {where}", tuple(columns.values())
            )

    def rows(self, query, *values):
        """Return what the database has."""
        return self.core.db.connection().execute(query, values).fetchall()

    @property
    def wu(self):
        """The first workunit."""
        return self.rows("SELECT * FROM workunit")[0]

    def column(self, table, column):
        return [row[0] for row in self.rows(f"SELECT {column} FROM {table} ORDER BY rowid")]

    def results(self, column):
        return self.column("result", column)

    def trouble(self, program):
        """Return what is noted as a program's error."""
        return str(self.rows("SELECT error FROM program WHERE name = ?", program)[0]["error"])

    # What the programs do.

    def transition(self):
        return transition_pass(self.core, self.now)

    def validate(self):
        return validate_pass(self.core, self.now)

    def assimilate(self):
        return assimilate_pass(self.core, self.now)

    def settle(self):
        """Run all programs until there is nothing to do."""
        for _ in range(20):
            if not (
                self.transition() + self.validate() + self.assimilate() + delete_pass(self.core)
            ):
                return
        raise AssertionError("the back end does not come to rest")

    # What hosts do.

    def send(self, host=1):
        return self.scheduler.request_work(host, self.now)

    def answer(self, task, host=1, *, status=0, files=None, says=None, elapsed_time=10.0):
        """Report a result: the output ``files`` by their open names, or an exit status. Return it.

        ``says``: what the host says that they hold, where that is something else.
        """
        outcome = Outcome.CLIENT_ERROR if status else Outcome.SUCCESS
        uploads = "" if status else self._upload(task, {"out": b"OUT"} if files is None else files)
        if says is not None:
            uploads = self._listed(task, says)
        report = Report(outcome, status, elapsed_time, 9.0, "stderr", uploads)
        self.scheduler.report(host, task, report, self.now)
        return report

    def _upload(self, task, files):
        for file in read_result(task.xml_doc_in):
            if file.open_name in files:
                self.core.upload.remove(file.name)
                self.core.upload.add_bytes(file.name, files[file.open_name])
        return self._listed(task, files)

    @staticmethod
    def _listed(task, files):
        return "".join(
            f"<file_info>\n    <name>{file.name}</name>\n"
            f"    <nbytes>{len(files[file.open_name])}</nbytes>\n    "
            f"<md5_cksum>{hashlib.md5(files[file.open_name]).hexdigest()}</md5_cksum>\n"
            "    <status>1</status>\n</file_info>\n"
            for file in read_result(task.xml_doc_in)
            if file.open_name in files
        )

    def compute(self, *outputs):
        """Let hosts 1, 2, … take a result each, and answer with these bytes."""
        tasks = [self.send(host) for host in range(1, len(outputs) + 1)]
        for host, (task, output) in enumerate(zip(tasks, outputs, strict=True), 1):
            self.answer(task, host, files={"out": output})
