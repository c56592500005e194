"""Jobs of a BUDA app on every way to a project, with real containers."""

import pytest

from boinc_gahp.api.project import Project
from boinc_gahp.config.layers import load
from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.submit.types import Job
from tests.localproject.in_buda import APP, add_buda_app

pytestmark = [pytest.mark.long, pytest.mark.containers]


@pytest.fixture(scope="module")
def local(engine, tmp_path_factory):
    directory = tmp_path_factory.mktemp("project") / "project"
    with LocalProject(directory, hosts=0):
        pass
    add_buda_app(directory)
    with LocalProject(directory, hosts=2, php=STOCK) as project:
        yield project


@pytest.fixture
def project(local, tmp_path, monkeypatch):
    """The project with the settings that it has written, as a person uses it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = load(str(local.directory / "boinc_gahp.toml"), {})
    with Project(local.url, local.authenticator, settings=settings) as project:
        yield project


def files(directory, *texts):
    paths = [directory / f"{number}.txt" for number, _ in enumerate(texts)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return list(map(str, paths))


def test_a_person_submits_waits_and_fetches_as_for_any_app(project, tmp_path):
    one, two = files(tmp_path, "b\na\n", "2\n1\n")
    jobs = [
        Job(["-r", "x"], {"in": one}, outputs=["out", "log"]),
        Job(["y"], {"in": two}, outputs=["out"]),
    ]
    assert project.estimate(APP, jobs) > 0
    plan = project.plan(APP, jobs)
    assert plan.request.app_name == "buda"
    assert not plan.problems
    batch = project.submit(APP, jobs)
    assert batch.name.startswith("sorter-")
    batch.wait()
    assert batch.fetch(tmp_path / "here").is_complete
    folder = {path.name[-1]: path for path in (tmp_path / "here").glob("sorter-*_?")}
    assert (folder["0"] / "out").read_text() == "a\nb\n"
    assert (folder["0"] / "log").read_text() == " -r x\n"
    assert (folder["1"] / "out").read_text() == "1\n2\n"
    assert not (folder["1"] / "log").exists()
    assert "told:  y" in (folder["1"] / "stderr.txt").read_text()
