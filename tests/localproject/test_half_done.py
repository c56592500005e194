"""Nothing is left half done, whenever the process is killed."""

from __future__ import annotations

import shutil
from itertools import count
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject import LocalProject, Php
from boinc_gahp.localproject.core import Core
from boinc_gahp.localproject.server.application import make_app
from tests.localproject.client import job
from tests.localproject.crashes import crash

if TYPE_CHECKING:
    from pathlib import Path

    from tests.localproject.crashes import Points

NAMES = ["j0", "j1", "j2"]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a staged file and a batch in state INIT, not running."""
    directory = tmp_path_factory.mktemp("ready") / "p"
    project = LocalProject(directory, hosts=0)
    project.core.download.add_bytes("x.dat", b"x")
    _send(project.core, "create_batch", "<batch_name>b</batch_name><app_name>uppercase</app_name>")
    project.close()
    return directory


def _send(core: Core, rpc: str, inner: str) -> str:
    row = core.db.connection().execute("SELECT authenticator FROM user WHERE name = 'submitter'")
    auth = f"<authenticator>{row.fetchone()[0]}</authenticator>"
    with make_app(core).test_client() as client:
        reply = client.post(
            "/test/submit_rpc_handler.php", data={"request": f"<{rpc}>{auth}{inner}</{rpc}>"}
        )
    return reply.get_data(as_text=True)


def _submit(core: Core, batch: str) -> str:
    # One job's file comes with the request, so that files are changed too.
    inline = "<input_file><mode>inline</mode><source>text</source></input_file>"
    jobs = [job(name, "x.dat") for name in NAMES[1:]]
    return _send(
        core,
        "submit_batch",
        f"<batch>{batch}<app_name>uppercase</app_name>"
        f"<job><name>{NAMES[0]}</name>{inline}</job>{''.join(jobs)}</batch>",
    )


@pytest.mark.processes
@pytest.mark.parametrize(
    ("batch", "step"),
    [
        pytest.param("<batch_name>new</batch_name>", 1, id="batch made with its jobs"),
        pytest.param("<batch_id>1</batch_id>", 3, id="batch made before"),
    ],
)
def test_a_submit_that_is_killed_anywhere_has_made_all_of_a_piece_or_nothing(
    ready: Path, tmp_path: Path, batch: str, step: int
) -> None:
    died_before: list[str] = []
    for point in count(1, step):
        directory = tmp_path / str(point)
        shutil.copytree(ready, directory)

        def work(points: Points, directory: Path = directory) -> None:
            core = Core(directory, Php())
            points.watch(core.db.connection())
            assert "<batch_id>" in _submit(core, batch)

        died = crash(point, work)
        _check(directory, batch)
        if died is None:
            break
        died_before.append(died)
    if step == 1:
        events = {"BEGIN", "INSERT workunit", "UPDATE batch", "COMMIT", "os.rename"}
        assert events <= set(died_before)
    else:
        assert len(died_before) > 2


def _check(directory: Path, batch: str) -> None:
    core = Core(directory, Php())
    try:
        before = _jobs(core)
        assert before in ([], NAMES)
        reply = _submit(core, batch)
        assert ("<error>" in reply) == bool(before)
        assert _jobs(core) == NAMES
    finally:
        core.db.close()


def _jobs(core: Core) -> list[str]:
    rows = core.db.connection().execute("SELECT name FROM workunit WHERE batch != 0 ORDER BY id")
    return [row["name"] for row in rows]


def test_half_received_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    project = LocalProject(tmp_path / "p", hosts=0)
    project.core.download.incoming().discard()
    left = tmp_path / "p" / "spool" / "half"
    left.write_bytes(b"half")
    project.close()
    with LocalProject(tmp_path / "p", hosts=0):
        assert not left.exists()
