"""Replies that are not what they should be: tolerated where harmless, an error where not."""

import logging

import pytest
from hypothesis import example, given, settings, strategies as st

from boinc_gahp.errors import (
    DatabaseTrouble,
    GahpError,
    ProjectError,
    ProtocolError,
    TransportError,
)
from boinc_gahp.rpc._repair import RAW_TEXT, Repair
from boinc_gahp.rpc.types import BatchSubmission, JobStatus
from tests.rpc.canned import inside, project

FATAL = (
    "<br />\n<b>Fatal error</b>:  Uncaught Error: no &lt;b&gt; in /x.php:1\n"
    "Stack trace:\n#0 {main}\n"
    "  thrown in <b>/x.php</b> on line <b>1</b><br />\n"
)
WARNING = "<br />\n<b>Warning</b>:  Undefined variable $x in <b>/x.php</b> on line <b>7</b><br />\n"
PLAIN_WARNING = "\nWarning: simplexml(): <batch_name>ab</batch_name> in /x.php on line 7\n"
ERROR = "<error><error_num>-1</error_num><error_msg>{}</error_msg></error>"
JOBS = "<server_time>1.5</server_time><batch_size>1</batch_size>{}"
JOB = "<job><job_name>{}</job_name><status>DONE</status></job>"

#: What a name on the project can hold: anything but what ends its element.
NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufffe\uffff"), min_size=1
).filter(
    lambda name: "</job_name>" not in name and all(ord(c) >= 32 or c in "\t\n\r" for c in name)
)


def statuses(body, chunk=65536):
    return project(body, chunk=chunk).query_batch2(["b"]).batches[0]


MARKUP = ["a&b", "a<b", "a<b>c</b>", "a&amp;b", "]]>", "<![CDATA[x]]>", "<!-- x", "<?x?>"]
MARKUP += ["</status>"]


@settings(deadline=None)
@given(NAMES | st.sampled_from(MARKUP), st.integers(1, 40))
def test_any_name_comes_back_exactly_however_the_reply_is_cut(name, chunk):
    body = inside("query_batch2", JOBS.format(JOB.format(name)))
    assert statuses(body, chunk) == (JobStatus(name, "DONE"),)


@pytest.mark.parametrize("message", [WARNING, PLAIN_WARNING], ids=["html", "plain"])
@pytest.mark.parametrize("chunk", [65536, 1], ids=["whole", "bytewise"])
def test_php_warnings_anywhere_are_logged_once_and_are_no_error(message, chunk, caplog):
    job = JOB.format("a") + message
    body = message.encode() + inside("query_batch2", message + JOBS.format(job))
    client = project(body + message.encode(), chunk=chunk)
    with caplog.at_level(logging.WARNING, "boinc_gahp.rpc"):
        for _ in range(3):
            assert client.query_batch2(["b"]).batches == ((JobStatus("a", "DONE"),),)
    assert len(caplog.records) == 1
    assert "Warning" in caplog.text
    assert "/x.php on line 7" in caplog.text


@pytest.mark.parametrize("chunk", [65536, 1], ids=["whole", "bytewise"])
@pytest.mark.parametrize(
    "body",
    [
        inside("ping", FATAL),
        inside("ping", "<success>1</success>" + FATAL),
        b"<?xml version='1.0'?>\n<ping>\n" + FATAL.encode(),
        FATAL.encode(),
        b"<ping>\nPHP Fatal error:  Uncaught Error in /x.php:1\n  thrown in /x.php on line 1\n",
        b"<ping>\n<br />\n<b>Fatal error</b>:  Allowed memory size of 1 byt",
    ],
    ids=["inside", "after success", "unclosed", "alone", "plain", "cut off"],
)
def test_php_fatal_error_is_reported_and_not_asked_for_again(body, chunk):
    with pytest.raises(ProtocolError) as caught:
        project(body, chunk=chunk).ping()
    assert caught.value.php_fatal
    assert not caught.value.cut


@pytest.mark.parametrize(
    ("body", "cut", "says"),
    [
        (b"", True, "the answer is empty"),
        (b" \n\t", True, "the answer is empty"),
        (b"<?xml version='1.0'?>\n", True, "the answer is cut off"),
        (b"<ping>\n<success>1</success>\n", True, "the answer is cut off"),
        (b"<ping>\n<success>1</success>\n</pin", True, "the answer is cut off"),
        (b"OK", False, "the answer 'OK' is not from a BOINC project"),
        (b'{"status": "not found"}', False, "check the project's URL"),
        (b"<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>", False, "'Log in'"),
        (b" <!-- x -->\n<HTML><body>Welcome  there</body>", False, "'Welcome there'"),
        (b"<pong><success>1</success></pong>", True, "the answer is cut off"),
        (inside("ping", "<success>1</wrong>"), False, "tags do not match"),
        (inside("ping", ""), False, "no <success>"),
    ],
)
def test_reply_that_is_no_complete_one_is_a_protocol_error(body, cut, says):
    with pytest.raises(ProtocolError) as caught:
        project(body).ping()
    assert caught.value.cut == cut
    assert says in str(caught.value)
    assert "boinc.example.edu, asked to answer: " in str(caught.value)


@pytest.mark.parametrize("chunk", [65536, 999])
def test_error_message_of_a_megabyte_that_is_no_xml_is_kept_whole(chunk):
    words = "create_work failed: " + "x < & <b> </query_batch> \n" * 40_000
    with pytest.raises(ProjectError) as caught:
        project(inside("query_batch", ERROR.format(words)), chunk=chunk).query_batch(batch_id=1)
    assert caught.value.words == words
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


def test_error_of_a_job_is_no_error_of_the_reply():
    fields = (
        "<id>1</id><name>b</name><app_name>a</app_name><state>77</state><njobs>1</njobs>"
        "<job><id>2</id><name>j</name><error>cancelled</error><status>error</status></job>"
    )
    details = project(inside("query_batch", fields)).query_batch(batch_id=1, get_job_details=True)
    assert details.jobs[0].errors == ("cancelled",)
    assert details.batch.state.name == "UNKNOWN"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<batch_size>0</batch_size>", "<query_batch2> has no <server_time>"),
        ("<server_time>1</server_time>", "1 batches were asked for, 0 came"),
        (JOBS.format("") + JOB.format("a") * 2, "differs from the number of jobs"),
        (JOBS.format("<job><status>DONE</status></job>"), "<job> has no <job_name>"),
        ("<server_time>1</server_time>" + JOB.format("a"), "before the first <batch_size>"),
    ],
)
def test_statuses_that_do_not_add_up_are_no_answer(content, says):
    with pytest.raises(ProtocolError, match=says):
        project(inside("query_batch2", content)).query_batch2(["b"])


def test_an_error_of_the_database_is_told_without_its_query():
    query = "\nquery=insert into workunit values (0, 1, 'j', '<file_info>')"
    words = f"create_work failed: Database error: MySQL server has gone away{query}"
    reply = inside("submit_batch", ERROR.format(words))
    with pytest.raises(DatabaseTrouble) as caught:
        project(reply).submit_batch(BatchSubmission("uppercase", []))
    assert str(caught.value).endswith(
        "(its database has trouble: try again later, or tell its admin): "
        "create_work failed: Database error: MySQL server has gone away"
    )


def test_numbers_as_php_writes_them_are_read():
    fields = (
        "<id>1</id><name>b</name><app_name>a</app_name><state>1</state><njobs>1.0E+3</njobs>"
        "<fraction_done>1.5e-1</fraction_done><expire_time> 7 </expire_time>"
    )
    batch = project(inside("query_batch", fields)).query_batch(batch_id=1).batch
    assert (batch.njobs, batch.fraction_done, batch.expire_time) == (1000, 0.15, 7.0)


@pytest.mark.parametrize(
    ("status", "passes"),
    [(404, False), (403, False), (413, False), (429, True), (500, True), (503, True), (204, False)],
)
def test_http_status_is_an_error(status, passes):
    with pytest.raises(TransportError) as caught:
        project(b"<html><title>So sorry</title></html>", status=status).ping()
    assert caught.value.status == status
    assert caught.value.passes == passes
    assert f" {status} " in f" {caught.value} "
    assert caught.value.may_be_running == (status >= 500)


TAGS = [*RAW_TEXT, "job", "query_batch2", "error"]
PIECES = st.binary(max_size=30) | st.sampled_from(
    [f"<{tag}>".encode() for tag in (*TAGS, "error_num")]
    + [f"</{tag}>".encode() for tag in TAGS]
    + [b"<", b"&", b"<?xml", b"?>", b"]]>", b"<br />\n<b>Fatal", b" error</b>: ", b"\nWarning: "]
    + [WARNING.encode(), PLAIN_WARNING.encode(), b"<aborted x>", b"\xff", b"\x00", b"<batch_size>"]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(1, 200))
def test_no_reply_raises_anything_but_our_own_errors(body, chunk):
    try:
        project(body, chunk=chunk).query_batch2(["b"])
    except GahpError as error:
        assert "\n" not in str(error)  # noqa: PT017  (either outcome is right)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(1, 20))
@example(b"<?>?>", 1)
@example(b"<name>\nWarning: </name>", 1)
@example(b"<?" + b"x" * 4096 + b"?>", 7)
def test_repair_does_not_depend_on_where_the_bytes_are_cut(body, chunk):
    whole, parts = Repair(), Repair()
    expected = whole.feed(body) + whole.close()
    found = b"".join(
        parts.feed(body[start : start + chunk]) for start in range(0, len(body), chunk)
    )
    assert found + parts.close() == expected
    assert parts.messages == whole.messages
