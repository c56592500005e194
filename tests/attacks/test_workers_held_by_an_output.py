"""The project wants to hold workers with outputs and replies that come a byte at a time."""

import pytest

from boinc_gahp.errors import TransportError
from boinc_gahp.rpc import _limits
from tests.rpc import scripted
from tests.rpc.scripted import http

DISPOSITION = "attachment; filename=job_0_r1_0"


def file(size):
    kind = {"Content_Type": "application/octet-stream", "Content_Disposition": DISPOSITION}
    return http(200, b"x" * size, **kind)


def client(server, rate, span=0.5):
    return server.client(read_timeout=60, output_rate=rate, rate_span=span)


def fetched(server, rate, span=0.5):
    with client(server, rate, span) as project, project.result_file("job_0", 0) as stream:
        return b"".join(stream.chunks())


@pytest.mark.parametrize("where", ["body", "headers"])
def test_an_output_that_drips_is_given_up(server, where):
    data = file(1_000_000)
    head = len(data) - 1_000_000

    def drip(answer):
        if where == "body":
            answer.connection.sendall(data[:head])
        return scripted.drip(data[head if where == "body" else 0 :], 0.01)(answer)

    server.answers.append(drip)
    with pytest.raises(TransportError, match="fewer than 10,000 bytes a second") as caught:
        fetched(server, 10_000)
    assert "(output_rate)" in str(caught.value)
    assert caught.value.passes


def test_a_reply_that_drips_is_given_up(server):
    server.answers.append(scripted.drip(http(200, b"<ping>" + b" " * 100_000), 0.01))
    fewer = "fewer than 10,000 bytes a second"
    with client(server, 10_000) as project, pytest.raises(TransportError, match=fewer):
        project.ping()


def test_an_output_that_stands_still_half_way_is_given_up_before_the_read_timeout(server):
    server.answers.append(scripted.hang(file(200_000)[:-100_000]))
    with pytest.raises(TransportError, match="fewer than 1,000,000 bytes a second"):
        fetched(server, 1_000_000)


def test_an_output_may_be_slow_in_coming_where_any_rate_will_do(server):
    server.answers.append(scripted.drip(file(20), 0.01))
    assert fetched(server, 0, span=0.2) == b"x" * 20


class Pieces:
    """A connection whose pieces come one after the other, each after some seconds.

    Attributes:
        now: the time, which passes only while something is waited for.
    """

    def __init__(self, *pieces):
        self.now = 0.0
        self._pieces = iter(pieces)
        self._timeout = 0.0

    def gettimeout(self):
        return self._timeout

    def settimeout(self, seconds):
        self._timeout = seconds

    def readinto(self, _buffer):
        seconds, nbytes = next(self._pieces)
        self.now += min(seconds, self._timeout)
        if seconds > self._timeout:
            raise TimeoutError
        return nbytes

    def close(self):
        pass


def reader(pieces):
    """Return what reads them, if at least 100 bytes come in each 10 s."""
    of_output = _limits.TimeLimits(60.0, rate=10.0, rate_span=10.0, clock=lambda: pieces.now)
    return _limits._TimedReader(pieces, pieces, of_output)


def test_the_time_until_an_output_begins_does_not_count():
    found = reader(Pieces((50.0, 10), (9.0, 50), (0.5, 50)))
    assert [found.readinto(bytearray()) for _ in range(3)] == [10, 50, 50]
    found = reader(Pieces((50.0, 10), (9.0, 50), (2.0, 50)))
    assert [found.readinto(bytearray()) for _ in range(2)] == [10, 50]
    with pytest.raises(TimeoutError, match="fewer than 10 bytes a second"):
        found.readinto(bytearray())


def test_a_slow_reader_does_not_count():
    pieces = Pieces(*[(1.0, 10)] * 50)
    found = reader(pieces)
    for _ in range(50):
        assert found.readinto(bytearray()) == 10
        pieces.now += 100.0  # a slow disk
