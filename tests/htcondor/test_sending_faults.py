"""What becomes of jobs when this program or its ledger fails in the middle of sending them."""

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.htcondor import _sending
from tests.htcondor.desk import for_sending


@pytest.fixture
def site(site, monkeypatch):
    return for_sending(site, monkeypatch)


@pytest.mark.parametrize("fault", [RuntimeError("unforeseen"), LedgerError("disk full")], ids=repr)
def test_a_fault_in_the_middle_of_sending_holds_nothing_and_each_job_is_sent_once(
    desk, monkeypatch, fault
):
    ids = desk.accept(3)
    met = []

    def fail(*_):
        met.append(fault)
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(_sending, "request_of", fail)
        desk.turn()
        assert (len(met), set(desk.states(ids))) == (1, {"sending"})
    desk.run()
    desk.check_once(ids)
