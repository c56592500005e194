"""``boinc_gahp demo``: the whole life of a batch, on this machine, in under a minute."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from boinc_gahp.extras import need_extra
from boinc_gahp.gahp.lines import decode, join, split
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.logs import redact
from boinc_gahp.states import JobState, job_state
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.terminal.stopping import orderly
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from argparse import Namespace

_INPUTS = (
    "The quick brown fox jumps over the lazy dog.\n",
    "Jobs go out to volunteers, and their outputs come back.\n" * 100,
    "Grüße aus dem Rechenzentrum: ß, é, ø and λ are letters, too.\n",
)
_JOBS = 20
_HOSTS = 4
#: Seconds after which something must have gone wrong.
_TIMEOUT = 120.0
#: Seconds within which the daemon has to end after its stdin was closed.
_STOPPING = 5.0
#: Seconds between two looks at the batch; a gridmanager takes a minute.
_INTERVAL = 0.4
_PREFIX = "GAHP:"

_DESCRIPTION = """\
Starts a BOINC project with volunteers on this machine, and the daemon as HTCondor would start it.
Submits a batch of 20 jobs, watches it, fetches and checks every output, and lets the project delete
the batch.
"""
_SETTINGS = """\
# The demo's own settings: state and log stay with it.
[state]
dir = "state"
cache_dir = "cache"
[logging]
level = "debug"
"""


def run(options: Namespace) -> int:
    """Run the demo; return the exit status."""
    need_extra("local-project", "the demo", "flask", "waitress")
    with orderly():
        if options.directory is not None:
            return _demonstrate(_made(options.directory), options.show_conversation)
        with TemporaryDirectory(prefix="boinc_gahp-demo-") as directory:
            return _demonstrate(Path(directory), options.show_conversation)


def run_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "demo",
        _DESCRIPTION,
        examples=(
            "boinc_gahp demo",
            "boinc_gahp demo --show-conversation --directory ~/demo",
        ),
        statuses={
            0: "every output is right",
            1: "an output is wrong, or the demo failed; stderr says why",
        },
    )
    directory = {
        "--directory DIR": "a new or empty directory, in which inputs, outputs, the project and "
        "the daemon's log stay (default: a temporary one, which is removed at the end)"
    }
    parser.takes({"--show-conversation": "print the GAHP lines that are exchanged"})
    return parser.takes(directory, type=Path)


class _Gahp:
    """The daemon on pipes, started as HTCondor starts it; a context manager that stops it."""

    def __init__(self, directory: Path, *, show: bool) -> None:
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
        environment |= {k: text for k, text in os.environ.items() if k.startswith("COVERAGE_")}
        # A session of its own: Ctrl-C at the keyboard goes to us, and we stop the daemon.
        self._process = subprocess.Popen(
            [_program()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )
        self._show = show
        self._is_late = False
        self._timer = threading.Timer(_TIMEOUT, self._give_up)
        self._prefix = ""
        self._announced = False
        self._last_id = 1  # a gridmanager begins with 2, too
        self._results: dict[int, list[str]] = {}

    def __enter__(self) -> _Gahp:
        self._timer.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        """Stop the daemon as a gridmanager does: by closing its stdin."""
        self._timer.cancel()
        with self._process as process:
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
            try:
                process.wait(_STOPPING)
            except subprocess.TimeoutExpired:
                process.kill()

    def begin(self) -> None:
        """Read the banner, and send a gridmanager's first commands."""
        self._line()
        self.ask("COMMANDS")
        self.ask("RESPONSE_PREFIX", _PREFIX)
        self._prefix = _PREFIX
        self.ask("ASYNC_MODE_ON")

    def ask(self, *words: str) -> list[str]:
        """Send a command; return the arguments of its Return Line."""
        line = join(words)
        self._tell(">", decode(line))
        try:
            os.write(self._process.stdin.fileno(), line + b"\r\n")  # type: ignore[union-attr]
        except BrokenPipeError:
            raise self._ended() from None
        while (answer := self._line()) == b"R":
            self._announced = True
        status, *values = split(answer)
        if status != "S":
            raise LocalProjectTrouble(f"{words[0]} was answered with {decode(answer)}")
        return values

    def request(self, command: str, *words: str) -> int:
        """Send an asynchronous command; return its request id."""
        self._last_id += 1
        self.ask(command, str(self._last_id), *words)
        return self._last_id

    def result(self, request_id: int) -> list[str]:
        """Wait for the result of a request; return its values."""
        while request_id not in self._results:
            if not self._announced:
                self._announced = self._line() == b"R"
                continue
            self._announced = False
            [count] = self.ask("RESULTS")
            for _ in range(int(count)):
                number, *values = split(self._line())
                self._results[int(number)] = values
        error, *values = self._results.pop(request_id)
        if error != "NULL":
            raise LocalProjectTrouble(
                f"the daemon's answer is: {error} (--directory keeps its log)"
            )
        return values

    def _line(self) -> bytes:
        """Return the daemon's next line, without the prefix."""
        line = self._process.stdout.readline().rstrip(b"\r\n")  # type: ignore[union-attr]
        if not line:
            raise self._ended()
        self._tell("<", decode(line))
        if not line.startswith(self._prefix.encode()):
            shown = shorten(decode(line))
            raise LocalProjectTrouble(f"the daemon wrote a line without the prefix: {shown}")
        return line.removeprefix(self._prefix.encode())

    def _tell(self, arrow: str, line: str) -> None:
        if self._show:
            print(arrow, redact(line).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))

    def _give_up(self) -> None:
        self._is_late = True
        self._process.kill()

    def _ended(self) -> LocalProjectTrouble:
        if self._is_late:
            return LocalProjectTrouble(
                "the jobs are not done in time (--directory keeps the daemon's log)"
            )
        return LocalProjectTrouble(f"the daemon has ended with status {self._process.wait()}")


def _program() -> Path:
    """Return the path of the installed command."""
    beside = Path(sys.executable).with_name("boinc_gahp")
    return beside if beside.exists() else Path(sys.argv[0]).absolute()


def _demonstrate(directory: Path, show_conversation: bool) -> int:
    from boinc_gahp.localproject.project import LocalProject

    begun = time.monotonic()
    inputs, outputs = directory / "inputs", directory / "outputs"
    try:
        inputs.mkdir()
        outputs.mkdir()
        paths = [inputs / f"text{number}.txt" for number in range(len(_INPUTS))]
        for path, text in zip(paths, _INPUTS, strict=True):
            path.write_text(text, "utf-8")
        print("Starting a BOINC project with volunteers on this machine ...", flush=True)
        with LocalProject(directory / "project", hosts=_HOSTS) as project:
            print(f"It answers at {project.url}. Starting the daemon on pipes ...", flush=True)
            with _Gahp(directory / "daemon", show=show_conversation) as gahp:
                gahp.begin()
                gahp.ask("BOINC_SELECT_PROJECT", project.url, project.authenticator)
                gahp.result(gahp.request("BOINC_PING"))
                _run_batch(gahp, paths, outputs)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise LocalProjectTrouble(str(error)) from error
    right = sum(
        (outputs / _output(number)).read_text("utf-8") == _INPUTS[number % len(_INPUTS)].upper()
        for number in range(_JOBS)
    )
    print(f"That took {time.monotonic() - begun:.1f} s.")
    print(f"{right} of {_JOBS} outputs are right")
    return 0 if right == _JOBS else 1


def _run_batch(gahp: _Gahp, inputs: list[Path], outputs: Path) -> None:
    """Submit a batch, fetch the outputs of each job when it is done, and retire the batch."""
    batch = f"demo#{time.time():.0f}"
    jobs = {f"{batch}#0.{number}": number for number in range(_JOBS)}
    words = [str(_JOBS)]
    for job, number in jobs.items():
        # Each job sleeps for a second, so that there is something to watch.
        words += [job, "2", "--sleep", "1", "1", str(inputs[number % len(inputs)]), "in"]
    print(f"Submitting {_JOBS} jobs with {len(inputs)} texts ...", flush=True)
    gahp.result(gahp.request("BOINC_SUBMIT", batch, "uppercase", *words))
    states: dict[str, str] = {}
    fetched: set[str] = set()
    since, told, begun = "0", "", time.monotonic()
    while len(fetched) < _JOBS:
        since, _, *pairs = gahp.result(gahp.request("BOINC_QUERY_BATCHES", since, "1", batch))
        changed = dict(zip(pairs[::2], map(job_state, pairs[1::2]), strict=True))
        # Jobs that changed around the time of the last query are reported again.
        done = {job for job, state in changed.items() if state is JobState.DONE} - fetched
        if JobState.FAILED in changed.values():
            raise LocalProjectTrouble(
                f"jobs of {batch} have failed (--directory keeps the daemon's log)"
            )
        requests = [
            gahp.request(
                "BOINC_FETCH_OUTPUT",
                job,
                str(outputs),
                f"output{jobs[job]:02}.stderr",
                *("SOME", "1", "out", _output(jobs[job])),
            )
            for job in sorted(done)
        ]
        failed = {status for status, *_ in map(gahp.result, requests)} - {"0"}
        if failed:
            raise LocalProjectTrouble(
                f"jobs of {batch} have failed with exit status {min(failed)} (--directory keeps "
                "the daemon's log)"
            )
        fetched |= done
        states |= {job: state.value for job, state in changed.items()}
        states |= dict.fromkeys(fetched, "fetched")
        counts = ", ".join(f"{n} {state}" for state, n in sorted(Counter(states.values()).items()))
        if counts != told:
            print(f"{time.monotonic() - begun:5.1f} s  {counts}", flush=True)
        told = counts
        time.sleep(_INTERVAL)
    gahp.result(gahp.request("BOINC_RETIRE_BATCH", batch))
    print("All outputs were fetched, and the batch is retired.", flush=True)


def _output(number: int) -> str:
    return f"output{number:02}.txt"


def _made(named: Path) -> Path:
    """Return a directory, which is made if it is missing.

    Raises:
        LocalProjectTrouble: it has something in it, or cannot be used.
    """
    directory = named.expanduser().absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise LocalProjectTrouble(f"{directory} is not empty; name a new or an empty directory")
    except OSError as error:
        raise LocalProjectTrouble(f"{directory} cannot be used: {error.strerror}") from error
    return directory
