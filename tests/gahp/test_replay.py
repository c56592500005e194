import re

import pytest

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp import blah_commands, boinc_commands, commands
from boinc_gahp.gahp.banner import BANNER
from boinc_gahp.gahp.command import AsyncRequest
from boinc_gahp.gahp.commands import parse_request
from boinc_gahp.gahp.conversation import Conversation
from boinc_gahp.gahp.lines import LineSplitter
from tests.gahp.conversations import ARGUMENTS, BATCH, BATCH_AD, CONVERSATIONS, FETCH_SOME


def events(text):
    """Yield (arrow, bytes); what the client sends in a row comes as one."""
    sent = b""
    for arrow, rest in re.findall(
        r"^(->|<-|!!) ((?:[^\n\\]|\\.)*)\n", text, re.MULTILINE | re.DOTALL
    ):
        line = rest.encode()
        if arrow == "->":
            sent += line + b"\r\n"
            continue
        if sent:
            yield "->", sent
            sent = b""
        yield arrow, line
    if sent:
        yield "->", sent


class Peer:
    """A daemon without processes or workers: results come when the conversation says so."""

    def __init__(self):
        self.splitter = LineSplitter()
        self.conversation = Conversation()
        self.output = BANNER
        self.requests = []

    def send(self, data):
        for line in self.splitter.feed(data):
            try:
                request = parse_request(line)
            except BadRequest:
                self.requests.append(None)
                self.output += self.conversation.syntax_error()
                continue
            self.requests.append(request)
            if isinstance(request, AsyncRequest | boinc_commands.SelectProject):
                self.output += self.conversation.success()
            else:
                self.output += self.conversation.answer(request)


def replay(text, cut):
    peer = Peer()
    expected = b""
    for arrow, line in events(text):
        if arrow == "->":
            for piece in cut(line):
                peer.send(piece)
        elif arrow == "!!":
            peer.output += peer.conversation.add_result(line)
        else:
            expected += line + b"\n"
    return expected, peer.output, peer


def whole(data):
    return [data]


def bytewise(data):
    return [data[i : i + 1] for i in range(len(data))]


@pytest.mark.parametrize("text", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_conversation_is_answered_byte_for_byte_wherever_it_is_cut(text):
    longest = max(len(line) for arrow, line in events(text) if arrow == "->")
    in_two = (lambda data, at=place: [data[:at], data[at:]] for place in range(1, longest))
    for number, cut in enumerate((whole, bytewise, *in_two)):
        expected, output, _peer = replay(text, cut)
        assert output == expected, f"the cut with number {number}"


def only_request(text):
    _expected, _output, peer = replay(text, whole)
    return peer.requests[-1]


def test_arguments_of_a_submit_arrive_as_they_were_meant():
    assert only_request(ARGUMENTS) == boinc_commands.Submit(
        "2",
        "b",
        "app",
        (
            boinc_commands.SubmitJob("b#1.10", ("one two", "back\\slash", 'dq"x', "", "last"), ()),
            boinc_commands.SubmitJob(
                "b#1.9", ("line\nend", "cr\r\nlf"), (("/home/a/in put", "in"), ("/home/a/x", "x"))
            ),
        ),
        {
            "rsc_fpops_est": "1e12",
            "rsc_fpops_bound": "86400.0",
            "rsc_memory_bound": None,
            "rsc_disk_bound": None,
            "delay_bound": None,
            "app_version_num": "12",
        },
    )


def test_pairs_of_a_fetch_arrive_in_their_order():
    assert only_request(FETCH_SOME) == boinc_commands.FetchOutput(
        "7",
        "b#1.0",
        "/home/alice/t",
        "job.err",
        "SOME",
        (
            ("out1.txt", "renamed one.txt"),
            ("res/out2.txt", "out2.txt"),
            ("job.out", "job.out"),
            ("job.err", "job.err"),
        ),
    )


def test_jobs_of_the_batch_grid_type_make_the_requests_that_they_say():
    _expected, _output, peer = replay(BATCH, whole)
    job = "boinc/0a1b2c3d.1"
    assert [one for one in peer.requests if not isinstance(one, commands.Results)] == [
        blah_commands.Ping("2", "boinc"),
        blah_commands.JobSubmit("3", BATCH_AD),
        blah_commands.JobStatus("4", job),
        blah_commands.JobStatus("5", "boinc/0a1b2c3d.2"),
        blah_commands.JobRefreshProxy("6", job, "/tmp/x509up_u1000"),
        blah_commands.JobCancel("7", job),
    ]
