"""The picture of the page that README.rst shows, and how it is taken again.

``UPDATE_PICTURE=1 .venv/bin/pytest tests/browser/test_picture.py`` takes it.
"""

import os
import struct
import time
from pathlib import Path

import pytest

from boinc_gahp.localproject.backend import batches
from boinc_gahp.localproject.backend.create_work import NewJob
from boinc_gahp.localproject.backend.staging import stage_file
from boinc_gahp.localproject.hosts import behaviour
from boinc_gahp.localproject.project import LocalProject
from tests.browser.conftest import DESKTOP
from tests.helpers import wait_for
from tests.localproject.visitor import made_batch

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
_APPS = ("lattice", "docking", "climate")
_NEVER = 1000


def size(png):
    """Return width and height of a PNG file."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_the_picture_is_of_the_page_and_small():
    contents = PICTURE.read_bytes()
    assert size(contents) == DESKTOP
    assert len(contents) < _LARGEST


class Scene:
    """A project with batches in every state, and hosts that are at work."""

    def __init__(self, project):
        self.project = project
        self.file = stage_file(project.core, b"started\n", "start.dat")
        for app in _APPS:
            project.add_app(
                app,
                command=["{python}", "-I", "-S", "-c", _APP],
                inputs="in",
                outputs="out",
            )
        for name in ("alice", "bob"):
            project.add_user(name)
        gone = self.submit("alice", "lattice", "lattice-spacing-0.06", 24, _NEVER, hours_ago=26)
        self.wait("4 done", "SELECT count(*) >= 4 FROM workunit WHERE canonical_resultid > 0")
        with project.core.db.write() as connection:
            batches.abort(connection, gone)
        project.core.wake.ring()
        self.submit("submitter", "docking", "ligands-17", 40, _NEVER, hours_ago=3)
        self.submit("bob", "climate", "ensemble-2041", 80, 36, hours_ago=0.6)
        self.submit("submitter", "docking", "ligands-18", 120, _NEVER, hours_ago=0.1)

    def submit(self, user_name, app_name, name, jobs, first, *, hours_ago):
        """Submit a batch, as if it had been some hours ago; return its id."""
        made = [
            NewJob(
                name=f"{name}_{number}",
                files=(self.file,),
                command_line=f"{first} {number}",
                max_error_results=1,
            )
            for number in range(jobs)
        ]
        return made_batch(
            self.project.core,
            name,
            made,
            app_name=app_name,
            user_name=user_name,
            create_time=time.time() - hours_ago * 3600,
        )

    def wait(self, what, question):
        """Wait until the answer to a question in SQL is yes."""
        connection = self.project.core.db.connection()
        wait_for(lambda: connection.execute(question).fetchone()[0], what, timeout=60)


@pytest.mark.skipif("UPDATE_PICTURE" not in os.environ, reason="UPDATE_PICTURE is not set")
def test_the_picture_can_be_taken_again(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with LocalProject(tmp_path / "project", hosts=4) as project:
        scene = Scene(project)
        scene.wait(
            "four jobs that have no end",
            "SELECT count(*) = 4 FROM result JOIN workunit w ON w.id = workunitid "
            "WHERE server_state = 4 AND w.name BETWEEN 'ensemble-2041_36' AND 'ensemble-2041_39'",
        )
        with project.core.db.write() as connection:
            connection.execute(
                "UPDATE result SET sent_time = sent_time - 60 * hostid WHERE server_state = 4"
            )
        behaviour.set_behaviours(
            project.core.db, [behaviour.parse_behaviour("fail=3")], host="volunteer-2"
        )
        browser.driver.get(project.page)
        wait_for(lambda: browser.driver.current_url == project.url, "the front page")
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_bytes(browser.driver.get_screenshot_as_png())
