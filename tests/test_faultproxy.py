"""The proxy that goes wrong on command does what it is told."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.faultproxy import FaultProxy, hang
from tests.rpc.scripted import PONG, ok


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "not carried out"])
def test_a_hanging_request_goes_on_when_released(server, carried_out):
    server.answers.append(ok(PONG))
    fault = hang(carried_out=carried_out)
    form = {"request": '<?xml version="1.0"?>\n<!-- hello --><ping> </ping>'}
    with FaultProxy(server.url) as proxy, ThreadPoolExecutor(1) as pool:
        proxy.fail("ping", fault)
        url = f"{proxy.url}submit_rpc_handler.php"
        answer = pool.submit(requests.post, url, data=form, timeout=60)
        assert fault.reached.wait(60)
        assert len(server.requests) == carried_out
        assert not answer.done()
        fault.release()
        assert answer.result().content == PONG
    assert len(server.requests) == 1
