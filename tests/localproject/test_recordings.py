"""Each recorded request, asked of our project: the same outcome as on the real server."""

import re

import pytest
import requests

from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.localproject.recordings import (
    is_well_formed,
    load,
    outcome,
    php_messages,
    received,
    send,
    values,
)
from tests.localproject.scenes import SCENES, scene_of
from tests.localproject.stage import Stage, add_recorded_users

RECORDINGS = load()
NAMES = {recording.name for recording in RECORDINGS}

#: Replies whose values come from more of the recorder's history than the stage shows.
OTHER_VALUES = {
    "query_batch2__jobs_without_names",
    "query_batches__name_with_ampersand_unescaped",
    "query_batch__after_dup_failure",
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    directory = tmp_path_factory.mktemp("project")
    with LocalProject(directory, hosts=0, php=STOCK) as project:
        add_recorded_users(project)
        (directory / "local" / "local_in.txt").write_text("local\n")
        yield Stage(project)


@pytest.fixture(scope="module")
def session():
    with requests.Session() as session:
        yield session


def test_every_scene_is_of_a_recording():
    assert len(NAMES) == 344
    assert SCENES.keys() | OTHER_VALUES <= NAMES


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_a_recorded_request_has_its_outcome(stage, session, recording):
    stage.clear()
    scene_of(recording)(stage)
    stage.core.web_stopped = recording.case == "web_stopped"
    stage.core.database_down = recording.case == "database_down"
    reply = send(session, stage.project.url, recording)
    body = received(reply)
    meta = recording.meta
    expected = outcome(recording, meta["status"], meta["content_type"], recording.body)
    assert outcome(recording, reply.status_code, reply.headers["Content-Type"], body) == expected
    if expected[0] == "file":
        assert _filename(dict(reply.headers)) == _filename(meta["headers"])
    if recording.name not in OTHER_VALUES:
        assert values(recording, body) == values(recording, recording.body)
    assert reply.status_code == meta["status"]
    assert reply.headers["Content-Type"].lower() == meta["content_type"].lower()
    assert php_messages(body) == php_messages(recording.body)
    assert is_well_formed(body) == is_well_formed(recording.body)


def _filename(headers):
    name = re.sub(r"_r\d+_", "_rR_", headers["Content-Disposition"]).partition("filename=")[2]
    return re.sub(r"_[0-9A-Za-z]{6}\.zip", "_X.zip", name)
