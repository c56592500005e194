"""What submit_batch may answer, and what the batch's own list of jobs then decides."""

import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from boinc_gahp.errors import JobRefused, PermissionDenied, ProjectError
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.journal import Journal
from boinc_gahp.submit.types import Job, SubmitRequest
from tests.contract.replay import Reply
from tests.submit.scripted import Script, batch, error, job

NAMES = [f"b#1.{number}" for number in range(4)]
REQUEST = SubmitRequest("b", "app", [(name, Job()) for name in NAMES])
NOT_INIT = error("batch not in init state")
SUCCESS = "<batch_id>7</batch_id>"


def duplicate(name):
    return error(f"create_work failed: Duplicate entry '{name}' for key 'name'")


def templates(file_info, file_ref):
    return (
        f"<templates><input_template>{file_info}<workunit>{file_ref}</workunit></input_template>"
        "<output_template><result></result></output_template></templates>"
    )


@dataclass
class Server(Script):
    """A project with the batch "b", id 7, in state INIT.

    Attributes:
        answers: for one submit_batch each: given the names, it makes jobs, and answers; None: all
            goes well.
        made: the jobs that there are.
        sent: the names in each submit_batch.
    """

    answers: object = field(default_factory=lambda: [None])
    made: list[str] = field(default_factory=list)
    sent: list[list[str]] = field(default_factory=list)
    state: int = 0

    def __post_init__(self):
        self.replies["get_templates"] = templates("", "")
        self.replies["query_batch"] = lambda _: batch(
            7, "b", self.state, *(job(1 + i, name) for i, name in enumerate(self.made))
        )

    def send(self, request):
        body = b"".join(request.body())
        if b"<submit_batch>" in body:
            names = [name.decode() for name in re.findall(rb"<job><name>(.*?)</name>", body)]
            self.sent.append(names)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.replies["submit_batch"] = answer(names) if answer else self.make(names)
        return super().send(request)

    def make(self, names, *, whole=True):
        self.made += names
        self.state = 1 if whole else 0
        return SUCCESS

    def submit(self):
        submit(self.context(), REQUEST, Journal())


def test_not_in_init_state_is_success_where_all_jobs_are_there():
    def rival(names):
        server.make(names)
        return NOT_INIT

    server = Server(answers=[rival])
    server.submit()
    assert server.sent == [NAMES]


def test_a_duplicate_entry_of_a_submit_that_is_still_running_is_waited_for():
    def running(names):
        threading.Timer(0.2, server.make, [names]).start()
        return duplicate(names[0])

    server = Server(answers=[running, lambda _: NOT_INIT])
    server.submit()
    assert server.made == NAMES
    assert len(server.sent) <= 2


def test_only_the_jobs_that_a_submit_did_not_get_to_are_sent_again():
    def half(names):
        server.make(names[:2], whole=False)
        return error("create_work failed: Lost connection to server")

    server = Server(answers=[half, None])
    with pytest.raises(ProjectError, match="Lost connection"):
        server.submit()
    server.submit()
    assert server.sent == [NAMES, NAMES[2:]]


def test_a_name_in_another_batch_is_reported_when_a_second_look_has_not_found_it():
    server = Server(answers=[lambda names: duplicate(names[1].upper())])
    with pytest.raises(JobRefused, match=re.escape(NAMES[1])):
        server.submit()
    assert len(server.sent) == 2


CREATED = {
    "after no answer": (Reply(b"", {}, status=500), 2),
    "after an outage": (error("project down for maintenance", -183), 2),
    "refused": (error("no submit access"), 1),
}


@pytest.mark.parametrize(("first", "times"), CREATED.values(), ids=CREATED)
def test_a_batch_is_created_again_unless_the_project_refuses_it(first, times):
    def create(_):
        if server.count("create_batch") == 1:
            return first
        server.replies["query_batch"] = found
        return "<batch_id>7</batch_id>"

    server = Server()
    found = server.replies["query_batch"]
    server.replies |= {"create_batch": create, "query_batch": error("no batch named b")}
    with suppress(PermissionDenied):
        server.submit()
    assert server.count("create_batch") == times
    assert server.made == (NAMES if times > 1 else [])


@pytest.mark.parametrize("retire", ["<success/>", error("not owner")], ids=["retired", "refused"])
def test_an_empty_batch_that_lost_a_race_for_its_name_is_retired(retire, caplog):
    server = Server()
    looks = iter([error("no batch named b")])
    found = server.replies["query_batch"]
    server.replies["query_batch"] = lambda asked: next(looks, None) or found(asked)
    server.replies |= {"create_batch": "<batch_id>8</batch_id>", "retire_batch": retire}
    server.submit()
    assert server.made == NAMES
    assert [asked["batch_id"] for asked in server.arguments("retire_batch")] == [["8"]]
    assert ("The empty batch 8 stays on the project" in caplog.text) == ("error" in retire)


@pytest.mark.long
def test_a_project_that_never_takes_the_jobs_is_asked_five_times():
    server = Server(answers=[lambda _: NOT_INIT])
    with pytest.raises(ProjectError, match="not in init state"):
        server.submit()
    assert server.sent == [NAMES] * 5


def test_templates_without_no_delete_are_warned_of(caplog):
    server = Server()
    reference = "<file_ref><open_name>in</open_name></file_ref>"
    server.replies["get_templates"] = templates("<file_info></file_info>", reference)
    with pytest.raises(JobRefused, match='"in"'):
        server.submit()
    assert "lacks <no_delete/>" in caplog.text
