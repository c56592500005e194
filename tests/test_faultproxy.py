"""The proxy that goes wrong on command does what it is told, and leaves nothing behind."""

import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psutil
import pytest
import requests

from tests import faultproxy
from tests.faultproxy import FaultProxy
from tests.helpers import wait_for
from tests.rpc.scripted import PONG as REPLY, ok


@pytest.fixture
def upstream(server):
    """What is asked comes to its ``requests``."""
    server.answers.append(ok(REPLY))
    return server


@pytest.fixture
def proxy(upstream):
    with FaultProxy(upstream.url) as running:
        yield running


def rpc(proxy, name="ping", *, timeout=10, filler=" "):
    document = f'<?xml version="1.0"?>\n<!-- hello --><{name}>{filler}</{name}>'
    return requests.post(
        f"{proxy.url}submit_rpc_handler.php", data={"request": document}, timeout=timeout
    )


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "not carried out"])
def test_a_hanging_request_goes_on_when_released(proxy, upstream, carried_out):
    fault = faultproxy.hang(carried_out=carried_out)
    proxy.fail("ping", fault)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(rpc, proxy)
        assert fault.reached.wait(60)
        assert len(upstream.requests) == carried_out
        assert not answer.done()
        fault.release()
        assert answer.result().content == REPLY
    assert len(upstream.requests) == 1


def test_nothing_is_left_when_it_closes_on_hanging_and_dripping_requests(upstream):
    process = psutil.Process()
    with ThreadPoolExecutor(3) as pool:
        with FaultProxy(upstream.url) as proxy:
            stuck = faultproxy.hang()
            proxy.fail("a", stuck)
            proxy.fail("b", faultproxy.drip(60))
            proxy.fail("c", faultproxy.delay(60))
            answers = [pool.submit(rpc, proxy, name) for name in ("a", "b", "c")]
            assert stuck.reached.wait(60)
            wait_for(lambda: len(upstream.requests) == 2, "the other two at the project")
        for answer in answers:
            assert isinstance(answer.exception(10), requests.ConnectionError)
    assert not [t for t in threading.enumerate() if t.name == "fault proxy"]
    port = urlsplit(proxy.url).port
    wait_for(
        lambda: not [c for c in process.net_connections() if c.laddr and c.laddr.port == port],
        "the proxy's sockets closed",
    )
