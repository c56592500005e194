"""What ``check`` tells of an app's versions, and of outputs that were moved or deleted."""

import pytest

from boinc_gahp.cli.check.project_checks import check_outputs
from boinc_gahp.rpc.types import BatchInfo
from boinc_gahp.states import BatchState
from tests.cli.conftest import told
from tests.contract.replay import Reply
from tests.fetch.jobs import FILE, GONE, instance, uploaded
from tests.inside import change
from tests.submit.scripted import Script, batch, job

BATCHES = [
    BatchInfo(number, "b", app, BatchState.COMPLETE, 0, 0, 0, 0, 1, 0, 1.0, 0, 0)
    for number, app in ((5, "uppercase"), (7, "uppercase"), (8, "other"))
]


def outputs(page, moved):
    script = Script(
        {"query_batch": batch(7, "b", 2, job(1, "b#1.0", 119)), "query_job": instance(3)},
        uploaded(0),
        page,
    )
    if moved is not None:
        script.moved = moved
    found = [
        (each.level.value, each.shown)
        for each in check_outputs(script.project(), "uppercase", BATCHES)
    ]
    assert [each["batch_id"] for each in script.arguments("query_batch")] == [["7"]]
    return found


def test_of_outputs_that_are_where_they_were_uploaded_nothing_is_told():
    assert outputs(None, None) == []
    assert list(check_outputs(Script({}).project(), "unused", BATCHES)) == []


def test_outputs_that_are_moved_and_can_be_fetched_are_well():
    [point] = outputs(GONE, Reply(b"one", FILE))
    told(point, "ok", "batch_collect_assimilator")


@pytest.mark.parametrize(
    ("moved", "why"),
    [
        (None, "it has no get_output3.php"),
        (Reply(b"", FILE | {"Content-Length": "0"}), "does not have it"),
        (Reply(b"", {"Location": "/test/login_form.php"}, status=302), "it wants a login"),
    ],
    ids=["no page", "not there", "login"],
)
def test_outputs_that_are_gone_are_a_warning_with_what_the_admin_does(moved, why):
    [point] = outputs(GONE, moved)
    told(point, "warning", why, "sample_dummy_assimilator -d 3 --app uppercase")


@pytest.mark.usefixtures("log_stopped", "settings")
def test_an_app_has_its_versions_or_gets_no_volunteers(check, project):
    found = check("--app", "multi").of("app multi")
    assert found[2][0] == "ok"
    assert found[2][1].startswith(": versions 1.00 ")
    change(project, "DELETE FROM app_version")
    report = check("--app", "multi")
    told(report.of("app multi")[2], "warning", "it has no versions, so no volunteer gets its jobs")
