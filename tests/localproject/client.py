"""A small client of the web RPCs, for tests: what it sends and gets is not interpreted."""

import hashlib
import re
from xml.sax.saxutils import escape

import requests

from tests.helpers import wait_for
from tests.inside import unfinished_jobs


class Elsewhere:
    """What a client needs to know of a project that another process runs."""

    def __init__(self, core):
        self.core = core
        self.url = core.url
        query = "SELECT authenticator FROM user WHERE name = 'submitter'"
        self.authenticator = core.db.connection().execute(query).fetchone()[0]


class Client:
    """One user's view of a project."""

    def __init__(self, project, authenticator=None):
        self.project = project
        self.authenticator = authenticator or project.authenticator
        self.session = requests.Session()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.session.close()

    def post(self, request, page="submit_rpc_handler.php", files=None):
        """Send a request as a multipart form."""
        parts = {"request": (None, request.encode()), **(files or {})}
        return self.session.post(self.project.url + page, files=parts, timeout=60)

    def rpc(self, name, inner="", **fields):
        """Send an RPC and return the reply."""
        elements = "".join(f"<{tag}>{escape(str(text))}</{tag}>" for tag, text in fields.items())
        auth = f"<authenticator>{self.authenticator}</authenticator>"
        return self.post(f"<{name}>{auth}{elements}{inner}</{name}>").text

    def create_batch(self, name, app="uppercase"):
        """Make a batch and return its id."""
        return int(value(self.rpc("create_batch", batch_name=name, app_name=app), "batch_id"))

    def put(self, *files, batch_id=0):
        """Upload files, pairs of a physical name and contents; return the reply."""
        listed = "".join(f"<phys_name>{name}</phys_name>" for name, _ in files)
        return self.post(
            f"<upload_files><authenticator>{self.authenticator}</authenticator>"
            f"<batch_id>{batch_id or ''}</batch_id>{listed}</upload_files>",
            "job_file.php",
            {f"file_{n}": file for n, file in enumerate(files)},
        ).text

    def upload(self, *contents, batch_id=0):
        """Stage files that are not staged yet; return the physical names of all."""
        every = {f"{hashlib.md5(data).hexdigest()}.dat": data for data in contents}
        new = [file for file in every.items() if not self.project.core.download.exists(file[0])]
        reply = self.put(*new, batch_id=batch_id)
        assert "<success/>" in reply, reply
        return [*every]

    def begun(self, name, app="uppercase"):
        """Make a batch and stage a file; return the batch's id and the file's name."""
        batch_id = self.create_batch(name, app)
        (file,) = self.upload(b"x")
        return batch_id, file

    def submit(self, batch_id, jobs, app="uppercase", more=""):
        """Submit jobs, made by :func:`job`, and return the reply; ``more`` is of the batch."""
        batch = f"<batch_id>{batch_id}</batch_id><app_name>{app}</app_name>{more}{''.join(jobs)}"
        return self.rpc("submit_batch", f"<batch>{batch}</batch>")

    def run(self, batch, jobs, app="uppercase"):
        """Submit jobs (name: command line and inputs) and wait until all have ended."""
        batch_id = self.create_batch(batch, app)
        contents = list({data: None for _, inputs in jobs.values() for data in inputs})
        names = dict(zip(contents, self.upload(*contents), strict=True))
        lines = [
            job(name, *(names[data] for data in inputs), command_line=command_line)
            for name, (command_line, inputs) in jobs.items()
        ]
        reply = self.submit(batch_id, lines, app)
        assert f"<batch_id>{batch_id}<" in reply, reply
        self.wait()
        return batch_id

    def rows(self, query, *values):
        """Return what the project's database has."""
        return self.project.core.db.connection().execute(query, values).fetchall()

    def wait(self):
        """Return when no job is unfinished."""
        wait_for(self._finished, "all jobs done or failed", timeout=60)

    def _finished(self):
        self.project.check()
        return unfinished_jobs(self.project) == 0

    def statuses(self, *batches):
        """Return the statuses of the jobs of batches."""
        inner = "".join(f"<batch_name>{escape(name)}</batch_name>" for name in batches)
        reply = self.rpc("query_batch2", inner)
        return dict(re.findall(r"<job_name>(.*)</job_name>\s*<status>(.*)</status>", reply))

    def output(self, job_name, number=0):
        """Fetch an output by workunit_file."""
        return self.get(
            cmd="workunit_file", wu_name=job_name, file_num=number, auth_str=self.authenticator
        )

    def get(self, **arguments):
        """Fetch something from get_output.php."""
        texts = {name: str(argument) for name, argument in arguments.items()}
        return self.session.get(f"{self.project.url}get_output.php", params=texts, timeout=60)

    def signed(self, name):
        """Return the auth_str of all commands but workunit_file."""
        return hashlib.md5(f"{self.authenticator}{name}".encode()).hexdigest()


def job(name, *files, command_line="", more=""):
    """Return a ``<job>`` with staged input files."""
    inputs = "".join(
        f"<input_file><mode>local_staged</mode><source>{file}</source></input_file>"
        for file in files
    )
    return (
        f"<job><name>{escape(name)}</name><command_line>{escape(command_line)}</command_line>"
        f"{inputs}{more}</job>"
    )


def with_file(name, mode, source):
    """Return a ``<job>`` with one input file of another mode."""
    file = f"<input_file><mode>{mode}</mode><source>{source}</source></input_file>"
    return f"<job><name>{name}</name>{file}</job>"


def value(reply, tag):
    """Return the text of the first element of that name."""
    match = re.search(rf"<{tag}>(.*?)</{tag}>", reply, re.DOTALL)
    assert match, reply
    return match[1]


def error(reply):
    """Return the words of an error reply."""
    return value(reply, "error_msg")
