"""The project wants a traceback, or an error that comes back for ever, by numbers nobody can hold.

SQLite and a project's database hold 63 bits and a sign; a point in time has a year of four digits.
"""

import math
from operator import methodcaller

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import ProtocolError
from boinc_gahp.rpc import _results
from boinc_gahp.rpc._replies import IncompleteReply
from boinc_gahp.rpc.client import WebRpcs
from tests.rpc.canned import inside, project


def fields(text):
    return dict(each.split("=") for each in text.split())


BATCH = fields(
    "id=1 name=b app_name=a state=1 njobs=1 nerror_jobs=0 create_time=1700000000 expire_time=0 "
    "completion_time=0 fraction_done=0.5 credit_estimate=1 "
    "credit_canonical=1 total_cpu_time=1.5"
)
JOB = fields("id=2 name=j canonical_instance_id=0 exit_status=1 cpu_time=1 status=error")
COMPLETED = fields(
    "error_mask=0 canonical_resultid=1 exit_status=0 elapsed_time=1 cpu_time=1 stderr_out="
)
INSTANCE = fields("id=3 name=j_0 state=Completed")


def elements(fields):
    return "".join(f"<{name}>{value}</{name}>\n" for name, value in fields.items())


IN_JOB = elements(BATCH) + "<job>{}</job>"
IN_INSTANCE = "<instance>{}<outfile><size>1</size></outfile></instance>"
IN_FILE = f"<instance>{elements(INSTANCE)}<outfile>{{}}</outfile></instance>"
BATCH2 = methodcaller("query_batch2", ["b"])
#: By what they are in: the fields, the RPC, the reply around them, and the question.
REPLIES = {
    "batch": (BATCH, "query_batches", "<batch>{}</batch>", WebRpcs.query_batches),
    "job": (JOB, "query_batch", IN_JOB, lambda each: list(each.iter_jobs(1))),
    "completed": (
        COMPLETED,
        "query_completed_job",
        "<completed_job>{}</completed_job>",
        methodcaller("query_completed_job", "j"),
    ),
    "instance": (INSTANCE, "query_job", IN_INSTANCE, methodcaller("query_job", 2)),
    "size": ({"size": "1"}, "query_job", IN_FILE, methodcaller("query_job", 2)),
    "new batch": ({"batch_id": "1"}, "create_batch", "{}", methodcaller("create_batch", "b", "a")),
    "statuses": ({"server_time": "1"}, "query_batch2", "{}<batch_size>0</batch_size>", BATCH2),
    "sizes": ({"batch_size": "0"}, "query_batch2", "<server_time>1</server_time>{}", BATCH2),
    "absent files": (
        {"file": "0"},
        "query_files",
        "<absent_files>{}</absent_files>",
        methodcaller("query_files", ["a"]),
    ),
}
WORDS = {"name", "app_name", "status", "state", "stderr_out"}
NUMBERS = [
    (kind, field)
    for kind, (fields, *_) in REPLIES.items()
    for field in fields
    if field not in WORDS
]
BAD = ["inf", "-inf", "nan", "1e400", "INF", "9223372036854775808", "-9223372036854775809", "1e30"]
BAD += ["9" * 5000, "1" + "0" * 400, "", "0x10", "1_0", "\N{ARABIC-INDIC DIGIT ONE}", "1e", "--1"]
TIMES = {"create_time", "expire_time", "completion_time", "server_time"}
NEGATIVE = ["-1", "-1e9"]


def is_float(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def reply(kind, **changed):
    fields, rpc, frame, _ = REPLIES[kind]
    return inside(rpc, frame.format(elements(fields | changed)))


@pytest.mark.parametrize("kind", REPLIES)
def test_the_replies_of_these_tests_are_good_otherwise(kind):
    REPLIES[kind][3](project(reply(kind)))


@pytest.mark.parametrize(("kind", "field"), NUMBERS)
def test_a_number_that_nothing_can_hold_is_an_error_that_quotes_it(kind, field):
    bad = [*BAD, *NEGATIVE, "253402300800"] if field in TIMES else BAD
    for value in bad:
        if field == "server_time" and not (is_float(value) and len(value) < 256):
            continue  # what is no number at all is left to whoever hands it on
        with pytest.raises(ProtocolError) as caught:
            REPLIES[kind][3](project(reply(kind, **{field: value})))
        assert f"<{field}> is {value[:40]!r}: expected" in str(caught.value)
        assert not caught.value.cut


LONG = "x" * 1000


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        *(("batch", "name"), ("batch", "app_name"), ("job", "name"), ("job", "status")),
        *(("instance", "state"), ("statuses", "server_time"), ("statuses", "job_name")),
    ],
)
def test_a_name_of_a_kilobyte_is_an_error(kind, field):
    body = reply(kind, **{field: LONG})
    if field == "job_name":
        job = f"<job><job_name>{LONG}</job_name><status>DONE</status></job>"
        times = "<server_time>1</server_time><batch_size>1</batch_size>"
        body = inside("query_batch2", times + job)
    with pytest.raises(ProtocolError, match="has 1,000 characters: at most 255 are expected"):
        REPLIES[kind][3](project(body))


@given(st.one_of(st.text("0123456789+-.eE_ infa", max_size=45), st.integers().map(str), st.text()))
def test_whatever_is_read_as_a_number_is_one_or_an_error(found):
    for read, least, most in (
        (_results.whole, -(2**63), 2**63 - 1),
        (_results.number, -1e12, 1e12),
        (_results.time, 0, 253_402_300_799.999),
    ):
        try:
            value = read(found, "x")
        except IncompleteReply as error:
            assert "<x> is" in str(error)  # noqa: PT017  (either outcome is right)
        else:
            assert math.isfinite(value)
            assert least <= value <= most
