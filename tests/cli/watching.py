"""A ledger, and what ``boinc_gahp ledger status`` says of it, in all of its ways."""

import json
import time

from prometheus_client.parser import text_string_to_metric_families

from boinc_gahp.cli.ledger.monitoring import REASONS
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.ledger.rows import NewJob
from boinc_gahp.secret import Authenticator
from tests.helpers import command

URL = "https://boinc.example.edu/test/"
OTHER = "https://elsewhere.example/"
SECRET = "0123456789abcdef0123456789abcdef"
ACCOUNT = Authenticator(SECRET).account
DAY = 86400.0
NAME = "bg-" + "0a" * 16
MINE = (URL, ACCOUNT)


class Desk:
    """A user's settings, ledger and jobs, and the command."""

    def __init__(self, home, capsys):
        self.home = home
        self.path = home / ".local/state/boinc_gahp/ledger.sqlite"
        self.settings = home / ".config/boinc_gahp/boinc_gahp.toml"
        self.settings.parent.mkdir(parents=True)
        self.settings.touch(0o600)
        self.settings.write_text(f"[project]\nurl = '{URL}'\nauthenticator = '{SECRET}'\n")
        self.metrics = home / "jobs.prom"
        self._capsys = capsys
        self._ledger = None

    @property
    def ledger(self):
        """The ledger, which the first use makes."""
        if self._ledger is None:
            self._ledger = Ledger(self.path)
        return self._ledger

    @property
    def jobs(self):
        return JobLedger(self.ledger.store)

    def do(self, statement, *values):
        """Change the ledger as time would."""
        self.ledger.store.write(lambda connection: connection.execute(statement, values).rowcount)

    def close(self):
        if self._ledger is not None:
            self._ledger.close()

    def status(self, *options):
        status, out, err = command(self._capsys, "ledger", "status", *options)
        assert SECRET not in out + err
        return status, out, err

    def json(self, *options):
        """Return what ``--json`` prints; its status says whether there is something to look at."""
        status, out, err = self.status("--json", *options)
        found = json.loads(out)
        assert (status, err) == (1 if found["problems"] else 0, "")
        return found

    def reasons(self, *options):
        """Return why somebody should look, as all three ways tell it."""
        found = [each["reason"] for each in self.json(*options)["problems"]]
        status, out, err = self.status(*options)
        assert (status, err) == (1 if found else 0, "")
        told = [line.strip() for line in out.partition("Problems\n")[2].splitlines()]
        assert [line.partition(":")[0] for line in told] == found
        status, out, err = self.status("--textfile", str(self.metrics), *options)
        assert (status, out, err) == (1 if found else 0, "", "")
        samples = self.samples("boinc_gahp_attention")
        assert {labels["reason"]: value for labels, value in samples} == {
            reason: found.count(reason) for reason in REASONS
        }
        return found

    def samples(self, name):
        """Return labels and values of a metric in the file that was written."""
        return [
            (sample.labels, sample.value)
            for family in text_string_to_metric_families(self.metrics.read_text("utf-8"))
            for sample in family.samples
            if sample.name == name
        ]


def directory(cluster):
    return f"home_bl_cm.example.edu_9618_submit1_{cluster}.0_1795261016"


def accept(jobs, cluster, *, url=URL, name="", account=ACCOUNT):
    description = json.dumps({"iwd": "/home/alice/my run", "args": ["a b", "c"], "stdout": "o"})
    job = NewJob(directory(cluster), url, account, name, "uppercase", "t", 600, description)
    return jobs.accept(job).id


def on_project(jobs, *clusters, name=NAME):
    ids = [accept(jobs, cluster) for cluster in clusters]
    batch = jobs.plan(URL, ACCOUNT, name, "uppercase", "t", ids, time.time() + DAY)
    jobs.about_to_send(batch.id, 7, ids)
    jobs.submitted(batch.id, 7)
    return batch.id, ids


def silent(jobs, job_id, days):
    """Let HTCondor not have asked about a job for so long."""
    jobs.store.write(
        lambda connection: (
            connection.execute(
                "UPDATE job SET last_polled = last_polled - ? WHERE id = ?", (days * DAY, job_id)
            ).rowcount
        )
    )
