import threading
import time

import pytest

from boinc_gahp.config.settings import Settings
from boinc_gahp.errors import ConfigError
from boinc_gahp.gahp.lines import TooLong
from boinc_gahp.gahp.results import LONGEST
from boinc_gahp.secret import Authenticator
from boinc_gahp.submit.types import LocalFile, Parameters
from tests.daemon.conversation import conversing
from tests.daemon.stand_in import SETTINGS, limited

URL = "http://127.0.0.1:9/test/"


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("BOINC_PING 2", "2 NULL"),
        ("boinc_ping 007", "007 NULL"),
        ("BOINC_SUBMIT 2 b app 1 j 0 0", "2 NULL"),
        ("BOINC_QUERY_BATCHES 2 0 1 b", "2 NULL 1795261323.469543 1 b#1.0 DONE"),
        (
            "BOINC_QUERY_BATCHES 2 0 2 b a\\ c",
            "2 NULL 1795261323.469543 1 b#1.0 DONE 1 a\\ c#1.0 DONE",
        ),
        ("BOINC_QUERY_BATCHES 2 0 0", "2 NULL 1795261323.469543"),
        ("BOINC_FETCH_OUTPUT 2 j /d e ALL 0", "2 NULL 3 12.5 11.75"),
        ("BOINC_ABORT_JOBS 2 a b", "2 NULL"),
        ("BOINC_RETIRE_BATCH 2 b", "2 NULL"),
        ("BOINC_SET_LEASE 2 b 1795282616", "2 NULL"),
        ("BLAH_PING 2 boinc", "2 0 NULL"),
        ("BLAH_PING 2", "2 0 NULL"),
        ("BLAH_JOB_SUBMIT 2 [\\ ]", "2 0 NULL boinc/0a1b2c3d.1"),
        ("BLAH_JOB_STATUS 2 completed", "2 0 NULL 4 [\\ ExitCode\\ =\\ 0\\ ]"),
        ("BLAH_JOB_STATUS 2 x", "2 1 there\\ is\\ no\\ such\\ job\\ [BG-GAHP] 0 [\\ ]"),
        ("BLAH_JOB_CANCEL 2 x", "2 0 NULL"),
        ("BLAH_JOB_REFRESH_PROXY 2 x /tmp/p", "2 0 NULL"),
        ("BLAH_JOB_SUBMIT 2 fail\\ no\\ app", "2 1 no\\ app\\ [BG-GAHP] NULL"),
        ("BLAH_JOB_STATUS 2 fail\\ two\\\nlines", "2 1 two\\ lines\\ [BG-GAHP] 0 [\\ ]"),
        ("BLAH_JOB_CANCEL 2 fail\\ 5ecre7-key", "2 1 <authenticator>\\ [BG-GAHP]"),
        (
            "BOINC_RETIRE_BATCH 2 fail\\ no\\ batch\\ named\\ b",
            "2 no\\ batch\\ named\\ b\\ [BG-GAHP]",
        ),
        (
            "BOINC_QUERY_BATCHES 2 0 1 fail\\ no\\ batch\\ named\\ \x1b\\\nb",
            "2 no\\ batch\\ named\\ \\\\x1b\\ b",
        ),
        ("BOINC_RETIRE_BATCH 2 fail\\ 5ecre7-key", "2 <authenticator>\\ [BG-GAHP]"),
        (
            "BOINC_RETIRE_BATCH 2 fail\\ http://u:p@proxy:1/",
            "2 http://<login>@proxy:1/\\ [BG-GAHP]",
        ),
    ],
)
def test_a_request_has_its_result(conversation, line, result):
    assert conversation.result(line) == result


def test_a_long_error_is_cut_after_its_secrets_were_hidden(conversation, caplog):
    # So that the cut goes through the authenticator.
    name = "a" * (LONGEST - 1000 - 10) + "5ecre7-key" + "b" * 500_000
    result = conversation.result(f"BOINC_RETIRE_BATCH 2 fail\\ {name}\\ no\\ batch\\ named\\ x")
    assert len(result) < LONGEST + 100
    assert result.startswith("2 aaaa")
    assert result.endswith("bbbb\\ no\\ batch\\ named\\ x\\ [BG-GAHP]")
    assert "5ecr" not in result
    assert "5ecr" not in caplog.text
    assert len(caplog.text) < LONGEST + 1000


@pytest.mark.parametrize("name", ["bug", "exit"])
def test_a_bug_gives_one_result_and_a_traceback_in_the_log(conversation, name, caplog):
    result = conversation.result(f"BOINC_RETIRE_BATCH 2 {name}")
    assert result.startswith("2 internal\\ error\\ in\\ boinc_gahp\\ (")
    assert "traceback" in result
    assert "5ecre7" not in result
    assert "BOINC_RETIRE_BATCH 2: internal error" in caplog.text
    assert "Traceback" in caplog.text
    assert conversation.result("BOINC_PING 3") == "3 NULL"


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ("fast", '2 rsc_fpops_est\\ is\\ "fast";\\ it\\ must\\ be\\ a\\ number\\ or\\ NULL'),
        (
            "1 2 3 4 1e999",
            '2 delay_bound\\ is\\ "1e999";\\ it\\ must\\ be\\ a\\ number\\ or\\ NULL',
        ),
        ("1 2 3 4 5 1.5", "2 app_version_num\\ is\\ 1.5;\\ it\\ must\\ be\\ a\\ whole\\ number"),
    ],
)
def test_an_estimate_that_is_no_number_is_told_by_the_result(conversation, words, result):
    # It comes from a user's submit file: with E, the gridmanager would abort.
    told = f"{result}\\ [BG-BAD-REQUEST]"
    assert conversation.result(f"BOINC_SUBMIT 2 b app 1 j 0 0 {words}") == told
    assert not conversation.context.calls_of("submit")


def test_a_submit_reaches_the_engine_whole(conversation):
    conversation.result(
        "BOINC_SUBMIT 2 b app 2 j1 2 a\\ b  0 j2 0 1 /in\\ put in 1e12 NULL 5 6 86400.0 300"
    )
    ((_, request, answer_by),) = conversation.context.calls_of("submit")
    assert (request.batch_name, request.app_name) == ("b", "app")
    assert [(name, job.args) for name, job in request.jobs] == [("j1", ("a b", "")), ("j2", ())]
    assert request.jobs[1][1].inputs == {"in": LocalFile("/in put")}
    assert request.parameters == Parameters(1e12, None, 5, 6, 86400)
    assert request.app_version_num == 300
    assert answer_by is None


def test_a_gridmanager_has_its_answer_in_time(conversation):
    conversation.say("RESPONSE_PREFIX GAHP:")
    before = time.monotonic()
    conversation.say("BOINC_SUBMIT 2 b app 1 j 0 0")
    conversation.say("BOINC_QUERY_BATCHES 3 0 1 b")
    read = time.monotonic()
    conversation.wait(2)
    last = {call[0]: call[-1] for call in conversation.context.calls}
    assert before <= last["submit"] - SETTINGS.timeouts.submit <= read
    assert last["query"] is True


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [("err", "err"), ("NULL", None), ("/dev/null", None), ("", None), ("/x/err", "/x/err")],
)
def test_a_fetch_reaches_the_engine_whole(conversation, stderr, expected):
    conversation.result(f"BOINC_FETCH_OUTPUT 2 j /d/../e {stderr} some 2 a b c d\\ \udcff")
    ((_, request),) = conversation.context.calls_of("fetch")
    assert (request.job_name, request.directory, request.mode) == ("j", "/e", "SOME")
    assert request.stderr == expected
    assert request.specs == (("a", "b"), ("c", "d \udcff"))


def test_a_selection_binds_to_the_requests_read_after_it(conversation):
    say = conversation.say
    say("BOINC_SUBMIT 2 hang1 app 1 j 0 0")
    assert conversation.context.hanging.acquire(timeout=60)
    for number, key in enumerate(["aaaa", "bbbb", "aaaa"], 3):
        assert say(f"BOINC_SELECT_PROJECT http://OTHER.example/x {key}") == "S\n"
        say(f"BOINC_PING {number}")
        conversation.wait()
    conversation.context.go.set()
    conversation.wait()
    opened = [call[1:] for call in conversation.context.calls_of("open")]
    assert opened == [
        (URL, Authenticator("5ecre7-key").account),
        ("http://other.example/x/", Authenticator("aaaa").account),
        ("http://other.example/x/", Authenticator("bbbb").account),
    ]


@pytest.mark.parametrize("url", ["ftp://x/", "boinc.example.edu", "http://", "http://x/?y", ""])
def test_a_selection_that_is_no_address_is_told_by_the_results(conversation, url):
    reply = conversation.reply(f"BOINC_SELECT_PROJECT {url} key")
    assert reply.output == b"S\n"
    assert "it must be like https://" in reply.reason
    assert "it\\ must\\ be\\ like\\ https://" in conversation.result("BOINC_PING 2")


def test_a_login_in_an_address_is_not_repeated(conversation):
    reply = conversation.reply("BOINC_SELECT_PROJECT http://user:s3same@x/ key")
    assert "s3same" not in reply.reason
    assert "s3same" not in conversation.result("BOINC_PING 2")


def test_an_empty_authenticator_is_told_by_the_results(conversation):
    assert conversation.say("BOINC_SELECT_PROJECT http://x/ ") == "S\n"
    assert "authenticator" in conversation.result("BOINC_PING 2")


def test_without_any_project_a_result_says_what_to_do():
    with conversing(Settings()) as conversation:
        assert "BOINC_SELECT_PROJECT" in conversation.result("BOINC_PING 2")
        conversation.say("BOINC_SELECT_PROJECT http://x/ key")
        assert conversation.result("BOINC_PING 3") == "3 NULL"


def test_settings_that_are_wrong_are_told_by_results_until_they_are_mended():
    problems = ["line 3 of boinc_gahp.toml: no setting of that name", "still wrong"]

    def load():
        if problems:
            raise ConfigError(problems.pop(0))
        return SETTINGS

    with conversing(load) as conversation:
        assert "line\\ 3" in conversation.result("BOINC_PING 2")
        assert "still\\ wrong" in conversation.result("BOINC_PING 3")
        assert conversation.result("BOINC_PING 4") == "4 NULL"


def test_requests_past_the_limit_are_to_be_sent_again():
    with conversing(limited(pending_requests=3)) as conversation:
        conversation.projects.settings()
        for number in range(2, 5):
            assert conversation.say(f"BOINC_RETIRE_BATCH {number} hang") == "S\n"
        reply = conversation.reply("BOINC_PING 5")
        assert reply.output == b"F Threads\\ limit\\ reached\n"
        assert "3 requests are unanswered" in reply.reason
        assert conversation.say("BOINC_PING x") == "E\n"
        conversation.context.go.set()
        conversation.wait(3)
        # Results that nobody has asked for take memory, too.
        assert conversation.say("BOINC_PING 5").startswith("F ")
        assert conversation.say("RESULTS").startswith("S 3\n")
        assert conversation.say("BOINC_PING 5") == "S\n"


def test_a_ping_is_not_stuck_behind_fifty_fetches(conversation):
    for number in range(2, 52):
        assert conversation.say(f"BOINC_FETCH_OUTPUT {number} hang /d e ALL 0") == "S\n"
    assert conversation.result("BOINC_PING 52") == "52 NULL"
    names = [thread.name for thread in threading.enumerate()]
    assert sum(name.startswith("work-") for name in names) == SETTINGS.limits.workers
    conversation.context.go.set()
    conversation.wait(50)
    assert conversation.say("RESULTS").startswith("S 50\n")


def test_r_comes_before_a_return_line_and_not_before_results(conversation):
    conversation.say("ASYNC_MODE_ON")
    conversation.say("BOINC_PING 2")
    conversation.wait()
    assert conversation.say("VERSION").startswith("R\nS $GahpVersion")
    assert conversation.say("RESULTS") == "S 1\n2 NULL\n"
    conversation.say("BOINC_PING 3")
    conversation.wait()
    assert conversation.say("RESULTS") == "S 1\n3 NULL\n"
    # Of the second the words are in order; the conversation refuses the prefix.
    for line in ("nonsense", "RESPONSE_PREFIX a\\\nb"):
        conversation.say("BOINC_PING 4")
        conversation.wait()
        assert conversation.say(line) == "R\nE\n"
        conversation.say("RESULTS")


def test_a_refused_line_has_its_reason(conversation):
    reply = conversation.reply("BOINC_PING zero")
    assert (reply.output, reply.accepted) == (b"E\n", False)
    assert 'id (argument 1) is "zero"' in reply.reason
    assert conversation.engine.handle(TooLong(10)).output == b"E\n"


def test_a_fault_in_parsing_is_answered(conversation, monkeypatch, caplog):
    def broken(_line):
        raise MemoryError

    monkeypatch.setattr("boinc_gahp.daemon._engine.parse_request", broken)
    assert conversation.say("BOINC_PING 2") == "E\n"
    assert "MemoryError" in caplog.text
