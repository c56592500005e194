"""The page of a local project that has no volunteers; each answer is the newest."""

from types import SimpleNamespace

import pytest

from boinc_gahp.api.watching import Poll
from boinc_gahp.cli.local_project import local_page
from boinc_gahp.localproject.accounts import project_url, write_settings
from boinc_gahp.localproject.server.application import SUBMIT_RPCS, make_app
from boinc_gahp.page import board
from boinc_gahp.serving import WebServer
from tests.localproject.conftest import bench, empty_project  # noqa: F401  (fixtures)
from tests.page.visitor import Visitor


@pytest.fixture(autouse=True)
def _always_asked(monkeypatch):
    """Ask the project at each look, and wait for the answer."""
    monkeypatch.setattr(board, "_POLL", Poll(1e-9, 1e-9))
    monkeypatch.setattr(board, "FIRST", 60.0)
    monkeypatch.setattr(board, "_NEWER", 60.0)


@pytest.fixture
def site(bench, monkeypatch):  # noqa: F811
    """The project of ``bench``, which answers; ``asked`` are the names of the RPCs so far."""
    asked = []

    def noted(name, handler):
        def handle(*arguments):
            asked.append(name)
            handler(*arguments)

        return handle

    for name, handler in list(SUBMIT_RPCS.items()):
        monkeypatch.setitem(SUBMIT_RPCS, name, noted(name, handler))
    server = WebServer(make_app(bench.core), 0)
    bench.core.url = project_url(server.port)
    write_settings(bench.directory, bench.core.db.connection(), bench.core.url)
    server.start()
    yield SimpleNamespace(core=bench.core, directory=bench.directory, asked=asked, stop=server.stop)
    server.stop()


@pytest.fixture
def visitor(site):
    """Somebody at the page of that project."""
    with local_page(site) as address, Visitor(address, site.core) as visitor:
        yield visitor
