"""What single jobs of a batch can have of their own, what each is refused for, and taking back."""

import time

import pytest

from boinc_gahp.errors import BatchTooLarge, GahpError
from boinc_gahp.states import BatchState
from boinc_gahp.submit.abort import abort_empty
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.journal import Journal
from boinc_gahp.submit.types import Job, RemoteFile
from boinc_gahp.submit.validate import BatchValidator
from tests import faultproxy
from tests.submit.requests import own_input, own_output, uppercase

MD5 = "0123456789abcdef0123456789abcdef"


class Told(Journal):
    """Has a function called right before each submit_batch."""

    def __init__(self, tell):
        self._tell = tell

    def about_to_send(self, batch_id):
        self._tell(batch_id)


def test_jobs_can_have_a_priority_templates_and_a_remote_file_of_their_own(site):
    plain = site.file(b"plain")
    remote = RemoteFile("https://data.example.org/a%20b.dat?x=1", 4711, MD5)
    own = own_input("mine", more="<delay_bound>1234</delay_bound>")
    jobs = [
        Job(inputs={"in": plain}),
        Job(inputs={"mine": plain}, priority=7, input_template=own),
        Job(inputs={"in": remote}, output_template=own_output("out")),
    ]
    request = uppercase("own", *jobs, lease=5000.0)
    sent = []
    with site.context() as context:
        batch_id = submit(context, request, Told(sent.append))
        assert submit(context, request) == batch_id
        assert sent == [batch_id]
    changed = site.row("workunit", "own-1")
    assert (changed["priority"], changed["delay_bound"]) == (7, 1234)
    assert "mine" in changed["xml_doc"]
    assert remote.url in site.row("workunit", "own-2")["xml_doc"].replace("&amp;", "&")
    expires = site.row("batch", batch_id)["expire_time"]
    assert abs(expires - time.time() - 5000) < 60


def test_whoever_is_asked_before_a_submit_batch_can_stop_it_and_the_empty_batch_goes(site):
    request = site.batch()

    def stop(batch_id):
        raise GahpError(f"not {batch_id}")

    with site.context() as context:
        with pytest.raises(GahpError, match="not "):
            submit(context, request, Told(stop))
        assert site.proxy.count("submit_batch") == 0
        assert site.state(request) is BatchState.INIT
        abort_empty(context, request.batch_name)
        assert site.state(request) is BatchState.RETIRED
        # There is none, or none that is empty: nothing is done.
        abort_empty(context, "never was")
        other = site.batch()
        submit(context, other)
        abort_empty(context, other.batch_name)
        assert site.state(other) is BatchState.IN_PROGRESS


def test_a_request_that_the_web_server_finds_too_large_is_not_repeated(site):
    request = site.batch()
    site.proxy.fail("submit_batch", faultproxy.status(413), times=None)
    with pytest.raises(BatchTooLarge, match="HTTP 413") as caught:
        site.submit(request)
    assert site.proxy.count("submit_batch") == 1
    with site.context() as context:
        # Its length is that of what was sent, names and all.
        assert abs(caught.value.nbytes - BatchValidator(context, request).size()) < 50
