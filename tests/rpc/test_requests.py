"""Requests: whatever the arguments hold arrives as it was, or is refused by name."""

import pytest
from hypothesis import given, settings, strategies as st
from lxml import etree

from boinc_gahp.errors import BadRequest
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission
from tests.contract.replay import Canned
from tests.rpc.canned import URL, inside
from tests.rpc.scripted import AUTHENTICATOR

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).filter(
    lambda text: (
        all(ord(c) >= 32 or c in "\t\n\r" for c in text) and not set(text) & {"\ufffe", "\uffff"}
    )
)
NOT_UTF8 = b"caf\xe9".decode("utf-8", "surrogateescape")


def sent(transport):
    body = transport.sent[-1]
    xml = body.partition(b'name="request"\r\n\r\n')[2].partition(b"\r\n--")[0]
    return etree.fromstring(xml)


def client(rpc, content):
    transport = Canned(inside(rpc, content))
    options = ClientOptions(retry_total=0)
    return WebRpcs(URL, AUTHENTICATOR, options=options, transport=transport), transport


@settings(deadline=None)
@given(TEXTS, TEXTS.filter(lambda line: "<" not in line), TEXTS, TEXTS)
def test_texts_and_names_arrive_as_they_were_in_their_order(name, line, source, app):
    project, transport = client("submit_batch", "<batch_id>1</batch_id>")
    job = JobSubmission(name, line, (InputFile.inline(source), InputFile.remote(source, 3, "d41d")))
    project.submit_batch(BatchSubmission(app, [job], batch_name=name))
    batch = sent(transport).find("batch")
    places = (
        "app_name batch_name job/name job/command_line job/input_file/source job/input_file/url"
    )
    found = [batch.findtext(place) or "" for place in places.split()]
    assert found == [app, name, name, line, source, source]
    project, transport = client("abort_jobs", "<success>1</success>")
    project.abort_jobs([name, app, source])
    names = [element.text or "" for element in sent(transport).iterfind("job_name")]
    assert names == [name, app, source]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("a\x00b", r'"a\x00b" contains the character U+0000'),
        ("a\x1b[0m", "contains the character U+001B"),
        ("a\uffff", r'"a\uffff" contains the character U+FFFF'),
        (NOT_UTF8, r'"caf\xe9" contains bytes that are not UTF-8'),
    ],
    ids=["NUL", "escape", "no character", "not UTF-8"],
)
def test_what_a_request_cannot_hold_is_refused_by_name(bad, says):
    project, transport = client("create_batch", "")
    calls = {
        "batch_name": lambda: project.create_batch(bad, "app"),
        "app_name": lambda: project.create_batch("b", bad),
        "job_name": lambda: project.query_completed_job(bad),
        "phys_name": lambda: project.query_files(["x", bad]),
        "min_mod_time": lambda: project.query_batch2([], min_mod_time=bad),
        "job 'j': command_line": lambda: project.submit_batch(
            BatchSubmission("app", [JobSubmission("j", bad)])
        ),
        "job 0: source": lambda: project.submit_batch(
            BatchSubmission("app", [JobSubmission(input_files=(InputFile.inline(bad),))])
        ),
        "result_name": lambda: project.result_file(bad, 0),
        "wu_name": lambda: project.workunit_file(bad, 0),
    }
    for field, ask in calls.items():
        with pytest.raises(BadRequest) as caught:
            ask()
        assert str(caught.value).startswith(field)
        assert says in str(caught.value)
    assert transport.sent == []


def test_authenticator_that_no_request_can_hold_is_not_quoted():
    project = WebRpcs(URL, "sesame\x01open", transport=Canned(b""))
    with pytest.raises(BadRequest) as caught:
        project.query_batches()
    assert "the authenticator contains a character" in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_refused(value):
    project, _ = client("create_batch", "")
    with pytest.raises(BadRequest, match="expire_time is"):
        project.create_batch("b", "a", expire_time=value)
    with pytest.raises(BadRequest, match="job 'j': rsc_fpops_est is"):
        project.submit_batch(BatchSubmission("a", [JobSubmission("j", rsc_fpops_est=value)]))


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63))
def test_numbers_arrive_exactly(value):
    project, transport = client("set_expire_time", "<success>1</success>")
    project.set_expire_time(value, batch_id=1)
    assert float(sent(transport).findtext("expire_time") or "") == float(value)


def test_elements_stand_in_the_order_of_boincs_own_clients():
    project, transport = client("submit_batch", "<batch_id>1</batch_id>")
    template = "<?xml version='1.0'?>\n<!-- x --><input_template><workunit/></input_template>"
    own = (template, "<file_info/><result/>")
    job = JobSubmission("j", "-a", (InputFile.local_staged("x"),), 1e9, 5, *own)
    params = {"rsc_fpops_est": 1, "rsc_fpops_bound": 2.5, "rsc_memory_bound": 3e20}
    params["rsc_disk_bound"] = 60
    project.submit_batch(BatchSubmission("a", [job], 3, "ignored", 9, 2, "in", "out", params))
    root = sent(transport)
    assert [element.tag for element in root] == ["authenticator", "batch"]
    assert etree.tostring(root[1]).decode() == (
        "<batch><batch_id>3</batch_id><app_name>a</app_name><app_version_num>9</app_version_num>"
        "<job_params><rsc_disk_bound>60</rsc_disk_bound><rsc_fpops_est>1</rsc_fpops_est>"
        "<rsc_fpops_bound>2.5</rsc_fpops_bound><rsc_memory_bound>3e+20</rsc_memory_bound>"
        "</job_params><priority>2</priority>"
        "<input_template_filename>in</input_template_filename>"
        "<output_template_filename>out</output_template_filename>"
        "<job><name>j</name><rsc_fpops_est>1000000000</rsc_fpops_est>"
        "<command_line>-a</command_line>"
        "<input_file><mode>local_staged</mode><source>x</source></input_file>"
        "<priority>5</priority><input_template><workunit/></input_template>"
        "<output_template><file_info/><result/></output_template></job></batch>"
    )


def test_template_of_a_job_that_is_no_xml_is_refused_by_name():
    project, _ = client("submit_batch", "")
    jobs = [JobSubmission("j1"), JobSubmission("j2", output_template="<result></file_info>")]
    with pytest.raises(BadRequest, match="job 'j2': output_template is not well-formed XML"):
        project.submit_batch(BatchSubmission("a", jobs))


def test_one_text_can_be_both_templates_of_a_job():
    project, transport = client("submit_batch", "<batch_id>1</batch_id>")
    jobs = [JobSubmission(input_template="<x/>", output_template="<x/>") for _ in range(2)]
    project.submit_batch(BatchSubmission("a", jobs))
    both = b"<input_template><x/></input_template><output_template><x/></output_template>"
    assert transport.sent[0].count(both) == 2


def test_template_names_no_file_and_no_entity():
    project, transport = client("submit_batch", "<batch_id>1</batch_id>")
    template = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><workunit>&e;</workunit>'
    with pytest.raises(BadRequest):
        project.submit_batch(BatchSubmission("a", [JobSubmission("j", input_template=template)]))
    assert transport.sent == []


def test_request_size_is_what_is_sent():
    project, transport = client("submit_batch", "<batch_id>1</batch_id>")
    files = (InputFile.local_staged("a.dat"), InputFile.inline("é<"))
    jobs = [JobSubmission(f"j{n}", "é&"[n % 2] * n, files[: n % 3], n % 2) for n in range(50)]
    batch = BatchSubmission("a", jobs, batch_id=1, job_params={"rsc_fpops_est": 5})
    size = project.request_size(batch)
    project.submit_batch(batch)
    assert len(transport.sent[0]) == size


@pytest.mark.parametrize("call", ["query_batch", "abort_batch", "retire_batch", "get_templates"])
def test_what_is_asked_for_has_to_be_named(call):
    project, _ = client("x", "")
    expected = (
        "app_name or job_name" if call == "get_templates" else "neither batch_id nor batch_name"
    )
    with pytest.raises(BadRequest, match=expected):
        getattr(project, call)()
