"""The project of a soak, in a process of its own, behind a proxy that misbehaves.

It is told in JSON on its command line what to be (:class:`Wanted`), says in a line of JSON where
it is, and answers each line on its standard input with one (:class:`Told`). It ends with its input.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.inside import rows
from tests.soak.clock import Clock
from tests.soak.work import APP, work_of

_MAIN = "import sys; from tests.soak.serve import main; main(sys.argv[1])"


@dataclass(frozen=True)
class Wanted:
    """What a project is to be.

    Attributes:
        directory: where it lives.
        users: who may submit.
        hosts: how many volunteers it has.
        faults: what goes wrong, of ``faults.NAMES``.
        read: seconds that clients wait for an answer.
    """

    directory: str
    users: list[str]
    hosts: int
    faults: list[str]
    seed: str
    read: float
    origin: float
    speed: float


class Project:
    """The process, as the soak sees it.

    Attributes:
        url: of the proxy.
        direct: of the project itself, for who takes the proxy for one.
        authenticators: by user.
    """

    def __init__(self, process):
        self._process = process
        place = self._read()
        self.url = place["url"]
        self.direct = place["direct"]
        self.authenticators = place["authenticators"]

    def ask(self, what):
        """Ask for ``counts`` or ``work``, or have all faults stopped (``heal``)."""
        assert self._process.stdin
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self):
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the project has ended"
        return json.loads(line)


@contextmanager
def running(wanted, log):
    """Run a project until the end of the block; what it has to say goes into a log."""
    clock = Clock(wanted.origin, wanted.speed)
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", f"{clock.statements}; {_MAIN}", json.dumps(asdict(wanted))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield Project(process)
            process.communicate()
            assert process.returncode == 0, f"the project has failed: {log}"
        finally:
            if process.poll() is None:
                process.kill()


def main(words):
    """Be the project."""
    from boinc_gahp.localproject.project import LocalProject
    from tests.faultproxy import FaultProxy
    from tests.soak.faults import Faults
    from tests.soak.volunteers import at_work

    wanted = Wanted(**json.loads(words))
    clock = Clock(wanted.origin, wanted.speed)
    with (
        LocalProject(Path(wanted.directory), hosts=0) as local,
        FaultProxy(local.url) as proxy,
    ):
        faults = Faults(
            wanted.faults, wanted.seed, clock, wanted.read, lambda batch: _is_made(local, batch)
        )
        local.add_app(APP, command="true", inputs="in", outputs="out")
        authenticators = {name: local.add_user(name) for name in wanted.users}
        proxy.choose = faults
        with at_work(local, wanted.hosts):
            _say({"url": proxy.url, "direct": local.url, "authenticators": authenticators})
            for line in sys.stdin:
                if line == "heal\n":
                    faults.stop()
                _say(_work(local) if line == "work\n" else _counts(local, proxy, faults))


def _say(what):
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def _is_made(local, batch):
    """Tell whether a batch has jobs, by its name or id."""
    query = (
        "SELECT 1 FROM batch b JOIN workunit w ON w.batch = b.id "
        "WHERE b.name = ? OR b.id = CAST(? AS INTEGER) LIMIT 1"
    )
    return bool(rows(local, query, batch, batch if batch.isdecimal() else "0"))


def _counts(local, proxy, faults):
    stuck = [
        str(batch_id)
        for batch_id, name in rows(local, "SELECT id, name FROM batch")
        if faults.is_stuck(name) or faults.is_stuck(str(batch_id))
    ]
    documents = rows(local, f"SELECT xml_doc FROM workunit WHERE batch IN ({','.join(stuck)})")
    return {
        "stuck": [work_of(document).number for (document,) in documents],
        "requests": len(proxy.seen),
        "faults": dict(faults.happened),
    }


def _work(local):
    """Return each workunit's command line, error mask, and number of results that succeeded."""
    from boinc_gahp.localproject.states import Outcome

    workunits = rows(
        local,
        "SELECT w.name, w.xml_doc, w.error_mask, w.batch, (SELECT count(*) FROM result r WHERE "
        "r.workunitid = w.id AND r.outcome = ?) FROM workunit w ORDER BY w.id",
        Outcome.SUCCESS,
    )
    query = "SELECT b.id, b.name, b.state, u.name FROM batch b JOIN user u ON b.user_id = u.id"
    return {
        "workunits": [list(row) for row in workunits],
        "batches": [list(row) for row in rows(local, query)],
    }
