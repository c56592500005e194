"""Replies without a server: a transport that answers with given bytes; and one RPC to a server."""

import pytest

from boinc_gahp.errors import TransportError
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from tests.contract.replay import Canned
from tests.rpc.scripted import AUTHENTICATOR

URL = "http://boinc.example.edu/test/"
ONCE = ClientOptions(connect_timeout=5, read_timeout=5, retry_total=0)


def project(body, *, chunk=65536, status=200):
    return WebRpcs(
        URL,
        AUTHENTICATOR,
        options=ClientOptions(retry_total=0),
        transport=Canned(body, status, chunk=chunk),
    )


def inside(rpc, content):
    """Return ``content`` as the project frames a reply to ``rpc``."""
    data = content if isinstance(content, bytes) else content.encode()
    prolog = b'<?xml version="1.0" encoding="ISO-8859-1" ?>\n'
    return prolog + f"<{rpc}>\n".encode() + data + f"\n</{rpc}>\n".encode()


def ask(url, options=ONCE):
    """Send an RPC that may be sent only once."""
    with WebRpcs(url, AUTHENTICATOR, options=options) as project:
        assert project.create_batch("b", "uppercase") == 3


def trouble(url, says, options=ONCE):
    """Return the error of :func:`ask`."""
    with pytest.raises(TransportError, match=says) as caught:
        ask(url, options)
    return caught.value
