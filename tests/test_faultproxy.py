"""The proxy that goes wrong on command does what it is told, and leaves nothing behind."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests import faultproxy
from tests.faultproxy import FaultProxy
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
