"""Each recorded request, asked of our project: the same outcome as on the real server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import requests

from boinc_gahp.localproject import LocalProject, Quirks

from .deviations import DEVIATIONS, LEFT_OUT
from .recordings import Recording, load, outcome, send, values
from .scenes import scene_of
from .stage import Stage, add_recorded_users

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDINGS = load(LEFT_OUT)

#: Replies whose values come from more of the recorder's history than the stage shows.
OTHER_VALUES = {
    "query_batch2__jobs_without_names",
    "query_batches__name_with_ampersand_unescaped",
    "query_batch__after_dup_failure",
}


@pytest.fixture(scope="module", params=["sane", "as_is"])
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    directory: Path = tmp_path_factory.mktemp("project")
    quirks = Quirks.as_is() if request.param == "as_is" else Quirks()
    with LocalProject(directory, hosts=0, quirks=quirks) as project:
        add_recorded_users(project)
        (directory / "local" / "local_in.txt").write_text("local\n")
        yield Stage(project)


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_a_recorded_request_has_its_outcome(
    stage: Stage, session: requests.Session, recording: Recording
) -> None:
    stage.clear()
    scene_of(recording)(stage)
    stage.project.stop_web(recording.case == "web_stopped")
    stage.project.database_down(recording.case == "database_down")
    reply = send(session, stage.project.url, recording)
    meta = recording.meta
    recorded = outcome(recording, meta["status"], meta["content_type"], recording.body)
    try:
        body = reply.content
    except requests.exceptions.ChunkedEncodingError:
        # The real server promises 4096 bytes, the size of a directory, and sends fewer.
        assert recorded == ("file",)
        body = b""
    as_is = stage.core.quirks.display_errors
    if not as_is and recording.name in DEVIATIONS:
        recorded = DEVIATIONS[recording.name][0]
    ours = outcome(recording, reply.status_code, reply.headers["Content-Type"], body)
    if recorded[0] == "file":
        name = re.sub(r"_r\d+_", "_rR_", reply.headers["Content-Disposition"])
        expected = recorded[1] if len(recorded) > 1 else _filename(meta["headers"])
        assert re.sub(r"_[0-9A-Za-z]{6}\.zip", "_X.zip", name) == f"attachment; filename={expected}"
        ours = recorded[:1] + ours[1:] + recorded[1:]
    assert ours == recorded
    if as_is or recording.name not in DEVIATIONS:
        if recording.name not in OTHER_VALUES:
            assert values(recording, body) == values(recording, recording.body)
        assert reply.status_code == meta["status"]
        assert reply.headers["Content-Type"].lower() == meta["content_type"].lower()


def _filename(headers: dict[str, str]) -> str:
    name = re.sub(r"_r\d+_", "_rR_", headers["Content-Disposition"]).partition("filename=")[2]
    return re.sub(r"_[0-9A-Za-z]{6}\.zip", "_X.zip", name)
