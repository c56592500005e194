"""The daemon's process as HTCondor 10 and later uses it; over a stand-in for the service."""

import hashlib
import signal
from contextlib import contextmanager

import pytest

from boinc_gahp.gahp import lines
from boinc_gahp.gahp.banner import BANNER
from tests.daemon.gridmanager import BatchGridmanager
from tests.daemon.process import STAND_IN, Daemon
from tests.gahp.conversations import BATCH, START
from tests.helpers import wait_for

pytestmark = pytest.mark.processes

CLEAN = (0, b"", b"")


class Noted(Daemon):
    """A daemon whose service notes what it was given and told."""

    def __init__(self, notes):
        super().__init__([*STAND_IN, f"notes={notes}"])
        self._notes = notes

    @property
    def notes(self):
        """What was noted, line by line."""
        return self._notes.read_text().splitlines() if self._notes.exists() else []


@pytest.fixture
def daemon(tmp_path):
    with Noted(tmp_path / "notes") as daemon:
        yield daemon


@contextmanager
def conversing(daemon):
    gridmanager = BatchGridmanager(daemon)
    gridmanager.ping()
    yield gridmanager


def as_htcondor_writes(line):
    """Cut a line as it was seen to arrive: command, id, the rest, its end."""
    *begin, end = line.partition(b" ")
    return [*begin, *end.partition(b" "), b"\r\n"]


def test_a_conversation_is_byte_for_byte_that_of_a_gridmanager(daemon):
    assert daemon.line() + b"\n" == BANNER
    for line in (START.split("\n", 2)[2] + BATCH).encode().splitlines():
        if line.startswith(b"-> "):
            for piece in as_htcondor_writes(line[3:]):
                daemon.send(piece)
        elif line.startswith(b"<- "):
            assert daemon.line() == line[3:]
    daemon.end_input()
    assert daemon.end() == CLEAN


@pytest.mark.parametrize(
    "ad",
    [
        b'[ Cmd = "/a"; Arguments = "' + b"line\nend\r\n\\\\ " * 50_000 + b"x" * 5_000_000 + b'" ]',
        b'[ Cmd = "/\xff\xfe/' + bytes(range(1, 256)) + b'" ]',
        b"\n",
        "[ Cmd = \"/Größe\"; Arguments = '\u2028' ]".encode(),
    ],
    ids=["5 MB", "no UTF-8", "line end", "UTF-8"],
)
def test_an_ad_arrives_whatever_is_in_it(daemon, ad):
    daemon.line()
    assert daemon.ask(lines.join(["BLAH_JOB_SUBMIT", "2", lines.decode(ad)])) == b"S"
    assert daemon.await_results(1) == [b"2 0 NULL boinc/0a1b2c3d.1"]
    (noted,) = daemon.notes
    assert noted == f"submit {len(lines.decode(ad))} {hashlib.sha256(ad).hexdigest()}"


def test_what_was_read_is_reported_and_what_was_not_is_not(daemon):
    with conversing(daemon) as gridmanager:
        assert gridmanager.status("held").word == 5
        assert gridmanager.status("held")["HoldReasonCode"] == 2304
        wait_for(lambda: daemon.notes == ["told held"] * 2, "the service was told")
        gridmanager.begin("BLAH_JOB_STATUS", "big")
        assert daemon.line() == b"GAHP:R"
        daemon.send(b"RESULTS\r\n")
        # More than a pipe holds, and nobody reads it.
        daemon.process.stdout.close()
        assert daemon.process.wait(60) == 0
    assert daemon.notes == ["told held"] * 2 + ["closed"]


@pytest.mark.parametrize("end", ["sigterm", "end of input"])
def test_what_was_told_last_is_noted_before_the_end(daemon, end):
    with conversing(daemon) as gridmanager:
        assert gridmanager.status("completed").word == 4
        if end == "sigterm":
            daemon.process.send_signal(signal.SIGTERM)
        else:
            daemon.end_input()
        assert daemon.end() == CLEAN
    assert daemon.notes == ["told completed", "closed"]


def test_it_ends_in_time_though_a_service_hangs(tmp_path):
    with Noted(tmp_path / "hang") as daemon, conversing(daemon):
        daemon.end_input()
        assert daemon.end() == CLEAN


def test_a_daemon_without_jobs_of_htcondor_makes_no_service(daemon):
    daemon.line()
    daemon.ask(b"BOINC_PING 2")
    daemon.await_results(1)
    daemon.end_input()
    assert daemon.end() == CLEAN
    assert daemon.notes == []
