"""Every file of a batch is associated with it, though PHP dies of each that already was."""

import pytest

from boinc_gahp.errors import PermissionDenied, ProjectDown, TransportError
from boinc_gahp.submit.association import Association, absent_names
from tests.contract.replay import Reply
from tests.submit.scripted import FATAL, FileList, error

NAMES = [f"{number:032x}.dat" for number in range(2_000)]
FAILED = Reply(b"", {}, status=500)


ALREADY = {
    "none": ([], 1),
    "all, as when a batch is staged again": (NAMES, 14),
    "the first half": (NAMES[:1_000], 15),
    "the second half": (NAMES[1_000:], 14),
    "one in the middle": (NAMES[999:1_000], 15),
    "every other one": (NAMES[::2], 2_020),
    "some here and there": (NAMES[:1_000:3] + NAMES[1_500:], 2_020),
}


@pytest.mark.parametrize(("already", "requests"), ALREADY.values(), ids=ALREADY)
def test_of_2000_files_each_is_associated_however_many_were_already(already, requests):
    server = FileList(set(NAMES), set(already))
    assert server.associate(NAMES) == []
    assert server.associated == server.present
    assert server.requests <= requests


@pytest.mark.parametrize("dies", [FATAL, FAILED], ids=["fatal error", "500"])
@pytest.mark.parametrize("already", [0, 1, 5, 20], ids=lambda count: f"{count} already")
def test_of_a_few_files_each_is_associated_whichever_were_already(already, dies):
    names = NAMES[:20]
    server = FileList(set(names), set(names[::-3][:already]), dies=dies)
    assert server.associate(names) == []
    assert server.associated == server.present
    assert server.requests <= 22


def test_absent_files_are_reported_and_the_others_associated():
    server = FileList(set(NAMES[::2]), set(NAMES[:500:2]))
    assert server.associate(NAMES) == NAMES[1::2]
    assert server.associated == server.present


def test_many_names_go_in_several_requests():
    names = [f"{number:032x}.dat" for number in range(12_000)]
    server = FileList(set(names[1:]))
    association = Association(server.script.project(), 7, 4)
    assert association.associate(names) == names[:1]
    assert absent_names(server.script.project(), names) == names[:1]
    assert server.associated == server.present
    assert server.requests == 6
    assert all(len(asked["phys_name"]) <= 5_000 for _, asked in server.script.asked)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error("no file access"), PermissionDenied),
        (error("project down for maintenance", -183), ProjectDown),
    ],
    ids=["no right", "project down"],
)
def test_a_no_of_another_kind_is_passed_on_at_once(reply, kind):
    server = FileList(set(NAMES))
    server.script.replies["query_files"] = reply
    with pytest.raises(kind):
        server.associate(NAMES)
    assert server.requests == 1


def test_trouble_of_another_kind_does_not_pass_for_a_file_that_was_associated_before():
    server = FileList(set(NAMES[:5]), set(NAMES[:2]))

    def query_files(arguments):
        alone = arguments["batch_id"] and len(arguments["phys_name"]) == 1
        return Reply(b"", {}, status=503) if alone else server.query_files(arguments)

    server.script.replies["query_files"] = query_files
    with pytest.raises(TransportError):
        server.associate(NAMES[:5])


def test_a_deadline_ends_it():
    server = FileList(set(NAMES), set(NAMES))
    project = server.script.project()
    association = Association(project.until(0.0), 7, 4)
    with pytest.raises(TransportError, match="time limit was already reached"):
        association.associate(NAMES)
    assert server.requests == 0
