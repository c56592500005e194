"""What single jobs of a batch can have of their own, what each is refused for, and taking back."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from boinc_gahp.errors import BatchTooLarge, GahpError, JobRefused, StagingError
from boinc_gahp.states import BatchState
from boinc_gahp.submit.abort import abort_empty
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.journal import Journal
from boinc_gahp.submit.types import Job, LocalFile, RemoteFile, SubmitRequest
from boinc_gahp.submit.validate import BatchValidator
from tests import faultproxy
from tests.submit.test_submit_faults import state_of

MD5 = "0123456789abcdef0123456789abcdef"
OWN_INPUT = """<input_template>
  <file_info><no_delete/></file_info>
  <workunit>
    <file_ref><open_name>mine</open_name><copy_file/></file_ref>
    <delay_bound>1234</delay_bound>
  </workunit>
</input_template>"""
TWO_FILES = OWN_INPUT.replace(
    "<file_info><no_delete/></file_info>", "<file_info><no_delete/></file_info>" * 2
).replace("</file_ref>", "</file_ref><file_ref><open_name>b</open_name><copy_file/></file_ref>")
OWN_OUTPUT = """<output_template>
  <file_info>
    <name><OUTFILE_0/></name><generated_locally/><upload_when_present/>
    <max_nbytes>7777777</max_nbytes><url><UPLOAD_URL/></url>
  </file_info>
  <result>
    <file_ref><file_name><OUTFILE_0/></file_name><open_name>out</open_name></file_ref>
  </result>
</output_template>"""


class Told(Journal):
    """Has a function called right before each submit_batch."""

    def __init__(self, tell):
        self._tell = tell

    def about_to_send(self, batch_id):
        self._tell(batch_id)


def workunit(site, name):
    row = (
        site.local.core.db.connection()
        .execute("SELECT * FROM workunit WHERE name = ?", (name,))
        .fetchone()
    )
    assert row is not None
    return row


def test_jobs_can_have_a_priority_templates_and_a_remote_file_of_their_own(site):
    plain = site.file(b"plain")
    remote = RemoteFile("https://data.example.org/a%20b.dat?x=1", 4711, MD5)
    request = SubmitRequest(
        "own",
        "uppercase",
        [
            ("own-1", Job(inputs={"in": plain})),
            ("own-2", Job(inputs={"mine": plain}, priority=7, input_template=OWN_INPUT)),
            ("own-3", Job(inputs={"in": remote}, output_template=OWN_OUTPUT)),
        ],
        lease=5000.0,
    )
    sent = []
    with site.context() as context:
        batch_id = submit(context, request, Told(sent.append))
        assert submit(context, request) == batch_id
        assert sent == [batch_id]
    assert workunit(site, "own-2")["priority"] == 7
    assert workunit(site, "own-2")["delay_bound"] == 1234
    assert "mine" in workunit(site, "own-2")["xml_doc"]
    assert remote.url in workunit(site, "own-3")["xml_doc"].replace("&amp;", "&")
    (expires,) = (
        site.local.core.db.connection()
        .execute("SELECT expire_time FROM batch WHERE id = ?", (batch_id,))
        .fetchone()
    )
    assert abs(expires - time.time() - 5000) < 60


def test_each_job_is_refused_for_what_is_wrong_with_itself(site):
    good = site.file(b"good")
    gone = LocalFile(str(site.directory / "gone"))
    status = Path(good.path).stat()
    as_it_was = replace(good, expected=(status.st_size, status.st_mtime_ns))
    wanted = {
        "quote": (("quote", Job(('a"b',), {"in": good})), 'contains a "'),
        "none": (("none", Job()), "wants 1 input file"),
        "gone": (("gone", Job(inputs={"in": gone})), "No such file"),
        "other": (
            ("other", Job(inputs={"in": replace(good, expected=(1, 2))})),
            "changed after the job was submitted",
        ),
        "na me": (("na me", Job(inputs={"in": good})), "holds a space"),
        "long": (("long", Job(("x" * 5000,), {"in": good})), "at most 4094"),
        "url": (("url", Job(inputs={"in": RemoteFile("http://a/b c", 1, MD5)})), "a space"),
        "quoted": (("quoted", Job(inputs={"in": RemoteFile("http://a/b'", 1, MD5)})), "a '"),
        "md5": (("md5", Job(inputs={"in": RemoteFile("http://a/b", 1, "x")})), "32 hexa"),
        "two": (
            ("two", Job(inputs={"in": good}, input_template=TWO_FILES)),
            "own input template",
        ),
        "xml": (("xml", Job(inputs={"in": good}, input_template="<a")), "'xml'"),
        "out": (("out", Job(inputs={"in": good}, output_template="<a/>")), "'out'"),
        "outs": (
            ("outs", Job(inputs={"in": good})),
            'uppercase are: "out"',
        ),
    }
    fine = ("good", Job(inputs={"in": as_it_was}))
    jobs = [fine, *(job for job, _ in wanted.values())]
    outputs = {"good": ("x/out",), "outs": ("out", "log")}
    with site.context() as context:
        refused = (
            BatchValidator(context, SubmitRequest("refusals", "uppercase", jobs, outputs=outputs))
            .validation()
            .refusals
        )
    assert refused.keys() == wanted.keys()
    for name, (_, words) in wanted.items():
        assert words in str(refused[name])
        error = refused[name]
        if isinstance(error, JobRefused):
            assert error.job_name == name
    assert isinstance(refused["gone"], StagingError)
    assert (refused["gone"].path, refused["gone"].errno) == (gone.path, 2)
    assert isinstance(refused["other"], StagingError)
    assert (refused["other"].path, refused["other"].errno) == (good.path, 0)
    assert site.proxy.seen == ["get_templates"]


def test_whoever_is_asked_before_a_submit_batch_can_stop_it_and_the_empty_batch_goes(site):
    request = site.batch()

    def stop(batch_id):
        raise GahpError(f"not {batch_id}")

    with site.context() as context:
        with pytest.raises(GahpError, match="not "):
            submit(context, request, Told(stop))
        assert site.proxy.count("submit_batch") == 0
        assert state_of(site, request.batch_name) is BatchState.INIT
        abort_empty(context, request.batch_name)
        assert state_of(site, request.batch_name) is BatchState.RETIRED
        # There is none, or none that is empty: nothing is done.
        abort_empty(context, "never was")
        other = site.batch()
        submit(context, other)
        abort_empty(context, other.batch_name)
        assert state_of(site, other.batch_name) is BatchState.IN_PROGRESS


def test_a_request_that_the_web_server_finds_too_large_is_not_repeated(site):
    request = site.batch()
    site.proxy.fail("submit_batch", faultproxy.status(413), times=None)
    with site.context() as context, pytest.raises(BatchTooLarge, match="HTTP 413") as caught:
        submit(context, request)
    assert site.proxy.count("submit_batch") == 1
    with site.context() as context:
        # Its length is that of what was sent, names and all.
        assert abs(caught.value.nbytes - BatchValidator(context, request).size()) < 50
