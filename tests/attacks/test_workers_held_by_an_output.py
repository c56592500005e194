"""The project wants to hold a worker, or all of them, with outputs that come a byte at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.errors import TransportError
from boinc_gahp.rpc import ClientOptions, WebRpcs
from tests.rpc import scripted
from tests.rpc.scripted import AUTHENTICATOR, Scripted, http, raw

if TYPE_CHECKING:
    from collections.abc import Iterator

DISPOSITION = "attachment; filename=job_0_r1_0"


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as found:
        yield found


def file(size: int) -> bytes:
    return http(
        200, b"x" * size, Content_Type="application/octet-stream", Content_Disposition=DISPOSITION
    )


def rate(bytes_per_second: float, span: float = 0.5) -> ClientOptions:
    return ClientOptions(
        read_timeout=60, retry_total=0, output_rate=bytes_per_second, rate_span=span
    )


def fetched(server: Scripted, options: ClientOptions, pause: float = 0) -> bytes:
    with (
        WebRpcs(server.url, AUTHENTICATOR, options=options) as project,
        project.result_file("job_0", 0) as stream,
    ):
        data = b""
        for chunk in stream.chunks():
            data += chunk
            threading.Event().wait(pause)  # a slow disk
        return data


@pytest.mark.parametrize("where", ["body", "headers"])
def test_an_output_that_drips_is_given_up(server: Scripted, where: str) -> None:
    data = file(1_000_000)
    head = len(data) - 1_000_000

    def drip(answer: scripted.Answer) -> bool:
        if where == "body":
            answer.connection.sendall(data[:head])
        return scripted.drip(data[head if where == "body" else 0 :], 0.01)(answer)

    server.answers.append(drip)
    with pytest.raises(TransportError, match="fewer than 10,000 bytes a second") as caught:
        fetched(server, rate(10_000))
    assert "(output_rate)" in str(caught.value)
    assert not caught.value.permanent


def test_an_output_that_stands_still_half_way_is_given_up_before_the_read_timeout(
    server: Scripted,
) -> None:
    server.answers.append(scripted.hang(file(200_000)[:-100_000]))
    with pytest.raises(TransportError, match="fewer than 1,000,000 bytes a second"):
        fetched(server, rate(1_000_000))


def test_an_output_may_be_slow_in_coming_where_any_rate_will_do(server: Scripted) -> None:
    server.answers.append(scripted.drip(file(20), 0.01))
    assert fetched(server, rate(0, span=0.2)) == b"x" * 20


def test_the_time_until_an_output_begins_does_not_count(server: Scripted) -> None:
    def late(answer: scripted.Answer) -> bool:
        answer.stop.wait(1.5)
        answer.connection.sendall(file(100_000))
        return True

    server.answers.append(late)
    assert len(fetched(server, rate(50_000))) == 100_000


def test_the_time_until_an_output_begins_is_no_part_of_the_span_after_it(server: Scripted) -> None:
    data = file(100_000)

    def late(answer: scripted.Answer) -> bool:
        answer.stop.wait(1.4)
        answer.connection.sendall(data[:-100_000])
        answer.stop.wait(0.4)
        answer.connection.sendall(data[-100_000:])
        return True

    server.answers.append(late)
    assert len(fetched(server, rate(50_000, span=1.5))) == 100_000


def test_a_slow_reader_does_not_count(server: Scripted) -> None:
    server.answers.append(raw(file(600_000), stay=True))
    assert len(fetched(server, rate(1_000_000, span=0.2), pause=0.1)) == 600_000


def test_replies_have_their_own_limit(server: Scripted) -> None:
    server.answers.append(scripted.drip(http(200, scripted.PONG), 0.01))
    with WebRpcs(server.url, AUTHENTICATOR, options=rate(1_000_000)) as project:
        project.ping()
