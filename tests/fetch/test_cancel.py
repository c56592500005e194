"""A scope that is closed ends a fetch at its next step, and nothing half-done stays."""

import threading

import pytest

from boinc_gahp.errors import Stopped
from boinc_gahp.fetch.destinations import CancelScope
from tests.helpers import wait_for


def test_a_closed_gate_lets_nobody_in():
    scope = CancelScope()
    scope.check()
    with scope, scope:
        pass
    scope.close()
    with pytest.raises(Stopped):
        scope.check()
    with pytest.raises(Stopped), scope:
        pytest.fail("somebody came in")


def test_closing_a_gate_waits_for_those_inside_and_keeps_out_those_who_want_in_again():
    scope = CancelScope()
    inside, leave = threading.Event(), threading.Event()
    refused = []

    def write():
        with scope:
            inside.set()
            assert leave.wait(60)
        try:
            scope.check()
        except Stopped:
            refused.append(True)

    writer = threading.Thread(target=write)
    writer.start()
    assert inside.wait(60)
    closer = threading.Thread(target=scope.close)
    closer.start()
    wait_for(lambda: scope._closed, "the scope begins to close")
    assert closer.is_alive()
    leave.set()
    closer.join(60)
    writer.join(60)
    assert not closer.is_alive()
    assert refused


def test_everything_passes_until_the_event_is_set():
    closed = threading.Event()
    scope = CancelScope(closed)
    scope.check()
    with scope:
        closed.set()  # whoever is inside comes out
    for enter in (scope.check, scope.__enter__):
        with pytest.raises(Stopped, match="fetch again"):
            enter()
