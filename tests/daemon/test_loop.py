import os
import threading
from contextlib import suppress

import pytest

from boinc_gahp.daemon import _loop as loop_module
from boinc_gahp.daemon._engine import Engine
from boinc_gahp.daemon._loop import Loop
from boinc_gahp.daemon.main import Wakeup
from boinc_gahp.gahp import lines
from boinc_gahp.gahp.banner import BANNER
from tests.daemon.stand_in import SETTINGS, StandIn, StandInService, StoodIn, end
from tests.helpers import wait_for


class Running:
    """A loop on a thread, between two pipes."""

    def __init__(self):
        self.loop_in, self.to_loop = os.pipe()
        self.from_loop, self.loop_out = os.pipe()
        self.wakeup = Wakeup()
        self.service = StandInService()
        self.projects = StoodIn(lambda: SETTINGS, StandIn(), self.service)
        self.engine = Engine(self.projects, on_result=self.wakeup.notify)
        self.thread = threading.Thread(target=self.run)
        self.seen_of_big = 0

    def run(self):
        Loop(self.engine, self.wakeup, self.loop_in, self.loop_out).run()

    def read(self, size):
        data = b""
        while len(data) < size:
            piece = os.read(self.from_loop, size - len(data))
            assert piece
            data += piece
        return data

    def join(self):
        self.thread.join(60)
        assert not self.thread.is_alive()

    def stop(self):
        self.wakeup.stopped = True
        self.wakeup.notify()

    def close(self):
        self.stop()
        if self.thread.ident is not None:
            self.join()
        self.service.go.set()
        end(self.engine)
        self.projects.close()
        for fd in (self.loop_in, self.to_loop, self.from_loop, self.loop_out, self.wakeup.fd):
            with suppress(OSError):
                os.close(fd)
        os.close(self.wakeup._write_fd)


@pytest.fixture
def running():
    running = Running()
    yield running
    running.close()


ANSWER = b"S\n"


def test_reading_goes_on_when_a_client_takes_what_has_piled_up(running, monkeypatch):
    monkeypatch.setattr(loop_module, "MAX_BACKLOG", 1000)
    monkeypatch.setattr(loop_module, "READ_SIZE", 1500)
    running.thread.start()
    lines = b"VERSION\n" * 10_000
    sender = threading.Thread(target=_send, args=(running.to_loop, lines))
    sender.start()
    # The loop has stopped reading: the pipes are full, and the sender waits.
    sender.join(0.5)
    assert sender.is_alive()
    answers = (b"S " + BANNER) * 10_000
    assert running.read(len(answers)) == answers
    sender.join(60)


def _send(fd, data):
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


@pytest.mark.parametrize("signalled", [False, True], ids=["after a while", "by a signal"])
def test_end_of_input_with_nobody_reading_ends(running, monkeypatch, signalled):
    monkeypatch.setattr(loop_module, "LAST_OUTPUT", 3600.0 if signalled else 0.2)
    os.write(running.to_loop, b"COMMANDS\n" * 2000)
    os.close(running.to_loop)
    running.thread.start()
    if signalled:
        threading.Timer(0.3, running.stop).start()
    running.join()


def test_after_the_end_of_input_a_client_may_take_its_time(running):
    os.write(running.to_loop, b"COMMANDS\n" * 2000)
    os.close(running.to_loop)
    running.thread.start()
    running.thread.join(0.3)
    expected = running.engine.handle(b"COMMANDS").output * 2000
    assert running.read(len(expected)) == expected
    running.join()


def test_a_stop_ends_it_between_two_lines(running):
    running.wakeup.stopped = True
    running.thread.start()
    running.join()
    os.set_blocking(running.from_loop, False)
    with pytest.raises(BlockingIOError):
        os.read(running.from_loop, 1)


def test_descriptors_that_do_not_block_are_waited_for(running):
    os.set_blocking(running.loop_in, False)
    os.set_blocking(running.loop_out, False)
    running.thread.start()
    os.write(running.to_loop, b"COMMANDS\n" * 2000)
    wait_for(lambda: running.engine.handle(b"RESULTS").output, "it runs")
    expected = running.engine.handle(b"COMMANDS").output * 2000
    assert running.read(len(expected)) == expected
    os.write(running.to_loop, b"QUIT\n")
    assert running.read(2) == ANSWER
    running.join()


def test_a_result_wakes_it(running):
    running.thread.start()
    os.write(running.to_loop, b"ASYNC_MODE_ON\nBOINC_PING 2\n")
    assert running.read(6) == b"S\nS\nR\n"
    os.write(running.to_loop, b"RESULTS\n")
    assert running.read(11) == b"S 1\n2 NULL\n"


def _ask_for_a_big_result(running, number, answers):
    """Ask for an ad larger than a pipe, then for RESULTS; read up to that answer's beginning."""
    os.write(running.to_loop, b"BLAH_JOB_STATUS %d big\n" % number)
    assert running.read(len(answers)) == answers
    os.write(running.to_loop, b"RESULTS\n")
    head = b"S 1\n%d 0 NULL 4 " % number
    assert running.read(len(head)) == head


def test_htcondor_was_told_when_the_last_byte_is_written(running):
    os.write(running.to_loop, b"ASYNC_MODE_ON\n")
    running.thread.start()
    _ask_for_a_big_result(running, 2, b"S\nS\nR\n")
    # All but what a pipe takes has to be read before the end can have been written.
    _read_all_but(running, 70_000)
    wait_for(lambda: running.engine.conversation.waiting == 0, "the answer is in the output")
    assert running.service.tells == []
    _read_all_but(running, 0)
    wait_for(lambda: running.service.tells == ["big"], "the service was told")


def _read_all_but(running, kept):
    """Read a big result up to ``kept`` bytes before its end."""
    whole = len(lines.escape(running.service.statuses["big"][1]) + "\n")
    running.read(whole - kept - running.seen_of_big)
    running.seen_of_big = whole - kept
