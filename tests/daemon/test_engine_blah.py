"""Requests of HTCondor 10 and later: words of their results, pools, and what HTCondor was told."""

import pytest

from boinc_gahp.errors import ConfigError
from boinc_gahp.gahp import lines
from tests.daemon.conversation import conversing

#: Every command that uses a job, and the words of its errors beside id, code and message.
ERRORS = {"BLAH_JOB_SUBMIT": ["NULL"], "BLAH_JOB_STATUS": ["0", "[ ]"], "BLAH_JOB_CANCEL": []}


def refused(result, command):
    """Return the message of a result that must be an error with the words that HTCondor wants."""
    request_id, code, message, *rest = lines.split(lines.encode(result))
    assert (request_id, code, rest) == ("2", "1", ERRORS.get(command, []))
    assert message.strip() not in ("", "NULL")
    return message


@pytest.mark.parametrize("command", ERRORS)
def test_a_bug_and_a_lack_of_threads_are_errors_with_all_their_words(
    conversation, command, monkeypatch
):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("threading.Thread.start", refuse)
        message = refused(conversation.result(f"{command} 2 x"), command)
    assert "no thread could be started" in message
    message = refused(conversation.result(f"{command} 2 bug"), command)
    assert message.startswith("internal error in boinc_gahp (ZeroDivisionError)")
    assert conversation.result("BLAH_PING 3 boinc") == "3 0 NULL"


@pytest.mark.parametrize("command", [*ERRORS, "BLAH_PING"])
def test_settings_that_are_refused_are_an_error_with_all_its_words(command):
    def load():
        raise ConfigError("line 3 of boinc_gahp.toml: no setting of that name")

    with conversing(load) as conversation:
        assert "line 3" in refused(conversation.result(f"{command} 2 x"), command)


def test_a_status_without_an_ad_gets_one(conversation):
    # HTCondor ignores a status that comes without one, for ever.
    conversation.service.statuses["x"] = (2, "")
    assert conversation.result("BLAH_JOB_STATUS 2 x") == "2 0 NULL 2 [\\ ]"


def test_a_secret_in_a_status_ad_is_hidden(conversation):
    conversation.service.statuses["x"] = (5, '[ HoldReason = "5ecre7-key" ]')
    assert "5ecre7" not in conversation.result("BLAH_JOB_STATUS 2 x")


def test_a_status_waits_for_no_submit_and_no_cancel(conversation):
    for number in range(2, 52):
        assert conversation.say(f"BLAH_JOB_SUBMIT {number} hang") == "S\n"
        assert conversation.say(f"BLAH_JOB_CANCEL {number + 100} hang") == "S\n"
    assert conversation.result("BLAH_JOB_STATUS 7 held").startswith("7 0 NULL 5 ")
    assert conversation.result("BLAH_PING 8 boinc") == "8 0 NULL"
    conversation.service.go.set()
    conversation.wait(100)


def test_the_service_is_made_once_and_tried_again_after_trouble():
    with conversing() as conversation:
        problems = [ConfigError("the ledger cannot be on NFS")]
        made = []

        def make():
            if problems:
                raise problems.pop()
            made.append("the service")
            return conversation.service

        conversation.projects.make_service = make
        assert "NFS" in refused(conversation.result("BLAH_PING 2 boinc"), "BLAH_PING")
        for number in range(3, 20):
            conversation.say(f"BLAH_PING {number} boinc")
        conversation.wait(17)
        assert len(made) == 1
    assert conversation.service.closed.is_set()


def test_the_ends_of_jobs_come_with_the_results_that_tell_of_them(conversation):
    for number, job in enumerate(["completed", "held", "unknown"], 2):
        conversation.say(f"BLAH_JOB_STATUS {number} {job}")
        conversation.wait()
    conversation.service.statuses["x"] = (2, "[ ]")
    conversation.say("BLAH_JOB_STATUS 5 x")
    conversation.wait()
    conversation.engine.announce()
    ended = conversation.reply("RESULTS").ended
    assert ended == ("completed", "held")
    assert conversation.reply("RESULTS").ended == ()
    assert conversation.service.tells == []
    conversation.engine.lines_written(ended)
    assert conversation.service.tells == ["completed", "held"]


def test_closing_a_service_that_hangs_or_fails_takes_no_longer_than_it_may(
    conversation, monkeypatch, caplog
):
    conversation.projects.close_service(20)  # there is none yet
    conversation.result("BLAH_PING 2 boinc")

    def fail():
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(conversation.service, "close", fail)
        conversation.projects.close_service(20)
        assert "a bug" in caplog.text
        patched.setattr(conversation.service, "close", lambda: conversation.service.go.wait(60))
        conversation.projects.close_service(0.01)
