"""Behind a proxy: what is lost on the way may have been carried out, and is not sent twice."""

from urllib.parse import urlsplit

import pytest

from boinc_gahp.errors import NotFound, TransportError
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission, UploadFile
from tests.faultproxy import FaultProxy, lose_reply, lose_request
from tests.helpers import certified
from tests.rpc import scripted
from tests.rpc.canned import trouble
from tests.rpc.scripted import Scripted, ok, tunnel

UNREACHABLE = "the proxy cannot be reached or refuses"
MD5_OF_NOTHING = "d41d8cd98f00b204e9800998ecf8427e"


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=0) as project:
        yield project


@pytest.fixture
def proxy(local):
    """One that is asked for ``http://PROJECT/...``, as a proxy is."""
    with FaultProxy(local.url) as found:
        yield found


def behind(proxy_url, retry=20):
    parts = urlsplit(proxy_url)
    return ClientOptions(
        read_timeout=30, retry_total=retry, proxy=f"http://{parts.hostname}:{parts.port}"
    )


@pytest.fixture
def project(local, proxy):
    with WebRpcs(local.url, local.authenticator, options=behind(proxy.url)) as found:
        yield found


@pytest.mark.parametrize("fault", [lose_reply, lose_request], ids=["reply", "request"])
def test_create_batch_whose_answer_a_proxy_loses_is_sent_once(project, proxy, fault):
    proxy.fail("create_batch", fault(), times=None)
    with pytest.raises(TransportError, match="connection through the proxy failed") as caught:
        project.create_batch(f"once{fault}", "uppercase")
    assert proxy.count("create_batch") == 1
    assert caught.value.may_be_running
    assert caught.value.passes


def test_submit_batch_whose_answer_a_proxy_loses_may_be_running(project, proxy, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    project.upload_files([UploadFile("nothing.dat", str(empty), 0, MD5_OF_NOTHING)])
    batch_id = project.create_batch("lost", "uppercase")
    proxy.fail("submit_batch", lose_reply(), times=None)
    jobs = [JobSubmission("lost_1", input_files=(InputFile.local_staged("nothing.dat"),))]
    with pytest.raises(TransportError) as caught:
        project.submit_batch(BatchSubmission("uppercase", jobs, batch_id=batch_id))
    assert caught.value.may_be_running
    assert proxy.count("submit_batch") == 1
    assert [job.name for job in project.query_batch(batch_id=batch_id).jobs] == ["lost_1"]


def test_a_question_whose_answer_a_proxy_loses_is_asked_again(project, proxy):
    proxy.fail("query_batch", lose_reply())
    with pytest.raises(NotFound):
        project.query_batch(batch_id=987654)
    assert proxy.count("query_batch") == 2


def test_in_a_tunnel_what_is_lost_may_be_running(tmp_path):
    context, bundle = certified(tmp_path, "boinc.example.edu")
    with Scripted(context=context) as safe, Scripted() as between:
        safe.answers.append(scripted.goodbye())
        between.answers.append(tunnel(safe.port))
        options = ClientOptions(
            retry_total=20, ca_bundle=str(bundle), proxy=f"http://127.0.0.1:{between.port}"
        )
        error = trouble("https://boinc.example.edu/test/", "the connection", options)
        assert [request.rpc for request in safe.requests] == ["create_batch"]
    assert error.may_be_running


def test_a_proxy_that_cannot_be_reached_is_tried_again_with_nothing_sent():
    with Scripted() as gone:
        url = gone.url
    error = trouble("http://boinc.example.edu/", UNREACHABLE, behind(url, 1.2))
    assert not error.may_be_running


@pytest.mark.parametrize("refusal", [403, 407, 502])
def test_a_proxy_that_refuses_to_connect_has_sent_nothing(refusal):
    with Scripted() as between:
        between.answers += [scripted.status(refusal), ok()]
        error = trouble("https://boinc.example.edu/", UNREACHABLE, behind(between.url, 0))
    assert not error.may_be_running
