"""The demo's batch: submitted, watched, fetched, checked and retired by GAHP commands."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.cli.gahp_client import ConversationError, Gahp
from boinc_gahp.states import JobState, job_state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp.cli.demo.view import View

_APP = "uppercase"
#: Seconds that each job takes, so that there is something to watch.
_SLEEP = "1"
#: Seconds between two looks at the batch; a gridmanager takes a minute.
_INTERVAL = 0.4

_SETTINGS = """\
# The demo's own settings: state and log stay with it.
[state]
dir = "state"
cache_dir = "cache"
[logging]
level = "debug"
"""


class DemoBatch:
    """A batch of jobs that convert texts to capitals.

    Args:
        directory: for the daemon's files and the outputs.
        inputs: the texts; the jobs take turns with them.
        size: number of jobs.

    Attributes:
        jobs: the jobs' names, each with its input.
        outputs: the directory for the fetched outputs.
        right: number of correct outputs.
        gahp: the daemon.
    """

    def __init__(self, directory: Path, inputs: Sequence[Path], size: int) -> None:
        self._name = f"demo#{time.time():.0f}"
        self.jobs = {f"{self._name}#0.{i}": inputs[i % len(inputs)] for i in range(size)}
        self.outputs = directory / "outputs"
        self.outputs.mkdir()
        self.right = 0
        self._answers: dict[int, Callable[[list[str]], None]] = {}
        self._min_mod_time = "0"
        self._polling = False
        self._requested: set[str] = set()
        self._fetched = 0
        self.gahp = _start_daemon(directory / "daemon")

    def run(self, url: str, authenticator: str, view: View, deadline: float) -> None:
        """Take the batch through its whole life.

        Raises:
            ConversationError: a command failed, or the jobs are not done at ``deadline``
                (monotonic).
        """
        self.gahp.begin()
        self.gahp.ask("BOINC_SELECT_PROJECT", url, authenticator)
        self._call(deadline, "BOINC_PING")
        view.say(f"Submitting {len(self.jobs)} jobs with {len(set(self.jobs.values()))} texts ...")
        self._call(deadline, "BOINC_SUBMIT", self._name, _APP, *self._description())
        next_poll = -math.inf
        while self._fetched < len(self.jobs):
            if time.monotonic() >= next_poll:
                next_poll = time.monotonic() + _INTERVAL
                self._poll(view)
            self._take_results(deadline, next_poll - time.monotonic())
        self._call(deadline, "BOINC_RETIRE_BATCH", self._name)
        view.say("All outputs were fetched, and the batch is retired.")

    def _description(self) -> list[str]:
        words = [str(len(self.jobs))]
        for job, path in self.jobs.items():
            words += [job, "2", "--sleep", _SLEEP, "1", str(path), "in"]
        return words

    def _poll(self, view: View) -> None:
        """Query the jobs, unless the last answer is still to come."""
        if self._polling:
            return
        self._polling = True

        def see(words: list[str]) -> None:
            self._polling = False
            self._min_mod_time = words[0]
            # Jobs that changed around the time of the last query are reported again.
            states = zip(words[2::2], map(job_state, words[3::2]), strict=True)
            new = {job: state for job, state in states if job not in self._requested}
            view.show({job: state.value for job, state in new.items()})
            for job, state in new.items():
                if state is JobState.DONE:
                    self._fetch(job, view)
                elif state is JobState.FAILED:
                    raise ConversationError(f"the project gave up on job {job}")

        self._request(see, "BOINC_QUERY_BATCHES", self._min_mod_time, "1", self._name)

    def _fetch(self, job: str, view: View) -> None:
        self._requested.add(job)
        number = job.rsplit(".", 1)[1]
        name = f"output{int(number):02}"

        def check(_words: list[str]) -> None:
            self._fetched += 1
            text = (self.outputs / f"{name}.txt").read_text("utf-8")
            is_right = text == self.jobs[job].read_text("utf-8").upper()
            self.right += is_right
            view.show({job: "right" if is_right else "wrong"})

        specs = ("SOME", "1", "out", f"{name}.txt")
        self._request(check, "BOINC_FETCH_OUTPUT", job, str(self.outputs), f"{name}.stderr", *specs)

    def _call(self, deadline: float, command: str, *words: str) -> None:
        """Send a command and wait for its result."""
        finished: list[list[str]] = []
        self._request(finished.append, command, *words)
        while not finished:
            self._take_results(deadline, 1.0)

    def _request(self, answer: Callable[[list[str]], None], command: str, *words: str) -> None:
        def report(result: list[str]) -> None:
            if result[0] != "NULL":
                raise ConversationError(f"{command}: {result[0]}")
            answer(result[1:])

        self._answers[self.gahp.request(command, *words)] = report

    def _take_results(self, deadline: float, wait: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ConversationError("the jobs are not done in time")
        for request_id, *words in self.gahp.results(min(max(wait, 0), left)):
            self._answers.pop(int(request_id))(words)


def _start_daemon(directory: Path) -> Gahp:
    """Start the daemon with its own settings and state and little else, as HTCondor does."""
    directory.mkdir()
    settings = directory / "boinc_gahp.toml"
    settings.write_text(_SETTINGS)
    settings.chmod(0o600)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(directory),
        "XDG_CONFIG_DIRS": str(directory / "none"),
        "BOINC_GAHP_CONFIG": str(settings),
    }
    # A variable configures the measuring of coverage in processes that tests start.
    environment |= {key: text for key, text in os.environ.items() if key.startswith("COVERAGE_")}
    return Gahp([_program()], environment, str(directory))


def _program() -> str:
    """Return the path of the installed command."""
    beside = Path(sys.executable).with_name("boinc_gahp")
    return str(beside if beside.exists() else Path(sys.argv[0]).absolute())
