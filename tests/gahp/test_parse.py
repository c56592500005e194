import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp import boinc_commands, commands, lines
from boinc_gahp.gahp.boinc_commands import FetchOutput, SelectProject
from boinc_gahp.gahp.commands import COMMANDS, parse_request
from boinc_gahp.gahp.lines import TooLong
from boinc_gahp.quantities import SIZES
from boinc_gahp.secret import Authenticator

SUBMIT = "BOINC_SUBMIT 2 b app"


ESTIMATES = (*(size.element for size in SIZES), "app_version_num")


def submit_of(*inputs, **estimates):
    """Return the request for a batch of one job."""
    job = boinc_commands.SubmitJob("j", (), inputs)
    return boinc_commands.Submit("2", "b", "app", (job,), dict.fromkeys(ESTIMATES) | estimates)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("COMMANDS", commands.Commands()),
        ("Version", commands.Version()),
        ("ASYNC_MODE_ON", commands.AsyncModeOn()),
        ("RESPONSE_PREFIX GAHP:", commands.ResponsePrefix("GAHP:")),
        ("RESPONSE_PREFIX ", commands.ResponsePrefix("")),
        ("BOINC_SELECT_PROJECT http://x/ k", SelectProject("http://x/", Authenticator("k"))),
        ("BOINC_SELECT_PROJECT http://x/ ", SelectProject("http://x/", Authenticator(""))),
        ("BOINC_PING 007", boinc_commands.Ping("007")),
        ("BOINC_PING 2 ", boinc_commands.Ping("2")),
        ("BOINC_QUERY_BATCHES 2 0 0", boinc_commands.QueryBatches("2", "0", ())),
        ("BOINC_QUERY_BATCHES 2 1.5 2 A B", boinc_commands.QueryBatches("2", "1.5", ("A", "B"))),
        ("BOINC_FETCH_OUTPUT 2 j d NULL all 0", FetchOutput("2", "j", "d", "NULL", "ALL", ())),
        (
            "BOINC_FETCH_OUTPUT 2 j d  SOME 1  x",
            FetchOutput("2", "j", "d", "", "SOME", (("", "x"),)),
        ),
        ("BOINC_ABORT_JOBS 2 a b", boinc_commands.AbortJobs("2", ("a", "b"))),
        ("BOINC_RETIRE_BATCH 2 b@x.y#1", boinc_commands.RetireBatch("2", "b@x.y#1")),
        ("BOINC_SET_LEASE 2 b 1.8e9", boinc_commands.SetLease("2", "b", "1.8e9")),
        (f"{SUBMIT} 1 j 0 0", submit_of()),
        (f"{SUBMIT} 1 j 0 1 /home/a/dir/ ", submit_of(("/home/a/dir/", ""))),
        (f"{SUBMIT} 1 j 0 0 1e9 NULL", submit_of(rsc_fpops_est="1e9")),
        (f"{SUBMIT} 1 j 0 0  fast\\ enough", submit_of(rsc_fpops_bound="fast enough")),
    ],
)
def test_a_line_makes_its_request(line, expected):
    assert parse_request(line.encode()) == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "does not begin with a command"),
        (" VERSION", "does not begin with a command"),
        ("FROBNICATE 2", 'no command "FROBNICATE"'),
        ("BOINC_PING\r", "no command"),
        ("COMMANDS all", "COMMANDS: too many arguments: 1 given, 0 needed"),
        ("BOINC_PING", r"id \(argument 1\) is missing"),
        ("BOINC_PING 0", 'id .argument 1. is "0"; it must be a whole number above 0'),
        ("BOINC_PING +1", "whole number above 0"),
        ("BOINC_PING ١", "whole number above 0"),
        ("BOINC_PING " + "9" * 10_000, "whole number above 0"),
        ("BOINC_PING 2 3", "too many"),
        ("BOINC_PING 2\0", "NUL"),
        ("BOINC_PING 2\\", "backslash"),
        ("BOINC_SELECT_PROJECT http://x/", "authenticator .argument 2. is missing"),
        ("BOINC_QUERY_BATCHES 2 soon 1 A", 'min_mod_time .argument 2. is "soon"'),
        ("BOINC_QUERY_BATCHES 2 nan 1 A", "it must be a number"),
        ("BOINC_QUERY_BATCHES 2 0 2 A", "batch .argument 5. is missing"),
        ("BOINC_QUERY_BATCHES 2 0 1 ", 'batch .argument 4. is ""'),
        ("BOINC_ABORT_JOBS 2 a  b", 'job .argument 3. is ""'),
        ("BOINC_SET_LEASE 2 b never", "it must be a number"),
        ("BOINC_FETCH_OUTPUT 2 j d e MOST 0", "it must be ALL or SOME"),
        ("BOINC_FETCH_OUTPUT 2 j d e SOME 2 a b c", "3 arguments follow it"),
        (f"{SUBMIT} 0", 'njobs .argument 4. is "0"; it must be a whole number, 1 or more'),
        (f"{SUBMIT} 2 j 0 0", "job .argument 8. is missing"),
        (f"{SUBMIT} 1 j 0", "nfiles .argument 7. is missing"),
        (f"{SUBMIT} {'9' * 5000} j 0 0", "a whole number, 1 or more"),
        (f"{SUBMIT} 1 j 3 a b 0", "nfiles .argument 10. is missing"),
        (f"{SUBMIT} 1 j -1 0", 'nargs .argument 6. is "-1"'),
        (f"{SUBMIT} 1 j 0 1 /a", 'nfiles .argument 7. is "1"'),
        (f"{SUBMIT} 1 j 0 999999999 /a a", "2 arguments follow it"),
        (f"{SUBMIT} 1  0 0", 'job .argument 5. is ""'),
        (f"{SUBMIT} 1 j 0 0 1 2 3 4 5 6 7", "too many arguments: 14 given, 13 needed"),
    ],
)
def test_what_no_gridmanager_sends_is_refused_with_a_reason(line, reason):
    with pytest.raises(BadRequest, match=reason):
        parse_request(line.encode())


def test_a_line_that_was_too_long_is_refused_with_the_setting_to_change():
    with pytest.raises(BadRequest, match=r"longer than 1,000 bytes.*line_bytes"):
        parse_request(TooLong(1000))


def test_bytes_that_are_no_utf8_can_be_read_in_the_reason():
    with pytest.raises(BadRequest, match=r'"\\xff\\xfe\\x07"'):
        parse_request(b"BOINC_PING \xff\xfe\x07")


@pytest.mark.parametrize(
    "line",
    [
        "BOINC_SELECT_PROJECT {}",
        "BOINC_SELECT_PROJECT http://x/ {} more",
        "BOINC_SELECT_PROJECT {0} {0} {0}",
    ],
)
def test_no_reason_quotes_an_authenticator(line):
    with pytest.raises(BadRequest) as caught:
        parse_request(line.format("5ecre7").encode())
    assert "5ecre7" not in str(caught.value)


def test_a_request_does_not_show_its_authenticator():
    request = parse_request(b"BOINC_SELECT_PROJECT http://x/ 5ecre7")
    assert "5ecre7" not in repr(request)


def request_or_reason(line):
    try:
        return parse_request(line)
    except BadRequest as error:
        return str(error).encode("utf-8").decode()


word = st.one_of(
    st.sampled_from(["0", "1", "2", "3", "NULL", "", "ALL", "SOME", "-1", "1e9", "a b", "x"]),
    st.text(max_size=5),
)


@given(st.sampled_from([*COMMANDS, "FROB"]), st.lists(word, max_size=14))
def test_any_line_is_a_request_or_a_bad_one(command, arguments):
    line = lines.join([command, *arguments])
    outcome = request_or_reason(line)
    if isinstance(outcome, str):
        assert outcome
        assert "\n" not in outcome
    else:
        assert outcome.command == command


@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_a_bad_one(line):
    assert request_or_reason(line)


job = st.builds(
    boinc_commands.SubmitJob,
    st.text(min_size=1, max_size=6).filter(lambda name: "\0" not in name),
    st.lists(st.text(max_size=6).map(lambda text: text.replace("\0", "")), max_size=4).map(tuple),
    st.lists(st.just(("/a b", "in\\")), max_size=3).map(tuple),
)


def test_jobs_of_a_submit_share_what_is_equal():
    request = parse_request(f"{SUBMIT} 2 j 1 -v 1 /a in k 1 -v 1 /a in".encode())
    one, other = request.jobs
    assert one.args is other.args
    assert one.inputs is other.inputs


@given(st.lists(job, min_size=1, max_size=5))
def test_a_submit_gives_back_the_jobs_that_it_was_made_of(jobs):
    line = ["BOINC_SUBMIT", "2", "b", "app", str(len(jobs))]
    for one in jobs:
        line += [one.name, str(len(one.args)), *one.args, str(len(one.inputs))]
        line += [text for pair in one.inputs for text in pair]
    request = parse_request(lines.join(line))
    assert request.jobs == tuple(jobs)
