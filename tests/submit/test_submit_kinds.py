"""Inputs that are on the project or in the request; what a batch and its jobs have of their own."""

import hashlib
import time
from dataclasses import replace

import pytest

from boinc_gahp.errors import BatchTooLarge, GahpError, JobsNotListed, ProjectError, StagingError
from boinc_gahp.states import BatchState
from boinc_gahp.submit.abort import abort_empty
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.journal import Journal
from boinc_gahp.submit.types import InlineFile, Job, RemoteFile, StagedFile
from boinc_gahp.submit.validate import BatchValidator
from tests import faultproxy
from tests.inside import batches, staged_files
from tests.submit.requests import own_input, own_output, uppercase
from tests.submit.scripted import error


def staged(site, contents, name):
    """Stage a file by a batch of its own; return its physical name."""
    site.submit(uppercase(name, Job(inputs={"in": site.file(contents)})))
    return hashlib.md5(contents).hexdigest() + ".txt"


def test_a_file_on_the_project_and_text_in_the_request_are_inputs_like_others(site):
    there = staged(site, b"on the project", "kinds-first")
    text = "in the\r\nrequest <&> ü\n"
    one = Job(inputs={"in1": InlineFile(text), "in0": StagedFile(there)})
    other = Job(inputs={"in1": site.file(b"on the project"), "in0": InlineFile("0")})
    request = uppercase("kinds", one, other, app="multi")
    with site.context() as context:
        batch_id = submit(context, request)
        assert submit(context, request) == batch_id
    document = site.row("workunit", "kinds-0")["xml_doc"]
    inline = "jf_" + hashlib.md5(text.encode()).hexdigest()
    assert document.index(there) < document.index(inline)
    assert site.local.core.download.exists(inline)
    # It stays as long as the batch needs it.
    associated = site.local.core.db.connection().execute(
        "SELECT name FROM job_file JOIN batch_file_assoc ON job_file.id = job_file_id "
        "WHERE batch_id = ?",
        (batch_id,),
    )
    assert {row["name"] for row in associated} == {there}


def test_a_file_that_is_not_on_the_project_is_named_before_anything_is_created(site):
    job = Job(inputs={"in": StagedFile("nosuchfile.txt")})
    before = [name for _, name, _ in batches(site.local)].count("absent")
    with pytest.raises(StagingError, match=r"not have the file 'nosuchfile.txt' that job 'absent-"):
        site.submit(uppercase("absent", job))
    assert [name for _, name, _ in batches(site.local)].count("absent") == before
    assert site.proxy.count("create_batch") == 0


def refuse_file(site, name):
    """Let the project say at each submit_batch that it has a file no more."""
    words = f"create_work failed: md5_file: can't open /srv/x/download/1b5/{name}\nmd5_file: No"
    reply = f"<submit_batch>{error(words)}</submit_batch>".encode()
    site.proxy.fail("submit_batch", faultproxy.body(reply), times=None)


@pytest.mark.parametrize("is_input", [True, False], ids=["the job's", "nobody's"])
def test_a_file_that_the_project_deletes_meanwhile_is_named_and_not_staged_again(site, is_input):
    there = staged(site, b"soon gone", f"deleted-first-{is_input}")
    refuse_file(site, there if is_input else "another.txt")
    sent = site.proxy.count("submit_batch")
    file = StagedFile(there) if is_input else InlineFile("x")
    with pytest.raises(StagingError if is_input else ProjectError) as caught:
        site.submit(uppercase(f"deleted-{is_input}", Job(inputs={"in": file})))
    assert (there if is_input else "another.txt") in str(caught.value)
    assert site.proxy.count("submit_batch") == sent + 1


def test_with_a_template_file_of_the_project_inputs_go_in_the_order_given(site):
    (site.local.core.templates / "sweep_in").write_text(own_input("mine", "second"))
    (site.local.core.templates / "sweep_out").write_text(own_output("out"))
    files = {"z": site.file(b"1st"), "a": site.file(b"2nd")}
    # The project compares the number of files with the app's own template.
    named = {"input_template_filename": "sweep_in", "output_template_filename": "sweep_out"}
    site.submit(uppercase("named-templates", Job(inputs=files), app="multi", **named))
    document = site.row("workunit", "named-templates-0")["xml_doc"]
    first, second = (hashlib.md5(data).hexdigest() for data in (b"1st", b"2nd"))
    assert document.index(first) < document.index(second)
    assert "second" in document


def test_an_output_template_that_is_not_there_is_named(site):
    request = replace(site.batch(2, 1), output_template_filename="gone_out")
    with pytest.raises(JobsNotListed) as caught:
        site.submit(request)
    assert "'gone_out' is not in its templates directory" in str(caught.value)
    with site.project() as project:
        left = project.query_batch(batch_name=request.batch_name).batch
        assert left.state is BatchState.IN_PROGRESS
        assert str(caught.value).endswith(f"(boinc_gahp batch retire id:{left.id})")
        project.retire_batch(batch_id=left.id)
        assert project.query_batches() == ()


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
    request = uppercase("own", *jobs, lease=5000.0, priority=4)
    sent = []
    with site.context() as context:
        batch_id = submit(context, request, Told(sent.append))
        assert submit(context, request) == batch_id
        assert sent == [batch_id]
    assert site.row("workunit", "own-0")["priority"] == 4
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


def test_files_that_only_jobs_need_that_are_not_wanted_any_more_are_not_sent(site):
    def stop(_):
        raise GahpError("enough")

    request = site.batch(jobs=2, files=2)
    journal = Told(stop)
    journal.wanted = lambda: [request.jobs[0][0]]
    with pytest.raises(GahpError, match="enough"):
        site.submit(request, journal)
    names = [hashlib.md5(path.read_bytes()).hexdigest() for path in site.paths(request)]
    assert [f"{name}.txt" in staged_files(site.local) for name in names] == [True, False]


def test_a_request_that_the_web_server_finds_too_large_is_not_repeated(site):
    request = site.batch()
    site.proxy.fail("submit_batch", faultproxy.status(413), times=None)
    with pytest.raises(BatchTooLarge, match="HTTP 413") as caught:
        site.submit(request)
    assert site.proxy.count("submit_batch") == 1
    with site.context() as context:
        # Its length is that of what was sent, names and all.
        assert abs(caught.value.nbytes - BatchValidator(context, request).size()) < 50
