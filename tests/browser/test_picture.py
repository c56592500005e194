"""The picture of the page that README.rst shows, and how it is taken again.

``UPDATE_PICTURE=1 .venv/bin/pytest tests/browser/test_picture.py`` takes it.
"""

import os
import struct
import time
from dataclasses import replace
from pathlib import Path

import pytest

from boinc_gahp.cli.local_project import local_page
from boinc_gahp.localproject.accounts import add_settings
from boinc_gahp.localproject.backend import batches
from boinc_gahp.localproject.backend.create_work import NewJob, stage_file
from boinc_gahp.localproject.hosts import hosts
from boinc_gahp.localproject.project import LocalProject
from tests.browser.conftest import DESKTOP
from tests.helpers import wait_for
from tests.inside import change, rows
from tests.localproject.batches import made_batch

PICTURE = Path(__file__).parent.parent.parent / "docs" / "images" / "local-project.png"
_LARGEST = 150_000

# Each seventh job fails; those from the first argument on have no end.
_APP = """
import sys, time
first, number = map(int, sys.argv[1:])
if number >= first:
    time.sleep(3600)
if number % 7 == 6:
    sys.exit(3)
open("out", "w").write("done")
"""
_NEVER = 1000
#: User, app, name, jobs, the first that has no end, hours ago.
_BATCHES = (
    ("alice", "lattice", "lattice-spacing-0.06", 24, _NEVER, 26),
    ("submitter", "docking", "ligands-17", 40, _NEVER, 3),
    ("bob", "climate", "ensemble-2041", 80, 36, 0.6),
    ("submitter", "docking", "ligands-18", 120, _NEVER, 0.1),
)


def test_the_picture_is_of_the_page_and_small():
    contents = PICTURE.read_bytes()
    assert contents.startswith(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert struct.unpack(">II", contents[16:24]) == DESKTOP
    assert len(contents) < _LARGEST


def wait(project, what, question):
    """Wait until the answer to a question in SQL is yes."""
    wait_for(lambda: rows(project, question)[0][0], what)


def submit_all(project):
    """Make batches in every state."""
    file = stage_file(project.core, b"started\n", "start.dat")
    for app in ("lattice", "docking", "climate"):
        command = ["{python}", "-I", "-S", "-c", _APP]
        project.add_app(app, command=command, inputs="in", outputs="out")
    for name in ("alice", "bob"):
        project.add_user(name)
        add_settings(project.directory, project.core.db.connection(), name)
    for user, app, name, count, first, hours_ago in _BATCHES:
        job = NewJob(files=(file,), max_error_results=1)
        jobs = [
            replace(job, name=f"{name}_{number}", command_line=f"{first} {number}")
            for number in range(count)
        ]
        at = time.time() - hours_ago * 3600
        made = made_batch(project.core, name, jobs, app_name=app, user_name=user, create_time=at)
        if user == "alice":
            done = "SELECT count(*) >= 4 FROM workunit WHERE canonical_resultid > 0"
            wait(project, "4 done", done)
            with project.core.db.write() as connection:
                batches.abort(connection, made)
            project.core.wake.ring()


@pytest.mark.skipif("UPDATE_PICTURE" not in os.environ, reason="UPDATE_PICTURE is not set")
def test_the_picture_can_be_taken_again(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with LocalProject(tmp_path / "project", hosts=4) as project:
        submit_all(project)
        wait(
            project,
            "four jobs that have no end",
            "SELECT count(*) = 4 FROM result JOIN workunit w ON w.id = workunitid "
            "WHERE server_state = 4 AND w.name BETWEEN 'ensemble-2041_36' AND 'ensemble-2041_39'",
        )
        change(
            project, "UPDATE result SET sent_time = sent_time - 60 * hostid WHERE server_state = 4"
        )
        wrong = [hosts.parse_behaviour("fail=3")]
        hosts.set_behaviours(project.core.db, wrong, host="volunteer-2")
        with local_page(project) as page:
            browser.driver.get(page)
            wait_for(lambda: "ensemble-2041" in browser.driver.page_source, "the front page")
            wait_for(lambda: " running</li>" in browser.driver.page_source, "running jobs")
            PICTURE.write_bytes(browser.driver.get_screenshot_as_png())
